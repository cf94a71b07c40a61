//! Which chunks there are, and where each is kept.

/// The numbers of chunks: an id of 64 bits without its lower 16.
pub(super) const CHUNKS: u64 = 1 << 48;

/// A direct table is chosen if it has at most this many entries for each chunk. At 4 it takes at
/// most twice the memory of the list (8 bytes an entry against 16 a chunk).
const MAX_ENTRIES_PER_CHUNK: u64 = 4;

/// Where the ids of one chunk are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the page of this index.
    Page(usize),
    /// From `start`, `len` positions of the arrays: 1 to 4096.
    Array { start: usize, len: usize },
}

/// A [`Place`], or none, in eight bytes: the lower 13 bits are the length of the array, 0 for none
/// and [`PackedPlace::PAGE`] for a page; the others are the start or the index.
#[derive(Clone, Copy)]
pub(super) struct PackedPlace(u64);

impl PackedPlace {
    const NONE: Self = Self(0);
    const LEN_BITS: u32 = 13;
    const PAGE: u64 = (1 << Self::LEN_BITS) - 1;

    pub(super) fn pack(place: Place) -> Self {
        let (start, len) = match place {
            Place::Page(index) => (index, Self::PAGE),
            Place::Array { start, len } => (start, len as u64),
        };
        // No start outgrows its 51 bits: that would take 2^51 positions in memory.
        Self(((start as u64) << Self::LEN_BITS) | len)
    }

    #[inline]
    fn unpack(self) -> Option<Place> {
        let start = (self.0 >> Self::LEN_BITS) as usize;
        match self.0 & Self::PAGE {
            0 => None,
            Self::PAGE => Some(Place::Page(start)),
            len => Some(Place::Array { start, len: len as usize }),
        }
    }
}

/// The chunks of a base in one of two forms.
pub(super) enum Directory {
    /// The place of chunk `first + i`, counted around from 2^48 − 1 to 0, is `places[i]`.
    ///
    /// Counting around keeps ids on both sides of 0 together: −1 is the largest number of 64 bits.
    Direct { first: u64, places: Box<[PackedPlace]> },
    /// The numbers in ascending order, for binary search, and the place of each.
    Sorted { numbers: Box<[u64]>, places: Box<[PackedPlace]> },
}

impl Directory {
    /// The directory of `chunks`: pairs of number and place, in strictly ascending order.
    pub(super) fn new(chunks: &[(u64, PackedPlace)]) -> Self {
        let (first, span) = tightest_span(chunks);
        if span > MAX_ENTRIES_PER_CHUNK * chunks.len() as u64 {
            return Self::Sorted {
                numbers: chunks.iter().map(|&(number, _)| number).collect(),
                places: chunks.iter().map(|&(_, place)| place).collect(),
            };
        }
        // `span` is at most four times a length in memory, whose elements are larger than four.
        let mut places = vec![PackedPlace::NONE; span as usize].into_boxed_slice();
        for &(number, place) in chunks {
            places[distance(first, number) as usize] = place;
        }
        Self::Direct { first, places }
    }

    /// The place of chunk `number`, if there is such a chunk.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<Place> {
        match self {
            Self::Direct { first, places } => {
                // On 32-bit targets the distance can be more than an index can say.
                let at = usize::try_from(distance(*first, number)).ok()?;
                places.get(at)?.unpack()
            }
            Self::Sorted { numbers, places } => {
                let at = numbers.binary_search(&number).ok()?;
                places[at].unpack()
            }
        }
    }

    /// The number and the place of each chunk, in ascending order of the numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Place)> {
        let (first, numbers, places): (_, &[u64], _) = match self {
            Self::Direct { first, places } => (*first, &[], places),
            Self::Sorted { numbers, places } => (0, numbers, places),
        };
        // A direct table that goes around ends with the lowest numbers. For a sorted list, whose
        // `first` is 0, this is all of it.
        let around = usize::try_from(CHUNKS - first).unwrap_or(usize::MAX).min(places.len());
        (around..places.len()).chain(0..around).filter_map(move |at| {
            let number = match numbers.get(at) {
                Some(&number) => number,
                None => first.wrapping_add(at as u64) & (CHUNKS - 1),
            };
            Some((number, places[at].unpack()?))
        })
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Direct { places, .. } => size_of_val(&**places),
            Self::Sorted { numbers, places } => size_of_val(&**numbers) + size_of_val(&**places),
        };
        bytes as u64
    }
}

