//! Keyed membership filters: a cache-line-blocked Bloom filter over atomics, sized by its own
//! measured rate.
//!
//! A membership filter answers "is this key in the set?" from a few bits a key. *No* is certain;
//! *yes* is wrong for a chosen share of absent keys. This crate holds the filters behind bloomgate's
//! gate. It is synchronous, knows no network and has no unsafe code of its own.
//!
//! # The way of a key
//!
//! ```text
//! key ──canonical bytes──▶ keyed hash ──block, bits──▶ layout ──words, masks──▶ filter ──▶ bool
//!  key                      hash, secret               (private)                bloom
//!                                                          ▲ size
//!                                          items, rate ──▶ sizing
//! ```
//!
//! - [`Key`]: the one injective encoding of a key as bytes.
//! - [`Secret`], [`enum@Hash`], [`KeyedHasher`], [`KeyHash`]: a specified hash under a key derived from a
//!   secret and a nonce, so that nobody outside can compute what passes.
//! - [`Rate`], [`Plan`]: how large a filter must be; see [`sizing`] for the formulas.
//! - [`ClassicBloom`], [`ClassicPlan`]: the textbook filter, for reference.
//! - [`BloomFilter`]: the filter. [`Membership`] and [`Stats`]: what all families of filters share.
//! - [`Error`]: what can be wrong with a configuration.
//!
//! ```
//! use bloomgate_filter::{BloomFilter, Hash, Key, KeyedHasher, Plan, Rate, Secret};
//!
//! // One secret for all instances; another nonce for each generation of the filter.
//! let secret = Secret::generate()?;
//! let hasher = KeyedHasher::new(Hash::SipHash13, &secret, b"generation no. 1");
//!
//! // A million ids, one absent id in a thousand may pass.
//! let filter = BloomFilter::new(Plan::new(1_000_000, Rate::new(0.001)?)?, hasher)?;
//! for id in 0..1_000_i64 {
//!     id.with_bytes(|bytes| filter.insert(bytes));
//! }
//!
//! assert!(500_i64.with_bytes(|bytes| filter.contains(bytes)));
//! assert!(filter.stats().present_false_positive_rate < 1e-6);
//! # Ok::<(), bloomgate_filter::Error>(())
//! ```
//!
//! # The layout
//!
//! A block has 64 bytes: eight words, in four pairs. A key takes one word of each pair and sets two
//! different bits in it. One cache line a lookup, and 10.1 bits a key at a rate of 1 %, 15.7 at 0.1 %
//! (the classic Bloom filter, one cache line a *bit*, needs 9.6 and 14.4).
//!
//! # What is stable
//!
//! The encodings of keys, the hashes, the derivation of their keys and the layout are the same on
//! every target and in every release; golden vectors in the tests hold them fast.

mod block;
mod bloom;
mod classic;
mod error;
mod hash;
mod key;
mod layout;
mod membership;
mod simd;
pub mod sizing;
mod tally;

pub use bloom::BloomFilter;
pub use classic::ClassicBloom;
pub use error::Error;
pub use hash::{Hash, KeyHash, KeyedHasher, Secret};
pub use key::Key;
pub use membership::{Family, Membership, Stats};
pub use sizing::{ClassicPlan, Plan, Rate};
