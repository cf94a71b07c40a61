//! Model-checked tests of a block, over every interleaving of its threads.

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::thread;

use super::*;

impl Word for loom::sync::atomic::AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn set(&self, mask: u64, order: Ordering) {
        self.fetch_or(mask, order);
    }
}

type Modelled = Block<loom::sync::atomic::AtomicU64>;

/// Two keys that share every word, and in each word one of their two bits.
const ONE: u64 = 0;
const OTHER: u64 = (1 << 49) | (1 << 38) | (1 << 27) | (1 << 16);

fn explore(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    // A bound of three preemptions finds the known kinds of races and keeps the number of
    // interleavings in the thousands.
    model.preemption_bound = Some(3);
    model.check(check);
}

#[test]
fn model_keys_share_one_bit_in_every_word() {
    for ((word, mask), (other_word, other_mask)) in
        word_masks(ONE).into_iter().zip(word_masks(OTHER))
    {
        assert_eq!(word, other_word);
        assert_eq!((mask & other_mask).count_ones(), 1);
    }
}

#[test]
fn case_11_concurrent_inserts_lose_no_bit_in_any_interleaving() {
    explore(|| {
        let block = Arc::new(Modelled::default());
        let other = thread::spawn({
            let block = Arc::clone(&block);
            move || block.insert(OTHER)
        });
        let new = block.insert(ONE);
        assert!(block.contains(ONE), "a thread sees its own insert");
        assert!(other.join().unwrap() && new, "each key has a bit that the other lacks");
        assert!(block.contains(ONE) && block.contains(OTHER));
    });
}

#[test]
fn case_11_of_concurrent_inserts_of_a_new_key_at_least_one_returns_true() {
    explore(|| {
        let block = Arc::new(Modelled::default());
        let other = thread::spawn({
            let block = Arc::clone(&block);
            move || block.insert(ONE)
        });
        let new = block.insert(ONE);
        assert!(other.join().unwrap() || new);
    });
}

#[test]
fn a_found_key_makes_writes_before_its_insert_visible() {
    explore(|| {
        let block = Arc::new(Modelled::default());
        let row = Arc::new(loom::sync::atomic::AtomicU64::new(0));
        let writer = thread::spawn({
            let (block, row) = (Arc::clone(&block), Arc::clone(&row));
            move || {
                row.store(1, Ordering::Relaxed);
                block.insert(ONE);
            }
        });
        if block.contains(ONE) {
            assert_eq!(row.load(Ordering::Relaxed), 1);
        }
        writer.join().unwrap();
        assert!(block.contains(ONE), "an insert that happened before is visible");
    });
}

#[test]
fn case_11_merge_and_concurrent_insert_lose_no_bit() {
    explore(|| {
        let (target, source) = (Arc::new(Modelled::default()), Modelled::default());
        source.insert(OTHER);
        let writer = thread::spawn({
            let target = Arc::clone(&target);
            move || target.insert(ONE)
        });
        target.merge(&source);
        writer.join().unwrap();
        assert!(target.contains(ONE) && target.contains(OTHER));
    });
}
