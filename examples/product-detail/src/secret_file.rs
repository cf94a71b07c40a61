//! The file that keeps the generated secret from one start to the next.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bloomgate::Secret;

use crate::startup::StartupError;

const NAME: &str = "gate-secret.hex";

fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// The secret that an earlier start has left in `folder`.
pub(crate) fn read(folder: &Path) -> Result<Option<Secret>, StartupError> {
    let path = path(folder);
    match fs::read_to_string(&path) {
        Ok(hex) => match Secret::from_hex(&hex) {
            Ok(secret) => Ok(Some(secret)),
            Err(error) => Err(StartupError::setting(format!("{}: {error}", path.display()))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StartupError::setting(format!("{}: {error}", path.display()))),
    }
}

/// Leaves `secret` in `folder`, readable by its owner only, unless there is one already.
pub(crate) fn keep(folder: &Path, secret: &Secret) -> Result<(), StartupError> {
    let path = path(folder);
    if path.exists() {
        return Ok(());
    }
    let failed = |error: io::Error| StartupError::setting(format!("{}: {error}", path.display()));
    // Under another name first: a start that is killed half-way must not leave half a secret, and
    // a link, other than a renaming, replaces nothing.
    let unfinished = folder.join(format!(".{NAME}.{}", std::process::id()));
    let _ = fs::remove_file(&unfinished);
    let written = write(&unfinished, secret).and_then(|()| fs::hard_link(&unfinished, &path));
    let _ = fs::remove_file(&unfinished);
    match written {
        // Another process was quicker; its secret is used from the next start on.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written.map_err(failed),
    }
}

fn write(path: &Path, secret: &Secret) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(secret.to_hex().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}
