//! Products, created, read, changed and deleted over HTTP.

use testbed::net;

use crate::fixture::{JSON, PRODUCT, Service, assert_problem, json};

fn round_trip(service: &Service) {
    let created = service.send("POST", "/products", PRODUCT);
    assert_eq!(created.status, 201, "{}", created.text());
    let product = json(&created);
    let id = product["id"].as_i64().unwrap();
    let path = format!("/products/{id}");
    assert_eq!(created.header("location"), Some(path.as_str()));
    assert_eq!(product["name"], "Tea");
    assert_eq!(product["price_cents"], 350);
    assert_eq!(product["description"], "Green.");
    let time = product["created_at"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");

    let read = service.get(&path);
    assert_eq!((read.status, json(&read)), (200, product.clone()));

    let changed = r#"{"name":"Té","price_cents":0,"description":""}"#;
    let updated = service.send("PUT", &path, changed);
    assert_eq!(updated.status, 200);
    let updated = json(&updated);
    assert_eq!((&updated["name"], &updated["price_cents"]), (&"Té".into(), &0.into()));
    assert_eq!(updated["created_at"], product["created_at"]);
    // The product that was read before isn't served again.
    assert_eq!(json(&service.get(&path)), updated);

    let deleted = service.send("DELETE", &path, "");
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    assert_problem(&service.get(&path), 404);
    assert_problem(&service.send("DELETE", &path, ""), 404);
    assert_problem(&service.send("PUT", &path, changed), 404);
}

#[test]
fn crud_round_trip_through_the_guard() {
    let service = Service::ready(&["--seed", "10"]);
    assert_eq!(json(&service.get("/products/10"))["name"], "Product 10");
    round_trip(&service);
}

#[test]
fn crud_round_trip_without_a_guard() {
    let service = Service::ready(&["--seed", "10", "--no-guard"]);
    round_trip(&service);
}

#[test]
fn crud_round_trip_through_the_guard_on_postgres_and_redis() {
    let redis = testbed::RedisServer::start();
    let database = testbed::PostgresServer::shared().create_database();
    let service = Service::ready(&[
        "--database-url",
        &database,
        "--redis-url",
        &redis.unix_url(),
        "--single-instance",
        "--seed",
        "1000",
    ]);
    assert_eq!(json(&service.get("/products/1000"))["name"], "Product 1000");
    assert_problem(&service.get("/products/1001"), 404);
    assert_eq!(service.number("/counts/refused"), 1);
    round_trip(&service);
}

#[test]
fn a_postgres_table_is_seeded_only_by_flag() {
    let database = testbed::PostgresServer::shared().create_database();
    let service = Service::ready(&["--database-url", &database]);
    assert_problem(&service.get("/products/1"), 404);
    round_trip(&service);
}

#[test]
fn bad_bodies_get_the_status_and_the_field() {
    let service = Service::ready(&["--seed", "1"]);
    let long = |name: usize, description: usize| {
        format!(
            r#"{{"name":"{}","price_cents":1,"description":"{}"}}"#,
            "n".repeat(name),
            "d".repeat(description)
        )
    };
    for (body, status, part) in [
        ("{", 400, ""),
        ("", 400, ""),
        (r#"{"name":"x","price_cents":1}"#, 422, "description"),
        (r#"{"name":"x","price_cents":-1,"description":""}"#, 422, "price_cents"),
        (r#"{"name":"x","price_cents":1.5,"description":""}"#, 422, "price_cents"),
        (r#"{"name":"x","price_cents":9223372036854775808,"description":""}"#, 422, "price_cents"),
        (r#"{"name":7,"price_cents":1,"description":""}"#, 422, "name"),
        (r#"{"name":"a\u0000b","price_cents":1,"description":""}"#, 422, "name"),
        (&long(0, 0), 422, "name"),
        (&long(201, 0), 422, "name"),
        (&long(1, 10_001), 422, "description"),
        (&long(1, 200_000), 413, ""),
    ] {
        for (method, path) in [("POST", "/products"), ("PUT", "/products/1")] {
            let reply = service.send(method, path, body);
            assert_problem(&reply, status);
            let detail = json(&reply)["detail"].to_string();
            assert!(detail.contains(part), "{detail} for {:.60}", body);
        }
    }
    let url = format!("{}/products", service.url);
    assert_problem(&net::request("POST", &url, &[], PRODUCT.as_bytes()), 415);
    assert_eq!(service.send("POST", "/products", &long(200, 10_000)).status, 201);
    assert_eq!(net::request("POST", &url, &[JSON], PRODUCT.as_bytes()).status, 201);
}

#[test]
fn wrong_methods_and_paths_get_problem_documents() {
    let service = Service::ready(&["--seed", "1"]);
    let reply = service.get("/products");
    assert_problem(&reply, 405);
    assert_eq!(reply.header("allow"), Some("POST"));
    let reply = service.send("PATCH", "/products/1", "");
    assert_problem(&reply, 405);
    assert_eq!(reply.header("allow"), Some("GET,HEAD,PUT,DELETE"));
    assert_problem(&service.get("/nothing"), 404);
}
