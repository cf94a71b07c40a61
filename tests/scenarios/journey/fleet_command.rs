//! The fleet that `scripts/fleet` starts.

use std::process::Command;
use std::time::{Duration, Instant};

use testbed::{Program, net};

use crate::service::CEILING;

#[test]
fn the_fleet_answers_behind_its_front_and_shows_its_instances() {
    let example = ["-p", "bloomgate-tests", "--example", "fleet"];
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--all-features"]).args(example);
    assert!(build.status().unwrap().success());
    let test = std::env::current_exe().unwrap();
    let binary = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/fleet");
    let fleet = Program::start(binary, &["2", "--products", "100", "--seconds", "15"], &[]);
    let line = fleet.wait_for_line("front ", CEILING).expect("it has a front");
    let front = line.trim_start_matches("front").trim().to_owned();
    let json = [("content-type", "application/json")];
    let product = br#"{"name": "new", "price_cents": 1, "description": "d"}"#;
    let started = Instant::now();
    loop {
        let created = net::request("POST", &format!("{front}/products"), &json, product);
        if created.status == 201 {
            break;
        }
        // The fleet has just begun.
        assert_eq!(created.status, 503, "{}", created.text());
        assert!(started.elapsed() < CEILING, "{}", created.text());
        std::thread::sleep(Duration::from_millis(200));
    }
    // Through one instance after the other.
    for _ in 0..4 {
        let read = net::get(&format!("{front}/products/101"));
        assert_eq!(read.status, 200, "{}", read.text());
    }
    let status = fleet.wait(CEILING + Duration::from_secs(15)).expect("it ends by itself");
    assert!(status.success(), "{status}: {}", fleet.stderr());
    let shown = fleet.stdout();
    for instance in ["web-1", "web-2"] {
        let lines: Vec<_> = shown.lines().filter(|line| line.starts_with(instance)).collect();
        assert!(lines.iter().any(|line| line.contains("yes")), "{shown}");
        assert!(lines.iter().any(|line| line.contains("closed")), "{shown}");
    }
}
