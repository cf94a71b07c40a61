//! Temp folders that are removed with their test process.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::watchdog;

/// The parent of all folders. Not `TMPDIR`: paths of Unix sockets are limited to about 108 bytes,
/// and the user that runs PostgreSQL may have no access there.
const PARENT: &str = "/tmp";

/// A server's folder, readable by all users; removed on drop, or when the test process dies.
#[derive(Debug)]
pub(crate) struct Folder {
    directory: Option<TempDir>,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(kind: &str) -> Self {
        let directory = named(kind);
        let path = directory.path().to_path_buf();
        set_permissions(&path, Permissions::from_mode(0o755)).expect("chmod of an own temp folder");
        Self { directory: Some(directory), path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The last lines of a log file in this folder, for messages.
    pub(crate) fn end_of_log(&self, name: &str) -> String {
        let log = std::fs::read(self.path.join(name)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let removed = self.directory.take().map(TempDir::close);
        if matches!(removed, Some(Ok(()))) {
            watchdog::forget_folder(&self.path);
        }
    }
}

/// An empty temp folder with a short path, readable by its owner only; removed on drop, or when the
/// test process dies.
///
/// # Panics
///
/// When the folder can't be created.
#[must_use]
pub fn temp_folder() -> TempDir {
    named("files")
}

fn named(kind: &str) -> TempDir {
    let directory = tempfile::Builder::new()
        .prefix(&format!("{}{kind}-", watchdog::FOLDER_PREFIX))
        .tempdir_in(PARENT)
        .unwrap_or_else(|error| panic!("no temp folder in {PARENT}: {error}"));
    watchdog::watch_folder(directory.path());
    directory
}
