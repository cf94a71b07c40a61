//! The run of the service, from its settings to its end.

use std::fmt;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use bloomgate::backplane::FleetSettings;
use bloomgate::warm_up::{PgTable, SqliteTable};
use bloomgate::{Gate, Guard, Secret};
use tokio::net::TcpListener;

use crate::app::{AppState, router};
use crate::args::{Args, GateMode};
use crate::baseline::Baseline;
use crate::catalogue::{Catalogue, Guarded};
use crate::database::{Database, PreparedSource, Readiness, error_chain};
use crate::product::{Product, ProductId};
use crate::secret_file;
use crate::settings::Settings;
use crate::shutdown::{Stop, serve};

const NAME: &str = "product";
const TABLE: &str = "products";
/// Of a product's JSON in the shared cache; to be changed with the type.
const SCHEMA: &str = "product/1";
/// Longest wait for the first warm-up before the service listens without it.
const WARM_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait for writes whose clients are gone.
const WRITES: Duration = Duration::from_secs(10);
/// An id beyond all that a database of this size assigns.
const ABSENT: i64 = 987_654_321_987;

/// The reason that the service can't run, in one line.
#[derive(Debug)]
pub(crate) struct StartupError {
    message: String,
    exit_code: u8,
}

impl StartupError {
    /// A setting is wrong, or can't be used on this machine.
    pub(crate) fn setting(message: impl Into<String>) -> Self {
        let message = message.into().replace('\n', " ");
        Self { message, exit_code: 2 }
    }

    fn system(message: String) -> Self {
        Self { message, exit_code: 1 }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_code)
    }
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Runs the service until a signal ends it.
///
/// Nothing is made on disk before everything that can be refused has been looked at.
pub(crate) async fn run(args: Args) -> Result<(), StartupError> {
    let settings = Settings::check(args)?;
    let listen = settings.args.listen;
    let bound = TcpListener::bind(listen).await;
    let listener = bound
        .map_err(|error| StartupError::system(format!("can't listen on {listen}: {error}")))?;
    let stop = Stop::listen();
    let mut stop = stop.map_err(|error| StartupError::system(format!("no signals: {error}")))?;
    let app = tokio::select! {
        started = start(settings) => started?,
        () = stop.asked() => return Ok(()),
    };
    let bound = listener.local_addr();
    let bound = bound.map_err(|error| StartupError::system(format!("no address: {error}")))?;
    print_banner(bound, &app).await;
    let served = serve(listener, router(app.clone()), stop).await;
    if let Catalogue::Guarded(guarded) = &app.catalogue {
        let left = guarded.guard().shutdown(WRITES).await;
        if left > 0 {
            tracing::warn!("{left} writes had not ended");
        }
    }
    app.catalogue.database().close().await;
    served.map_err(|error| StartupError::system(format!("can't serve: {error}")))
}

/// Everything up to a service that can answer.
async fn start(settings: Settings) -> Result<AppState, StartupError> {
    let database = Database::open(&settings.database, settings.args.write_window);
    let folder = settings.data_dir().cloned();
    let seed = settings.seed;
    let waits_for_others = settings.redis.is_some();
    let (reporter, readiness) = Readiness::new();
    let catalogue = if settings.args.no_guard {
        make_folder(folder.as_deref())?;
        Catalogue::Baseline(Baseline::new(database.clone()))
    } else {
        let kept = match &settings.secret {
            Some(given) => Some(given.clone()),
            None => secret_file::read(&settings.args.data_dir)?,
        };
        let secret = match &kept {
            Some(secret) => secret.clone(),
            None => Secret::generate().map_err(|error| StartupError::system(error.to_string()))?,
        };
        let secret = common_secret(&settings, &database, secret).await;
        let guard = guard(settings, secret.clone(), &database, &readiness).await?;
        make_folder(folder.as_deref())?;
        if let (None, Some(folder)) = (kept, &folder) {
            secret_file::keep(folder, &secret)?;
        }
        Catalogue::Guarded(Guarded::new(guard, database.clone()))
    };
    match &database {
        Database::Sqlite(_) => {
            let prepared = database.prepare(seed).await;
            prepared.map_err(|error| StartupError::setting(error_chain(&error)))?;
            reporter.ready();
            if !waits_for_others {
                warm(&catalogue).await;
            }
        }
        // A server may be down for a while: the service starts, and says so.
        Database::Postgres(_) => {
            tokio::spawn(reporter.keep_trying(database, seed));
            readiness.first_attempt().await;
        }
    }
    Ok(AppState { catalogue, readiness })
}

