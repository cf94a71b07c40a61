//! Concurrent membership filters: a keyed Bloom filter, an exact bitmap, an exact set.
//!
//! A membership filter answers whether a key is in a set. *No* is always certain. How reliable
//! *yes* is, and how much memory the set takes, depends on the family:
//!
//! | | keys | false positives | memory |
//! |---|---|---|---|
//! | [`BloomFilter`] | any | at a chosen rate | 10.1 bits a key at 1 %, 15.7 at 0.1 % |
//! | [`Bitmap`] | integers | none | 1.05 bits a key for dense keys, 16 at one in a hundred |
//! | [`ExactSet`] | any, a few thousand | none | the keys themselves |
//! | [`ClassicBloom`] | any | at a chosen rate | 9.6 bits a key at 1 %, 14.4 at 0.1 % |
//!
//! bloomgate's gate uses the first three. The last is the textbook filter, included for comparison.
//! Any number of threads can insert through `&self` while others read; reads never wait. The crate
//! is synchronous and does no network I/O.
//!
//! # Data flow
//!
//! ```text
//! key ──canonical bytes──▶ keyed hash ──block, bits──▶ layout ──words, masks──▶ filter ──▶ bool
//!  key        │             hash, secret               (private)                bloom
//!             │                                            ▲ size
//!             │             items, false-positive rate ──▶ sizing
//!             └──────────────────────────────────────────▶ bitmap, exact ──────────────▶ bool
//! ```
//!
//! - [`Key`]: the one injective encoding of a key as bytes.
//! - [`Secret`], [`HashAlgorithm`], [`KeyedHasher`], [`KeyHash`]: a specified hash under a key
//!   derived from a secret and a nonce, so that false positives can't be computed without the
//!   secret.
//! - [`FalsePositiveRate`], [`BloomParams`], [`ClassicParams`]: the size of a filter; see
//!   [`sizing`] for the formulas.
//! - [`Membership`], [`Stats`], [`Family`]: the interface that the families share.
//! - [`snapshot`]: sets in files and messages.
//! - [`Error`]: errors of constructors and of snapshots. Lookups and inserts can't fail.
//!
//! ```
//! use bloomgate_filter::{
//!     BloomFilter, BloomParams, FalsePositiveRate, HashAlgorithm, Key, KeyedHasher, Secret,
//! };
//!
//! // All instances share one secret; each generation of the filter has another nonce. Use 32
//! // random bytes, for instance through `Secret::from_env`. `Secret::generate`, which makes a new
//! // secret, needs the feature `getrandom`.
//! let secret = Secret::new(b"replace with 32 random bytes")?;
//! let hasher = KeyedHasher::new(HashAlgorithm::Aes128, &secret, b"generation no. 1");
//!
//! // A million ids; one absent id in a thousand may pass.
//! let params = BloomParams::new(1_000_000, FalsePositiveRate::new(0.001)?)?;
//! let filter = BloomFilter::new(params, hasher)?;
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
//! A block of the Bloom filter has 64 bytes: eight words in four pairs. A key selects one word of
//! each pair and sets two different bits in it. A lookup therefore fetches one cache line, where
//! the classic filter fetches up to one per bit.
//!
//! # Unsafe code
//!
//! Unsafe code is confined to the folder `platform` (vector and AES instructions of x86-64, and one
//! system call), where each use states why it is sound. It runs only where the processor or the
//! system supports it. Every part has a portable equivalent that gives the same answers and that
//! the tests compare it with.
//!
//! # Stability
//!
//! The encodings of keys, the hashes, the derivation of their keys, the layout and version 1 of the
//! snapshots are the same on every target and in every release. Golden vectors and files in the
//! tests verify them.
//!
//! # Features
//!
//! None is enabled by default.
//!
//! - `getrandom`: `Secret::generate`.
//! - `uuid`: [`Key`] for `uuid::Uuid`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod alloc;
mod any_set;
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

pub use any_set::AnySet;
pub use bitmap::Bitmap;
pub use bloom::BloomFilter;
pub use classic::ClassicBloom;
pub use error::Error;
pub use exact::ExactSet;
pub use hash::{HashAlgorithm, KeyHash, KeyedHasher, Secret};
pub use key::Key;
pub use membership::{Family, Membership, Stats};
pub use sizing::{BloomParams, ClassicParams, FalsePositiveRate};

/// The code in the package's README, which compiles as it is printed.
#[cfg(all(doctest, feature = "getrandom"))]
#[doc = include_str!("../README.md")]
struct Readme;
