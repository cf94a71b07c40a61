//! Unusual names and descriptions, which must be read back as written.

use serde_json::{Value, json};

use crate::client::{Client, count, id_of, json, retry_unwritten};
use crate::environment::{Environment, assert_no_panic, stop};

/// Names that look like a null, a sentinel, an envelope or code, or that are hard to encode.
fn names() -> Vec<String> {
    let mut names: Vec<String> = [
        "null",
        "NULL",
        "nil",
        "(nil)",
        "*",
        "**",
        "{}",
        "[]",
        "\"\"",
        "''",
        "false",
        "0",
        "-1",
        "NaN",
        "undefined",
        "V",
        "N",
        "L",
        "M",
        "N12345678abcdefgh",
        "V12345678abcdefgh{}",
        "L00000000000000000000000000000000",
        "M0:9;",
        "\u{1}",
        "\u{7f}",
        "\u{fffd}",
        "\u{feff}",
        "\u{202e}abc",
        "\u{10ffff}",
        "e\u{301}",
        "é",
        " ",
        "  both ends  ",
        "\n",
        "a\r\nb\tc",
        "\\u0000",
        "\\",
        "\"",
        "'; DROP TABLE products; --",
        "%s%n%00",
        "$1 ?1 :name",
        "<!--#-->",
        "🧪👩‍👩‍👧‍👦",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    names.extend(["ü", "𝕏", "V", "\""].map(|character| character.repeat(200)));
    names
}

/// Products whose descriptions are all names, and the shortest and the longest descriptions.
fn drafts() -> Vec<Value> {
    let longest = ["x", "𝄞", "\\", "\u{1}"].map(|character| character.repeat(10_000));
    let short = ["", "\"", "null"].map(str::to_owned);
    let names = names();
    let descriptions = names.clone().into_iter().chain(longest).chain(short);
    descriptions
        .enumerate()
        .map(|(n, description)| {
            let name = &names[n % names.len()];
            json!({"name": name, "price_cents": n, "description": description})
        })
        .collect()
}

fn assert_values_round_trip(env: &Environment) {
    let service = env.serve(0, &[]);
    let mut client = Client::of(&service);
    let drafts = drafts();
    let mut written = Vec::new();
    for draft in &drafts {
        let created = retry_unwritten(|| client.request("POST", "/products", &draft.to_string()));
        assert_eq!(created.status, 201, "{draft}: {}", created.text());
        let product = json(&created);
        for field in ["name", "price_cents", "description"] {
            assert_eq!(product[field], draft[field], "{field} of {draft}");
        }
        let id = id_of(&created);
        // From the database, then from memory.
        for _ in 0..2 {
            let read = client.get(id);
            assert_eq!((read.status, read.text()), (200, created.text()));
        }
        written.push((id, created.text()));
    }
    // The same values again by PUT, each to the next product.
    for (n, (id, expected)) in written.iter_mut().enumerate() {
        let draft = &drafts[(n + 1) % drafts.len()];
        let path = format!("/products/{id}");
        let put = retry_unwritten(|| client.request("PUT", &path, &draft.to_string()));
        assert_eq!(put.status, 200, "{draft}: {}", put.text());
        *expected = put.text();
        for _ in 0..2 {
            assert_eq!(client.get(*id).text(), *expected);
        }
    }
    service.until_idle();
    let guard = service.guard();
    let reads = written.len() as u64 * 2;
    assert_eq!(count(&guard, "/counts/local/value_hits"), reads, "{guard}");
    assert_eq!(count(&guard, "/counts/nulls_stored/local"), 0, "{guard}");
    assert_no_panic(&service);
    stop(&service);

    // Another process reads them from the shared cache or from the database.
    let service = env.serve(0, &[]);
    let mut client = Client::of(&service);
    for (id, expected) in &written {
        assert_eq!(client.get(*id).text(), *expected);
    }
    let guard = service.guard();
    assert_eq!(count(&guard, "/counts/shared/undecodable"), 0, "{guard}");
    if env.has_redis() {
        let hits = count(&guard, "/counts/shared/value_hits");
        let errors = count(&guard, "/counts/shared/errors");
        assert_eq!(hits + errors, written.len() as u64, "{guard}");
    } else {
        assert_eq!(count(&guard, "/counts/loader/found"), written.len() as u64, "{guard}");
    }
    assert_no_panic(&service);
}

#[test]
fn case_25_every_value_is_read_back_as_written_on_sqlite() {
    assert_values_round_trip(&Environment::sqlite());
}

#[test]
fn case_25_every_value_is_read_back_as_written_on_sqlite_and_redis() {
    assert_values_round_trip(&Environment::sqlite_and_redis());
}

#[test]
fn case_25_every_value_is_read_back_as_written_on_postgres_and_redis() {
    assert_values_round_trip(&Environment::postgres_and_redis());
}

/// PostgreSQL can't store U+0000, so that the service accepts it with no database.
#[test]
fn case_25_values_that_no_database_stores_are_refused_and_change_nothing() {
    for env in [Environment::sqlite(), Environment::postgres_and_redis()] {
        let service = env.serve(3, &[]);
        let mut client = Client::of(&service);
        let before = client.get(1).text();
        let draft = |name: &str, description: &str| {
            json!({"name": name, "price_cents": 1, "description": description}).to_string()
        };
        for body in [
            draft("\0", ""),
            draft("a\0b", ""),
            draft("a", "\0"),
            draft("", "no name"),
            draft(&"x".repeat(201), ""),
            draft("x", &"x".repeat(10_001)),
            json!({"name": null, "price_cents": 1, "description": ""}).to_string(),
            r#"{"name": "lone surrogate \ud800", "price_cents": 1, "description": ""}"#.to_owned(),
            r#"{"name": "too large", "price_cents": 9223372036854775808, "description": ""}"#
                .to_owned(),
            "null".to_owned(),
            "{".to_owned(),
        ] {
            for (method, path) in [("POST", "/products"), ("PUT", "/products/1")] {
                let reply = client.request(method, path, &body);
                assert!(matches!(reply.status, 400 | 422), "{} to {body}", reply.text());
            }
        }
        assert_eq!(client.get(1).text(), before);
        assert_eq!(client.get(4).status, 404, "nothing was created");
        assert_eq!(client.request("GET", "/healthz", "").status, 200);
        assert_eq!(count(&service.guard(), "/counts/writes_ended"), 0);
        assert_no_panic(&service);
    }
}
