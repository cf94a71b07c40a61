//! The flags of `bloomgate attack`, each checked alone.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::http::header::{self, RequestHeader};
use crate::number::{decimal, whole};

/// The largest id that is an `i64`, as most databases have them.
const MAX_ID: u64 = i64::MAX as u64;

/// Where the ids of attack requests come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdKind {
    /// Integers.
    Int,
    /// Random UUIDs.
    Uuid,
    /// The lines of a file.
    File(PathBuf),
}

/// As typed on the command line.
impl Display for IdKind {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            IdKind::Int => out.write_str("int"),
            IdKind::Uuid => out.write_str("uuid"),
            IdKind::File(path) => path.display().fmt(out),
        }
    }
}

/// Where the ids of legit requests come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LegitSource {
    /// All integers of a range.
    Range(IdRange),
    /// The lines of a file.
    File(PathBuf),
}

/// How integer ids of attack requests are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Distinct ids without order, all above 2^40 and below 2^63
    Random,
    /// Consecutive ids upward from --start
    Sequential,
}

impl Profile {
    /// The name as it is typed on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Profile::Random => "random",
            Profile::Sequential => "sequential",
        }
    }
}

/// An inclusive range of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRange {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// Send requests for ids that do not exist, and count what reaches the database.
///
/// Only loopback addresses are attacked, unless --i-own-this-target is given.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = super::help::AFTER)]
pub(crate) struct Args {
    /// Where to send requests; `{id}` in the path or query is replaced by an id
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,

    /// The guard's status document (JSON), read before and after the traffic; without it,
    /// loads and refusals are not counted
    #[arg(long, value_name = "URL")]
    pub(crate) guard_url: Option<String>,

    /// Header to send with every request, also to --guard-url; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header::parse)]
    pub(crate) headers: Vec<RequestHeader>,

    /// Ids of attack requests, which should not exist: `int`, `uuid` (random, version 4), or a file
    /// with one id a line, which are percent-encoded
    #[arg(long, value_name = "int|uuid|FILE", default_value = "int", value_parser = id_kind)]
    pub(crate) ids: IdKind,

    /// Attack requests to send; legit requests come on top [default: 100000, or all ids of the
    /// file of --ids, or no limit when --duration is given]
    #[arg(long, value_name = "N", value_parser = whole(1..=1_u64 << 40), allow_negative_numbers = true)]
    pub(crate) requests: Option<u64>,

    /// Connections kept open, each with one request at a time (1 to 10000)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = whole(1..=10_000_u32), allow_negative_numbers = true)]
    pub(crate) connections: u32,

    /// How attack ids of --ids int are chosen
    #[arg(long, value_enum, default_value_t = Profile::Random)]
    pub(crate) profile: Profile,

    /// First id of the sequential profile [default: one past --legit-ids, else 1099511627776]
    #[arg(long, value_name = "ID", value_parser = whole(0..=MAX_ID), allow_negative_numbers = true)]
    pub(crate) start: Option<u64>,

    /// Share of legit requests in all requests, from 0 to below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, allow_negative_numbers = true)]
    pub(crate) legit_share: f64,

    /// Ids of legit requests, which should exist: integers from A to B inclusive, or a file with
    /// one id a line, which are percent-encoded
    #[arg(long, value_name = "A-B|FILE", value_parser = legit_source, allow_negative_numbers = true)]
    pub(crate) legit_ids: Option<LegitSource>,

    /// Exponent of the Zipf law of legit ids, 0 (uniform) to 20; which ids are the popular ones
    /// depends on the seed
    #[arg(long, value_name = "EXPONENT", default_value_t = 1.0, value_parser = exponent, allow_negative_numbers = true)]
    pub(crate) zipf: f64,

    /// Seed of all ids, to repeat a run [default: a fresh one, shown in the report]
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,

    /// Requests per second overall (1 to 10000000), open loop: latency counts from the moment a
    /// request was due. Without it each connection sends as soon as it has an answer
    #[arg(long, value_name = "R", value_parser = whole(1..=10_000_000_u64), allow_negative_numbers = true)]
    pub(crate) rate: Option<u64>,

