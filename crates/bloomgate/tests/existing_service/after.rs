//! A service of notes: two tables, soft deletes, nested routes.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bloomgate::{ConfigError, Guard, Guarded, WriteError, loader, path_param, warm_up};
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, SqlitePool};
use tower_http::{cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};
use uuid::Uuid;

pub const SCHEMA: &str = "
    CREATE TABLE notes (
        id BLOB NOT NULL PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, deleted_at TEXT
    );
    CREATE TABLE revisions (
        note BLOB NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (note, number)
    );";

#[derive(Deserialize, Serialize, FromRow)]
pub struct Note {
    id: Uuid,
    title: String,
    body: String,
}

#[derive(Deserialize)]
struct Draft {
    title: String,
    body: String,
}

#[derive(Clone)]
struct App {
    pool: SqlitePool,
    guard: Guard<Uuid, Note>,
}

pub async fn guard(pool: SqlitePool) -> Result<Guard<Uuid, Note>, ConfigError> {
    let ids = warm_up::SqliteTable::new(pool.clone(), "notes", "id")?.filter("deleted_at IS NULL");
    let note = loader::SqliteLoader::filtered_table(pool, "notes", "id", "deleted_at IS NULL")?;
    Guard::builder("note").source(ids).loader(note).build().await
}

pub fn app(pool: SqlitePool, guard: Guard<Uuid, Note>) -> Router {
    let read = guard.layer(path_param("id")).not_found(|| Problem::NotFound);
    let notes = Router::new()
        .route("/", get(list).post(create))
        .route("/{id}", get(show).route_layer(read.clone()).put(change).delete(remove))
        .route("/{id}/revisions", get(revisions).route_layer(read.gate_only()));
    let api = Router::new().nest("/notes", notes).with_state(App { pool, guard });
    Router::new()
        .nest("/api", api)
        .route("/healthz", get(async || "ok"))
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(10)))
        .layer(CorsLayer::permissive())
        .layer(TraceLayer::new_for_http())
}

async fn list(State(app): State<App>) -> Result<Json<Vec<Note>>, Problem> {
    const LATEST: &str = "SELECT id, title, body FROM notes WHERE deleted_at IS NULL
        ORDER BY title LIMIT 100";
    Ok(Json(sqlx::query_as(LATEST).fetch_all(&app.pool).await?))
}

async fn show(Path(_): Path<Uuid>, note: Guarded<Note>) -> Json<Guarded<Note>> {
    Json(note)
}

async fn revisions(
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Json<Vec<String>>, Problem> {
    find(&app.pool, id).await?.ok_or(Problem::NotFound)?;
    const BODIES: &str = "SELECT body FROM revisions WHERE note = ? ORDER BY number";
    Ok(Json(sqlx::query_scalar(BODIES).bind(id).fetch_all(&app.pool).await?))
}

async fn create(State(app): State<App>, Json(draft): Json<Draft>) -> Result<Response, Problem> {
    let id = Uuid::new_v4();
    app.guard.write(id, insert(app.pool, id, draft)).await?;
    let location = [(header::LOCATION, format!("/api/notes/{id}"))];
    Ok((StatusCode::CREATED, location).into_response())
}

async fn change(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(draft): Json<Draft>,
) -> Result<StatusCode, Problem> {
    match app.guard.update(id, update(app.pool, id, draft)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::NotFound),
    }
}

async fn remove(State(app): State<App>, Path(id): Path<Uuid>) -> Result<StatusCode, Problem> {
    match app.guard.delete(id, soft_delete(app.pool, id)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::NotFound),
    }
}

async fn find(pool: &SqlitePool, id: Uuid) -> sqlx::Result<Option<Note>> {
    const BY_ID: &str = "SELECT id, title, body FROM notes WHERE id = ? AND deleted_at IS NULL";
    sqlx::query_as(BY_ID).bind(id).fetch_optional(pool).await
}

/// Writes two tables: the note and its first revision.
async fn insert(pool: SqlitePool, id: Uuid, draft: Draft) -> sqlx::Result<()> {
    const NOTE: &str = "INSERT INTO notes (id, title, body) VALUES (?, ?, ?)";
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(NOTE).bind(id).bind(draft.title).bind(&draft.body).execute(&mut *tx).await?;
    add_revision(&mut tx, id, &draft.body).await?;
    tx.commit().await
}

/// Writes two tables: the note and its next revision. False if there is no such note.
async fn update(pool: SqlitePool, id: Uuid, draft: Draft) -> sqlx::Result<bool> {
    const NOTE: &str = "UPDATE notes SET title = ?, body = ? WHERE id = ? AND deleted_at IS NULL";
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let note = sqlx::query(NOTE).bind(draft.title).bind(&draft.body).bind(id);
    if note.execute(&mut *tx).await?.rows_affected() == 0 {
        return Ok(false);
    }
    add_revision(&mut tx, id, &draft.body).await?;
    tx.commit().await?;
    Ok(true)
}

async fn add_revision(tx: &mut sqlx::SqliteConnection, id: Uuid, body: &str) -> sqlx::Result<()> {
    const REVISION: &str = "INSERT INTO revisions (note, number, body)
        SELECT ?1, count(*) + 1, ?2 FROM revisions WHERE note = ?1";
    sqlx::query(REVISION).bind(id).bind(body).execute(tx).await?;
    Ok(())
}

async fn soft_delete(pool: SqlitePool, id: Uuid) -> sqlx::Result<bool> {
    const DELETE: &str =
        "UPDATE notes SET deleted_at = datetime() WHERE id = ? AND deleted_at IS NULL";
    Ok(sqlx::query(DELETE).bind(id).execute(&pool).await?.rows_affected() == 1)
}

enum Problem {
    NotFound,
    Busy,
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<WriteError<sqlx::Error>> for Problem {
    fn from(error: WriteError<sqlx::Error>) -> Self {
        match error {
            WriteError::Absent => Self::NotFound,
            WriteError::Run(error) => error.into(),
            error if error.is_temporary() => Self::Busy,
            error => Self::Failed(Box::new(error)),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, title) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "no such note"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "try again in a moment"),
            Self::Failed(error) => {
                tracing::error!(error = &*error as &dyn std::error::Error, "a request failed");
                (StatusCode::INTERNAL_SERVER_ERROR, "something went wrong")
            }
        };
        let headers = [(header::CACHE_CONTROL, "no-store")];
        (status, headers, Json(serde_json::json!({ "title": title }))).into_response()
    }
}
