//! Decoding of paths: the key of the gate is the key of the handler.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::request::Parts;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::{ExtractKey as _, Extracted, path_param};
use super::apps::{Reply, ask, product_not_found, texts};
use crate::key::MAX_TEXT_KEY;

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
    let extract = move |head: &mut Parts| -> Extracted<String> {
        let extracted = path_param("key").extract(head);
        if let Extracted::Key(key) = &extracted {
            *noted.gate.lock().unwrap() = Some(String::clone(key));
        }
        extracted
    };
    let guard = match refusing {
        true => texts(&STORED).await,
        false => super::apps::open_texts().await,
    };
    app.route_layer(guard.gate_layer(extract).not_found(product_not_found))
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
