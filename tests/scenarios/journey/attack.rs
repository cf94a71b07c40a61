//! Requests for absent ids, sent by the attack tester.

use std::time::Duration;

use serde_json::Value;
use testbed::Program;

use crate::client::Client;
use crate::environment::{Environment, assert_no_panic};
use crate::service::Service;

/// A limit that only a hang reaches.
const HANG: Duration = Duration::from_secs(300);

/// Runs the attack tester; fails unless each request is answered.
fn attack(service: &Service, flags: &str) -> Value {
    let (url, guard) =
        (format!("{}/products/{{id}}", service.url), format!("{}/guard", service.url));
    let mut args =
        vec!["attack", "--json", "--timeout", "60s", "--url", &url, "--guard-url", &guard];
    args.extend(flags.split_whitespace());
    let tool = Program::start(testbed::workspace_binary("bloomgate-cli", "bloomgate"), &args, &[]);
    let status = tool.wait(HANG).unwrap_or_else(|| panic!("the attack hangs: {}", tool.stdout()));
    assert!(status.success(), "{status}: {}{}", tool.stdout(), tool.stderr());
    let report: Value = serde_json::from_str(&tool.stdout()).unwrap();
    assert_eq!(report["ended"], "finished");
    for error in ["connect", "transport", "timeouts", "unanswered"] {
        assert_eq!(report["errors"][error], 0, "{report}");
    }
    report
}

/// Fails if a load was shed or failed.
fn assert_no_failed_load(report: &Value) {
    for error in ["errors", "shed", "timeouts"] {
        assert_eq!(report["guard"][error], 0, "{report}");
    }
}

/// Fails unless each attack request was answered 404, the gate refused all but a share `rate` of
/// them, and each of the others cost one load.
///
/// The gate holds as many ids as it is sized for, and each absent id is read once. So the number of
/// loads is binomial with a mean of at most `requests × rate`. With a large mean it exceeds five
/// standard deviations above that in one run of 3,000,000; a small mean has a longer tail, for which
/// the limit has five more below 100. A test whose purpose is the rate has a mean of 500 or more,
/// which makes the limit at most 22 % above the mean.
fn assert_refused(report: &Value, requests: u64, rate: f64) {
    assert_eq!(report["attack"]["statuses"]["404"], requests, "{report}");
    let loads = report["guard"]["absent_loads"].as_u64().unwrap();
    let mean = requests as f64 * rate;
    let tail = if mean > 0.0 && mean < 100.0 { 5.0 } else { 0.0 };
    let limit = mean + 5.0 * (mean * (1.0 - rate)).sqrt() + tail;
    assert!(loads as f64 <= limit, "{loads} loads of {requests}, limit {limit}: {report}");
    let refused = report["guard"]["refused"].as_u64().unwrap();
    assert_eq!(refused + loads, requests, "every request is accounted for: {report}");
    assert_no_failed_load(report);
}

