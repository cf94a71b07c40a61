//! All methods and paths, whose answers the guard must not change.

use testbed::net::{Conn, Reply};

use crate::client::count;
use crate::environment::{Environment, assert_no_panic};
use crate::service::product_json;

const METHODS: [&str; 10] =
    ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY", "get"];

/// Paths of an existing product and an absent one, of texts that are no id, and without a route.
const PATHS: [&str; 57] = [
    "/products/1",
    "/products/1?a=b",
    "/products/%31",
    "/products/1/",
    "/products/1/2",
    "/products//1",
    "//products/1",
    "/PRODUCTS/1",
    "/products/./1",
    "/products/1%2F",
    "/products/%2531",
    "/products/6",
    "/products/987654321987",
    "/products/987654321987/",
    "/products/9223372036854775807",
    "/products/9223372036854775808",
    "/products/99999999999999999999",
    "/products/0",
    "/products/-0",
    "/products/-1",
    "/products/%2d1",
    "/products/+1",
    "/products/%2B1",
    "/products/01",
    "/products/007",
    "/products/1.0",
    "/products/1e0",
    "/products/0x1",
    "/products/1,",
    "/products/1;2",
    "/products/abc",
    "/products/abc?id=1",
    "/products/%201",
    "/products/1%20",
    "/products/%",
    "/products/%3",
    "/products/%zz",
    "/products/%00",
    "/products/1%00",
    "/products/a%00b",
    "/products/%FF",
    "/products/%ff",
    "/products/%2F",
    "/products/%D9%A1",
    "/products/%EF%BC%91",
    "/products/\u{661}",
    "/products/*",
    "/products/..",
    "/products/.",
    "/products/%2e%2e",
    "/products/",
    "/products/?",
    "/products",
    "/healthz",
    "/nothing",
    "/",
    "/products/%30",
];

/// Ids of 10,240 characters beside [`PATHS`].
fn paths() -> Vec<String> {
    let long = ["7".repeat(10_240), "x".repeat(10_240), format!("{}1", "0".repeat(10_239))];
    let long = long.iter().map(|id| format!("/products/{id}"));
    PATHS.into_iter().map(str::to_owned).chain(long).collect()
}

/// The reply without its date.
fn without_date(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.raw_without(&["date"])).into_owned()
}

#[test]
fn case_52_every_method_gets_the_unguarded_answer() {
    for (env, flags) in [
        (Environment::sqlite(), &["--gate", "auto"][..]),
        (Environment::postgres_and_redis(), &["--gate", "auto"]),
        (Environment::sqlite_and_redis(), &["--gate", "open"]),
    ] {
        let guarded = env.serve(5, flags);
        let unguarded = env.start_unguarded(0);
        let headers = [
            ("Connection", "close"),
            ("Origin", "http://elsewhere.example"),
            ("Access-Control-Request-Method", "GET"),
            ("Content-Type", "application/json"),
        ];
        for method in METHODS {
            for path in &paths() {
                let shown: String = path.chars().take(40).collect();
                let id_1 = path.starts_with("/products/1") || path == "/products/%31";
                for body in ["", "{", &product_json("Product 1")] {
                    let writes = (method == "DELETE" && id_1)
                        || (method == "POST" && path == "/products" && body.len() > 1);
                    if writes {
                        continue;
                    }
                    let ask = |url: &str| {
                        Conn::open(url).request(method, path, &headers, body.as_bytes())
                    };
                    let expected = without_date(&ask(&unguarded.url));
                    // The second answer may come from a cache.
                    for round in 1..=2 {
                        assert_eq!(
                            without_date(&ask(&guarded.url)),
                            expected,
                            "{method} {shown} with {body:?}, round {round}"
                        );
                    }
                }
            }
        }
        guarded.until_idle();
        assert_no_panic(&guarded);
    }
}

#[test]
fn case_52_only_get_and_head_are_answered_from_the_guard() {
    let env = Environment::sqlite();
    let service = env.serve(5, &["--false-positive-rate", "0.000001"]);
    let mut conn = Conn::open(&service.url);
    for method in ["OPTIONS", "POST", "PATCH", "TRACE", "QUERY"] {
        for id in [1, 987_654_321_987_i64] {
            let reply = conn.request(method, &format!("/products/{id}"), &[], b"");
            assert_eq!(reply.status, 405, "{method}");
            assert_eq!(reply.header("allow"), Some("GET,HEAD,PUT,DELETE"), "{method}");
        }
    }
    let guard = service.guard();
    for pointer in ["/counts/refused", "/counts/passed_maybe", "/counts/loader/loads"] {
        assert_eq!(count(&guard, pointer), 0, "{pointer} in {guard}");
    }
    for method in ["GET", "HEAD"] {
        assert_eq!(conn.request(method, "/products/1", &[], b"").status, 200);
        let absent = conn.request(method, "/products/987654321987", &[], b"");
        assert_eq!(absent.status, 404);
        // A proxy that kept it would serve it after the product has been created.
        assert_eq!(absent.header("cache-control"), Some("no-store"));
    }
    let guard = service.guard();
    for (pointer, expected) in
        [("/counts/refused", 2), ("/counts/passed_maybe", 2), ("/counts/loader/loads", 1)]
    {
        assert_eq!(count(&guard, pointer), expected, "{pointer} in {guard}");
    }
}