    /// Longest wait for one answer, such as 5s or 250ms
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration, allow_negative_numbers = true)]
    pub(crate) timeout: Duration,

    /// Stop after this time, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration, allow_negative_numbers = true)]
    pub(crate) duration: Option<Duration>,

    /// Threads that send [default: half the processors, since the server needs the rest]
    #[arg(long, value_name = "N", value_parser = whole(1..=256_u16), allow_negative_numbers = true)]
    pub(crate) threads: Option<u16>,

    /// Print one JSON object on stdout instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Exit with 1 when a legit request was answered 404
    #[arg(long)]
    pub(crate) fail_on_refusal: bool,

    /// Allow a target that is not on this machine; for services that you may load-test
    #[arg(long)]
    pub(crate) i_own_this_target: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match decimal(text) {
        Some(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("give a number from 0 to below 1, such as 0.1".to_owned()),
    }
}

fn exponent(text: &str) -> Result<f64, String> {
    match decimal(text) {
        Some(exponent) if (0.0..=20.0).contains(&exponent) => Ok(exponent),
        _ => Err("give a number from 0 to 20, such as 1.0".to_owned()),
    }
}

fn id_kind(text: &str) -> Result<IdKind, String> {
    match text {
        "" => Err("give int, uuid or a file".to_owned()),
        "int" => Ok(IdKind::Int),
        "uuid" => Ok(IdKind::Uuid),
        path => Ok(IdKind::File(path.into())),
    }
}

/// A text that has only the characters of numbers is a range, any other a file.
fn legit_source(text: &str) -> Result<LegitSource, String> {
    let numeric = |byte: u8| byte.is_ascii_digit() || b"-+_.eE".contains(&byte);
    if text.bytes().all(numeric) && text.contains(|char: char| char.is_ascii_digit()) {
        return Ok(LegitSource::Range(id_range(text)?));
    }
    match text {
        "" => Err("give two ids, such as 1-100000, or a file".to_owned()),
        path => Ok(LegitSource::File(path.into())),
    }
}

fn id_range(text: &str) -> Result<IdRange, String> {
    let (first, last) = text.split_once('-').ok_or("give two ids, such as 1-100000, or a file")?;
    let id = whole(0..=MAX_ID);
    let range = IdRange { first: id(first)?, last: id(last)? };
    if range.first > range.last {
        return Err("the first id is above the last: swap them".to_owned());
    }
    Ok(range)
}

/// Reads `250ms`, `5s`, `2m`, or a bare number of seconds; at least 1 ms, at most a day.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, seconds_per_unit) = if let Some(number) = text.strip_suffix("ms") {
        (number, 0.001)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix('m') {
        (number, 60.0)
    } else {
        (text, 1.0)
    };
    match decimal(number).map(|number| number * seconds_per_unit) {
        Some(seconds) if (0.001..=86_400.0).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err("give a time from 1ms to 1440m, such as 5s or 250ms".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("1e3ms"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "0", "-1s", "1h", "NaN", "inf", "1e300s", "0.1ms"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn shares_are_below_one() {
        assert_eq!(share("0"), Ok(0.0));
        assert_eq!(share("0.999"), Ok(0.999));
        for wrong in ["1", "-0.1", "NaN", "ten"] {
            assert!(share(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ids_are_a_kind_or_a_file() {
        assert_eq!(id_kind("int"), Ok(IdKind::Int));
        assert_eq!(id_kind("uuid"), Ok(IdKind::Uuid));
        assert_eq!(id_kind("./uuid"), Ok(IdKind::File("./uuid".into())));
        assert!(id_kind("").is_err());
    }

    #[test]
    fn legit_ids_are_a_range_or_a_file() {
        let range = LegitSource::Range(IdRange { first: 1, last: 1000 });
        assert_eq!(legit_source("1-1e3"), Ok(range));
        for path in ["ids.txt", "/a-b", "./1-2", "a-b", "-"] {
            assert_eq!(legit_source(path), Ok(LegitSource::File(path.into())));
        }
        for wrong in ["", "7", "9-8", "-1-5", "1-1.5"] {
            assert!(legit_source(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn id_ranges_are_inclusive_and_ordered() {
        assert_eq!(id_range("1-100000"), Ok(IdRange { first: 1, last: 100_000 }));
        assert_eq!(id_range("1_000-1e6"), Ok(IdRange { first: 1000, last: 1_000_000 }));
        assert_eq!(id_range("7-7"), Ok(IdRange { first: 7, last: 7 }));
        for wrong in ["", "7", "-", "9-8", "-1-5", "a-b", "1-9223372036854775808"] {
            assert!(id_range(wrong).is_err(), "{wrong:?}");
        }
    }
}