fn assert_all_found(service: &Service, products: i64, asked: i64) {
    let mut client = Client::of(service);
    for n in 1..=asked {
        let reply = client.get(n * (products / asked));
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

/// A gate of 20,000 ids with a rate of 0.05, which makes the statistics of few requests meaningful.
fn assert_rate_is_kept(env: &Environment, requests: u64) {
    let service = env.serve(20_000, &["--capacity", "20000", "--false-positive-rate", "0.05"]);
    let report = attack(&service, &format!("--requests {requests} --connections 16"));
    assert_refused(&report, requests, 0.05);
    let loads = report["guard"]["absent_loads"].as_u64().unwrap();
    assert!(loads > requests / 100, "the gate is larger than it was to be: {report}");
    assert_all_found(&service, 20_000, 500);
    if env.has_redis() {
        env.until_only_entries();
    }
    assert_no_panic(&service);
}

#[test]
fn absent_ids_reach_sqlite_at_most_at_the_false_positive_rate() {
    assert_rate_is_kept(&Environment::sqlite(), testbed::repetitions(20_000, 60_000));
}

#[test]
fn absent_ids_reach_postgres_at_most_at_the_false_positive_rate() {
    assert_rate_is_kept(&Environment::postgres_and_redis(), testbed::repetitions(10_000, 20_000));
}

#[test]
fn no_absent_id_passes_an_exact_gate() {
    for (env, gate) in [
        (Environment::sqlite(), "bitmap"),
        (Environment::sqlite(), "exact"),
        (Environment::postgres_and_redis(), "bitmap"),
    ] {
        let service = env.serve(5_000, &["--gate", gate]);
        let requests = testbed::repetitions(2_000, 10_000);
        let report = attack(&service, &format!("--requests {requests} --connections 16"));
        assert_refused(&report, requests, 0.0);
        assert_all_found(&service, 5_000, 500);
        assert_no_panic(&service);
    }
}

#[test]
fn without_the_guard_every_absent_id_reaches_the_database() {
    let env = Environment::sqlite();
    let service = env.start_unguarded(1_000);
    let report = attack(&service, "--requests 2000 --connections 8");
    assert_no_failed_load(&report);
    assert_eq!(report["guard"]["absent_loads"], 2000);
    assert_eq!(report["guard"]["absent_loads_per_1000"], 1000.0);
    assert_eq!(report["guard"]["refused"], 0);
    assert_eq!(report["guard"]["enabled"], false);
}

#[test]
fn legit_requests_are_all_answered_during_an_attack() {
    for env in [Environment::sqlite(), Environment::postgres_and_redis()] {
        let service = env.serve(5_000, &["--capacity", "5000"]);
        // Random ids first, then the ids just beyond the existing ones.
        for profile in ["random", "sequential"] {
            let report = attack(
                &service,
                &format!(
                    "--requests 1800 --legit-share 0.1 --legit-ids 1-5000 --connections 8 \
                     --profile {profile} --fail-on-refusal"
                ),
            );
            assert_refused(&report, 1_800, 0.001);
            assert_eq!(report["legit"]["statuses"]["200"], 200, "{report}");
            assert_eq!(report["legit_404"], 0);
            assert_eq!(report["legit_non_2xx"], 0);
        }
        assert_no_panic(&service);
    }
}

/// There are a few more connections than loads that may run at a time, so that a load may have to
/// wait for a permit. The faults' `loads_beyond_the_permits_wait_and_are_not_shed` makes loads
/// wait.
fn assert_cold_start_sheds_no_load(env: &Environment, connections: u64) {
    let service = env.start(20_000, &[]);
    let report = attack(
        &service,
        &format!(
            "--requests 200 --legit-share 0.95 --legit-ids 1-20000 --connections {connections} \
             --fail-on-refusal"
        ),
    );
    assert_no_failed_load(&report);
    assert_eq!(report["legit"]["statuses"]["200"], 3_800, "{report}");
    assert_eq!(report["legit_non_2xx"], 0);
    assert_eq!(report["attack"]["statuses"]["404"], 200, "{report}");
    service.until_closed();
    let counts = service.guard()["counts"].clone();
    for count in ["shed", "errors", "timeouts", "panics"] {
        assert_eq!(counts["loader"][count], 0, "{counts}");
    }
    // One load per id at most.
    assert!(counts["loader"]["found"].as_u64().unwrap() <= 3_800);
    assert_no_panic(&service);
}

#[test]
fn a_cold_start_under_zipf_traffic_sheds_no_load_on_sqlite() {
    // The service allows 8 loads at a time.
    assert_cold_start_sheds_no_load(&Environment::sqlite(), 12);
}

#[test]
fn a_cold_start_under_zipf_traffic_sheds_no_load_on_postgres() {
    // The service allows 32 loads at a time.
    assert_cold_start_sheds_no_load(&Environment::postgres_and_redis(), 40);
}
