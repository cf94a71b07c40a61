//! The master secret.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::Error;

/// The master secret, from which all hash keys of a deployment are derived.
///
/// All instances that share filters need the same secret. `Debug` prints `Secret(redacted)`, and
/// the memory is overwritten when the value is dropped.
///
/// ```
/// use bloomgate_filter::Secret;
///
/// let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;
/// assert_eq!(format!("{secret:?}"), "Secret(redacted)");
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
#[derive(Clone)]
pub struct Secret(Zeroizing<Box<[u8]>>);

impl Secret {
    /// The shortest secret that is accepted, in bytes.
    pub const MIN_BYTES: usize = 16;

    /// Takes `bytes` as the secret. They should be random. Any length from
    /// [`MIN_BYTES`](Secret::MIN_BYTES) is used in full.
    ///
    /// # Errors
    ///
    /// [`Error::SecretTooShort`] for fewer than 16 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() < Self::MIN_BYTES {
            return Err(Error::SecretTooShort { bytes: bytes.len() });
        }
        Ok(Self(Zeroizing::new(bytes.into())))
    }

    /// Reads the secret from hexadecimal digits of either case, white space around them ignored.
    ///
    /// # Errors
    ///
    /// [`Error::SecretNotHex`], or [`Error::SecretTooShort`] for fewer than 32 digits.
    pub fn from_hex(hex: &str) -> Result<Self, Error> {
        let digits = hex.trim_ascii().as_bytes();
        if !digits.len().is_multiple_of(2) {
            return Err(Error::SecretNotHex);
        }
        // Full capacity from the start: reallocation would leave copies that are not wiped.
        let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() / 2));
        for pair in digits.chunks_exact(2) {
            bytes.push((nibble(pair[0])? << 4) | nibble(pair[1])?);
        }
        Self::new(&bytes)
    }

    /// Reads the secret from the environment variable `var`, in hexadecimal.
    ///
    /// # Errors
    ///
    /// [`Error::SecretNotInEnvironment`] if `var` is unset or not UTF-8, otherwise those of
    /// [`from_hex`](Secret::from_hex).
    pub fn from_env(var: &str) -> Result<Self, Error> {
        match std::env::var(var) {
            Ok(hex) => Self::from_hex(&Zeroizing::new(hex)),
            Err(_) => Err(Error::SecretNotInEnvironment { variable: var.to_owned() }),
        }
    }

    /// Generates a secret of 32 random bytes from the operating system (feature `getrandom`).
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`] if the operating system provides none.
    #[cfg(feature = "getrandom")]
    pub fn generate() -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes)
            .map_err(|error| Error::NoRandomness { reason: error.to_string() })?;
        Self::new(&*bytes)
    }

    /// The secret in lower-case hexadecimal, for storing it in a secret store.
    ///
    /// No other method exposes the bytes. The caller is responsible for protecting and wiping the
    /// returned string.
    pub fn to_hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = String::with_capacity(2 * self.0.len());
        for byte in self.0.iter() {
            hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
            hex.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        hex
    }

    /// Eight bytes that identify the secret, so that instances can compare their secrets.
    ///
    /// Derived with HKDF-SHA256 under a separate label. It reveals nothing about the secret or any
    /// generation key, and may be stored and logged.
    pub fn fingerprint(&self) -> [u8; 8] {
        *self.derive(&[], &[b"bloomgate secret fingerprint v1"])
    }

    /// HKDF-SHA256 with the secret as input key, for outputs of `N` bytes.
    pub(super) fn derive<const N: usize>(&self, salt: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; N]> {
        // RFC 5869 allows 255 hashes of output, so the expansion below can't fail.
        const { assert!(N <= 255 * 32) };
        let mut output = Zeroizing::new([0; N]);
        let expanded =
            Hkdf::<Sha256>::new(Some(salt), &self.0).expand_multi_info(info, &mut *output);
        if expanded.is_err() {
            unreachable!("the output length is checked at compile time");
        }
        output
    }
}

fn nibble(digit: u8) -> Result<u8, Error> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(Error::SecretNotHex),
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}
