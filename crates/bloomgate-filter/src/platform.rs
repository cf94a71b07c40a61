//! Processor and operating system features: the only unsafe code of this crate.
//!
//! Each part has a portable equivalent, which runs on other platforms and which the tests compare
//! it with:
//!
//! | module | function | portable equivalent |
//! |---|---|---|
//! | [`probe`] | tests the four words of a key at once (AVX2, AVX-512) | [`Block::contains`](crate::block::Block::contains) |
//! | [`prefetch`] | prefetches a cache line | none needed |
//! | [`huge_pages`] | requests huge pages for a filter (Linux) | none needed |
//! | [`aes`] | encrypts one block (AES-NI) | the crate `aes` |
//!
//! A function that needs a processor feature is a method of a *proof type*, whose values can only
//! be made by detecting the feature. Detection therefore runs once, when a filter is created.

#[cfg(target_arch = "x86_64")]
pub(crate) mod aes;
pub(crate) mod huge_pages;
pub(crate) mod prefetch;
pub(crate) mod probe;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
