//! A fleet of the example service to try and to watch: some instances on one Redis and one PostgreSQL,
//! behind a front that spreads connections over them. `scripts/fleet` runs it.

#![expect(clippy::expect_used, reason = "what goes wrong ends the program, with a message")]

mod front;
mod table;

use std::io::Write as _;
use std::time::{Duration, Instant};

use clap::Parser;
use testbed::{PostgresServer, Program, RedisServer, TempFolder};

/// Longest wait for an instance that listens.
const CEILING: Duration = Duration::from_secs(120);
/// Between two looks at the instances.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Starts a fleet of the example service, with a Redis and a PostgreSQL of its own, and follows its
/// status. Ends with Ctrl-C; nothing is left behind.
#[derive(Parser)]
#[command(name = "scripts/fleet")]
struct Args {
    /// Number of instances.
    #[arg(default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    instances: u16,

    /// The port of the front. Default: a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// The write window of the instances: for so long the first start waits with an open gate.
    #[arg(long, default_value = "6s")]
    write_window: String,

    /// Products in the table.
    #[arg(long, default_value_t = 10_000)]
    products: u64,

    /// Ends by itself after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
}

/// A running instance.
struct Instance {
    name: String,
    url: String,
    program: Program,
    _folder: TempFolder,
}

fn main() {
    let args = Args::parse();
    let (redis, postgres) = (RedisServer::start(), PostgresServer::shared());
    let database = postgres.create_database();
    let instances: Vec<Instance> = (1..=args.instances)
        .map(|number| launch(&format!("web-{number}"), &args, &redis, &database))
        .collect();
    let front = front::Front::start(
        args.port,
        instances.iter().map(|instance| instance.url.clone()).collect(),
    );
    let mut out = std::io::stdout().lock();
    // Who reads the output may be gone.
    let mut say = |text: &str| drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    say(&format!("front      {}\n", front.url()));
    for instance in &instances {
        say(&format!("{:<10} {}\n", instance.name, instance.url));
    }
    say(&format!("redis      {}\npostgres   {database}\n\n", redis.url()));

    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut table = table::Table::new();
    while end.is_none_or(|end| Instant::now() < end) {
        let looks: Vec<table::Look> = instances.iter().map(table::Look::at).collect();
        front.set_ready(looks.iter().map(table::Look::is_ready).collect());
        say(&table.text(&looks));
        std::thread::sleep(LOOK_EVERY);
    }
    for instance in &instances {
        // One that was killed has ended.
        if instance.program.status().is_none() {
            instance.program.terminate();
        }
    }
}

fn launch(name: &str, args: &Args, redis: &RedisServer, database: &str) -> Instance {
    let folder = testbed::temp_folder();
    let products = args.products.to_string();
    let binary = testbed::workspace_binary("product-detail", "product-detail");
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--database-url",
        database,
        "--redis-url",
        &redis.url(),
        "--instance-name",
        name,
        "--write-window",
        &args.write_window,
        "--seed",
        &products,
    ];
    let program = Program::start_in(folder.path(), binary, &flags, &[]);
    let line = program.wait_for_line("listening on ", CEILING);
    let line = line.unwrap_or_else(|| {
        eprintln!("{name} doesn't listen:\n{}", program.stderr());
        std::process::exit(1);
    });
    let url = line.trim_start_matches("listening on ").trim().to_owned();
    Instance { name: name.to_owned(), url, program, _folder: folder }
}
