//! Golden snapshot files of every released version, and snapshots of another process.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bloomgate_filter::{Membership as _, snapshot};

use crate::fixtures::{keys, read, secret, snapshots};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden"].iter().collect()
}

/// Creates the missing golden files of the current version. Golden files are never changed: run
/// this once for a new version, or to add a family, with `cargo test -p bloomgate-filter --test
/// snapshot -- --ignored create_missing_golden_files`. Existing files are not overwritten.
#[test]
#[ignore = "creates files in the repository"]
fn create_missing_golden_files() {
    for (name, bytes) in snapshots() {
        let path = folder().join(format!("v1-{name}.snapshot"));
        if !path.exists() {
            fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn case_08_golden_files_of_version_1_round_trip_byte_for_byte() {
    for (name, made_now) in snapshots() {
        let golden = fs::read(folder().join(format!("v1-{name}.snapshot"))).unwrap();
        assert!(golden == made_now, "{name} is written differently now");

        let loaded = read(&golden).unwrap();
        assert_eq!(loaded.header.version(), 1);
        let mut again = Vec::new();
        snapshot::write(&loaded.set, loaded.header.position(), &mut again).unwrap();
        assert!(again == golden, "{name} is written differently after it was read");
        let set = loaded.set;
        assert!(keys().all(|key| set.contains(&key)), "{name} reports a key as absent");
    }
}

/// The environment variable with the path that the child process of the test below writes to.
const CHILD_WRITES: &str = "BLOOMGATE_SNAPSHOT_CHILD_WRITES";

#[test]
fn case_07_snapshot_of_another_process_contains_all_of_its_keys() {
    use bloomgate_filter::{
        BloomFilter, BloomParams, FalsePositiveRate, HashAlgorithm, Membership as _,
    };

    let keys = || (0..10_000_u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    if let Some(path) = std::env::var_os(CHILD_WRITES) {
        let params = BloomParams::new(10_000, FalsePositiveRate::new(0.01).unwrap()).unwrap();
        let filter =
            BloomFilter::new(params, crate::fixtures::hasher(HashAlgorithm::Aes128)).unwrap();
        keys().for_each(|key| _ = filter.insert(&key));
        snapshot::save(&filter, b"", path).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "golden::case_07_snapshot_of_another_process_contains_all_of_its_keys"])
        .env(CHILD_WRITES, &path)
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    let set = snapshot::load(&path, Some(&secret())).unwrap().set;
    assert!(keys().all(|key| set.contains(&key)));
    assert_eq!(set.stats().items, 10_000);
}
