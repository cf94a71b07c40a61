//! Vectorised block probes, selected by the features of the processor.

use crate::block::Block;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// The implementation of block lookups for this processor.
#[derive(Clone, Copy)]
pub(crate) enum Probe {
    /// Portable, one word after another.
    Scalar,
    /// All four words at once, with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// All four words at once, with AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

impl Probe {
    /// The fastest implementation that this processor supports.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = avx512::Avx512::detect() {
            return Self::Avx512(proof);
        } else if let Some(proof) = avx2::Avx2::detect() {
            return Self::Avx2(proof);
        }
        Self::Scalar
    }

    /// Every implementation that this processor supports.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(crate) fn all() -> Vec<Self> {
        let supported = [
            Some(Self::Scalar),
            avx2::Avx2::detect().map(Self::Avx2),
            avx512::Avx512::detect().map(Self::Avx512),
        ];
        supported.into_iter().flatten().collect()
    }

    /// Whether all bits of a key, given as the `bits` of its hash, are set in `block`.
    #[inline]
    pub(crate) fn contains(self, block: &Block, bits: u64) -> bool {
        match self {
            Self::Scalar => scalar(block, bits),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(proof) => proof.contains(block, bits),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(proof) => proof.contains(block, bits),
        }
    }

    /// [`contains`](Probe::contains) for each of `lookups`, in their order.
    #[inline]
    pub(crate) fn contains_each(self, lookups: &[(&Block, u64)], answers: &mut Vec<bool>) {
        match self {
            Self::Scalar => {
                answers.extend(lookups.iter().map(|(block, bits)| block.contains(*bits)));
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(proof) => proof.contains_each(lookups, answers),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(proof) => proof.contains_each(lookups, answers),
        }
    }
}

/// The portable lookup. Not inlined on x86-64, so that it takes no registers from the vector paths.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline)]
fn scalar(block: &Block, bits: u64) -> bool {
    block.contains(bits)
}
