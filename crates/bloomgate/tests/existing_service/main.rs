//! An existing service, before and after it is wrapped: the same answers, fewer queries.
//!
//! `docs/GUIDE.md` quotes the difference between the two files and explains it.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail the test at once")]
#![expect(unreachable_pub, reason = "the two services read as they would stand in a program")]

mod after;
mod before;
mod guide;

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use bloomgate::{Guard, Verdict};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use tower::ServiceExt as _;
use uuid::Uuid;

const LIVE: Uuid = Uuid::from_u128(0x11111111_aaaa_4bbb_8ccc_dddddddddddd);
const DELETED: Uuid = Uuid::from_u128(0x22222222_aaaa_4bbb_8ccc_dddddddddddd);
const ABSENT: Uuid = Uuid::from_u128(0x33333333_aaaa_4bbb_8ccc_dddddddddddd);

/// A database of its own with a note that exists and one that was deleted.
async fn database(folder: &tempfile::TempDir, schema: &'static str) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("notes.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal);
    let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
    sqlx::raw_sql(schema).execute(&pool).await.unwrap();
    for (id, deleted_at) in [(LIVE, None), (DELETED, Some("2026-01-01"))] {
        let note = "INSERT INTO notes VALUES (?, 'a title', 'a body', ?)";
        sqlx::query(note).bind(id).bind(deleted_at).execute(&pool).await.unwrap();
        let revision = "INSERT INTO revisions VALUES (?, 1, 'a body')";
        sqlx::query(revision).bind(id).execute(&pool).await.unwrap();
    }
    pool
}

/// The wrapped service on this database, once its gate refuses.
async fn wrapped(pool: SqlitePool) -> (Router, Guard<Uuid, after::Note>) {
    let guard = after::guard(pool.clone()).await.unwrap();
    let refusing = async {
        while guard.check(&ABSENT) != Verdict::Absent {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), refusing).await.unwrap();
    (after::app(pool, guard.clone()), guard)
}

async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, Vec<String>, String) {
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let mut headers: Vec<String> =
        response.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    headers.sort();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, headers, String::from_utf8(body.to_vec()).unwrap())
}

fn request(method: Method, path: &str, body: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    // A browser's request from another site, so that the CORS layer has something to say.
    let request = request
        .header(header::ORIGIN, "https://elsewhere.example")
        .header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_owned())).unwrap()
}

async fn create(app: &Router) -> String {
    let draft = r#"{"title": "new", "body": "first"}"#;
    let response = app.clone().oneshot(request(Method::POST, "/api/notes", draft)).await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    response.headers()[header::LOCATION].to_str().unwrap().to_owned()
}

/// Requests in their order; `{new}` stands for the path of the note that was created before.
fn requests() -> Vec<(Method, String, &'static str)> {
    let draft = r#"{"title": "changed", "body": "second"}"#;
    let mut requests = vec![
        (Method::GET, "/healthz".to_owned(), ""),
        (Method::GET, "/api/notes".to_owned(), ""),
        (Method::GET, "/api/nowhere".to_owned(), ""),
        (Method::GET, format!("/api/notes/{}", LIVE.simple()), ""),
        (Method::GET, format!("/api/notes/{}", LIVE.to_string().to_uppercase()), ""),
        (Method::GET, format!("/api/notes/{LIVE}/"), ""),
        (Method::POST, "/api/notes".to_owned(), r#"{"title": "no body"}"#),
    ];
    let notes = [LIVE, DELETED, ABSENT].map(|id| format!("/api/notes/{id}"));
    let malformed = ["/api/notes/abc", "/api/notes/%FF"].map(str::to_owned);
    for path in notes.into_iter().chain(malformed).chain(["{new}".to_owned()]) {
        for (method, body) in [
            (Method::GET, ""),
            (Method::GET, ""),
            (Method::HEAD, ""),
            (Method::OPTIONS, ""),
            (Method::PATCH, draft),
            (Method::PUT, draft),
            (Method::PUT, "not JSON"),
            (Method::GET, ""),
            (Method::DELETE, ""),
            (Method::DELETE, ""),
            (Method::GET, ""),
            (Method::PUT, draft),
        ] {
            requests.push((method, path.clone(), body));
            requests.push((Method::GET, format!("{path}/revisions"), ""));
        }
    }
    requests
}

#[tokio::test]
async fn every_answer_is_that_of_the_service_without_the_guard() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let plain = before::app(database(&folders[0], before::SCHEMA).await);
    let (guarded, _guard) = wrapped(database(&folders[1], after::SCHEMA).await).await;
    let (new_in_plain, new_in_guarded) = (create(&plain).await, create(&guarded).await);

    let mut seen = std::collections::BTreeMap::new();
    for (method, path, body) in requests() {
        let at = |new: &str| request(method.clone(), &path.replace("{new}", new), body);
        let expected = ask(&plain, at(&new_in_plain)).await;
        *seen.entry(expected.0.as_u16()).or_insert(0) += 1;
        let (status, headers, text) = ask(&guarded, at(&new_in_guarded)).await;
        let id = |path: &str| path.trim_start_matches("/api/notes/").to_owned();
        let text = text.replace(&id(&new_in_guarded), &id(&new_in_plain));
        assert_eq!((status, headers, text), expected, "{method} {path} {body}");
    }
    let statuses: Vec<u16> = seen.into_keys().collect();
    assert_eq!(statuses, [200, 204, 400, 404, 405, 422], "the list meets every kind of answer");
}

#[tokio::test]
async fn a_thousand_absent_ids_cost_next_to_no_load() {
    let folder = tempfile::tempdir().unwrap();
    let (app, guard) = wrapped(database(&folder, after::SCHEMA).await).await;
    let before = guard.status().counts;
    for number in 0..1_000 {
        let id = Uuid::new_v4();
        let path = match number % 2 {
            0 => format!("/api/notes/{id}"),
            _ => format!("/api/notes/{id}/revisions"),
        };
        assert_eq!(ask(&app, request(Method::GET, &path, "")).await.0, StatusCode::NOT_FOUND);
    }
    let after = guard.status().counts;
    // At a false-positive rate of 0.001, more than ten are one chance in a hundred million.
    assert!(after.refused - before.refused >= 990, "{} were refused", after.refused);
    assert!(after.loader.loads - before.loader.loads <= 10, "{} loads", after.loader.loads);
}

#[tokio::test]
async fn a_row_is_found_as_soon_as_it_was_created() {
    let folder = tempfile::tempdir().unwrap();
    let (app, guard) = wrapped(database(&folder, after::SCHEMA).await).await;
    for _ in 0..50 {
        let path = create(&app).await;
        for path in [path.clone(), format!("{path}/revisions")] {
            assert_eq!(
                ask(&app, request(Method::GET, &path, "")).await.0,
                StatusCode::OK,
                "{path}"
            );
        }
    }
    let id = Uuid::new_v4();
    assert_eq!(guard.check(&id), Verdict::Absent, "the gate refused all along");
}
