//! What this processor and this operating system can do: the only unsafe code of this crate.
//!
//! Each part has a portable twin, which the tests compare it with and which runs on other
//! platforms:
//!
//! | here | what | twin |
//! |---|---|---|
//! | [`probe`] | tests the four words of a key at once (AVX2, AVX-512) | [`Block::contains`](crate::block::Block::contains) |
//! | [`prefetch`] | asks for a cache line ahead of its use | not asking |
//! | [`huge_pages`] | asks for large pages under a filter (Linux) | not asking |
//! | [`aes`] | enciphers one block (AES-NI) | the crate `aes` |
//!
//! A function that needs a feature of the processor is reached through a *token*, a value that can
//! only be made by detecting the feature. So the question is asked once, when a filter is made, and
//! who holds a token needs no proof of his own.

#[cfg(target_arch = "x86_64")]
pub(crate) mod aes;
pub(crate) mod huge_pages;
pub(crate) mod prefetch;
pub(crate) mod probe;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
