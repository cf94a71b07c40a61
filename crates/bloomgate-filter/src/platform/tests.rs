//! Tests of the unsafe code against its portable equivalents, on the features of this processor.

use std::sync::atomic::{AtomicU64, Ordering};

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;

use super::aes::AesNi;
use super::probe::Probe;
use crate::block::Block;
use crate::layout::word_masks;

/// A block of the given words with the bits of the key set, except those that `holes` selects.
fn block(words: [u64; 8], bits: u64, holes: [bool; 8]) -> Block {
    let block = Block(words.map(AtomicU64::new));
    for (at, (word, mask)) in word_masks(bits).into_iter().enumerate() {
        block.0[word].fetch_or(mask, Ordering::Relaxed);
        let (low, high) = (mask & mask.wrapping_neg(), 1 << (63 - mask.leading_zeros()));
        for (hole, bit) in [(holes[2 * at], low), (holes[2 * at + 1], high)] {
            if hole {
                block.0[word].fetch_and(!bit, Ordering::Relaxed);
            }
        }
    }
    block
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 4_000 }))]

    #[test]
    fn vector_probes_agree_with_the_scalar_probe(
        words: [u64; 8],
        bits: u64,
        holes in proptest::array::uniform8(proptest::bool::weighted(0.1)),
    ) {
        let block = block(words, bits, holes);
        let expected = holes == [false; 8];
        prop_assert_eq!(block.contains(bits), expected);
        for probe in Probe::all() {
            prop_assert_eq!(probe.contains(&block, bits), expected);
            let mut answers = Vec::new();
            probe.contains_each(&[(&block, bits), (&Block::default(), bits)], &mut answers);
            prop_assert_eq!(answers, vec![expected, false]);
        }
    }

    #[test]
    fn hardware_aes_agrees_with_portable_aes(key: [u8; 16], plain: [u8; 16]) {
        let mut expected = plain.into();
        aes::Aes128::new(&key.into()).encrypt_block(&mut expected);
        if let Some(cipher) = AesNi::new(&key) {
            let cipher = cipher.encrypt(u128::from_le_bytes(plain));
            prop_assert_eq!(cipher.to_le_bytes(), <[u8; 16]>::from(expected));
        }
    }
}

/// FIPS 197, appendix C.1.
#[test]
fn hardware_aes_agrees_with_fips_197() {
    let key = std::array::from_fn(|at| at as u8);
    let plain = std::array::from_fn(|at| 0x11 * at as u8);
    let cipher = [
        0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5,
        0x5a,
    ];
    if let Some(aes) = AesNi::new(&key) {
        assert_eq!(aes.encrypt(u128::from_le_bytes(plain)).to_le_bytes(), cipher);
    }
}

/// Clears each bit of a key in an otherwise full block.
#[test]
fn vector_probes_test_every_bit_of_a_key() {
    for bits in (0..if cfg!(miri) { 20 } else { 20_000_u64 })
        .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17))
    {
        let full = Block([const { AtomicU64::new(u64::MAX) }; 8]);
        assert!(Probe::all().iter().all(|probe| probe.contains(&full, bits)));
        for (word, mask) in word_masks(bits) {
            for bit in (0..64).map(|at| 1_u64 << at).filter(|bit| mask & bit != 0) {
                full.0[word].fetch_and(!bit, Ordering::Relaxed);
                let found = Probe::all().iter().any(|probe| probe.contains(&full, bits));
                assert!(!found, "{bits:#x} {word} {bit:#x}");
                full.0[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
    }
}
