//! Bytes of a snapshot on their way out and in, summed as they pass.

use std::io::{self, BufWriter, Read, Write};

use xxhash_rust::xxh3::Xxh3Default;

use super::header::Header;
use crate::alloc::try_vec_with_capacity;
use crate::error::Error;

/// Bytes that are read or written in one piece. A multiple of the size of a block, and little enough
/// for reading to keep to 64 KiB beside the body.
const BUFFER_BYTES: usize = 32 * 1024;

/// Bytes of the checksum at the end.
pub(super) const TRAILER_BYTES: u64 = 16;

/// Takes the bytes of a snapshot, and completes it with the trailer.
pub(super) struct SnapshotWriter<W: Write>(BufWriter<ChecksummingWriter<W>>);

struct ChecksummingWriter<W> {
    out: W,
    sum: Xxh3Default,
}

impl<W: Write> SnapshotWriter<W> {
    /// Begins the snapshot that `header` announces.
    pub(super) fn new(out: W, header: &Header) -> Result<Self, Error> {
        let summed = ChecksummingWriter { out, sum: Xxh3Default::new() };
        let mut writer = Self(BufWriter::with_capacity(BUFFER_BYTES, summed));
        writer.put(&header.to_bytes())?;
        Ok(writer)
    }

    /// Adds `bytes`.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write_all(bytes).map_err(|error| Error::io("write", &error))
    }

    /// Ends the snapshot: the body is complete.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.0
            .flush()
            .and_then(|()| {
                let ChecksummingWriter { out, sum } = self.0.get_mut();
                out.write_all(&sum.digest128().to_le_bytes())?;
                out.flush()
            })
            .map_err(|error| Error::io("write", &error))
    }
}

impl<W: Write> Write for ChecksummingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Gives the bytes of a snapshot.
pub(super) struct SnapshotReader<R> {
    input: R,
    sum: Xxh3Default,
    /// Bytes that have come so far.
    taken: u64,
}

impl<R: Read> SnapshotReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, sum: Xxh3Default::new(), taken: 0 }
    }

    /// Fills `buffer`, as far as the input has bytes. How many these were.
    pub(super) fn fill_up_to(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                // A reader that claims more than it was asked for breaks its contract.
                Ok(more) => filled = filled.saturating_add(more).min(buffer.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &error)),
            }
        }
        self.sum.update(&buffer[..filled]);
        self.taken += filled as u64;
        Ok(filled)
    }

    /// Fills `buffer`. `expected` is how many bytes the input should have in all, for the error.
    pub(super) fn fill(&mut self, buffer: &mut [u8], expected: u64) -> Result<(), Error> {
        if self.fill_up_to(buffer)? < buffer.len() {
            return Err(Error::SnapshotTruncated { expected, actual: self.taken });
        }
        Ok(())
    }

    /// The XXH3-64 of all bytes so far: XXH3 keeps one state for its sums of either width.
    pub(super) fn checksum_64(&self) -> u64 {
        self.sum.digest()
    }
}

/// What is left of a snapshot after its header.
///
/// It can only be read to its end, so that nobody forgets to verify the trailer.
pub(super) struct BodyReader<R> {
    source: SnapshotReader<R>,
    bytes: u64,
    /// The bytes of the whole snapshot.
    total: u64,
}

impl<R: Read> BodyReader<R> {
    pub(super) fn new(source: SnapshotReader<R>, header: &Header) -> Self {
        Self { source, bytes: header.body_bytes(), total: header.total_bytes() }
    }

    /// Hands the body to `take`, in pieces of 32 KiB and a last one that may be shorter, and
    /// verifies that it was sound and that nothing follows it.
    pub(super) fn read(mut self, mut take: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut left = self.bytes;
        let mut buffer = vec![0; left.min(BUFFER_BYTES as u64) as usize];
        while left > 0 {
            let piece = &mut buffer[..left.min(BUFFER_BYTES as u64) as usize];
            self.source.fill(piece, self.total)?;
            take(piece);
            left -= piece.len() as u64;
        }
        self.finish()
    }

    /// The body, once it was verified.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, Error> {
        let mut body = try_vec_with_capacity(self.bytes, self.bytes)?;
        self.read(|piece| body.extend_from_slice(piece))?;
        Ok(body)
    }

    fn finish(mut self) -> Result<(), Error> {
        let sum = self.source.sum.digest128();
        let mut trailer = [0; TRAILER_BYTES as usize];
        self.source.fill(&mut trailer, self.total)?;
        if u128::from_le_bytes(trailer) != sum {
            return Err(Error::SnapshotDamaged);
        }
        if self.source.fill_up_to(&mut [0])? > 0 {
            let actual = self.source.taken;
            return Err(Error::SnapshotTooLong { expected: self.total, actual });
        }
        Ok(())
    }
}
