//! Tests of the built `bloomgate plan`.

#![expect(clippy::unwrap_used, reason = "a test's helpers may fail loudly")]

use std::process::Command;

use bloomgate_filter::{BloomParams, ClassicParams, FalsePositiveRate};
use serde_json::Value;

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn plan(flags: &[&str]) -> Ran {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bloomgate")).arg("plan").args(flags).output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn json(items: &str, rate: &str) -> Value {
    let ran = plan(&["--items", items, "--rate", rate, "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout.lines().count(), 1);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn text(items: &str, rate: &str) -> String {
    let ran = plan(&["--items", items, "--rate", rate]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    ran.stdout
}

#[test]
fn planned_sizes_and_rates_are_those_of_the_filters() {
    for (items, rate) in [(1_u64, 0.5), (1_000, 0.01), (1_000_000, 0.001), (1_000_000_000, 1e-9)] {
        let report = json(&items.to_string(), &rate.to_string());
        assert_eq!((&report["items"], &report["rate"]), (&items.into(), &rate.into()));

        let rate = FalsePositiveRate::new(rate).unwrap();
        let classic = ClassicParams::new(items, rate).unwrap();
        let shown = &report["families"]["classic"];
        assert_eq!(shown["bits"], classic.bits());
        assert_eq!(shown["hashes"], classic.hashes());
        assert_eq!(shown["bytes"], classic.bytes());
        assert_eq!(shown["bits_per_item"], classic.bits_per_item());

        let bloom = BloomParams::new(items, rate).unwrap();
        let shown = &report["families"]["bloom"];
        assert_eq!(shown["bits"], bloom.bits());
        assert_eq!(shown["hashes"], bloom.hashes());
        assert_eq!(shown["bytes"], bloom.bytes());
        assert_eq!(shown["bits_per_item"], bloom.bits_per_item());

        for (name, times) in [("1x", 1), ("2x", 2), ("3x", 3)] {
            for (family, rate) in [
                ("classic", classic.expected_rate(times * items)),
                ("bloom", bloom.expected_rate(times * items)),
                ("bitmap", 0.0),
                ("exact", 0.0),
            ] {
                let shown = report["families"][family]["rates"][name].as_f64().unwrap();
                // The parser may miss the last digit.
                assert!((shown - rate).abs() <= rate * 1e-15, "{family} {name}: {shown} {rate}");
            }
        }
    }
}

#[test]
fn classic_filters_have_the_sizes_that_articles_print() {
    for (items, rate, bits, hashes) in [
        ("1e6", "0.01", 9_585_059_u64, 7),
        ("10_000_000", "0.001", 143_775_876, 10),
        ("100000000", "0.01", 958_505_838, 7),
        ("1e8", "1e-3", 1_437_758_757, 10),
        ("1e9", "0.0001", 19_170_116_755, 13),
    ] {
        let shown = &json(items, rate)["families"]["classic"];
        assert_eq!((&shown["bits"], &shown["hashes"]), (&bits.into(), &hashes.into()));
    }
}

#[test]
fn the_exact_kinds_have_whole_numbers_and_no_false_positives() {
    let families = &json("1000000", "0.01")["families"];
    let bitmap = &families["bitmap"];
    assert_eq!((&bitmap["bits"], &bitmap["bytes"]), (&1_054_720.into(), &131_840.into()));
    for name in ["bits", "hashes", "bytes"] {
        for family in ["classic", "bloom", "bitmap", "exact"] {
            assert!(families[family][name].is_u64(), "{family} {name}");
        }
    }
    assert_eq!(families["exact"]["hashes"], 0);
}

#[test]
fn the_table_has_a_row_for_each_kind_with_sizes_to_read() {
    let text = text("1_000_000", "0.01");
    for part in [
        "1,000,000 items at a false-positive rate of 0.01\n",
        "9,585,059       7    1.14 MiB       9.59      0.0100  0.157  0.436\n",
        "\nbloom     10,101,248       8    1.20 MiB      10.10      0.0100  0.167  0.463\n",
        "\nbitmap     1,054,720       0  128.75 KiB       1.05           0      0      0\n",
        "\nexact ",
        "a million of which take 128.75 KiB",
        "advice: Dense integers, such as ids from a sequence: use bitmap.",
    ] {
        assert!(text.contains(part), "{part:?} is missing from\n{text}");
    }
}

#[test]
fn advice_is_the_same_in_text_and_json() {
    for (items, rate) in [("1000", "0.01"), ("1e6", "1e-6"), ("0", "0.01")] {
        let (json, text) = (json(items, rate), text(items, rate));
        let advice = json["advice"].as_array().unwrap();
        assert!(!advice.is_empty());
        for sentence in advice {
            assert!(
                text.contains(sentence.as_str().unwrap()),
                "{sentence} is missing from\n{text}"
            );
        }
    }
}

#[test]
fn a_kind_that_can_not_be_planned_is_shown_with_its_reason() {
    let items = "500000000000000000";
    let families = &json(items, "0.01")["families"];
    assert_eq!(families["bitmap"]["hashes"], 0);
    for family in ["classic", "bloom", "exact"] {
        let error = families[family]["error"].as_str().unwrap();
        assert!(error.contains(items) && error.contains("fewer items"), "{error}");
        assert_eq!(families[family].as_object().unwrap().len(), 1);
        assert!(text(items, "0.01").contains(error));
    }
}

#[test]
fn items_that_no_kind_can_hold_are_a_usage_error() {
    for json in [&[][..], &["--json"]] {
        let flags = [&["--items", "18446744073709551615", "--rate", "0.01"], json].concat();
        let ran = plan(&flags);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.starts_with("error: --items"), "{}", ran.stderr);
        for family in ["classic", "bloom", "bitmap", "exact"] {
            assert!(ran.stderr.contains(&format!("  {family}: ")), "{}", ran.stderr);
        }
    }
}

#[test]
fn case_02_values_out_of_range_are_refused_under_their_flag() {
    let rates = ["0", "1", "5", "-1", "NaN", "inf", "abc", "1e-300", ""];
    let items = ["-5", "1.5", "abc", "NaN", "inf", "18446744073709551616", "1e20", ""];
    let cases = rates.map(|rate| ("--rate", rate, "1000", rate)).into_iter();
    for (flag, wrong, items, rate) in
        cases.chain(items.map(|items| ("--items", items, items, "0.01")))
    {
        let ran = plan(&["--items", items, "--rate", rate]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{flag} {wrong}");
        assert!(ran.stderr.contains(flag), "{}", ran.stderr);
        // clap itself refuses an empty value.
        assert!(wrong.is_empty() || ran.stderr.contains("give "), "{}", ran.stderr);
    }
    for missing in [&["--items", "5"], &["--rate", "0.01"]] {
        assert_eq!(plan(missing).code, Some(2));
    }
}

#[test]
fn the_help_has_an_example_that_works() {
    let help = plan(&["--help"]).stdout;
    let example =
        help.lines().find_map(|line| line.trim().strip_prefix("bloomgate plan ")).unwrap();
    assert_eq!(plan(&example.split(' ').collect::<Vec<_>>()).code, Some(0));
    assert!(help.contains("1_000_000 or 1e6"));
}
