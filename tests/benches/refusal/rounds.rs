//! The rounds of attacks, and the tables made of them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testbed::net;

use crate::server::Server;
use crate::{EXAMPLE, GROUPS, Group, REPEATER, Variant};

/// The rate of false positives that the example's gate is sized for.
const RATE: f64 = 0.001;

/// A variant with its processor times a request in µs, one a round.
struct Measured {
    group: &'static Group,
    variant: &'static Variant,
    server: Server,
    rounds: Vec<f64>,
}

/// What the example's guard did in all rounds.
#[derive(Default)]
struct Counts {
    refused: u64,
    absent_loads: u64,
    null_hits: u64,
}

pub(crate) fn measure(rounds: u64, requests: u64) {
    let tool = testbed::workspace_binary("bloomgate-cli", "bloomgate");
    let folder = testbed::temp_folder();
    let mut all = start(&folder);
    let mut counts = Counts::default();
    for measured in &all {
        attack(&tool, measured, requests, &mut counts);
    }
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        // So that a machine that slows down or speeds up favours none.
        all.reverse();
        for measured in &mut all {
            let cost = attack(&tool, measured, requests, &mut counts);
            measured.rounds.push(cost);
        }
    }
    counts.check((rounds + 1) * requests);
    println!("Processor time of the server for one request; {rounds} interleaved rounds of");
    println!("{requests} ids over 64 connections; medians of µs, and of the rounds' ratios, with");
    println!("the ratios' quartiles.");
    for group in &GROUPS {
        print_table(group, &all);
    }
    println!();
    println!(
        "Of {} requests to the example, its gate passed {}; each cost one load.",
        (rounds + 1) * requests,
        counts.absent_loads
    );
}

fn start(folder: &testbed::TempFolder) -> Vec<Measured> {
    let mut example = Some(Server::start_example(folder));
    let repeated = example.as_ref().map(|example| example.product_url("0")).unwrap_or_default();
    let variants = GROUPS.iter().flat_map(|group| group.variants.iter().map(move |v| (group, v)));
    let all: Vec<Measured> = variants
        .map(|(group, variant)| {
            let server = match variant.name {
                EXAMPLE => example.take().expect("one variant is the example"),
                name => Server::start(name, &repeated),
            };
            Measured { group, variant, server, rounds: Vec::new() }
        })
        .collect();
    let reply_of = |name: &str| {
        let measured = all.iter().find(|measured| measured.variant.name == name);
        let url = measured.expect("a variant").server.product_url("0");
        net::get(&url).raw_without(&["date"])
    };
    assert_eq!(reply_of(REPEATER), reply_of(EXAMPLE), "both answer the same bytes");
    all
}

/// Attacks a server, and returns its processor time for each request in µs.
fn attack(tool: &Path, measured: &Measured, requests: u64, counts: &mut Counts) -> f64 {
    let Measured { group, variant, server, .. } = measured;
    let mut command = Command::new(tool);
    command.args(["attack", "--json", "--connections", "64", "--threads", "1"]);
    command.args(["--requests", &requests.to_string(), "--url", &server.product_url("{id}")]);
    if group.exist {
        command.args(["--profile", "sequential", "--start", "1"]);
    } else {
        command.args(["--profile", "random"]);
    }
    if variant.name == EXAMPLE {
        command.args(["--guard-url", &server.guard_url()]);
    }
    let before = server.cpu_micros();
    let output = command.output().expect("the attack tester");
    let cost = (server.cpu_micros() - before) / requests as f64;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let status = if group.exist { "200" } else { "404" };
    assert_eq!(report["attack"]["statuses"][status], requests, "all are answered {status}");
    if variant.name == EXAMPLE {
        counts.add(&report["guard"]);
    }
    cost
}

impl Counts {
    fn add(&mut self, guard: &Value) {
        let count = |name: &str| guard[name].as_u64().unwrap_or_else(|| panic!("{name}: {guard}"));
        self.refused += count("refused");
        self.absent_loads += count("absent_loads");
        self.null_hits += count("null_hits");
    }

    /// Fails unless every request is accounted for, and no more ids were loaded than five standard
    /// deviations, and five for small means, above the false positives to expect.
    fn check(&self, requests: u64) {
        let Self { refused, absent_loads, null_hits } = self;
        let seen = refused + absent_loads + null_hits;
        assert_eq!(
            seen, requests,
            "{refused} refused, {absent_loads} loads, {null_hits} sentinels"
        );
        let mean = requests as f64 * RATE;
        let limit = mean + 5.0 * mean.sqrt() + 5.0;
        assert!(*absent_loads as f64 <= limit, "{absent_loads} loads, at most {limit} expected");
    }
}

/// The value at a share of the sorted values.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[(share * (values.len() - 1) as f64).round() as usize]
}

fn print_table(group: &Group, all: &[Measured]) {
    println!();
    println!("| {} | CPU µs | ÷ the first | quartiles |", group.title);
    println!("|---|---|---|---|");
    let of = |variant: &Variant| {
        let measured = all.iter().find(|measured| measured.variant.name == variant.name);
        &measured.expect("a measured variant").rounds
    };
    let baseline = of(&group.variants[0]);
    for variant in group.variants {
        let rounds = of(variant);
        let ratios: Vec<f64> = rounds.iter().zip(baseline).map(|(a, b)| a / b).collect();
        let at = |share| quantile(&ratios, share);
        println!(
            "| {} | {:.2} | {:.3} | {:.3}–{:.3} |",
            variant.what,
            quantile(rounds, 0.5),
            at(0.5),
            at(0.25),
            at(0.75)
        );
    }
    println!();
    println!("Target: {}.", group.target);
}
