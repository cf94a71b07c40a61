//! The gate's key is the handler's key.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::request::Parts;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::{ExtractKey as _, path_param};
use super::apps::{Reply, ask, product_not_found, products, row, texts};
use crate::key::{MAX_TEXT_KEY, ParseKey as _};

const STORED: [&str; 9] = ["abc", "a/b", "a b", "50%", "é", "..", "a;b", "a+b", "%61bc"];

/// What the layer and the handler each took for the key of the last request.
#[derive(Clone, Default)]
struct Seen {
    gate: Arc<Mutex<Option<String>>>,
    handler: Arc<Mutex<Option<String>>>,
}

impl Seen {
    fn take(&self) -> (Option<String>, Option<String>) {
        let (mut gate, mut handler) = (self.gate.lock().unwrap(), self.handler.lock().unwrap());
        (gate.take(), handler.take())
    }
}

/// `/items/{key}`, `/files/{*key}` and `/nested/{tenant}/items/{key}`: for each, answers 200 with
/// the key if it is stored. With a guard whose key is recorded, or without.
async fn app(guarded: bool, refusing: bool, seen: &Seen) -> Router {
    let noted = seen.clone();
    let answer = move |key: String| -> Response {
        *noted.handler.lock().unwrap() = Some(key.clone());
        match STORED.contains(&key.as_str()) {
            true => key.into_response(),
            false => product_not_found(),
        }
    };
    let inner = answer.clone();
    let one = get(move |Path(key): Path<String>| async move { answer(key) });
    let two = get(move |Path((_, key)): Path<(String, String)>| async move { inner(key) });
    let nested = Router::new().route("/items/{key}", two);
    let app = Router::new()
        .route("/items/{key}", one.clone())
        .route("/files/{*key}", one)
        .nest("/nested/{tenant}", nested);
    if !guarded {
        return app;
    }
    let noted = seen.clone();
    let extract = move |parts: &mut Parts| -> Option<String> {
        let key: Option<String> = path_param("key").extract(parts);
        noted.gate.lock().unwrap().clone_from(&key);
        key
    };
    let guard = match refusing {
        true => texts(&STORED).await,
        false => texts(&[]).await,
    };
    let mut layer = guard.layer(extract).gate_only().not_found(product_not_found);
    if !refusing {
        layer = super::apps::open_texts().await.layer(layer.key).gate_only();
    }
    app.route_layer(layer)
}

const PATHS: [&str; 30] = [
    "/items/abc",
    "/items/%61bc",
    "/items/%2561bc",
    "/items/a%2Fb",
    "/items/a%2fb",
    "/items/a/b",
    "/items/a%20b",
    "/items/a+b",
    "/items/a%2Bb",
    "/items/50%25",
    "/items/50%",
    "/items/%C3%A9",
    "/items/%c3%a9",
    "/items/e%CC%81",
    "/items/%2e%2e",
    "/items/..",
    "/items/a;b",
    "/items/a%3Bb",
    "/items/abc/",
    "/items//abc",
    "//items/abc",
    "/items/",
    "/items/a%00b",
    "/items/%FF",
    "/items/%C0%80",
    "/files/a/b",
    "/files/a%2Fb",
    "/files/%2e%2e",
    "/files//abc",
    "/nested/t%2Fu/items/a%2Fb",
];

#[tokio::test]
async fn case_47_the_gate_takes_the_same_key_as_the_handler() {
    let seen = Seen::default();
    let app = app(true, false, &seen).await;
    let mut compared = 0;
    for path in PATHS {
        ask(&app, "GET", path).await;
        let (gate, handler) = seen.take();
        // Text with a NUL is no key, so that no database is asked for it.
        let handler = handler.filter(|text| !text.contains('\0'));
        assert_eq!(gate, handler, "{path}");
        compared += u32::from(gate.is_some());
    }
    assert!(compared > 15, "{compared}");
}

#[tokio::test]
async fn case_47_the_gate_refuses_nothing_that_the_bare_app_answers() {
    let (bare, guarded) = (Seen::default(), Seen::default());
    let (bare, guarded) = (app(false, false, &bare).await, app(true, true, &guarded).await);
    let mut answered = BTreeSet::new();
    for path in PATHS {
        for method in ["GET", "HEAD"] {
            let without: Reply = ask(&bare, method, path).await;
            let with = ask(&guarded, method, path).await;
            assert_eq!(without, with, "{method} {path}");
            if without.status == 200 && method == "GET" {
                answered.insert(without.body);
            }
        }
    }
    assert_eq!(answered.len(), STORED.len(), "{answered:?}");
}

