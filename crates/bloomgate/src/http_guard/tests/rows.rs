//! Rows, each handed to its own handler parameter only.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

use super::super::{Guarded, path_param};
use super::apps::{GONE, Product, ask, products};
use super::log::ErrorLines;

struct Owner;
struct Friend;

async fn owner_and_friend(
    owner: Guarded<Product, Owner>,
    friend: Guarded<Product, Friend>,
) -> String {
    format!("{}, {}", owner.id, friend.id)
}

fn no_owner() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "no such owner")
}

fn no_friend() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "no such friend")
}

#[tokio::test]
async fn a_handler_behind_two_layers_with_one_type_of_value_gets_no_row_by_guessing() {
    let guard = products().await;
    let handler = get(async |friend: Guarded<Product>| friend.id.to_string());
    let app = Router::new()
        .route("/users/{user}/friends/{friend}", handler)
        .route_layer(guard.layer(path_param("friend")))
        .route_layer(guard.layer(path_param("user")));
    let errors = ErrorLines::capture();
    // The second is the outer row, answered to a request for no friend at all.
    for uri in ["/users/1/friends/7", "/users/1/friends/abc", "/users/abc/friends/7"] {
        for _ in 0..20 {
            let reply = ask(&app, "GET", uri).await;
            assert_eq!(reply.status, 500, "{uri}: {}", reply.body);
            for part in ["/users/{user}/friends/{friend}", "\"user\"", "\"friend\"", "marked::<"] {
                assert!(reply.body.contains(part), "{part}: {}", reply.body);
            }
        }
    }
    let lines = errors.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("/users/{user}/friends/{friend}"), "{lines:?}");
}

#[tokio::test]
async fn markers_distinguish_two_layers_with_one_type_of_value() {
    let guard = products().await;
    let owner = || guard.layer(path_param("owner")).not_found(no_owner).marked::<Owner>();
    let friend = || guard.layer(path_param("friend")).marked::<Friend>().not_found(no_friend);
    let route = || Router::new().route("/users/{owner}/friends/{friend}", get(owner_and_friend));
    for app in [
        route().route_layer(owner()).route_layer(friend()),
        route().route_layer(friend()).route_layer(owner()),
    ] {
        for _ in 0..2 {
            assert_eq!(ask(&app, "GET", "/users/1/friends/7").await.body, "1, 7");
            assert_eq!(ask(&app, "GET", "/users/7/friends/1").await.body, "7, 1");
            assert_eq!(ask(&app, "GET", "/users/7/friends/7").await.body, "7, 7");
        }
        // Malformed, refused by the gate, absent in the database.
        for absent in ["abc".to_owned(), "8".to_owned(), GONE.to_string()] {
            let reply = ask(&app, "GET", &format!("/users/1/friends/{absent}")).await;
            assert_eq!((reply.status.as_u16(), &*reply.body), (404, "no such friend"), "{absent}");
            let reply = ask(&app, "GET", &format!("/users/{absent}/friends/1")).await;
            assert_eq!((reply.status.as_u16(), &*reply.body), (404, "no such owner"), "{absent}");
        }
    }
}

#[tokio::test]
async fn an_inner_routers_layer_never_hands_on_the_outer_routers_row() {
    let guard = products().await;
    let friends = Router::new()
        .route("/friends/{friend}", get(async |f: Guarded<Product, Friend>| f.id.to_string()))
        .route_layer(guard.layer(path_param("friend")).marked::<Friend>().not_found(no_friend));
    let outer = || guard.layer(path_param("user")).not_found(no_owner);
    for app in [
        Router::new().nest("/users/{user}", friends.clone()).route_layer(outer()),
        Router::new().nest_service("/users/{user}", friends).route_layer(outer()),
    ] {
        assert_eq!(ask(&app, "GET", "/users/1/friends/7").await.body, "7");
        for friend in ["abc", "8"] {
            let reply = ask(&app, "GET", &format!("/users/1/friends/{friend}")).await;
            assert_eq!((reply.status.as_u16(), &*reply.body), (404, "no such friend"));
        }
        assert_eq!(ask(&app, "GET", "/users/8/friends/7").await.body, "no such owner");
    }
}

#[tokio::test]
async fn a_row_without_a_marker_is_not_a_marked_one_and_the_other_way_round() {
    let guard = products().await;
    let handler = get(async |plain: Guarded<Product>, owner: Guarded<Product, Owner>| {
        format!("{}, {}", plain.id, owner.id)
    });
    let app = Router::new()
        .route("/users/{owner}/friends/{friend}", handler)
        .route_layer(guard.layer(path_param("friend")))
        .route_layer(guard.layer(path_param("owner")).marked::<Owner>());
    assert_eq!(ask(&app, "GET", "/users/1/friends/7").await.body, "7, 1");
    let marked = Router::new()
        .route("/{id}", get(async |row: Guarded<Product>| row.id.to_string()))
        .route_layer(guard.layer(path_param("id")).marked::<Owner>());
    let unmarked = Router::new()
        .route("/{id}", get(async |row: Guarded<Product, Friend>| row.id.to_string()))
        .route_layer(guard.layer(path_param("id")));
    for app in [marked, unmarked] {
        let reply = ask(&app, "GET", "/7").await;
        assert_eq!(reply.status, 500);
        assert!(reply.body.contains("no reading guard layer"), "{}", reply.body);
    }
}

#[tokio::test]
async fn two_layers_that_cannot_be_distinguished_are_refused() {
    let (guard, other) = (products().await, products().await);
    let route = || Router::new().route("/products/{id}", get(async || "row"));
    let layer = || guard.layer(path_param("id"));
    for app in [
        route().route_layer(layer()).route_layer(layer()),
        route().route_layer(layer()).route_layer(other.layer(path_param("id"))),
        route().route_layer(layer().marked::<Owner>()).route_layer(layer().marked::<Owner>()),
    ] {
        let errors = ErrorLines::capture();
        for id in ["7", "abc", "7"] {
            let reply = ask(&app, "GET", &format!("/products/{id}")).await;
            assert_eq!(reply.status, 500);
            for part in ["/products/{id}", "\"id\"", "can't be distinguished", "marked::<"] {
                assert!(reply.body.contains(part), "{part}: {}", reply.body);
            }
        }
        assert_eq!(errors.take().len(), 1);
    }
    let marked = route().route_layer(layer()).route_layer(layer().marked::<Owner>());
    assert_eq!(ask(&marked, "GET", "/products/7").await.body, "row");
    let checked = route().route_layer(layer()).route_layer(layer().gate_only());
    assert_eq!(ask(&checked, "GET", "/products/7").await.body, "row");
}

#[tokio::test]
async fn two_closures_of_one_guard_are_distinguished_by_markers_only() {
    let guard = products().await;
    let header = |name: &'static str| {
        move |head: &mut http::request::Parts| -> Option<i64> {
            head.headers.get(name)?.to_str().ok()?.parse().ok()
        }
    };
    let route = || Router::new().route("/", get(async || "row"));
    let app =
        route().route_layer(guard.layer(header("x-a"))).route_layer(guard.layer(header("x-b")));
    assert_eq!(ask(&app, "GET", "/").await.status, 500);
    let app = route()
        .route_layer(guard.layer(header("x-a")))
        .route_layer(guard.layer(header("x-b")).marked::<Friend>());
    assert_eq!(ask(&app, "GET", "/").await.body, "row");
}
