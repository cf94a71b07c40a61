//! The generated secret, which is kept and is private.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use testbed::{Program, temp_folder};

use crate::fixture::{BINARY, LONG, Service, start_in};

#[test]
fn the_secret_is_reused_at_the_next_start() {
    let folder = temp_folder();
    let file = folder.path().join("data/gate-secret.hex");
    let (first, _) = start_in(folder.path(), &["--seed", "1"]);
    let secret = fs::read_to_string(&file).unwrap();
    assert_eq!(secret.trim().len(), 64);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(first.terminate().success());
    let (second, _) = start_in(folder.path(), &[]);
    assert_eq!(fs::read_to_string(&file).unwrap(), secret);
    assert!(second.terminate().success());
    let mut left: Vec<_> = fs::read_dir(folder.path().join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["gate-secret.hex", "products.db"]);
}

#[test]
fn a_damaged_secret_is_not_replaced() {
    let folder = temp_folder();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("gate-secret.hex"), "half").unwrap();
    let args = ["--listen", "127.0.0.1:0"];
    let program = Program::start_in(folder.path(), BINARY, &args, &[]);
    let status = program.wait(LONG).expect("it ends at once");
    assert_eq!(status.code(), Some(2));
    assert!(program.stderr().contains("gate-secret.hex"), "{}", program.stderr());
    assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
}

#[test]
fn no_secret_is_kept_where_one_is_given_or_none_is_needed() {
    let hex = "00112233445566778899aabbccddeeff";
    for args in [["--secret", hex], ["--no-guard", "--seed=1"]] {
        let service = Service::ready(
            &[&args[..], &["--seed=1"][..usize::from(args[0] == "--secret")]].concat(),
        );
        assert!(!service.folder.path().join("data/gate-secret.hex").exists());
        assert_eq!(service.get("/products/1").status, 200);
    }
}
