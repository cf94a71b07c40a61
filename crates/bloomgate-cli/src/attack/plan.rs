//! The plan of a run: all flags, checked against one another.

use std::num::NonZeroU64;
use std::time::Duration;

use super::args::Args;
use super::error::Error;
use super::http::header::RequestHeader;
use super::http::target::{AllowedHosts, Target};
use super::ids::file::IdFile;
use super::ids::selection::{attack_ids, existing_ids, listed_ids};
use super::ids::{AttackIds, ExistingIds, LegitIds};
use super::traffic::TrafficMix;

/// Attack requests when neither `--requests` nor `--duration` says how many.
const DEFAULT_REQUESTS: u64 = 100_000;
/// Attack requests when only `--duration` ends the run: more than any run reaches.
const UNLIMITED_REQUESTS: u64 = 1 << 40;
/// Requests of both kinds together; keeps all sums within `u64`.
const MAX_REQUESTS: f64 = (1u64 << 60) as f64;
/// Fresh seeds stay below this, so that JSON readers that hold numbers as doubles keep them exact.
const FRESH_SEEDS: u64 = 1 << 53;

/// Everything that a run needs.
#[derive(Debug)]
pub(crate) struct AttackPlan {
    pub(crate) target: Target,
    pub(crate) guard: Option<Target>,
    pub(crate) allowed: AllowedHosts,
    pub(crate) headers: Vec<RequestHeader>,
    pub(crate) mix: TrafficMix,
    pub(crate) attack_ids: AttackIds,
    pub(crate) legit_ids: Option<LegitIds>,
    pub(crate) seed: u64,
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) rate: Option<NonZeroU64>,
    pub(crate) timeout: Duration,
    pub(crate) duration: Option<Duration>,
}

impl AttackPlan {
    /// Checks the flags against one another. `fresh_seed` is used unless `--seed` is given.
    pub(crate) fn new(args: &Args, fresh_seed: u64) -> Result<Self, Error> {
        let allowed =
            if args.i_own_this_target { AllowedHosts::Anywhere } else { AllowedHosts::Loopback };
        let target = Target::parse("--url", &args.url, allowed)?;
        let guard = match &args.guard_url {
            Some(url) => Some(Target::parse("--guard-url", url, allowed)?),
            None => None,
        };
        let (listed, existing) = (listed_ids(args)?, existing_ids(args)?);
        let attack = attack_requests(args, listed.as_ref())?;
        let mix = mix(attack, args.legit_share)?;
        let seed = args.seed.unwrap_or(fresh_seed % FRESH_SEEDS);
        let attack_ids = attack_ids(args, listed, existing.as_ref(), attack, seed)?;
        let legit_ids = legit_ids(args, existing, seed)?;
        if args.fail_on_refusal && legit_ids.is_none() {
            return Err(Error::flag(
                "--fail-on-refusal",
                "without legit requests nothing can be refused wrongly; add --legit-share",
            ));
        }
        let connections = args.connections.min(u32::try_from(mix.total()).unwrap_or(u32::MAX));
        Ok(Self {
            target,
            guard,
            allowed,
            headers: args.headers.clone(),
            attack_ids,
            legit_ids,
            mix,
            seed,
            connections: connections as usize,
            threads: args.threads.map_or_else(half_the_processors, usize::from),
            rate: args.rate.and_then(NonZeroU64::new),
            timeout: args.timeout,
            duration: args.duration,
        })
    }
}

/// Adds legit requests until they are `share` of all.
fn mix(attack: u64, share: f64) -> Result<TrafficMix, Error> {
    let legit = (attack as f64 * share / (1.0 - share)).round();
    if legit > MAX_REQUESTS {
        return Err(Error::flag(
            "--legit-share",
            "so close to 1 the run would never end; lower it",
        ));
    }
    Ok(TrafficMix { attack, legit: legit as u64 })
}

/// The number of attack requests; each id of a file is requested once at most.
fn attack_requests(args: &Args, listed: Option<&IdFile>) -> Result<u64, Error> {
    let listed = listed.map(IdFile::len);
    match (args.requests, listed) {
        (Some(requests), Some(count)) if requests > count => Err(Error::flag(
            "--requests",
            format!("the file of --ids has {count} ids, each for one request; lower it"),
        )),
        (Some(requests), _) => Ok(requests),
        (None, Some(count)) => Ok(count),
        (None, None) if args.duration.is_some() => Ok(UNLIMITED_REQUESTS),
        (None, None) => Ok(DEFAULT_REQUESTS),
    }
}

fn legit_ids(
    args: &Args,
    existing: Option<ExistingIds>,
    seed: u64,
) -> Result<Option<LegitIds>, Error> {
    if args.legit_share == 0.0 {
        return Ok(None);
    }
    let existing = existing.ok_or_else(|| {
        Error::flag(
            "--legit-share",
            "legit requests need ids that exist; add --legit-ids, such as 1-100000",
        )
    })?;
    let ids = LegitIds::new(existing, args.zipf, seed);
    ids.map(Some).ok_or_else(|| Error::flag("--zipf", "give a number from 0 to 20"))
}

