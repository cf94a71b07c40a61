//! The command line.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use bloomgate_filter::FalsePositiveRate;
use clap::builder::{BoolishValueParser, Resettable};
use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};

use crate::number;
use crate::startup::StartupError;

/// The largest id that a table can hold.
const MAX_ID: u64 = i64::MAX.unsigned_abs();

/// A product service that random ids cannot bring down.
///
/// Without any options it makes an SQLite file with demonstration products and serves them.
/// Durations are written like 500ms, 30s or 30m; a plain number is in seconds. Counts may be written
/// like 1000000, 1_000_000 or 1e6. An environment variable that is empty counts as not set.
#[derive(Parser)]
#[command(name = "product-detail", version)]
pub(crate) struct Args {
    /// Address to serve on; port 0 takes a free one.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_LISTEN",
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:8080",
        value_parser = address
    )]
    pub(crate) listen: SocketAddr,

    /// Folder for the SQLite file and the generated secret; made when it is missing.
    #[arg(long, env = "PRODUCT_DETAIL_DATA_DIR", value_name = "DIR", default_value = "./data")]
    pub(crate) data_dir: PathBuf,

    /// The database: sqlite:FILE, or postgres://USER:PASSWORD@HOST/DATABASE. Without it, the file
    /// products.db in the data folder.
    #[arg(long, env = "PRODUCT_DETAIL_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,

    /// The cache that all processes share: redis://HOST:PORT/DB or redis+unix:///PATH, version 7.0
    /// or later. Without it, each process has its own cache only.
    #[arg(long, env = "PRODUCT_DETAIL_REDIS_URL", value_name = "URL", hide_env_values = true)]
    pub(crate) redis_url: Option<String>,

    /// Demonstration products to add if the table is empty; 0 for none. Without it, 100000 with
    /// SQLite and none with PostgreSQL.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_SEED",
        value_name = "N",
        allow_hyphen_values = true,
        value_parser = number::whole(0..=MAX_ID)
    )]
    pub(crate) seed: Option<u64>,

    /// Share of absent ids that a Bloom gate may let pass, between 0 and 1. Without it, 0.001.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_FALSE_POSITIVE_RATE",
        value_name = "RATE",
        allow_hyphen_values = true,
        value_parser = rate
    )]
    pub(crate) false_positive_rate: Option<f64>,

    /// Ids that a Bloom gate is sized for. Without it, twice the rows that are counted at the
    /// start, and at least 10000.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_CAPACITY",
        value_name = "IDS",
        allow_hyphen_values = true,
        value_parser = number::whole(1..=u64::MAX)
    )]
    pub(crate) capacity: Option<u64>,

    /// How long it is remembered that an id has no product.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_NULL_TTL",
        value_name = "DURATION",
        default_value = "30s",
        allow_hyphen_values = true,
        value_parser = duration
    )]
    pub(crate) null_ttl: Duration,

    /// How long a product is cached.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_VALUE_TTL",
        value_name = "DURATION",
        default_value = "30m",
        allow_hyphen_values = true,
        value_parser = duration
    )]
    pub(crate) value_ttl: Duration,

    /// The longest that a write may be open.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_WRITE_WINDOW",
        value_name = "DURATION",
        default_value = "30s",
        allow_hyphen_values = true,
        value_parser = duration
    )]
    pub(crate) write_window: Duration,

    /// The longest that a read waits for its turn at the database before it is answered 503.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_QUEUE_TIMEOUT",
        value_name = "DURATION",
        default_value = "250ms",
        allow_hyphen_values = true,
        value_parser = duration_or_zero
    )]
    pub(crate) queue_timeout: Duration,

    /// The longest that /readyz waits for the first warm-up of the gate; after it, the service is
    /// ready with an open gate.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_READY_WITHIN",
        value_name = "DURATION",
        default_value = "30s",
        allow_hyphen_values = true,
        value_parser = duration_or_zero
    )]
    pub(crate) ready_within: Duration,

    /// No other instance uses this Redis, now or during a rollout: the gate refuses from the first
    /// warm-up on, and goes on while Redis is away. With a second instance after all, products that it
    /// adds are answered 404. Refuses to start while the Redis has other live instances.
    #[arg(long, env = "PRODUCT_DETAIL_SINGLE_INSTANCE", value_parser = BoolishValueParser::new())]
    pub(crate) single_instance: bool,

    /// What this instance is called in the status documents of all instances on this Redis, which keep
    /// one another in step. Needs --redis-url.
    #[arg(
        long,
        env = "PRODUCT_DETAIL_INSTANCE_NAME",
        value_name = "NAME",
        requires = "redis_url",
        conflicts_with = "single_instance"
    )]
    pub(crate) instance_name: Option<String>,

    /// The secret of the gate's hash, at least 32 hexadecimal digits. Without it, one is generated
    /// and kept in the data folder; instances on one Redis and one PostgreSQL keep theirs in the
    /// table gate_secrets there, so that they can copy gates from one another.
    #[arg(long, env = "PRODUCT_DETAIL_SECRET", value_name = "HEX", hide_env_values = true)]
    pub(crate) secret: Option<String>,

    /// What the gate is made of, or that it is kept open.
    #[arg(long, env = "PRODUCT_DETAIL_GATE", value_name = "MODE", default_value = "auto")]
    pub(crate) gate: GateMode,

    /// Serve without any guard: the baseline of comparisons.
    #[arg(long, env = "PRODUCT_DETAIL_NO_GUARD", value_parser = BoolishValueParser::new())]
    pub(crate) no_guard: bool,
}

/// What the gate is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateMode {
    /// A Bloom filter. Refuses, as the next two do, once its warm-up is complete.
    Auto,
    /// A bit for each id: no absent id passes.
    Bitmap,
    /// The set of the ids themselves: no absent id passes.
    Exact,
    /// It passes everything.
    Open,
}

/// Reads the command line; `None` if it only asked for the help or the version.
pub(crate) fn parse() -> Result<Option<Args>, StartupError> {
    let matches = without_empty_variables(Args::command()).try_get_matches();
    match matches.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => Ok(Some(args)),
        Err(answer) if answer.exit_code() == 0 => {
            // A closed pipe is no error.
            let _ = answer.print();
            Ok(None)
        }
        Err(refused) => Err(StartupError::setting(one_line(&refused.to_string()))),
    }
}

/// A variable that is set to nothing, as compose files do, counts as not set.
fn without_empty_variables(command: Command) -> Command {
    command.mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) { arg.env(Resettable::Reset) } else { arg }
    })
}

/// clap's errors have several lines; those before the first empty one name the flag and the fix.
fn one_line(error: &str) -> String {
    let lines = error.lines().map(str::trim);
    let first: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let text = first.join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map(|mut all| all.next());
    match found {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err("no address has this name".to_owned()),
        Err(error) => Err(format!("{error}; expected HOST:PORT")),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let number = number::decimal(text).ok_or("not a number")?;
    FalsePositiveRate::new(number).map(FalsePositiveRate::get).map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    let length = duration_or_zero(text)?;
    if length.is_zero() {
        return Err("must be longer than zero".to_owned());
    }
    Ok(length)
}

fn duration_or_zero(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text)
            .map_err(|error| format!("{error}; expected a duration like 500ms, 30s or 30m")),
    }
}
