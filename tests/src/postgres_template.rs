//! The data folder of a new PostgreSQL server.
//!
//! It is a copy of a template, since a copy is faster than `initdb`. There is one template for each
//! version of PostgreSQL, in the target folder. All copies have the same system identifier, as a
//! server and its backup have; [`initialise`] creates a folder with a new one.

use std::env;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use nix::unistd::{User, geteuid};

use crate::folder::Folder;
use crate::workspace::{cache_folder, lock};

/// The superuser of every server of these tests.
pub(crate) const SUPERUSER: &str = "postgres";

/// The users that run the servers when the tests run as root, which PostgreSQL refuses; the first
/// one that exists.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The PostgreSQL that is installed.
#[derive(Debug)]
pub(crate) struct Installation {
    folder: PathBuf,
    version: String,
    /// The user and group that run the servers, if not the current ones.
    user: Option<(u32, u32)>,
}

impl Installation {
    /// Finds it, once.
    pub(crate) fn get() -> &'static Self {
        static FOUND: OnceLock<Installation> = OnceLock::new();
        FOUND.get_or_init(|| {
            let folder = find_folder().unwrap_or_else(|| {
                panic!(
                    "the PostgreSQL server is missing (initdb, postgres, psql): install the \
                     package postgresql, or run scripts/test"
                )
            });
            let output = run(Command::new(folder.join("postgres")).arg("--version"));
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Self { folder, version, user: unprivileged_user() }
        })
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes `command` run as the user that may run PostgreSQL.
    pub(crate) fn as_user<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        match self.user {
            Some((uid, gid)) => command.uid(uid).gid(gid),
            None => command,
        }
    }

    /// Makes that user the owner of a file or folder.
    pub(crate) fn give(&self, path: &Path) {
        if let Some((uid, gid)) = self.user {
            chown(path, Some(uid), Some(gid)).unwrap_or_else(|error| {
                panic!("can't change the owner of {}: {error}", path.display())
            });
        }
    }
}

/// Creates the data folder `data` as a copy of the template.
pub(crate) fn copy_template(data: &Path) {
    copy(&template(), data, Installation::get());
}

/// Creates the data folder `data` with a new system identifier. Its parent must belong to the user
/// that runs PostgreSQL.
pub(crate) fn initialise(data: &Path) {
    let installation = Installation::get();
    let mut command = Command::new(installation.program("initdb"));
    command
        .args(["-N", "-A", "trust", "--no-locale", "-E", "UTF8", "-U", SUPERUSER, "-D"])
        .arg(data)
        .current_dir("/");
    run(installation.as_user(&mut command));
}

/// The template of this version, created if it is missing.
fn template() -> PathBuf {
    let installation = Installation::get();
    let cache = cache_folder();
    let safe = |letter: char| {
        if letter.is_ascii_alphanumeric() { letter } else { '-' }
    };
    let name: String = installation.version.chars().map(safe).collect();
    let template = cache.join(format!("template-{name}"));
    if template.is_dir() {
        return template;
    }
    let _lock = lock(&cache.join("template.lock"));
    if !template.is_dir() {
        // Created where the unprivileged user has access, copied to the cache, then renamed, so
        // that a folder with the final name is always complete.
        let folder = Folder::new("initdb");
        installation.give(folder.path());
        let data = folder.path().join("data");
        initialise(&data);
        let unfinished = cache.join("template-unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).expect("removal of an unfinished template");
        }
        copy_files(&data, &unfinished, &|_| {});
        fs::rename(&unfinished, &template).expect("the template gets its name");
    }
    template
}

fn copy(template: &Path, data: &Path, installation: &Installation) {
    copy_files(template, data, &|path| installation.give(path));
}

/// Copies a folder with the modes of its files and folders.
fn copy_files(from: &Path, to: &Path, made: &impl Fn(&Path)) {
    let copied = (|| -> std::io::Result<()> {
        fs::create_dir(to)?;
        fs::set_permissions(to, fs::metadata(from)?.permissions())?;
        made(to);
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                copy_files(&entry.path(), &target, made);
            } else {
                fs::copy(entry.path(), &target)?;
                made(&target);
            }
        }
        Ok(())
    })();
    copied.unwrap_or_else(|error| {
        panic!("can't copy {} to {}: {error}", from.display(), to.display());
    });
}

/// The folder of the server's programs: in `PATH`, or the newest one of Debian's packages.
fn find_folder() -> Option<PathBuf> {
    let complete = |folder: &PathBuf| {
        ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file())
    };
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).find(complete).or_else(|| {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
        versions
            .filter_map(|entry| {
                let number: u32 = entry.file_name().to_str()?.parse().ok()?;
                Some((number, entry.path().join("bin")))
            })
            .filter(|(_, folder)| complete(folder))
            .max()
            .map(|(_, folder)| folder)
    })
}

fn unprivileged_user() -> Option<(u32, u32)> {
    if !geteuid().is_root() {
        return None;
    }
    let user = UNPRIVILEGED.iter().find_map(|name| User::from_name(name).ok().flatten());
    let user = user.unwrap_or_else(|| {
        panic!("PostgreSQL refuses to run as root, and there is no user of {UNPRIVILEGED:?}")
    });
    Some((user.uid.as_raw(), user.gid.as_raw()))
}

/// Runs a program until it ends; fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("can't run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    output
}