fn half_the_processors() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(2))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    const URL: &str = "http://127.0.0.1:8080/products/{id}";

    fn plan(flags: &str) -> Result<AttackPlan, Error> {
        let line = ["attack", "--url", URL].into_iter().chain(flags.split_whitespace());
        AttackPlan::new(&Line::try_parse_from(line).unwrap().args, 1 << 60 | 5)
    }

    #[test]
    fn default_plan_of_a_run() {
        let plan = plan("").unwrap();
        assert_eq!(plan.mix, TrafficMix { attack: 100_000, legit: 0 });
        assert_eq!((plan.connections, plan.seed), (64, 5));
        assert_eq!((plan.timeout, plan.duration, plan.rate), (Duration::from_secs(5), None, None));
        assert!(plan.threads >= 1 && plan.legit_ids.is_none() && plan.guard.is_none());
    }

    #[test]
    fn legit_requests_come_on_top() {
        let mix = |flags: &str| plan(flags).unwrap().mix;
        let ten = mix("--requests 900 --legit-share 0.1 --legit-ids 1-9");
        assert_eq!(ten, TrafficMix { attack: 900, legit: 100 });
        let half = mix("--requests 7 --legit-share 0.5 --legit-ids 1-9");
        assert_eq!(half, TrafficMix { attack: 7, legit: 7 });
    }

    #[test]
    fn no_more_connections_than_requests() {
        assert_eq!(plan("--requests 3").unwrap().connections, 3);
    }

    #[test]
    fn a_duration_alone_lifts_the_limit() {
        assert_eq!(plan("--duration 1s").unwrap().mix.attack, UNLIMITED_REQUESTS);
        assert_eq!(plan("--duration 1s --requests 9").unwrap().mix.attack, 9);
    }

    #[test]
    fn a_sequence_begins_past_the_legit_ids() {
        let first = |flags: &str| match plan(flags).unwrap().attack_ids {
            AttackIds::Sequential(first) => first,
            ids => panic!("{ids:?} are not sequential"),
        };
        assert_eq!(first("--profile sequential"), 1 << 40);
        assert_eq!(first("--profile sequential --legit-ids 1-1000"), 1001);
        assert_eq!(first("--profile sequential --legit-ids 1-1000 --start 5000"), 5000);
    }

    #[test]
    fn contradictions_name_the_flag_to_change() {
        for (flags, flag) in [
            ("--legit-share 0.1", "--legit-share"),
            ("--legit-share 0.9999999999999999 --legit-ids 1-9 --requests 1000", "--legit-share"),
            ("--fail-on-refusal", "--fail-on-refusal"),
            ("--fail-on-refusal --legit-ids 1-9", "--fail-on-refusal"),
            ("--start 5", "--start"),
            ("--legit-ids 1-1099511627777", "--legit-ids"),
            ("--profile sequential --start 9223372036854775807 --requests 2", "--start"),
            ("--profile sequential --legit-ids 100-200 --start 150", "--start"),
            ("--profile sequential --legit-ids 100-200 --start 1 --requests 100", "--start"),
            ("--ids uuid --profile sequential", "--profile"),
            ("--ids uuid --start 5", "--start"),
            ("--ids uuid --legit-ids 1-9 --legit-share 0.5", "--legit-ids"),
            ("--ids uid", "--ids"),
            ("--legit-ids missing.txt", "--legit-ids"),
            ("--guard-url http://10.0.0.1/guard", "--guard-url"),
            ("--guard-url https://127.0.0.1/guard", "--guard-url"),
        ] {
            let error = plan(flags).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{flag}: ")), "{flags}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(plan("--profile sequential --legit-ids 100-200 --start 1 --requests 99").is_ok());
    }

    #[test]
    fn every_number_flag_accepts_underscores_and_exponents() {
        let plan = plan(
            "--requests 9e3 --connections 1_0 --rate 1e6 --seed 1_000 --threads 2e0 --duration 1e1s \
             --timeout 1e3ms --legit-share 1e-1 --legit-ids 1-1e3 --profile sequential --start 1e9",
        );
        let plan = plan.unwrap();
        assert_eq!(plan.mix, TrafficMix { attack: 9_000, legit: 1_000 });
        assert_eq!((plan.connections, plan.threads, plan.seed), (10, 2, 1_000));
        assert_eq!(plan.rate.map(NonZeroU64::get), Some(1_000_000));
        assert_eq!((plan.timeout.as_secs(), plan.duration.unwrap().as_secs()), (1, 10));
        let AttackIds::Sequential(first) = plan.attack_ids else { panic!("not sequential") };
        assert_eq!(first, 1_000_000_000);
    }

    #[test]
    fn fractions_and_negative_numbers_are_refused_under_their_flag() {
        for flag in ["--requests", "--connections", "--rate", "--seed", "--threads", "--start"] {
            for number in ["1.5", "-5", "1e-3"] {
                let error = Line::try_parse_from(["attack", "--url", URL, flag, number]);
                let error = error.unwrap_err().to_string();
                let says = format!("invalid value '{number}' for '{flag} <");
                assert!(error.contains(&says), "{error}");
                assert!(error.contains("give a whole number from "), "{error}");
            }
        }
    }

    #[test]
    fn values_out_of_range_are_refused_by_the_parser() {
        for flags in [
            "--requests 0",
            "--connections 0",
            "--connections 10001",
            "--legit-share 1",
            "--zipf -1",
            "--zipf=-1",
            "--rate 0",
            "--timeout 0",
            "--duration never",
            "--threads 0",
            "--start 9223372036854775808",
            "--profile clever",
            "--replay file",
            "--header Authorization",
        ] {
            let line = ["attack", "--url", URL].into_iter().chain(flags.split_whitespace());
            assert!(Line::try_parse_from(line).is_err(), "{flags}");
        }
    }
}
