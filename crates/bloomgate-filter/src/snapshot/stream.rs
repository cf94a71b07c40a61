//! Checksummed streams for writing and reading snapshots.

use std::io::{self, BufWriter, Read, Write};

use xxhash_rust::xxh3::Xxh3Default;

use super::header::Header;
use crate::alloc::try_vec_with_capacity;
use crate::error::Error;

/// The buffer size of reads and writes: a multiple of the size of a block, and small enough for
/// reading to allocate at most 64 KiB in addition to the body.
const BUFFER_BYTES: usize = 32 * 1024;

/// Bytes of the trailer: the checksum of the whole snapshot.
pub(super) const TRAILER_BYTES: u64 = 16;

/// Writes a snapshot: the header, the body in parts, the trailer.
pub(super) struct SnapshotWriter<W: Write>(BufWriter<ChecksummingWriter<W>>);

struct ChecksummingWriter<W> {
    out: W,
    sum: Xxh3Default,
}

impl<W: Write> SnapshotWriter<W> {
    /// Starts a snapshot with `header`.
    pub(super) fn new(out: W, header: &Header) -> Result<Self, Error> {
        let summed = ChecksummingWriter { out, sum: Xxh3Default::new() };
        let mut writer = Self(BufWriter::with_capacity(BUFFER_BYTES, summed));
        writer.put(&header.to_bytes())?;
        Ok(writer)
    }

    /// Appends `bytes` to the body.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write_all(bytes).map_err(|error| Error::io("write", &error))
    }

    /// Completes the snapshot with the trailer.
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

/// Reads a snapshot and computes its checksums.
pub(super) struct SnapshotReader<R> {
    input: R,
    sum: Xxh3Default,
    /// Bytes read so far.
    bytes_read: u64,
}

impl<R: Read> SnapshotReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, sum: Xxh3Default::new(), bytes_read: 0 }
    }

    /// Fills `buffer` as far as the input has bytes, and returns their number.
    pub(super) fn fill_up_to(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                // A faulty reader may return more than the length of the buffer.
                Ok(more) => filled = filled.saturating_add(more).min(buffer.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &error)),
            }
        }
        self.sum.update(&buffer[..filled]);
        self.bytes_read += filled as u64;
        Ok(filled)
    }

    /// Fills `buffer`. `expected` is the length of the whole input, for the error.
    pub(super) fn fill(&mut self, buffer: &mut [u8], expected: u64) -> Result<(), Error> {
        if self.fill_up_to(buffer)? < buffer.len() {
            return Err(Error::SnapshotTruncated { expected, actual: self.bytes_read });
        }
        Ok(())
    }

    /// The XXH3-64 of all bytes so far. XXH3 has one state for both widths.
    pub(super) fn checksum_64(&self) -> u64 {
        self.sum.digest()
    }
}

/// The body of a snapshot, to be read after its header.
///
/// It can only be read completely, so that the trailer is always verified.
pub(super) struct BodyReader<R> {
    reader: SnapshotReader<R>,
    bytes: u64,
    /// The length of the whole snapshot.
    total: u64,
}

impl<R: Read> BodyReader<R> {
    pub(super) fn new(reader: SnapshotReader<R>, header: &Header) -> Self {
        Self { reader, bytes: header.body_bytes(), total: header.total_bytes() }
    }

    /// Calls `take` with the body in pieces of 32 KiB, the last one possibly shorter. Then verifies
    /// the trailer, and that nothing follows it.
    pub(super) fn read(mut self, mut take: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut left = self.bytes;
        let mut buffer = vec![0; left.min(BUFFER_BYTES as u64) as usize];
        while left > 0 {
            let piece = &mut buffer[..left.min(BUFFER_BYTES as u64) as usize];
            self.reader.fill(piece, self.total)?;
            take(piece);
            left -= piece.len() as u64;
        }
        self.finish()
    }

    /// Reads and verifies the whole body.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, Error> {
        let mut body = try_vec_with_capacity(self.bytes, self.bytes)?;
        self.read(|piece| body.extend_from_slice(piece))?;
        Ok(body)
    }

    fn finish(mut self) -> Result<(), Error> {
        let sum = self.reader.sum.digest128();
        let mut trailer = [0; TRAILER_BYTES as usize];
        self.reader.fill(&mut trailer, self.total)?;
        if u128::from_le_bytes(trailer) != sum {
            return Err(Error::SnapshotDamaged);
        }
        if self.reader.fill_up_to(&mut [0])? > 0 {
            let actual = self.reader.bytes_read;
            return Err(Error::SnapshotTooLong { expected: self.total, actual });
        }
        Ok(())
    }
}
