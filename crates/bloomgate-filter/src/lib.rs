//! Membership filters: exact where that is possible, one cache line a lookup where it isn't.
//!
//! A membership filter answers "is this key in the set?". *No* is certain, always. What *yes* is
//! worth, and what it costs, depends on the family:
//!
//! | | keys | *yes* is wrong for | memory |
//! |---|---|---|---|
//! | [`BloomFilter`] | any | a chosen share of absent keys | 10.1 bits a key at 1 %, 15.7 at 0.1 % |
//! | [`Bitmap`] | integers | none | 1.05 bits a key if they are dense, 16 at one in a hundred |
//! | [`ExactSet`] | any, a few thousand | none | the keys themselves |
//! | [`ClassicBloom`] | any | a chosen share of absent keys | 9.6 bits a key at 1 %, 14.4 at 0.1 % |
//!
//! The first three are what bloomgate's gate is made of; the last is the textbook filter, there to
//! compare with. All are filled through `&self` from any number of threads while others read, and
//! reads never wait. The crate is synchronous and knows no network.
//!
//! # The way of a key
//!
//! ```text
//! key ──canonical bytes──▶ keyed hash ──block, bits──▶ layout ──words, masks──▶ filter ──▶ bool
//!  key        │             hash, secret               (private)                bloom
//!             │                                            ▲ size
//!             │                            items, rate ──▶ sizing
//!             └──────────────────────────────────────────▶ bitmap, exact ──────────────▶ bool
//! ```
//!
//! - [`Key`]: the one injective encoding of a key as bytes.
//! - [`Secret`], [`HashAlgorithm`], [`KeyedHasher`], [`KeyHash`]: a specified hash under a key derived from a
//!   secret and a nonce, so that nobody outside can compute what passes.
//! - [`FalsePositiveRate`], [`BloomParams`]: how large a filter must be; see [`sizing`] for the formulas.
//! - [`Membership`], [`Stats`], [`Family`]: what the families have in common.
//! - [`snapshot`]: sets in files and messages.
//! - [`Error`]: what can go wrong before a filter exists, or with a snapshot of it.
//!
//! ```
//! use bloomgate_filter::{BloomFilter, HashAlgorithm, Key, KeyedHasher, BloomParams, FalsePositiveRate, Secret};
//!
//! // One secret for all instances; another nonce for each generation of the filter.
//! let secret = Secret::generate()?;
//! let hasher = KeyedHasher::new(HashAlgorithm::Aes128, &secret, b"generation no. 1");
//!
//! // A million ids, one absent id in a thousand may pass.
//! let filter = BloomFilter::new(BloomParams::new(1_000_000, FalsePositiveRate::new(0.001)?)?, hasher)?;
//! for id in 0..1_000_i64 {
//!     id.with_bytes(|bytes| filter.insert(bytes));
//! }
//!
//! assert!(500_i64.with_bytes(|bytes| filter.contains(bytes)));
//! assert!(filter.stats().current_false_positive_rate < 1e-6);
//! # Ok::<(), bloomgate_filter::Error>(())
//! ```
//!
//! # The layout
//!
//! Of the Bloom filter: a block has 64 bytes, which are eight words, in four pairs. A key takes one
//! word of each pair and sets two different bits in it. So a lookup fetches one cache line, where the
//! classic filter fetches one for every bit.
//!
//! # Unsafe code
//!
//! Vector and AES instructions of x86-64, in one folder, `platform`, which says why each use is sound.
//! They are used where the processor has them. Everything has a portable twin that the tests compare
//! it with and that gives the same answers.
//!
//! # What is stable
//!
//! The encodings of keys, the hashes, the derivation of their keys, the layout and version 1 of the
//! snapshots are the same on every target and in every release; golden vectors and files in the tests
//! hold them fast.

mod alloc;
mod bitmap;
mod block;
mod bloom;
#[cfg(test)]
mod chi_square;
mod classic;
mod error;
mod exact;
mod hash;
mod key;
mod layout;
mod membership;
mod platform;
pub mod sizing;
pub mod snapshot;
mod striped_counter;
mod table;

pub use bitmap::Bitmap;
pub use bloom::BloomFilter;
pub use classic::ClassicBloom;
pub use error::Error;
pub use exact::ExactSet;
pub use hash::{HashAlgorithm, KeyHash, KeyedHasher, Secret};
pub use key::Key;
pub use membership::{Family, Membership, Stats};
pub use sizing::{BloomParams, ClassicParams, FalsePositiveRate};
