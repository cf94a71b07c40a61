//! Spellings: the layer reads every one as the handler's `Path` does.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::request::Parts;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::super::{ExtractKey as _, Extracted, Guarded, path_param};
use super::apps::{Product, ask, closed, product_not_found, products, row};
use crate::key::{MAX_TEXT_KEY, ParseKey};
use crate::{Gate, Guard, loader, warm_up};

/// What layer and handler read from the last request.
struct Seen<K> {
    layer: Option<Extracted<K>>,
    handler: Option<Option<K>>,
}

type Shared<K> = Arc<Mutex<Seen<K>>>;

/// A route, the same in a nested router and in a nested service, each with a handler that takes
/// `Path<K>`, behind a layer that reads the parameter.
async fn app<K: ParseKey + DeserializeOwned>(seen: &Shared<K>) -> Router {
    let guard: Guard<K, String> = Guard::builder("spellings")
        .gate(Gate::open())
        .source(warm_up::Keys::new(Vec::<K>::new()))
        .loader(loader::from_fn(async |_: K| Ok::<_, std::io::Error>(None)))
        .build()
        .await
        .unwrap();
    let noted = Arc::clone(seen);
    let extract = move |head: &mut Parts| {
        let extracted: Extracted<K> = path_param("key").extract(head);
        noted.lock().unwrap().layer = Some(extracted.clone());
        extracted
    };
    let layer = guard.gate_layer(extract);
    let note = |seen: &Shared<K>, key: Option<K>| seen.lock().unwrap().handler = Some(key);
    let noted = Arc::clone(seen);
    let one = get(move |path: Result<Path<K>, PathRejection>| async move {
        note(&noted, path.ok().map(|Path(key)| key));
    });
    let noted = Arc::clone(seen);
    let two = get(move |path: Result<Path<(String, K)>, PathRejection>| async move {
        note(&noted, path.ok().map(|Path((_, key))| key));
    });
    let nested = Router::new().route("/items/{key}", two).route_layer(layer.clone());
    Router::new()
        .route("/items/{key}", one)
        .route_layer(layer)
        .nest("/nested/{tenant}", nested.clone())
        .nest_service("/service/{tenant}", nested)
}

/// `text` in a path, each byte as it is or as one of two escapes.
fn spell(text: &str, escapes: &[u8]) -> String {
    let mut path = String::new();
    for (at, byte) in text.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
        match escapes[at % escapes.len()] {
            0 if plain => path.push(char::from(byte)),
            1 => path.push_str(&format!("%{byte:02x}")),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// Asks for every text, and compares the key of the layer with the key of the handler. `is_key`
/// says which of the handler's keys the layer takes for keys.
fn compare<K>(texts: impl Strategy<Value = String>, is_key: fn(&K) -> bool)
where
    K: ParseKey + DeserializeOwned + PartialEq + Debug,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seen: Shared<K> = Arc::new(Mutex::new(Seen { layer: None, handler: None }));
    let app = runtime.block_on(app::<K>(&seen));
    let escapes = proptest::collection::vec(0..3_u8, 1..8);
    let (keys, malformed) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config::with_cases(400));
    runner
        .run(&(texts, escapes), |(text, escapes)| {
            let spelled = spell(&text, &escapes);
            for prefix in ["/items", "/nested/a%2Fb/items", "/service/acme/items"] {
                let path = format!("{prefix}/{spelled}");
                runtime.block_on(ask(&app, "GET", &path));
                let mut seen = seen.lock().unwrap();
                let (layer, handler) = (seen.layer.take(), seen.handler.take());
                let handler = handler.expect("the route matches").filter(is_key);
                prop_assert_eq!(layer, Some(Extracted::from(handler.clone())), "{}", path);
                drop(seen);
                match handler {
                    Some(_) => keys.set(keys.get() + 1),
                    None => malformed.set(malformed.get() + 1),
                }
            }
            Ok(())
        })
        .unwrap();
    let (keys, malformed) = (keys.get(), malformed.get());
    assert!(keys > 100 && malformed > 0, "{keys} keys, {malformed} malformed: nothing compared");
}

fn integers() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        "[-+]?0{0,3}[0-9]{1,10}",
        "[-+]?[0-9]{1,20}",
        "[ -+]?0*[0-9]{1,3}[ .e]?[0-9]?",
        "\\PC{1,4}",
    ]
}

#[test]
fn case_44_layer_and_handler_read_the_same_i64() {
    compare::<i64>(integers(), |_| true);
}

#[test]
fn case_44_layer_and_handler_read_the_same_u32() {
    compare::<u32>(integers(), |_| true);
}

#[test]
fn case_44_layer_and_handler_read_the_same_uuid() {
    let spelled = (any::<u128>(), 0..4_u8, 0..3_u8).prop_map(|(bits, form, case)| {
        let id = Uuid::from_u128(bits);
        let text = match form {
            0 => id.hyphenated().to_string(),
            1 => id.simple().to_string(),
            2 => id.urn().to_string(),
            _ => id.braced().to_string(),
        };
        match case {
            0 => text,
            1 => text.to_uppercase(),
            _ => text.chars().step_by(2).zip(text.to_uppercase().chars().skip(1).step_by(2)).fold(
                String::new(),
                |mut mixed, (lower, upper)| {
                    mixed.extend([lower, upper]);
                    mixed
                },
            ),
        }
    });
    let texts = prop_oneof![
        4 => spelled,
        1 => "[0-9a-f]{8}-[0-9a-f]{4}-?[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-g]{11,13}",
        1 => "\\PC{1,40}",
    ];
    compare::<Uuid>(texts, |_| true);
}

