//! The programs of this workspace, built when they are out of date.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// The folders that cargo built the running test in.
#[derive(Debug, PartialEq, Eq)]
struct Build {
    /// The target folder.
    target: PathBuf,
    /// The folder of the profile, where the binaries are.
    binaries: PathBuf,
    /// The name of the platform, when the build named one.
    platform: Option<String>,
}

impl Build {
    fn of_this_test() -> Self {
        let test = env::current_exe().expect("the path of the running test");
        Self::of(&test).unwrap_or_else(|| {
            // Documentation tests run from a temp folder.
            let target = env::var_os("CARGO_TARGET_DIR").map_or_else(default_target, PathBuf::from);
            let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
            Self { binaries: target.join(profile), target, platform: None }
        })
    }

    /// Reads `TARGET[/PLATFORM]/PROFILE/deps/TEST`; cargo marks the target folder with a file.
    fn of(test: &Path) -> Option<Self> {
        let target = test.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file())?;
        let mut folder = test.parent()?;
        if folder.ends_with("deps") || folder.ends_with("examples") {
            folder = folder.parent()?;
        }
        let folders: Vec<_> = folder.strip_prefix(target).ok()?.iter().collect();
        let (platform, profile) = match *folders {
            [profile] => (None, profile),
            [platform, profile] => (Some(platform), profile),
            _ => return None,
        };
        let above = platform.map_or_else(|| target.to_path_buf(), |name| target.join(name));
        Some(Self {
            target: target.to_path_buf(),
            binaries: above.join(profile),
            platform: platform.map(|name| name.to_string_lossy().into_owned()),
        })
    }
}

/// Finds the program `bin` of the workspace member `package` in the target folder of the running
/// test. Builds it first, with all features, unless it is known to be newer than its sources.
///
/// # Panics
///
/// When it can't be built.
#[must_use]
pub fn workspace_binary(package: &str, bin: &str) -> PathBuf {
    let build = Build::of_this_test();
    let path = build.binaries.join(bin);
    let profile = build.binaries.file_name().map(|name| name.to_string_lossy().into_owned());
    let stamp = cache_folder().join(format!("{bin}-{}.built", profile.as_deref().unwrap_or("")));
    if is_fresh(&path, &stamp) {
        return path;
    }
    let _lock = lock(&cache_folder().join("build.lock"));
    if is_fresh(&path, &stamp) {
        return path;
    }
    let started = SystemTime::now();
    let profile = match profile.as_deref() {
        None | Some("debug") => "dev",
        Some(profile) => profile,
    };
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--all-features", "--package", package, "--bin", bin, "--profile", profile])
        .args(build.platform.iter().flat_map(|platform| ["--target", platform]))
        .arg("--target-dir")
        .arg(&build.target)
        .current_dir(workspace())
        .stdin(Stdio::null());
    let output = cargo.output().unwrap_or_else(|error| panic!("can't run {cargo:?}: {error}"));
    assert!(
        output.status.success() && path.is_file(),
        "{cargo:?} made no {}:\n{}",
        path.display(),
        String::from_utf8_lossy(&output.stderr),
    );
    write_stamp(&stamp, started);
    path
}

/// Finds an executable in `PATH`.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A folder within the target folder that is kept from one test run to the next.
pub(crate) fn cache_folder() -> PathBuf {
    let folder = Build::of_this_test().target.join("testbed");
    fs::create_dir_all(&folder)
        .unwrap_or_else(|error| panic!("can't make {}: {error}", folder.display()));
    folder
}

/// Takes a lock that excludes other processes until the returned file is dropped.
pub(crate) fn lock(path: &Path) -> File {
    let file = File::options().create(true).append(true).open(path).and_then(|file| {
        file.lock()?;
        Ok(file)
    });
    file.unwrap_or_else(|error| panic!("can't lock {}: {error}", path.display()))
}

/// Whether a binary exists and all its sources are older than it, or older than the last build that
/// found it up to date (the time of `stamp`).
///
/// The sources are those that cargo lists in the `.d` file beside the binary, and the Rust files in
/// their folders: cargo doesn't rewrite the list in each kind of build, so that it may lack a new
/// file. `cargo test` builds the binary without writing a list at all; then nothing is known, and
/// the binary counts as out of date.
fn is_fresh(binary: &Path, stamp: &Path) -> bool {
    let (Some(built), Ok(list)) =
        (modified(binary), fs::read_to_string(binary.with_extension("d")))
    else {
        return false;
    };
    let built = modified(stamp).map_or(built, |checked| checked.max(built));
    let is_older = |source: &Path| modified(source).is_some_and(|changed| changed <= built);
    let sources = sources(&list);
    let folders: BTreeSet<&Path> = sources.iter().filter_map(|source| source.parent()).collect();
    !sources.is_empty()
        && sources.iter().all(|source| is_older(source))
        && folders.into_iter().all(|folder| rust_files(folder).iter().all(|file| is_older(file)))
}

