//! Instances whose wall clocks differ.

use std::path::PathBuf;

use crate::cluster::Cluster;

use crate::random::seed;
use crate::run::work_through;
use crate::service::Service;

/// The library that shifts the wall clock of a program that it is loaded into.
fn library() -> String {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().filter_map(Result::ok);
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let found: Option<PathBuf> = files.find(|file| file.is_file());
    let found = found.unwrap_or_else(|| {
        panic!("libfaketime is missing: install the package faketime, or run scripts/test")
    });
    found.display().to_string()
}

/// The time of day that an instance's answers bear, in seconds.
fn time_of_day(service: &Service) -> i64 {
    let reply = service.get("/healthz");
    let date = reply.header("date").expect("answers have a date").to_owned();
    let time = date.split(' ').find(|part| part.contains(':')).expect("a time of day");
    let parts = time.split(':').map(|part| part.parse::<i64>().expect("a number"));
    parts.fold(0, |sum, part| sum * 60 + part)
}

#[test]
fn clocks_half_an_hour_apart_make_no_instance_refuse_a_row() {
    let library = library();
    let shifted = |by: &'static str| {
        [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME", by),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ]
    };
    let mut cluster = Cluster::start_with(&[&[], &shifted("+40s"), &shifted("-31m")]);
    let day = 24 * 60 * 60;
    let [first, second, third] = [0, 1, 2].map(|number| time_of_day(&cluster.services[number]));
    let between = |from: i64, to: i64| (to - from).rem_euclid(day);
    assert!((35..60).contains(&between(first, second)), "{first} {second}");
    assert!((30 * 60..32 * 60).contains(&between(third, first)), "{first} {third}");
    work_through("clocks 40 s and 31 min apart", seed(), &mut cluster, |_, driver| {
        driver.until_written(testbed::repetitions(30, 1_000));
    });
    work_through("the same, and FLUSHALL", seed(), &mut cluster, |cluster, _| {
        assert_eq!(cluster.redis.command(&["FLUSHALL"]), "OK");
    });
}