/// How far `number` is above `first`, counted around.
#[inline]
fn distance(first: u64, number: u64) -> u64 {
    number.wrapping_sub(first) & (CHUNKS - 1)
}

/// The first chunk of the shortest stretch, counted around, that holds all of `chunks`, and the
/// length of that stretch. It begins after the widest gap.
fn tightest_span(chunks: &[(u64, PackedPlace)]) -> (u64, u64) {
    let (Some(&(lowest, _)), Some(&(highest, _))) = (chunks.first(), chunks.last()) else {
        return (0, 0);
    };
    let mut widest = (lowest, lowest + CHUNKS - highest);
    for pair in chunks.windows(2) {
        let (number, gap) = (pair[1].0, pair[1].0 - pair[0].0);
        if gap > widest.1 {
            widest = (number, gap);
        }
    }
    (widest.0, CHUNKS - widest.1 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(n: usize) -> Place {
        if n.is_multiple_of(3) {
            Place::Page(n)
        } else {
            Place::Array { start: n, len: 1 + n % 4096 }
        }
    }

    /// Checks a directory of the chunks `numbers`, and tells whether it is a direct table.
    fn check(mut numbers: Vec<u64>) -> bool {
        numbers.sort_unstable();
        numbers.dedup();
        let chunks: Vec<_> = numbers.iter().enumerate().map(|(n, &at)| (at, place(n))).collect();
        let packed = chunks.iter().map(|&(number, place)| (number, PackedPlace::pack(place)));
        let directory = Directory::new(&packed.collect::<Vec<_>>());
        assert_eq!(directory.iter().collect::<Vec<_>>(), chunks);
        for &(number, place) in &chunks {
            assert_eq!(directory.get(number), Some(place), "{number}");
            for neighbour in [number.wrapping_sub(1), number + 1] {
                let neighbour = neighbour & (CHUNKS - 1);
                let present = numbers.binary_search(&neighbour).is_ok();
                assert_eq!(directory.get(neighbour).is_some(), present, "{neighbour}");
            }
        }
        matches!(directory, Directory::Direct { .. })
    }

    #[test]
    fn places_survive_being_packed() {
        let largest = (usize::MAX as u64 >> PackedPlace::LEN_BITS) as usize;
        for start in [0, 1, 12_345, largest] {
            for place in [1, 2, 4095, 4096]
                .map(|len| Place::Array { start, len })
                .into_iter()
                .chain([Place::Page(start)])
            {
                assert_eq!(PackedPlace::pack(place).unpack(), Some(place));
            }
        }
        assert_eq!(PackedPlace::NONE.unpack(), None);
    }

    #[test]
    fn chunks_that_are_close_together_make_a_direct_table() {
        assert!(check(vec![]));
        assert!(check(vec![0]));
        assert!(check(vec![CHUNKS - 1]));
        assert!(check((7..100).collect()));
        assert!(check((0..100).map(|n| n * 4).collect()));
        assert!(check((CHUNKS - 50..CHUNKS).collect()));
        // On both sides of 0, and of the least signed number.
        assert!(check((0..50).chain(CHUNKS - 50..CHUNKS).collect()));
        assert!(check((CHUNKS / 2 - 9..CHUNKS / 2 + 9).collect()));
    }

    #[test]
    fn chunks_that_are_far_apart_make_a_sorted_list() {
        assert!(!check(vec![0, CHUNKS / 2]));
        assert!(!check((0..100).map(|n| n * 5).collect()));
        assert!(!check((0..20).map(|n| n << 40).collect()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 128 }))]

        #[test]
        fn a_directory_knows_its_chunks_and_no_others(
            numbers in prop::collection::vec(
                (0_u64..4, -30_i64..30)
                    .prop_map(|(quarter, off)| (quarter << 46).wrapping_add_signed(off) & (CHUNKS - 1)),
                0..60,
            ),
        ) {
            check(numbers);
        }
    }
}
