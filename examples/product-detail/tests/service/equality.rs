//! The guard can't be told from its absence: the same bytes, whatever is asked.

use testbed::net::Conn;

use crate::fixture::{PRODUCT, Service};

/// Targets of ids that exist, of ids that don't, and of what is no id.
fn targets() -> Vec<String> {
    let mut targets: Vec<String> = [
        "1",
        "2",
        "50",
        "51",
        "1000",
        "9223372036854775807",
        "9223372036854775808",
        "99999999999999999999",
        "abc",
        "007",
        "0",
        "-0",
        "-1",
        "+5",
        "%31",
        "%35%30",
        "5%30",
        "%2d1",
        "%2B5",
        "1%20",
        "%201",
        "1.0",
        "1e0",
        "0x1",
        "1,",
        "1;2",
        "1?x=2",
        "abc?id=1",
        "%",
        "%3",
        "%zz",
        "%ff",
        "%00",
        "1%00",
        "%2F",
        "1%2F",
        "%2e%2e",
        "..",
        ".",
        "",
        "?",
        "1/",
        "1/2",
        "%D9%A1",
        "%EF%BC%91",
        "١",
        "*",
    ]
    .map(|id| format!("/products/{id}"))
    .into();
    targets.push(format!("/products/{}", "7".repeat(10_240)));
    targets.push(format!("/products/{}", "x".repeat(10_240)));
    targets.push(format!("/products/{}1", "0".repeat(10_240)));
    targets.extend(
        ["//products/1", "/products//1", "/PRODUCTS/1", "/products/./1", "/"].map(Into::into),
    );
    targets
}

/// The whole answer but its date.
fn answer(service: &Service, method: &str, target: &str, body: &str) -> String {
    let mut conn = Conn::open(&service.url);
    let headers = [("Host", "test"), ("Connection", "close"), ("Content-Type", "application/json")];
    let headers = if body.is_empty() { &headers[..2] } else { &headers[..] };
    let reply = conn.request(method, target, headers, body.as_bytes());
    String::from_utf8_lossy(&reply.raw_without(&["date"])).into_owned()
}

/// One table of products for all variants, so that times of creation are equal too.
#[test]
fn every_answer_is_the_same() {
    let unguarded = Service::ready(&["--seed", "50", "--no-guard"]);
    let file = unguarded.folder.path().join("data/products.db");
    let url = format!("sqlite:{}", file.display());
    let closed = Service::ready(&["--database-url", &url]);
    let open = Service::ready(&["--database-url", &url, "--gate", "open"]);
    assert_eq!(closed.status()["gate"]["state"], "closed");
    assert_eq!(open.status()["gate"]["state"], "open");

    // Twice: from the database, then from the caches.
    for round in 0..2 {
        for method in ["GET", "HEAD"] {
            for target in targets() {
                let plain = answer(&unguarded, method, &target, "");
                for (name, guarded) in [("closed", &closed), ("open", &open)] {
                    let shown: String = target.chars().take(40).collect();
                    assert_eq!(
                        answer(guarded, method, &target, ""),
                        plain,
                        "{method} {shown}, gate {name}, round {round}"
                    );
                }
            }
        }
    }
    assert!(closed.number("/counts/refused") > 0);

    // The other methods, where nothing is changed.
    for (method, body) in
        [("PUT", PRODUCT), ("PUT", "{"), ("DELETE", ""), ("PATCH", ""), ("OPTIONS", "")]
    {
        for target in targets() {
            let exists = ["1", "2", "50", "%31", "%35%30", "5%30", "1?x=2"]
                .iter()
                .any(|id| target.ends_with(&format!("/{id}")));
            if exists && body != "{" && method != "PATCH" && method != "OPTIONS" {
                continue;
            }
            let plain = answer(&unguarded, method, &target, body);
            for guarded in [&closed, &open] {
                let shown: String = target.chars().take(40).collect();
                assert_eq!(answer(guarded, method, &target, body), plain, "{method} {shown}");
            }
        }
    }
}
