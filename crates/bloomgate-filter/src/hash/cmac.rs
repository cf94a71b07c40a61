//! AES-128-CMAC, a keyed 128-bit hash built on a block cipher.
//!
//! RFC 4493, also NIST SP 800-38B. An input of up to 16 bytes, such as an id, costs one block
//! encryption; each further 16 bytes cost one more. The construction is proven to be a pseudorandom
//! function for inputs of any length if AES is a pseudorandom permutation (Iwata and Kurosawa,
//! "OMAC: One-Key CBC MAC", 2003).

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use zeroize::Zeroizing;

use super::short_word;

#[cfg(target_arch = "x86_64")]
use crate::platform::aes::AesNi;

/// An expanded key: the key schedule of the cipher, and the subkeys.
#[derive(Clone)]
pub(super) struct CmacKey {
    cipher: Cipher,
    /// The subkeys K1 and K2 of the RFC, as [`Block`]s.
    subkeys: Zeroizing<[Block; 2]>,
}

/// Sixteen bytes, the first one least significant. The cipher and XOR are bytewise, so any
/// consistent order works.
type Block = u128;

#[derive(Clone)]
enum Cipher {
    /// Portable and constant-time; some 100 times slower than AES-NI.
    Portable(Box<aes::Aes128>),
    #[cfg(target_arch = "x86_64")]
    AesNi(AesNi),
}

impl CmacKey {
    /// Expands `key` for AES-NI, if the processor has it.
    pub(super) fn new(key: &[u8; 16]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(cipher) = AesNi::new(key) {
            return Self::with_cipher(Cipher::AesNi(cipher));
        }
        Self::portable(key)
    }

    /// Expands `key` for the portable cipher.
    pub(super) fn portable(key: &[u8; 16]) -> Self {
        Self::with_cipher(Cipher::Portable(Box::new(aes::Aes128::new(key.into()))))
    }

    fn with_cipher(cipher: Cipher) -> Self {
        let zero = match &cipher {
            Cipher::Portable(cipher) => encrypt(cipher, 0),
            #[cfg(target_arch = "x86_64")]
            Cipher::AesNi(cipher) => cipher.encrypt(0),
        };
        let first = double(zero);
        Self { cipher, subkeys: Zeroizing::new([first, double(first)]) }
    }

    /// The tag of `bytes`, the first byte least significant.
    #[inline]
    pub(super) fn tag(&self, bytes: &[u8]) -> u128 {
        match &self.cipher {
            Cipher::Portable(cipher) => portable_tag(cipher, &self.subkeys, bytes),
            #[cfg(target_arch = "x86_64")]
            Cipher::AesNi(cipher) => {
                let (state, last) = chain(&self.subkeys, bytes, |block| cipher.encrypt(block));
                cipher.encrypt(state ^ last)
            }
        }
    }
}

// Not inlined, so that it doesn't take registers from the AES-NI path.
#[inline(never)]
fn portable_tag(cipher: &aes::Aes128, subkeys: &[Block; 2], bytes: &[u8]) -> u128 {
    let (state, last) = chain(subkeys, bytes, |block| encrypt(cipher, block));
    encrypt(cipher, state ^ last)
}

/// All but the last encryption: the state of the chain, and the last block XORed with its subkey.
#[inline]
fn chain(
    subkeys: &[Block; 2],
    mut bytes: &[u8],
    encrypt: impl Fn(Block) -> Block,
) -> (Block, Block) {
    let mut state = 0;
    // The last block, full or partial, is processed below.
    while bytes.len() > 16
        && let Some((block, rest)) = bytes.split_first_chunk::<16>()
    {
        state = encrypt(state ^ Block::from_le_bytes(*block));
        bytes = rest;
    }
    let last = match <[u8; 16]>::try_from(bytes) {
        Ok(whole) => Block::from_le_bytes(whole) ^ subkeys[0],
        Err(_) => padded(bytes) ^ subkeys[1],
    };
    (state, last)
}

/// Fewer than 16 bytes, padded with a single 1 bit and zeros.
#[inline]
fn padded(bytes: &[u8]) -> Block {
    let words = match bytes.split_first_chunk::<8>() {
        Some((low, high)) => {
            Block::from(u64::from_le_bytes(*low)) | Block::from(short_word(high)) << 64
        }
        None => Block::from(short_word(bytes)),
    };
    words | 0x80 << (8 * bytes.len())
}

/// Doubles `block` in GF(2^128) as the RFC defines it, with big-endian bytes.
fn double(block: Block) -> Block {
    let value = block.swap_bytes();
    // Branch-free, because the value is secret.
    ((value << 1) ^ ((value >> 127) * 0x87)).swap_bytes()
}

fn encrypt(cipher: &aes::Aes128, block: Block) -> Block {
    let mut bytes = block.to_le_bytes().into();
    cipher.encrypt_block(&mut bytes);
    Block::from_le_bytes(bytes.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    }

    /// RFC 4493, section 4.
    #[test]
    fn case_07_cmac_agrees_with_rfc_4493_on_both_ciphers() {
        let key = bytes("2b7e151628aed2a6abf7158809cf4f3c").try_into().unwrap();
        let message = bytes(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
             30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710",
        );
        for (len, tag) in [
            (0, "bb1d6929e95937287fa37d129b756746"),
            (16, "070a16b46b4d4144f79bdd9dd04a287c"),
            (40, "dfa66747de9ae63030ca32611497c827"),
            (64, "51f0bebf7e3b9d92fc49741779363cfe"),
        ] {
            for key in [CmacKey::new(&key), CmacKey::portable(&key)] {
                assert_eq!(key.tag(&message[..len]).to_le_bytes().to_vec(), bytes(tag), "{len}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 500 }))]

        #[test]
        fn case_07_hardware_and_portable_cmac_agree(
            key: [u8; 16],
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let (here, anywhere) = (CmacKey::new(&key), CmacKey::portable(&key));
            prop_assert_eq!(here.tag(&bytes), anywhere.tag(&bytes));
        }
    }
}
