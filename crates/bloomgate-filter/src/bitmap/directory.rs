//! The chunk directory of a bitmap: from chunk numbers to storage locations.

/// The number of possible chunks: an id has 64 bits, the lower 16 of them within its chunk.
pub(super) const CHUNKS: u64 = 1 << 48;

/// A direct table is used if it has at most this many entries per chunk. At 4 it takes at most
/// twice the memory of the list (8 bytes per entry against 16 per chunk).
const MAX_ENTRIES_PER_CHUNK: u64 = 4;

/// Where the ids of one chunk are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the page with this index.
    Page(usize),
    /// In `len` positions of the arrays from `start` on; 1 to 4096.
    Array { start: usize, len: usize },
}

/// An optional [`Location`] in eight bytes: the lower 13 bits are the length of the array, 0 for
/// none and [`PackedLocation::PAGE`] for a page; the upper bits are the start or the index.
#[derive(Clone, Copy)]
pub(super) struct PackedLocation(u64);

impl PackedLocation {
    const NONE: Self = Self(0);
    const LEN_BITS: u32 = 13;
    const PAGE: u64 = (1 << Self::LEN_BITS) - 1;

    pub(super) fn pack(location: Location) -> Self {
        let (start, len) = match location {
            Location::Page(index) => (index, Self::PAGE),
            Location::Array { start, len } => (start, len as u64),
        };
        // A start always fits its 51 bits: more would need 2^51 positions in memory.
        Self(((start as u64) << Self::LEN_BITS) | len)
    }

    #[inline]
    fn unpack(self) -> Option<Location> {
        let start = (self.0 >> Self::LEN_BITS) as usize;
        match self.0 & Self::PAGE {
            0 => None,
            Self::PAGE => Some(Location::Page(start)),
            len => Some(Location::Array { start, len: len as usize }),
        }
    }
}

/// The directory of a base, in one of two forms.
pub(super) enum Directory {
    /// `locations[i]` is the location of chunk `first + i`, modulo 2^48.
    ///
    /// Wrapping around keeps ids on both sides of 0 together: −1 is the largest 64-bit number.
    Direct { first: u64, locations: Box<[PackedLocation]> },
    /// The chunk numbers in ascending order, for binary search, and the location of each.
    Sorted { numbers: Box<[u64]>, locations: Box<[PackedLocation]> },
}

impl Directory {
    /// The directory of `chunks`: pairs of number and location, in strictly ascending order.
    pub(super) fn new(chunks: &[(u64, PackedLocation)]) -> Self {
        let (first, span) = tightest_span(chunks);
        if span > MAX_ENTRIES_PER_CHUNK * chunks.len() as u64 {
            return Self::Sorted {
                numbers: chunks.iter().map(|&(number, _)| number).collect(),
                locations: chunks.iter().map(|&(_, location)| location).collect(),
            };
        }
        // `span` fits a `usize`: it is at most four times the length of `chunks`, whose elements
        // have more than four bytes.
        let mut locations = vec![PackedLocation::NONE; span as usize].into_boxed_slice();
        for &(number, location) in chunks {
            locations[distance(first, number) as usize] = location;
        }
        Self::Direct { first, locations }
    }