/// The secret of all instances of a fleet, which the database keeps, unless one was given.
async fn common_secret(settings: &Settings, database: &Database, own: Secret) -> Secret {
    let in_fleet = settings.redis.is_some() && !settings.args.single_instance;
    let Database::Postgres(postgres) = database else { return own };
    if settings.secret.is_some() || !in_fleet {
        return own;
    }
    postgres.shared_secret(NAME, &own).await.unwrap_or_else(|error| {
        let error = error_chain(&error);
        tracing::warn!(error, "this instance has a secret of its own, and copies no gate");
        own
    })
}

async fn guard(
    settings: Settings,
    secret: Secret,
    database: &Database,
    readiness: &Readiness,
) -> Result<Guard<ProductId, Product>, StartupError> {
    let Settings { args, redis, .. } = settings;
    let mut gate = match args.gate {
        GateMode::Auto => Gate::bloom(),
        GateMode::Bitmap => Gate::bitmap(),
        GateMode::Exact => Gate::exact(),
        GateMode::Open => Gate::open(),
    };
    if let Some(rate) = args.false_positive_rate {
        gate = gate.false_positive_rate(rate);
    }
    if let Some(capacity) = args.capacity {
        gate = gate.items(capacity);
    }
    let mut builder = Guard::builder(NAME)
        .gate(gate)
        .secret(secret)
        .loader(database.clone())
        .max_concurrent_loads(database.loads())
        .schema(SCHEMA)
        .null_ttl(args.null_ttl)
        .value_ttl(args.value_ttl)
        .write_window(args.write_window)
        .queue_timeout(args.queue_timeout)
        .ready_within(args.ready_within);
    builder = match database {
        Database::Sqlite(sqlite) => {
            let table = SqliteTable::<ProductId>::new(sqlite.reads().clone(), TABLE, "id");
            builder.source(PreparedSource::new(table.map_err(refused)?, readiness.clone()))
        }
        Database::Postgres(postgres) => {
            let table = PgTable::<ProductId>::new(postgres.scans().clone(), TABLE, "id");
            builder.source(PreparedSource::new(table.map_err(refused)?, readiness.clone()))
        }
    };
    if args.single_instance {
        builder = builder.single_instance();
    } else if redis.is_some() {
        let name = args.instance_name.unwrap_or_default();
        builder = builder.fleet(FleetSettings::default().label(name));
    }
    if let Some(redis) = redis {
        builder = builder.store(redis);
    }
    builder.build().await.map_err(refused)
}

/// A setting that the guard refused, under the name of its flag.
fn refused(error: bloomgate::ConfigError) -> StartupError {
    StartupError::setting(match &error {
        bloomgate::ConfigError::Setting { field, problem, fix } => {
            let flag = match *field {
                "fleet.label" => "instance-name".to_owned(),
                // The others have their defaults here, which suit all but a short window.
                field if field.starts_with("fleet.") => "write-window".to_owned(),
                field => field.replace('_', "-"),
            };
            format!("--{flag}: {problem}; {fix}")
        }
        other => error_chain(other),
    })
}

fn make_folder(folder: Option<&std::path::Path>) -> Result<(), StartupError> {
    let Some(folder) = folder else {
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        StartupError::setting(format!("--data-dir: {}: {error}", folder.display()))
    })
}

/// Waits for the first warm-up, so that already the first absent id is refused.
async fn warm(catalogue: &Catalogue) {
    let Catalogue::Guarded(guarded) = catalogue else {
        return;
    };
    let warming = async {
        while !guarded.guard().is_ready() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(WARM_WITHIN, warming).await.is_err() {
        tracing::info!("the gate is still warming; serving without it for now");
    }
}

/// Prints the address of the service and three commands to try.
async fn print_banner(bound: SocketAddr, app: &AppState) {
    let existing = match app.readiness.unready_reason() {
        None => {
            let first = app.catalogue.database().first_id();
            let first = tokio::time::timeout(Duration::from_secs(1), first).await;
            first.ok().and_then(Result::ok).flatten()
        }
        Some(_) => None,
    };
    let existing = existing.unwrap_or(1);
    let text = format!(
        "listening on http://{bound}\n\
         try:\n  \
         curl -i http://{bound}/products/{existing}\n  \
         curl -i http://{bound}/products/{ABSENT}\n  \
         curl http://{bound}/guard\n"
    );
    let mut out = std::io::stdout().lock();
    // A closed pipe is no reason to stop.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
