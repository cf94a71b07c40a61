//! Finds programs, above all those of this workspace.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Where cargo has put the running test.
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

    /// Reads `TARGET[/PLATFORM]/PROFILE/deps/TEST`; cargo write intents the target folder with a file.
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

/// Finds the program `bin` of the workspace member `package`, as `cargo test` has built it beside
/// the running test; builds it, with all features, when it is missing or older than its source.
///
/// # Panics
///
/// When it can't be built.
#[must_use]
pub fn workspace_binary(package: &str, bin: &str) -> PathBuf {
    let build = Build::of_this_test();
    let path = build.binaries.join(bin);
    if is_fresh(&path) {
        return path;
    }
    let _lock = lock(&cache_folder().join("build.lock"));
    if is_fresh(&path) {
        return path;
    }
    let profile = build.binaries.file_name().map(|name| name.to_string_lossy().into_owned());
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
    path
}

/// Finds an executable in `PATH`.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A folder that stays from one test run to the next, within the target folder.
pub(crate) fn cache_folder() -> PathBuf {
    let folder = Build::of_this_test().target.join("testbed");
    fs::create_dir_all(&folder)
        .unwrap_or_else(|error| panic!("can't make {}: {error}", folder.display()));
    folder
}

/// Takes a lock that other processes respect, and that ends with the returned file.
pub(crate) fn lock(path: &Path) -> File {
    let file = File::options().create(true).append(true).open(path).and_then(|file| {
        file.lock()?;
        Ok(file)
    });
    file.unwrap_or_else(|error| panic!("can't lock {}: {error}", path.display()))
}

/// Whether a binary exists and none of the sources that cargo lists beside it is younger.
fn is_fresh(binary: &Path) -> bool {
    let Some(made) = modified(binary) else {
        return false;
    };
    let Ok(list) = fs::read_to_string(binary.with_extension("d")) else {
        return true;
    };
    sources(&list).iter().all(|source| modified(source).is_some_and(|changed| changed <= made))
}

/// Reads a line `target: source source …`, in which spaces within a path have a backslash.
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

    #[test]
    fn a_binary_older_than_its_source_is_stale() {
        let folder = crate::temp_folder();
        let (binary, source) = (folder.path().join("bin"), folder.path().join("a source.rs"));
        assert!(!is_fresh(&binary));
        fs::write(&source, "").unwrap();
        fs::write(&binary, "").unwrap();
        let list = format!("bin: {}\n", source.display().to_string().replace(' ', "\\ "));
        fs::write(folder.path().join("bin.d"), list).unwrap();
        assert!(is_fresh(&binary));
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        File::options().append(true).open(&source).unwrap().set_modified(later).unwrap();
        assert!(!is_fresh(&binary));
    }

    #[test]
    fn programs_in_path_are_found() {
        assert!(in_path("sh").is_some());
        assert_eq!(in_path("no-such-program"), None);
    }
}