    /// The location of chunk `number`, if there is such a chunk.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<Location> {
        match self {
            Self::Direct { first, locations } => {
                // On 32-bit targets the distance can exceed the range of an index.
                let at = usize::try_from(distance(*first, number)).ok()?;
                locations.get(at)?.unpack()
            }
            Self::Sorted { numbers, locations } => {
                let at = numbers.binary_search(&number).ok()?;
                locations[at].unpack()
            }
        }
    }

    /// The number and the location of each chunk, in ascending order of the numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Location)> {
        let (first, numbers, locations): (_, &[u64], _) = match self {
            Self::Direct { first, locations } => (*first, &[], locations),
            Self::Sorted { numbers, locations } => (0, numbers, locations),
        };
        // A direct table that wraps around ends with the lowest numbers, which come first here. For
        // a sorted list, whose `first` is 0, this is the whole list.
        let around = usize::try_from(CHUNKS - first).unwrap_or(usize::MAX).min(locations.len());
        (around..locations.len()).chain(0..around).filter_map(move |at| {
            let number = match numbers.get(at) {
                Some(&number) => number,
                None => first.wrapping_add(at as u64) & (CHUNKS - 1),
            };
            Some((number, locations[at].unpack()?))
        })
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Direct { locations, .. } => size_of_val(&**locations),
            Self::Sorted { numbers, locations } => {
                size_of_val(&**numbers) + size_of_val(&**locations)
            }
        };
        bytes as u64
    }
}

/// The distance from `first` up to `number`, modulo 2^48.
#[inline]
fn distance(first: u64, number: u64) -> u64 {
    number.wrapping_sub(first) & (CHUNKS - 1)
}

/// The first chunk and the length of the shortest range, modulo 2^48, that contains all of
/// `chunks`. It begins after the widest gap.
fn tightest_span(chunks: &[(u64, PackedLocation)]) -> (u64, u64) {
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

    fn location(n: usize) -> Location {
        if n.is_multiple_of(3) {
            Location::Page(n)
        } else {
            Location::Array { start: n, len: 1 + n % 4096 }
        }
    }

    /// Checks a directory of the chunks `numbers`; whether it is a direct table.
    fn check(mut numbers: Vec<u64>) -> bool {
        numbers.sort_unstable();
        numbers.dedup();
        let chunks: Vec<_> = numbers.iter().enumerate().map(|(n, &at)| (at, location(n))).collect();
        let packed =
            chunks.iter().map(|&(number, location)| (number, PackedLocation::pack(location)));
        let directory = Directory::new(&packed.collect::<Vec<_>>());
        assert_eq!(directory.iter().collect::<Vec<_>>(), chunks);
        for &(number, location) in &chunks {
            assert_eq!(directory.get(number), Some(location), "{number}");
            for neighbour in [number.wrapping_sub(1), number + 1] {
                let neighbour = neighbour & (CHUNKS - 1);
                let present = numbers.binary_search(&neighbour).is_ok();
                assert_eq!(directory.get(neighbour).is_some(), present, "{neighbour}");
            }
        }
        matches!(directory, Directory::Direct { .. })
    }

    #[test]
    fn packed_locations_round_trip() {
        let largest = (usize::MAX as u64 >> PackedLocation::LEN_BITS) as usize;
        for start in [0, 1, 12_345, largest] {
            for location in [1, 2, 4095, 4096]
                .map(|len| Location::Array { start, len })
                .into_iter()
                .chain([Location::Page(start)])
            {
                assert_eq!(PackedLocation::pack(location).unpack(), Some(location));
            }
        }
        assert_eq!(PackedLocation::NONE.unpack(), None);
    }

    #[test]
    fn close_chunks_use_a_direct_table() {
        assert!(check(vec![]));
        assert!(check(vec![0]));
        assert!(check(vec![CHUNKS - 1]));
        assert!(check((7..100).collect()));
        assert!(check((0..100).map(|n| n * 4).collect()));
        assert!(check((CHUNKS - 50..CHUNKS).collect()));
        // On both sides of 0, and of the smallest signed number.
        assert!(check((0..50).chain(CHUNKS - 50..CHUNKS).collect()));
        assert!(check((CHUNKS / 2 - 9..CHUNKS / 2 + 9).collect()));
    }

    #[test]
    fn distant_chunks_use_a_sorted_list() {
        assert!(!check(vec![0, CHUNKS / 2]));
        assert!(!check((0..100).map(|n| n * 5).collect()));
        assert!(!check((0..20).map(|n| n << 40).collect()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 128 }))]

        #[test]
        fn directory_finds_exactly_its_chunks(
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
