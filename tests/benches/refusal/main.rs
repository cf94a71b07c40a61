//! The server's cost of a refused and of a passing request, against handlers without a guard.
//!
//! `cargo bench -p bloomgate-tests --bench refusal`
//!
//! A refused request is compared with a bare handler that answers the same bytes, a passing one
//! with the same handler without the layer, and the example service with a bare handler that repeats
//! its reply. Every variant is a process of its own. The attack tester attacks them in turn, round
//! after round, every other round in reverse order; they are judged by the processor time that the
//! scheduler charges to their threads. `ROUNDS` and `REQUESTS` in the environment change how long it
//! takes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that can't measure ends at once, with a message"
)]

mod rounds;
mod serve;
mod server;

/// Ids that exist, from 1; at least one for each request of a round.
const IDS: i64 = 1_000_000;

/// A server to measure.
struct Variant {
    name: &'static str,
    what: &'static str,
}

/// Variants that are asked for the same ids, the baseline first, with the target of a ratio.
struct Group {
    title: &'static str,
    exist: bool,
    variants: &'static [Variant],
    target: &'static str,
}

static GROUPS: [Group; 3] = [
    Group {
        title: "refused",
        exist: false,
        variants: &[
            Variant { name: "bare", what: "an axum handler that answers the same 404" },
            Variant { name: "bare_extension", what: "the same behind axum's `Extension` layer" },
            Variant { name: "bare_from_fn", what: "the same behind a `from_fn` that does nothing" },
            Variant { name: "gate", what: "the guard, gate only" },
            Variant { name: "read", what: "the guard, reading through" },
        ],
        target: "gate only at most 1.05",
    },
    Group {
        title: "passing",
        exist: true,
        variants: &[
            Variant { name: "handler", what: "an axum handler that answers 200" },
            Variant { name: "handler_extension", what: "the same behind axum's `Extension` layer" },
            Variant {
                name: "handler_from_fn",
                what: "the same behind a `from_fn` that does nothing",
            },
            Variant { name: "handler_gate", what: "the same behind the guard, gate only" },
            Variant {
                name: "handler_gate_inside",
                what: "the same, with the layer on the handler itself (`Handler::layer`)",
            },
        ],
        target: "gate only at most 1.03",
    },
    Group {
        title: "refused by the example",
        exist: false,
        variants: &[
            Variant { name: REPEATER, what: "an axum handler that repeats the example's reply" },
            Variant { name: EXAMPLE, what: "`product-detail` on SQLite, with its default gate" },
        ],
        target: "at most 1.05",
    },
];

const EXAMPLE: &str = "product-detail";
const REPEATER: &str = "repeater";
/// The environment variable that holds the URL whose reply [`REPEATER`] repeats.
const REPEATED_URL: &str = "REPEATED_URL";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--serve") {
        let variant = args.get(at + 1).expect("--serve VARIANT");
        tokio::runtime::Runtime::new().expect("a runtime").block_on(serve::serve(variant));
        return;
    }
    let requests = number("REQUESTS", 40_000);
    assert!(requests <= IDS.unsigned_abs(), "REQUESTS={requests}: at most {IDS} ids exist");
    rounds::measure(number("ROUNDS", 40), requests);
}

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
        Err(_) => default,
    }
}