#[test]
fn case_46_layer_and_handler_read_the_same_text() {
    let texts = prop_oneof![
        4 => "\\PC{1,30}",
        1 => "[a-z]{0,3}\0[a-z]{0,3}",
        1 => (MAX_TEXT_KEY - 1..MAX_TEXT_KEY + 2).prop_map(|length| "x".repeat(length)),
    ];
    compare::<String>(texts, |text| text.len() <= MAX_TEXT_KEY && !text.contains('\0'));
}

async fn stored(Path(id): Path<i64>) -> Response {
    row(id).map_or_else(product_not_found, |product| product.name.into_response())
}

/// Ways to write an id.
fn spellings(id: i64) -> Vec<String> {
    ["", "0", "000", "+", "+0", "%2B", "%2b00", "%30"].map(|sign| format!("{sign}{id}")).to_vec()
}

#[tokio::test]
async fn case_44_no_spelling_of_an_absent_id_walks_around_the_gate() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(stored))
        .route_layer(guard.gate_layer(path_param("id")).not_found(product_not_found));
    let mut asked = 0;
    for id in 1_000..1_125 {
        for spelling in spellings(id) {
            let reply = ask(&app, "GET", &format!("/products/{spelling}")).await;
            assert_eq!(reply.status, 404, "{spelling}");
            asked += 1;
        }
    }
    assert_eq!((asked, guard.status().counts.refused), (1_000, 1_000));
    for spelling in spellings(7) {
        assert_eq!(ask(&app, "GET", &format!("/products/{spelling}")).await.body, "product 7");
    }
    for malformed in ["abc", "1e3", "99999999999999999999", "%FF"] {
        assert_eq!(ask(&app, "GET", &format!("/products/{malformed}")).await.status, 400);
    }
}

#[tokio::test]
async fn case_44_a_row_is_found_and_cached_once_under_all_its_spellings() {
    let guard = products().await;
    let app = Router::new()
        .route("/products/{id}", get(async |product: Guarded<Product>| product.name.clone()))
        .route_layer(guard.layer(path_param("id")).not_found(product_not_found));
    for spelling in spellings(7) {
        assert_eq!(ask(&app, "GET", &format!("/products/{spelling}")).await.body, "product 7");
    }
    assert_eq!(guard.status().counts.loader.loads, 1);
}

#[tokio::test]
async fn case_44_uuids_in_every_form_are_one_key() {
    let id = Uuid::from_u128(0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8);
    let builder = Guard::builder("uuids").source(warm_up::Keys::new([id])).loader(loader::from_fn(
        async |id: Uuid| Ok::<_, std::io::Error>(Some(id.simple().to_string())),
    ));
    let guard: Guard<Uuid, String> = closed(builder).await;
    let reading = get(async |row: Guarded<String>| row.to_string());
    let app = Router::new()
        .route("/read/{id}", reading.route_layer(guard.layer(path_param("id"))))
        .route(
            "/check/{id}",
            get(async |Path(id): Path<Uuid>| id.simple().to_string())
                .route_layer(guard.gate_layer(path_param("id"))),
        );
    let forms = |id: Uuid| {
        let lower = [id.hyphenated().to_string(), id.simple().to_string(), id.urn().to_string()];
        let upper = lower.clone().map(|text| text.to_uppercase());
        [lower, upper].concat()
    };
    for form in forms(id) {
        for route in ["read", "check"] {
            let reply = ask(&app, "GET", &format!("/{route}/{form}")).await;
            assert_eq!((reply.status.as_u16(), reply.body), (200, id.simple().to_string()));
        }
    }
    for form in forms(Uuid::from_u128(7)) {
        for route in ["read", "check"] {
            assert_eq!(ask(&app, "GET", &format!("/{route}/{form}")).await.status, 404, "{form}");
        }
    }
    let counts = guard.status().counts;
    assert_eq!((counts.loader.loads, counts.refused), (1, 12));
}

#[tokio::test]
async fn case_44_a_strict_layer_admits_canonical_spellings_only() {
    let guard = products().await;
    let strict = || path_param("id").strict();
    let reading = get(async |product: Guarded<Product>| product.name.clone());
    let app = Router::new()
        .route(
            "/read/{id}",
            reading.route_layer(guard.layer(strict()).not_found(product_not_found)),
        )
        .route("/check/{id}", get(stored).route_layer(guard.gate_layer(strict())));
    for id in ["7", "-1", "0", "%37"] {
        assert_eq!(ask(&app, "GET", &format!("/read/{id}")).await.status, 200, "{id}");
        assert_eq!(ask(&app, "GET", &format!("/check/{id}")).await.status, 200, "{id}");
    }
    let absent = ask(&app, "GET", "/read/8").await;
    let refused = guard.status().counts.refused;
    for id in ["007", "+7", "%2B7", "-0", "00", "008"] {
        let not_found = ask(&app, "GET", &format!("/read/{id}")).await;
        assert_eq!((not_found.status.as_u16(), &not_found), (404, &absent), "{id}");
        // The handler, which reads them as numbers, is asked.
        let status = if id == "008" { 404 } else { 200 };
        assert_eq!(ask(&app, "GET", &format!("/check/{id}")).await.status, status, "{id}");
    }
    assert_eq!(guard.status().counts.refused, refused);
}