/// The Rust files directly in a folder; none if it can't be read.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Records that a binary was up to date at `time`. A change during the build is newer than that.
fn write_stamp(stamp: &Path, time: SystemTime) {
    let written = File::create(stamp).and_then(|file| file.set_modified(time));
    written.unwrap_or_else(|error| panic!("can't write {}: {error}", stamp.display()));
}

/// Parses a line `target: source source …`, in which a backslash precedes a space within a path.
fn sources(list: &str) -> Vec<PathBuf> {
    let Some((_, list)) = list.split_once(": ") else {
        return Vec::new();
    };
    let list = list.trim().replace("\\ ", "\0");
    list.split_whitespace().map(|path| PathBuf::from(path.replace('\0', " "))).collect()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

fn workspace() -> &'static Path {
    let member = Path::new(env!("CARGO_MANIFEST_DIR"));
    member.parent().unwrap_or(member)
}

fn default_target() -> PathBuf {
    workspace().join("target")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn target_folders_are_derived_from_the_test_path() {
        let folder = crate::temp_folder();
        let target = folder.path();
        fs::write(target.join("CACHEDIR.TAG"), "").unwrap();
        let plain = Build::of(&target.join("debug/deps/test-1")).unwrap();
        assert_eq!(plain.binaries, target.join("debug"));
        assert_eq!(plain.platform, None);
        let other = Build::of(&target.join("some-platform/release/deps/test-1")).unwrap();
        assert_eq!(other.binaries, target.join("some-platform/release"));
        assert_eq!(other.platform.as_deref(), Some("some-platform"));
        assert_eq!(other.target, target);
    }

    /// A binary, its list of sources and its stamp, in a folder whose sources are in `src`.
    struct Built {
        folder: TempDir,
    }

    impl Built {
        fn new() -> Self {
            let built = Self { folder: crate::temp_folder() };
            fs::create_dir(built.path("a src")).unwrap();
            fs::write(built.path("a src/main.rs"), "").unwrap();
            fs::write(built.path("bin"), "").unwrap();
            let source = built.path("a src/main.rs").display().to_string();
            fs::write(built.path("bin.d"), format!("bin: {}\n", source.replace(' ', "\\ ")))
                .unwrap();
            built
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn is_fresh(&self) -> bool {
            is_fresh(&self.path("bin"), &self.path("stamp"))
        }

        /// Creates a file or sets its modification time, in seconds from now.
        fn touch(&self, name: &str, seconds: u64) {
            let file = File::options().create(true).append(true).open(self.path(name)).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(seconds)).unwrap();
        }
    }

    #[test]
    fn a_binary_newer_than_its_sources_is_fresh() {
        assert!(Built::new().is_fresh());
    }

    #[test]
    fn a_missing_binary_is_not_fresh() {
        let built = Built::new();
        fs::remove_file(built.path("bin")).unwrap();
        assert!(!built.is_fresh());
    }

    #[test]
    fn a_binary_older_than_its_source_is_not_fresh_until_a_build_has_checked_it() {
        let built = Built::new();
        built.touch("a src/main.rs", 5);
        assert!(!built.is_fresh());
        write_stamp(&built.path("stamp"), SystemTime::now() + Duration::from_secs(6));
        assert!(built.is_fresh());
        built.touch("a src/main.rs", 7);
        assert!(!built.is_fresh());
    }

    #[test]
    fn a_binary_without_a_list_of_sources_is_not_fresh() {
        let built = Built::new();
        fs::write(built.path("bin.d"), "").unwrap();
        assert!(!built.is_fresh());
        fs::remove_file(built.path("bin.d")).unwrap();
        assert!(!built.is_fresh());
        write_stamp(&built.path("stamp"), SystemTime::now());
        assert!(!built.is_fresh());
    }

    #[test]
    fn a_source_file_that_the_list_lacks_counts_too() {
        let built = Built::new();
        built.touch("a src/new.rs", 5);
        assert!(!built.is_fresh());
    }

    #[test]
    fn a_deleted_source_makes_a_binary_not_fresh() {
        let built = Built::new();
        fs::remove_file(built.path("a src/main.rs")).unwrap();
        assert!(!built.is_fresh());
    }

    #[test]
    fn programs_in_path_are_found() {
        assert!(in_path("sh").is_some());
        assert_eq!(in_path("no-such-program"), None);
    }
}
