//! Tests of the flags that decide what is requested, and where.

use std::collections::HashSet;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::server::{Reply, Server};
use crate::{attack, finish, plain_shop, shop};

#[test]
fn sequential_ids_leave_no_gap() {
    let server = plain_shop();
    let ran = attack(
        &server.url("/products/{id}"),
        "--requests 700 --profile sequential --start 5000 --connections 7 --json",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.json()["guard"].is_null());
    let mut ids = server.ids();
    ids.sort_unstable();
    assert_eq!(ids, (5000..5700).collect::<Vec<u64>>());
}

#[test]
fn a_seed_repeats_a_run() {
    let ids = |flags: &str| {
        let server = plain_shop();
        let flags =
            format!("--requests 200 --legit-share 0.5 --legit-ids 1-1000 --connections 4 {flags}");
        assert_eq!(attack(&server.url("/products/{id}"), &flags).code, Some(0));
        let mut ids = server.ids();
        ids.sort_unstable();
        ids
    };
    let first = ids("--seed 11");
    assert_eq!(first.len(), 400);
    assert_eq!(first, ids("--seed 11"));
    assert_ne!(first, ids("--seed 12"));
    assert_ne!(ids(""), ids(""), "fresh seeds");
}

#[test]
fn the_id_may_be_in_the_query() {
    let server = Server::start(|_, _| Reply::Answer(404, String::new()));
    let ran =
        attack(&server.url("?a=b&id={id}&c=d"), "--requests 2 --profile sequential --start 8");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let paths: HashSet<String> = server.paths().into_iter().collect();
    assert_eq!(paths, HashSet::from(["/?a=b&id=8&c=d".into(), "/?a=b&id=9&c=d".into()]));
}

#[test]
fn uuids_are_requested_once_each() {
    let server = Server::start(|_, _| Reply::Answer(404, String::new()));
    let flags = "--ids uuid --requests 300 --connections 4 --json";
    let ran = attack(&server.url("/users/{id}"), flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((&ran.json()["ids"], &ran.json()["profile"]), (&"uuid".into(), &Value::Null));
    let paths: HashSet<String> = server.paths().into_iter().collect();
    assert_eq!(paths.len(), 300);
    for path in paths {
        let id = path.strip_prefix("/users/").unwrap();
        let dashes: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((id.len(), dashes), (36, vec![8, 13, 18, 23]), "{id}");
        assert_eq!(&id[14..15], "4", "{id} is of version 4");
        assert!(id.bytes().all(|byte| b"0123456789abcdef-".contains(&byte)), "{id}");
    }
}

#[test]
fn ids_of_files_are_percent_encoded_into_the_path() {
    let file = |content: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
        file
    };
    let (absent, existing) = (file("no/such id\nb\u{fc}cher\r\n\n"), file("here?\n"));
    let server = Server::start(|path, _| match path {
        "/shop/here%3F" => Reply::Answer(200, String::new()),
        _ => Reply::Answer(404, String::new()),
    });
    let flags = format!(
        "--ids {} --legit-ids {} --legit-share 0.5 --fail-on-refusal --json",
        absent.path().display(),
        existing.path().display()
    );
    let ran = attack(&server.url("/shop/{id}"), &flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut paths = server.paths();
    paths.sort_unstable();
    let expected = ["/shop/b%C3%BCcher", "/shop/here%3F", "/shop/here%3F", "/shop/no%2Fsuch%20id"];
    assert_eq!(paths, expected);
}

#[test]
fn headers_are_sent_with_every_request() {
    let server = Server::start(|path, _| match path {
        "/guard" => Reply::Answer(200, r#"{"counts":{}}"#.to_owned()),
        _ => Reply::Answer(404, String::new()),
    });
    let ran = finish(
        Command::new(env!("CARGO_BIN_EXE_bloomgate"))
            .args(["attack", "--requests", "5", "--url", &server.url("/{id}")])
            .args(["--guard-url", &server.url("/guard")])
            .args(["--header", "Authorization: Bearer a:b", "--header", "X-Tenant:  7"])
            .args(["--header", "Host: shop.example"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    assert_eq!(ran.code, Some(1), "this guard counts nothing");
    assert!(!ran.stdout.contains("Bearer"), "{}", ran.stdout);
    let requests = server.requests();
    assert_eq!(requests.len(), 7);
    for (path, headers) in requests {
        let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            (header("authorization"), header("x-tenant")),
            ("Bearer a:b".into(), "7".into())
        );
        let own = if path == "/guard" { server.address.to_string() } else { "shop.example".into() };
        assert_eq!(header("host"), own);
    }
}

#[test]
fn wrong_targets_are_refused_in_one_line() {
    let server = plain_shop();
    let (port, url) = (server.address.port(), server.url("/{id}"));
    for (target, flags, says) in [
        (format!("http://127.0.0.1.evil.com:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://192.0.2.1:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://0x7f.1:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://0.0.0.0:{port}/{{id}}"), "", "--i-own-this-target"),
        (format!("http://127.0.0.1@evil.com:{port}/{{id}}"), "", "must be a host"),
        (format!("https://127.0.0.1:{port}/{{id}}"), "", "https"),
        (server.url("/products"), "", "{id}"),
        (url.clone(), "--guard-url http://192.0.2.1/guard", "--guard-url: "),
        (url.clone(), "--legit-share 0.1", "--legit-ids"),
        (url.clone(), "--requests 1.5", "'--requests <N>': 1.5 is not a whole number"),
        (url.clone(), "--header Authorization", "give 'Name: value'"),
        (url.clone(), "--header Content-Length:5", "content-length is set by the connection"),
        (url.clone(), "--ids no-such-file", "--ids: can't read the file no-such-file"),
        (url, "--legit-share 0.1 --legit-ids 9-1", "--legit-ids"),
    ] {
        let ran = attack(&target, flags);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{target} {flags}");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{target} {flags}: {}", ran.stderr);
    }
    assert!(server.paths().is_empty());
}

#[test]
fn an_unreachable_server_is_reported_before_any_traffic() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = attack(&format!("http://{address}/{{id}}"), "");
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1));
    assert!(ran.stderr.starts_with("error: --url: nothing accepts connections"), "{}", ran.stderr);
}

#[test]
fn localhost_is_resolved() {
    let server = plain_shop();
    let url = format!("http://localhost:{}/{{id}}", server.address.port());
    let ran = attack(&url, "--requests 5 --json");
    assert_eq!((ran.code, server.paths().len()), (Some(0), 5), "{}", ran.stderr);
}

#[test]
fn the_help_fits_100_columns_and_documents_every_field() {
    let help =
        Command::new(env!("CARGO_BIN_EXE_bloomgate")).args(["attack", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let server = shop(|| r#"{"counts":{}}"#.to_owned());
    let flags = format!("--requests 1 --json --guard-url {}", server.url("/guard"));
    let json = attack(&server.url("/{id}"), &flags).json();
    let (fields, guard) = (json.as_object().unwrap(), json["guard"].as_object().unwrap());
    let (_, documented) = help.split_once("Fields of --json:").unwrap();
    for field in fields.keys().chain(guard.keys()).chain(json["errors"].as_object().unwrap().keys())
    {
        let mut words = documented.split(|char: char| !char.is_alphanumeric() && char != '_');
        assert!(words.any(|word| word == field), "{field} is missing from\n{documented}");
    }
}
