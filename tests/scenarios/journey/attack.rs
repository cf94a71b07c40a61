//! Strangers ask for ids that don't exist, with the real attack tester.

use std::time::Duration;

use serde_json::Value;
use testbed::Program;

use crate::client::Client;
use crate::environment::{Environment, assert_no_panic};
use crate::service::Service;

/// Only a hang lasts this long.
const HANG: Duration = Duration::from_secs(300);

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
    for error in ["errors", "shed", "timeouts"] {
        assert_eq!(report["guard"][error], 0, "{report}");
    }
    report
}

/// Every attack request was answered 404; the gate refused all but a share `rate` of them, and each
/// of those was one load.
///
/// The gate holds exactly as many ids as it is sized for, so at most `rate` of the absent ones
/// pass: with each id asked once that is a binomial count of mean `requests × rate`. Beyond five
/// standard deviations of it lies one run in 3,000,000. What the gate does over half a million ids,
/// `scripts/bench` prints.
fn assert_refused(report: &Value, requests: u64, rate: f64) {
    assert_eq!(report["attack"]["statuses"]["404"], requests, "{report}");
    let loads = report["guard"]["absent_loads"].as_u64().unwrap();
    let mean = requests as f64 * rate;
    assert!((loads as f64) <= mean + 5.0 * mean.sqrt(), "{loads} loads of {requests}: {report}");
    let refused = report["guard"]["refused"].as_u64().unwrap();
    assert_eq!(refused + loads, requests, "every request is accounted for: {report}");
}

fn assert_all_found(service: &Service, products: i64, asked: i64) {
    let mut client = Client::of(service);
    for n in 1..=asked {
        let reply = client.get(n * (products / asked));
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
}

#[test]
fn absent_ids_reach_sqlite_at_most_at_the_false_positive_rate() {
    let env = Environment::sqlite();
    let service = env.serve(20_000, &["--capacity", "20000"]);
    let report = attack(&service, "--requests 60000 --connections 16");
    assert_refused(&report, 60_000, 0.001);
    assert_all_found(&service, 20_000, 2_000);
    assert_no_panic(&service);
}

#[test]
fn absent_ids_reach_postgres_at_most_at_the_false_positive_rate() {
    let env = Environment::postgres_and_redis();
    let service = env.serve(20_000, &["--capacity", "20000"]);
    let report = attack(&service, "--requests 20000 --connections 16");
    assert_refused(&report, 20_000, 0.001);
    assert_all_found(&service, 20_000, 500);
    env.until_only_entries();
    assert_no_panic(&service);
}

#[test]
fn no_absent_id_passes_an_exact_gate() {
    for (env, gate) in [
        (Environment::sqlite(), "bitmap"),
        (Environment::sqlite(), "exact"),
        (Environment::postgres_and_redis(), "bitmap"),
    ] {
        let service = env.serve(5_000, &["--gate", gate]);
        let report = attack(&service, "--requests 10000 --connections 16");
        assert_refused(&report, 10_000, 0.0);
        assert_all_found(&service, 5_000, 1_000);
        assert_no_panic(&service);
    }
}

#[test]
fn without_the_guard_every_absent_id_reaches_the_database() {
    let env = Environment::sqlite();
    let service = env.start_unguarded(1_000);
    let report = attack(&service, "--requests 5000 --connections 8");
    assert_eq!(report["guard"]["absent_loads"], 5000);
    assert_eq!(report["guard"]["absent_loads_per_1000"], 1000.0);
    assert_eq!(report["guard"]["refused"], 0);
    assert_eq!(report["guard"]["enabled"], false);
}

#[test]
fn legit_requests_are_all_answered_during_an_attack() {
    for env in [Environment::sqlite(), Environment::postgres_and_redis()] {
        let service = env.serve(5_000, &["--capacity", "5000"]);
        // Random ids first, then the ones just beyond the existing ones.
        for profile in ["random", "sequential"] {
            let report = attack(
                &service,
                &format!(
                    "--requests 9000 --legit-share 0.1 --legit-ids 1-5000 --connections 8 \
                     --profile {profile} --fail-on-refusal"
                ),
            );
            assert_refused(&report, 9_000, 0.001);
            assert_eq!(report["ordinary"]["statuses"]["200"], 1_000, "{report}");
            assert_eq!(report["ordinary_404"], 0);
            assert_eq!(report["ordinary_non_2xx"], 0);
        }
        assert_no_panic(&service);
    }
}

/// The connections are as many as the loads that may run at a time, so that nothing has to wait for
/// a place, however slow the machine is.
#[test]
fn a_cold_start_under_zipf_traffic_sheds_no_load() {
    for (env, connections) in [(Environment::sqlite(), 8), (Environment::postgres_and_redis(), 32)]
    {
        let service = env.start(20_000, &[]);
        let report = attack(
            &service,
            &format!(
                "--requests 500 --legit-share 0.95 --legit-ids 1-20000 --connections {connections} \
                 --fail-on-refusal"
            ),
        );
        assert_eq!(report["ordinary"]["statuses"]["200"], 9_500, "{report}");
        assert_eq!(report["ordinary_non_2xx"], 0);
        assert_eq!(report["attack"]["statuses"]["404"], 500, "{report}");
        service.until_closed();
        let counts = service.guard()["counts"].clone();
        for count in ["shed", "errors", "timeouts", "panics"] {
            assert_eq!(counts["loader"][count], 0, "{counts}");
        }
        // One load an id at most.
        assert!(counts["loader"]["found"].as_u64().unwrap() <= 9_500);
        assert_no_panic(&service);
    }
}
