//! The settings of a start, checked as a whole before anything is made.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use bloomgate::{RedisStore, Secret};
use bloomgate_filter::{BloomParams, FalsePositiveRate};
use indicatif::BinaryBytes;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use crate::args::{Args, GateMode};
use crate::startup::StartupError;

/// Products in a fresh SQLite file.
const SQLITE_SEED: u64 = 100_000;
const SQLITE_FILE: &str = "products.db";

/// The rate of a gate when none is given.
const DEFAULT_RATE: f64 = 0.001;

/// What was asked for.
pub(crate) struct Settings {
    pub(crate) args: Args,
    pub(crate) database: DatabaseTarget,
    pub(crate) redis: Option<RedisStore>,
    pub(crate) secret: Option<Secret>,
    /// Products to add to an empty table.
    pub(crate) seed: u64,
}

/// Which database.
pub(crate) enum DatabaseTarget {
    Sqlite(SqliteConnectOptions),
    Postgres(PgConnectOptions),
}

impl Settings {
    /// Checks `args`. Messages don't repeat URLs and secrets: both may hold what mustn't be in a
    /// log. Must be called within a tokio runtime.
    pub(crate) fn check(args: Args) -> Result<Self, StartupError> {
        let database = match &args.database_url {
            Some(url) => target(url)?,
            None => DatabaseTarget::Sqlite(
                SqliteConnectOptions::new().filename(args.data_dir.join(SQLITE_FILE)),
            ),
        };
        let redis = args.redis_url.as_deref().map(RedisStore::open).transpose();
        let redis =
            redis.map_err(|error| StartupError::setting(format!("--redis-url: {error}")))?;
        let secret = args.secret.as_deref().map(Secret::from_hex).transpose();
        let secret = secret.map_err(|error| StartupError::setting(format!("--secret: {error}")))?;
        check_gate(&args)?;
        let seed = match database {
            DatabaseTarget::Sqlite(_) => args.seed.unwrap_or(SQLITE_SEED),
            DatabaseTarget::Postgres(_) => args.seed.unwrap_or(0),
        };
        let settings = Self { args, database, redis, secret, seed };
        if settings.data_dir().is_some() {
            usable_folder(&settings.args.data_dir)?;
        }
        Ok(settings)
    }

    /// The data folder, if anything is to be kept there.
    pub(crate) fn data_dir(&self) -> Option<&PathBuf> {
        let keeps_database = self.args.database_url.is_none();
        let keeps_secret = self.secret.is_none() && !self.args.no_guard;
        (keeps_database || keeps_secret).then_some(&self.args.data_dir)
    }
}

/// Whether the gate can be as it was asked for. A setting that would do nothing is refused, too.
fn check_gate(args: &Args) -> Result<(), StartupError> {
    let grows = matches!(args.gate, GateMode::Bitmap | GateMode::Exact);
    let idle = [
        ("--capacity", args.capacity.is_some()),
        ("--false-positive-rate", args.false_positive_rate.is_some()),
    ];
    if let Some((flag, _)) = idle.into_iter().find(|(_, given)| grows && *given) {
        let problem = "means nothing to an exact gate, which grows and has no false positives";
        return Err(StartupError::setting(format!(
            "{flag}: {problem}; leave it out, or say --gate auto"
        )));
    }
    if let Some(capacity) = args.capacity {
        let refused =
            |problem: &dyn fmt::Display| StartupError::setting(format!("--capacity: {problem}"));
        let params = FalsePositiveRate::new(args.false_positive_rate.unwrap_or(DEFAULT_RATE))
            .and_then(|rate| BloomParams::new(capacity, rate))
            .map_err(|error| refused(&error))?;
        if !can_allocate(params.bytes()) {
            return Err(refused(&format!(
                "a filter for {capacity} ids needs {}, more than this process can have; give fewer \
                 ids or a larger --false-positive-rate",
                BinaryBytes(params.bytes())
            )));
        }
    }
    Ok(())
}

/// Whether the allocator would grant this much now. The filter itself is allocated once the table
/// has been counted, which may be minutes later.
fn can_allocate(bytes: u64) -> bool {
    let mut probe = Vec::<u8>::new();
    let reserved = usize::try_from(bytes).is_ok_and(|bytes| probe.try_reserve_exact(bytes).is_ok());
    // Keeps the compiler from leaving out an allocation that is never used.
    std::hint::black_box(&probe);
    reserved
}

/// Reads a database's URL.
fn target(url: &str) -> Result<DatabaseTarget, StartupError> {
    let refused = |problem: &str| StartupError::setting(format!("--database-url: {problem}"));
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "sqlite" => {
            if url.contains(":memory:") || url.contains("mode=memory") {
                return Err(refused(
                    "an SQLite database in memory is not shared between connections; give a file",
                ));
            }
            let options =
                SqliteConnectOptions::from_str(url).map_err(|error| refused(&innermost(&error)))?;
            let folder = options.get_filename().parent();
            if let Some(folder) = folder
                && folder != Path::new("")
                && !folder.is_dir()
            {
                return Err(refused(&format!("{} is not a folder", folder.display())));
            }
            if options.get_filename().is_dir() || options.get_filename() == Path::new("") {
                return Err(refused("sqlite: must be followed by a file's path"));
            }
            Ok(DatabaseTarget::Sqlite(options))
        }
        "postgres" | "postgresql" => PgConnectOptions::from_str(url)
            .map(DatabaseTarget::Postgres)
            .map_err(|error| refused(&innermost(&error))),
        _ => Err(refused("expected sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE")),
    }
}

/// The last error of a chain: the one that names the problem.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(below) = last.source() {
        last = below;
    }
    last.to_string()
}

/// True if the folder exists or can be made, as far as that shows without making it.
fn usable_folder(folder: &Path) -> Result<(), StartupError> {
    let nearest =
        folder.ancestors().find(|ancestor| *ancestor == Path::new("") || ancestor.exists());
    match nearest {
        Some(nearest) if nearest != Path::new("") && !nearest.is_dir() => {
            let problem = format!("--data-dir: {} is not a folder", nearest.display());
            Err(StartupError::setting(problem))
        }
        _ => Ok(()),
    }
}
