//! Refused settings: one line, status 2, and nothing is made.

use std::fs;
use std::net::TcpListener;

use testbed::{Program, temp_folder};

use crate::fixture::{BINARY, LONG};

/// Runs the service in a folder that holds one file, and returns its line and its exit code.
fn refused(args: &[&str], envs: &[(&str, &str)]) -> (String, Option<i32>) {
    let folder = temp_folder();
    fs::write(folder.path().join("file"), "").unwrap();
    let program = Program::start_in(folder.path(), BINARY, args, envs);
    let status = program.wait(LONG).expect("it ends at once");
    assert_eq!(program.stdout(), "", "{args:?}");
    let said = program.stderr();
    assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{args:?} left {left:?}");
    (said, status.code())
}

#[test]
fn refused_settings_name_their_flag() {
    for (flag, value) in [
        ("--database-url", "mysql://x"),
        ("--database-url", "nonsense"),
        ("--database-url", "sqlite:"),
        ("--database-url", "sqlite::memory:"),
        ("--database-url", "sqlite:missing/products.db"),
        ("--database-url", "postgres://h:port/x"),
        ("--redis-url", "http://x"),
        ("--redis-url", "nonsense"),
        ("--false-positive-rate", "2"),
        ("--false-positive-rate", "0"),
        ("--false-positive-rate", "-1"),
        ("--false-positive-rate", "NaN"),
        ("--false-positive-rate", "often"),
        ("--capacity", "0"),
        ("--capacity", "-1"),
        ("--capacity", "many"),
        ("--capacity", "18446744073709551615"),
        // Too much for any machine's memory.
        ("--capacity", "1e13"),
        ("--capacity", "1.5"),
        ("--queue-timeout", "-1"),
        ("--queue-timeout", "1h"),
        ("--ready-within", "later"),
        ("--ready-within", "1h"),
        ("--null-ttl", "-1"),
        ("--null-ttl", "0"),
        ("--null-ttl", "soon"),
        ("--null-ttl", "2years"),
        ("--value-ttl", "0s"),
        ("--value-ttl", "30 parsecs"),
        ("--write-window", "1ms"),
        ("--write-window", "1h"),
        ("--secret", "zz"),
        ("--secret", "00ff"),
        ("--listen", "nonsense"),
        ("--listen", "127.0.0.1:65536"),
        ("--data-dir", "file"),
        ("--data-dir", "file/below"),
        ("--seed", "-1"),
        ("--seed", "many"),
        ("--seed", "1e19"),
        ("--seed", "18446744073709551615"),
        ("--gate", "ajar"),
        ("--unknown", "x"),
    ] {
        let args = [flag, value, "--listen", "127.0.0.1:0"];
        let args = if flag == "--listen" { &args[..2] } else { &args[..] };
        let (line, code) = refused(args, &[]);
        assert_eq!(code, Some(2), "{flag} {value}: {line}");
        assert!(line.contains(flag), "{flag} {value}: {line}");
    }
}

#[test]
fn settings_of_a_bloom_gate_are_refused_with_an_exact_gate() {
    for gate in ["bitmap", "exact"] {
        for (flag, value) in [("--capacity", "1000"), ("--false-positive-rate", "0.01")] {
            let (line, code) = refused(&["--gate", gate, flag, value], &[]);
            assert_eq!(code, Some(2), "{line}");
            assert!(line.contains(flag), "{line}");
        }
    }
}

#[test]
fn settings_of_a_fleet_are_refused_by_their_flags() {
    let redis = ["--redis-url", "redis://127.0.0.1:1"];
    let long = "x".repeat(129);
    for (args, flag) in [
        (&["--instance-name", "web 1"][..], "--redis-url"),
        (
            &["--instance-name", "web 1", "--single-instance", redis[0], redis[1]],
            "--single-instance",
        ),
        // A write could wait for a silent instance for longer.
        (&["--instance-name", "a", "--write-window", "2s", redis[0], redis[1]], "--write-window"),
        (&["--instance-name", &long, redis[0], redis[1]], "--instance-name"),
    ] {
        let (line, code) = refused(args, &[]);
        assert_eq!(code, Some(2), "{args:?}: {line}");
        assert!(line.contains(flag), "{args:?}: {line}");
    }
}

#[test]
fn a_refused_variable_names_its_flag() {
    let (line, code) = refused(&[], &[("PRODUCT_DETAIL_FALSE_POSITIVE_RATE", "2")]);
    assert_eq!(code, Some(2));
    assert!(line.contains("--false-positive-rate"), "{line}");
}

#[test]
fn secrets_are_not_in_messages() {
    for (flag, value) in [
        ("--secret", "hunter2"),
        ("--redis-url", "http://:hunter2@host"),
        ("--database-url", "mysql://root:hunter2@host/x"),
        ("--database-url", "postgres://root:hunter2@host:port/x"),
    ] {
        let (line, code) = refused(&[flag, value], &[]);
        assert_eq!(code, Some(2));
        assert!(!line.contains("hunter2"), "{line}");
    }
    let envs = [
        ("PRODUCT_DETAIL_SECRET", "hunter2"),
        ("PRODUCT_DETAIL_DATABASE_URL", "hunter2"),
        ("PRODUCT_DETAIL_REDIS_URL", "hunter2"),
    ];
    let help = Program::start(BINARY, &["--help"], &envs);
    assert!(help.wait(LONG).is_some_and(|status| status.success()));
    assert!(!help.stdout().contains("hunter2"));
    assert!(help.stdout().contains("PRODUCT_DETAIL_SECRET"));
}

#[test]
fn a_port_in_use_is_named() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let (line, code) = refused(&["--listen", &address], &[]);
    assert_eq!(code, Some(1));
    assert!(line.contains(&address), "{line}");
}

/// Every flag that has a variable, also those whose values are not texts.
#[test]
fn an_empty_variable_counts_as_not_set() {
    let help = Program::start(BINARY, &["--help"], &[]);
    assert!(help.wait(LONG).is_some_and(|status| status.success()));
    let help = help.stdout();
    let variables: Vec<&str> = help
        .split("[env: ")
        .skip(1)
        .filter_map(|after| after.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert!(variables.len() > 10, "{help}");
    let mut envs: Vec<(&str, &str)> = variables.into_iter().map(|name| (name, "")).collect();
    // All but one: the last setting is refused, and no other.
    envs.retain(|(name, _)| *name != "PRODUCT_DETAIL_NULL_TTL");
    envs.push(("PRODUCT_DETAIL_NULL_TTL", "never"));
    let (line, code) = refused(&[], &envs);
    assert_eq!(code, Some(2), "{line}");
    assert!(line.contains("--null-ttl"), "{line}");
}