/// Any text, each of its bytes as it is or as one of two escapes.
#[test]
fn case_47_any_text_reaches_gate_and_handler_as_the_same_key() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seen = Seen::default();
    let app = runtime.block_on(app(true, false, &seen));
    let byte = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-z0-9/%+;=&.~ -]".prop_map(String::from),
    ];
    let text = proptest::collection::vec((byte, 0..3_u8), 1..30);
    let mut runner = TestRunner::new(Config::with_cases(300));
    runner
        .run(&text, |text| {
            let mut uri = "/items/".to_owned();
            let mut meant = String::new();
            for (piece, spelling) in text {
                meant.push_str(&piece);
                for byte in piece.bytes() {
                    let plain =
                        byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
                    match spelling {
                        0 if plain => uri.push(char::from(byte)),
                        1 => uri.push_str(&format!("%{byte:02x}")),
                        _ => uri.push_str(&format!("%{byte:02X}")),
                    }
                }
            }
            runtime.block_on(ask(&app, "GET", &uri));
            let (gate, handler) = seen.take();
            prop_assert_eq!(handler.as_ref(), Some(&meant), "{}", &uri);
            prop_assert_eq!(gate, handler.filter(|text| !text.contains('\0')));
            Ok(())
        })
        .unwrap();
}

/// Whatever text the layer takes for a number, the handler takes for the same one.
#[test]
fn case_44_a_number_that_the_layer_reads_is_the_handlers_number() {
    let text = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        "[-+]?[0-9]{0,20}",
        "[ -+]?0*[0-9]{1,3}[ .e]?[0-9]?",
        any::<String>(),
    ];
    let mut runner = TestRunner::new(Config::with_cases(2_000));
    runner
        .run(&text, |text| {
            let read = i64::parse_key(&text);
            if let Some(read) = read {
                prop_assert_eq!(text.parse::<i64>().ok(), Some(read));
                prop_assert_eq!(read.to_string(), text, "one spelling for one number");
            } else if let Ok(number) = text.parse::<i64>() {
                prop_assert_ne!(number.to_string(), text, "a canonical spelling was not read");
            }
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn case_44_other_spellings_of_a_number_pass_and_are_answered_by_the_handler() {
    let guard = products().await;
    let handler = get(async |Path(id): Path<i64>| match row(id) {
        Some(product) => product.name.into_response(),
        None => product_not_found(),
    });
    let app = Router::new()
        .route("/products/{id}", handler)
        .route_layer(guard.layer(path_param("id")).gate_only().not_found(product_not_found));
    for (id, status) in [("7", 200), ("007", 200), ("+7", 200), ("%37", 200), ("8", 404)] {
        let reply = ask(&app, "GET", &format!("/products/{id}")).await;
        assert_eq!(reply.status, status, "{id}");
    }
    for id in ["abc", "1e3", "99999999999999999999", "%FF"] {
        let reply = ask(&app, "GET", &format!("/products/{id}")).await;
        assert_eq!(reply.status, 400, "{id}");
    }
    assert_eq!(guard.status().counts.refused, 1);
}

#[tokio::test]
async fn case_46_text_longer_than_a_key_may_be_passes() {
    let seen = Seen::default();
    let app = app(true, true, &seen).await;
    for (length, is_key) in [(MAX_TEXT_KEY, true), (MAX_TEXT_KEY + 1, false), (8 * 1024, false)] {
        let reply = ask(&app, "GET", &format!("/items/{}", "x".repeat(length))).await;
        assert_eq!(reply.status, 404);
        let (gate, handler) = seen.take();
        assert_eq!((gate.is_some(), handler.is_some()), (is_key, !is_key));
    }
}

#[tokio::test]
async fn a_parameter_that_the_route_does_not_have_guards_nothing() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(async |Path(id): Path<i64>| id.to_string()))
        .route_layer(guard.layer(path_param("product")).gate_only());
    assert_eq!(ask(&app, "GET", "/products/8").await.body, "8");
}
