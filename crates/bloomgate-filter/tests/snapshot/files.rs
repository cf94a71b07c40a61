//! Tests of snapshot files.

use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use bloomgate_filter::{
    Bitmap, BloomFilter, BloomParams, ClassicBloom, ClassicParams, Error, ExactSet,
    FalsePositiveRate, HashAlgorithm, Membership, snapshot,
};
use tempfile::TempDir;

use crate::fixtures::{bloom, classic, hasher, keys, secret};

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn snapshot_file_is_saved_inspected_loaded_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    snapshot::save(&bloom(HashAlgorithm::Xxh3), b"first", &path).unwrap();
    snapshot::save(&classic(HashAlgorithm::Xxh3), b"second", &path).unwrap();
    assert_eq!(names(&folder), ["set"]);

    let header = snapshot::inspect(&path).unwrap();
    assert_eq!(header.position(), b"second");
    assert_eq!(header.total_bytes(), fs::metadata(&path).unwrap().len());
    let loaded = snapshot::load(&path, Some(&secret())).unwrap();
    assert_eq!(loaded.header, header);
    let set = loaded.set;
    assert!(keys().all(|key| set.contains(&key)));
}

#[cfg(unix)]
#[test]
fn case_57_snapshot_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    fs::write(&path, "readable by all").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    snapshot::save(&bloom(HashAlgorithm::Xxh3), b"", &path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn unwritable_path_is_an_error_and_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let set = bloom(HashAlgorithm::Xxh3);
    let kind_of = |failed: Result<(), Error>| match failed {
        Err(Error::Io { kind, .. }) => kind,
        other => unreachable!("{other:?}"),
    };
    let missing = snapshot::save(&set, b"", folder.path().join("missing/set"));
    assert_eq!(kind_of(missing), ErrorKind::NotFound);

    fs::write(folder.path().join("file"), "").unwrap();
    let no_directory = snapshot::save(&set, b"", folder.path().join("file/set"));
    assert_eq!(kind_of(no_directory), ErrorKind::NotADirectory);
    assert_eq!(names(&folder), ["file"]);

    // Here the rename fails, after the temporary file is complete.
    fs::create_dir_all(folder.path().join("directory/with/content")).unwrap();
    assert!(snapshot::save(&set, b"", folder.path().join("directory")).is_err());
    let mut names = names(&folder);
    names.sort();
    assert_eq!(names, ["directory", "file"]);

    let unopened = snapshot::load(folder.path().join("nothing"), Some(&secret()));
    assert!(matches!(unopened, Err(Error::Io { kind: ErrorKind::NotFound, .. })));
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_io_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let failed = snapshot::write(&bloom(HashAlgorithm::Xxh3), b"", full);
    assert!(matches!(failed, Err(Error::Io { kind: ErrorKind::StorageFull, .. })), "{failed:?}");
}

#[test]
fn too_long_position_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    snapshot::save(&bloom(HashAlgorithm::Xxh3), b"old", &path).unwrap();
    let refused = snapshot::save(&bloom(HashAlgorithm::Xxh3), &[0; 5000], &path);
    assert_eq!(refused, Err(Error::PositionTooLong { bytes: 5000 }));
    assert_eq!(snapshot::inspect(&path).unwrap().position(), b"old");
    assert_eq!(names(&folder), ["set"]);
}

#[test]
fn case_08_inspect_refuses_a_file_of_another_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    snapshot::save(&bloom(HashAlgorithm::Xxh3), b"", &path).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(snapshot::inspect(&path), Err(Error::SnapshotTruncated { .. })));
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    assert!(matches!(snapshot::inspect(&path), Err(Error::SnapshotTooLong { .. })));
}

#[test]
fn concurrent_saves_and_loads_see_complete_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    let (one, other) = (bloom(HashAlgorithm::Xxh3), classic(HashAlgorithm::SipHash13));
    snapshot::save(&one, b"", &path).unwrap();
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| (0..20).for_each(|_| snapshot::save(&one, b"", &path).unwrap()));
            threads.spawn(|| (0..20).for_each(|_| snapshot::save(&other, b"", &path).unwrap()));
        }
        for _ in 0..200 {
            let set = snapshot::load(&path, Some(&secret())).unwrap().set;
            assert!(keys().all(|key| set.contains(&key)));
        }
    });
    assert_eq!(names(&folder), ["set"]);
}

/// Saves and loads the set while another thread inserts keys.
fn assert_saves_contain_earlier_keys<S: snapshot::Persist + Membership>(set: &S, keys: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    let (inserted, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    // Dense keys, so that arrays of a bitmap become pages during the test, and sparse keys.
    let key_of = |n: u64| if n.is_multiple_of(4) { n << 20 } else { n }.to_le_bytes();
    thread::scope(|threads| {
        threads.spawn(|| {
            for n in 0..keys {
                set.insert(&key_of(n));
                inserted.store(n + 1, Ordering::Release);
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..10 {
            let before = inserted.load(Ordering::Acquire);
            snapshot::save(set, b"", &path).unwrap();
            let loaded = snapshot::load(&path, Some(&secret())).unwrap().set;
            assert!((0..before).all(|n| loaded.contains(&key_of(n))), "{set:?} {before}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn save_during_inserts_contains_every_earlier_key() {
    let (keys, rate) = (200_000, FalsePositiveRate::new(0.001).unwrap());
    let bloom = BloomParams::new(keys, rate).unwrap();
    assert_saves_contain_earlier_keys(
        &BloomFilter::new(bloom, hasher(HashAlgorithm::Xxh3)).unwrap(),
        keys,
    );
    let classic = ClassicParams::new(keys, rate).unwrap();
    assert_saves_contain_earlier_keys(
        &ClassicBloom::new(classic, hasher(HashAlgorithm::Xxh3)).unwrap(),
        keys,
    );
    assert_saves_contain_earlier_keys(&Bitmap::new(), keys);
    assert_saves_contain_earlier_keys(&ExactSet::new(), keys / 10);
}
