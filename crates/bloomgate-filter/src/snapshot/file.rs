//! Snapshot files, replaced atomically.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Header, Loaded, Persist, read, read_header, write};
use crate::error::Error;
use crate::hash::Secret;

/// The most names tried for the temporary file. Concurrent saves choose different names; only files
/// left by a crash can collide.
const ATTEMPTS: usize = 16;

/// Writes a snapshot of `set` to the file at `path`, replacing an existing file.
///
/// The snapshot is written to a new file in the same directory, named `.bloomgate-…tmp`, which is
/// synced to disk and then renamed. At any time, even after a crash, `path` is therefore the old
/// snapshot or the new one. Concurrent saves don't interfere; the last one to finish wins. On Unix
/// the file is readable and writable by its owner only (mode 0600, whatever the mode of the file it
/// replaces), and if `path` is a symbolic link, the link is replaced.
///
/// For `position` and concurrent inserts see [`write()`]. Costs one pass over the set, and a sync
/// to disk.
///
/// ```
/// use bloomgate_filter::{
///     BloomFilter, BloomParams, FalsePositiveRate, HashAlgorithm, KeyedHasher, Secret, snapshot,
/// };
///
/// let secret = Secret::new(b"replace with 32 random bytes")?;
/// let hasher = KeyedHasher::new(HashAlgorithm::SipHash13, &secret, b"generation no. 1");
/// let filter = BloomFilter::new(BloomParams::new(1_000, FalsePositiveRate::new(0.01)?)?, hasher)?;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("filter.snapshot");
/// snapshot::save(&filter, b"entry 1200", &path)?;
///
/// assert_eq!(snapshot::inspect(&path)?.position(), b"entry 1200");
/// let loaded = snapshot::load(&path, Some(&secret))?;
/// # Ok::<(), bloomgate_filter::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] with the step that failed, and those of [`write()`]. The temporary file is then
/// removed, and the file at `path` is unchanged. If only the last step failed, syncing the
/// directory, the new snapshot is at `path`, but a crash of the machine can still undo the rename.
///
/// A crash during the call leaves the temporary file behind. It is never read and can be deleted.
pub fn save(
    set: &(impl Persist + ?Sized),
    position: &[u8],
    path: impl AsRef<Path>,
) -> Result<(), Error> {
    replace(path.as_ref(), |file| write(set, position, file))
}

/// Reads the snapshot in the file at `path`; see [`read`].
///
/// # Errors
///
/// Those of [`read`], and [`Error::Io`] if the file can't be opened.
pub fn load(path: impl AsRef<Path>, secret: Option<&Secret>) -> Result<Loaded, Error> {
    let (file, length) = open(path.as_ref())?;
    read(file, length, secret)
}

/// Reads the header of the snapshot in the file at `path`, without the secret.
///
/// The header's checksum and the length of the file are verified. The body is not read.
///
/// # Errors
///
/// Those of [`read_header`], [`Error::SnapshotTruncated`] and [`Error::SnapshotTooLong`] if the
/// file doesn't have the length in the header, and [`Error::Io`] if it can't be opened.
pub fn inspect(path: impl AsRef<Path>) -> Result<Header, Error> {
    let (file, length) = open(path.as_ref())?;
    let header = read_header(file)?;
    header.check_length(length)?;
    Ok(header)
}

fn open(path: &Path) -> Result<(File, u64), Error> {
    let file = io_step("open", File::open(path))?;
    let length = io_step("get the length of", file.metadata())?.len();
    Ok((file, length))
}

/// Replaces the file at `path` with a new one that `fill` writes.
fn replace(path: &Path, fill: impl FnOnce(&mut File) -> Result<(), Error>) -> Result<(), Error> {
    // The parent of a bare file name is the empty path.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));

    let (mut file, temporary) =
        io_step("create a temporary file beside", TemporaryFile::new(directory))?;
    fill(&mut file)?;
    io_step("sync", file.sync_all())?;
    drop(file);
    io_step("rename a temporary file to", temporary.rename(path))?;
    io_step("sync the directory of", sync_directory(directory))
}

/// The path of a temporary file, which is removed on drop unless it was renamed.
struct TemporaryFile(Option<PathBuf>);

impl TemporaryFile {
    /// Creates an empty file in `directory`.
    fn new(directory: &Path) -> io::Result<(File, Self)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);

        let mut name_taken = io::Error::from(ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            // Other processes, also in other containers with the same process id, may use the
            // directory. `create_new` prevents collisions.
            let process = std::process::id();
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let name = format!(".bloomgate-{process:x}-{number:x}-{:x}.tmp", clock.as_nanos());
            let path = directory.join(name);
            match options.open(&path) {
                Ok(file) => return Ok((file, Self(Some(path)))),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => name_taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(name_taken)
    }

    fn rename(mut self, to: &Path) -> io::Result<()> {
        if let Some(path) = &self.0 {
            fs::rename(path, to)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // A failure is ignored: an error has already been returned.
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes the rename durable, on systems where that is a separate step.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

fn io_step<T>(step: &'static str, result: io::Result<T>) -> Result<T, Error> {
    result.map_err(|error| Error::io(step, &error))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::TempDir;

    use super::*;

    fn names(folder: &TempDir) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn failed_save_keeps_the_old_file_and_removes_the_temporary_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set");
        fs::write(&path, "old").unwrap();
        let failed = replace(&path, |file| {
            file.write_all(b"new").unwrap();
            assert_eq!(names(&folder).len(), 2);
            Err(Error::SnapshotDamaged)
        });
        assert_eq!(failed, Err(Error::SnapshotDamaged));
        assert_eq!((fs::read_to_string(&path).unwrap(), names(&folder).len()), ("old".into(), 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn concurrent_saves_use_separate_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set");
        replace(&path, |outer| {
            outer.write_all(b"outer").unwrap();
            replace(&path, |inner| {
                inner.write_all(b"inner").unwrap();
                assert_eq!(names(&folder).len(), 2);
                Ok(())
            })
            .unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "inner");
            Ok(())
        })
        .unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names(&folder).len()), ("outer".into(), 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn bare_file_name_is_saved_in_the_working_directory() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let name = PathBuf::from(folder.path().file_name().unwrap()).with_extension("set");
        replace(&name, |_| Ok(())).unwrap();
        fs::remove_file(name).unwrap();
    }
}
