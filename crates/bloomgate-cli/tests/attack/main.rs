//! Tests of the built `bloomgate attack` against a small server.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test's helpers may fail loudly"
)]

mod flags;
mod guard;
mod server;
mod traffic;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use server::{Reply, Server};

/// Only a hang lasts this long.
const CEILING: Duration = Duration::from_secs(120);

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).expect("JSON")
    }
}

fn spawn(url: &str, flags: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_bloomgate"))
        .args(["attack", "--url", url])
        .args(flags.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary")
}

fn finish(mut child: Child) -> Ran {
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > CEILING {
            child.kill().unwrap();
            panic!("the run hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Ran { code: status.code(), stdout, stderr }
}

fn attack(url: &str, flags: &str) -> Ran {
    finish(spawn(url, flags))
}

/// Answers ids up to 1,000 with 200, others with 404, `/guard` with the given document.
fn shop(guard: impl Fn() -> String + Send + Sync + 'static) -> Server {
    Server::start(move |path, _| {
        if path == "/guard" {
            return Reply::Answer(200, guard());
        }
        match path.rsplit('/').next().unwrap().parse::<u64>() {
            Ok(id) if id <= 1000 => Reply::Answer(200, format!("product {id}").repeat(500)),
            _ => Reply::Answer(404, "no such product".to_owned()),
        }
    })
}

fn plain_shop() -> Server {
    shop(String::new)
}
