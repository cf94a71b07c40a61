//! Tests the four words of a key in one step.

use crate::block::Block;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// How blocks are looked into on this processor.
#[derive(Clone, Copy)]
pub(crate) enum Probe {
    /// One word after another.
    Scalar,
    /// All four at once.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// The same in fewer steps.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

impl Probe {
    /// The quickest way that this processor knows.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(token) = avx512::Avx512::detect() {
            return Self::Avx512(token);
        } else if let Some(token) = avx2::Avx2::detect() {
            return Self::Avx2(token);
        }
        Self::Scalar
    }

    /// Every way that this processor knows.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(crate) fn all() -> Vec<Self> {
        let known = [
            Some(Self::Scalar),
            avx2::Avx2::detect().map(Self::Avx2),
            avx512::Avx512::detect().map(Self::Avx512),
        ];
        known.into_iter().flatten().collect()
    }

    /// Whether all bits of a key, given as the `bits` of its hash, are set in `block`.
    #[inline]
    pub(crate) fn contains(self, block: &Block, bits: u64) -> bool {
        match self {
            Self::Scalar => scalar(block, bits),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => token.contains(block, bits),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => token.contains(block, bits),
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
            Self::Avx2(token) => token.contains_each(lookups, answers),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => token.contains_each(lookups, answers),
        }
    }
}

/// Word after word. Where there is a better way, it should not take registers from that.
#[cfg_attr(target_arch = "x86_64", inline(never))]
#[cfg_attr(not(target_arch = "x86_64"), inline)]
fn scalar(block: &Block, bits: u64) -> bool {
    block.contains(bits)
}
