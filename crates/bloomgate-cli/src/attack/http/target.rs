//! A URL that may be attacked: parsed strictly, restricted to this machine by default.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Uri};

use crate::attack::error::Error;
use crate::attack::http::header::RequestHeader;
use crate::attack::http::template::{PLACEHOLDER, Template};

/// Which hosts may receive requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedHosts {
    /// `localhost`, 127.0.0.0/8 and `[::1]`.
    Loopback,
    /// Any host: the user states that they own it.
    Anywhere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Address(IpAddr),
    Name(String),
}

/// A URL split into the address to connect to, the `Host` header and the path to request.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The flag that gave the URL, for error messages.
    pub(super) flag: &'static str,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) authority: String,
    /// Path with query; never empty, begins with `/`.
    path: String,
}

impl Target {
    /// Parses `url`, which the user gave as `flag`, and refuses hosts beyond `allowed`.
    ///
    /// Nothing is looked up here, so that a refused host never reaches a name server.
    pub(crate) fn parse(
        flag: &'static str,
        url: &str,
        allowed: AllowedHosts,
    ) -> Result<Self, Error> {
        let wrong = |problem: String| Error::flag(flag, problem);
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return Err(wrong(
                    "https is not supported; give the service's plain http port".into(),
                ));
            }
            _ => {
                return Err(wrong(format!("{url:?} is not an http URL; begin it with http://")));
            }
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (host, port) = split_authority(authority)
            .ok_or_else(|| wrong(format!("{authority:?} must be a host, or host:port")))?;
        if path.contains('#') {
            return Err(wrong("a fragment is never sent; remove the # and what follows".into()));
        }
        if allowed == AllowedHosts::Loopback && !host.is_this_machine() {
            return Err(wrong(format!(
                "{authority} is not this machine; use localhost, 127.0.0.1 or [::1], \
                 or add --i-own-this-target"
            )));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if let Err(error) = path.replace(PLACEHOLDER, "0").parse::<Uri>() {
            return Err(wrong(format!("{path:?} can't be sent ({error}); percent-encode it")));
        }
        Ok(Self { flag, host, port, authority: authority.to_owned(), path })
    }

    /// The headers of every request to this target: `Host`, and those given with `--header`.
    ///
    /// A given `Host` takes the place of the URL's for `--url` only.
    pub(crate) fn headers(&self, given: &[RequestHeader]) -> Result<HeaderMap, Error> {
        let host = HeaderValue::from_str(&self.authority)
            .map_err(|_| Error::flag(self.flag, "the host has characters that can't be sent"))?;
        let mut headers = HeaderMap::new();
        for RequestHeader { name, value } in given {
            if name != HOST {
                headers.append(name, value.clone());
            } else if self.flag == "--url" {
                headers.insert(name, value.clone());
            }
        }
        headers.entry(HOST).or_insert(host);
        Ok(headers)
    }

    /// Path with query, to request as it stands.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The path with `{id}` as a placeholder; it must be there once.
    pub(crate) fn template(&self) -> Result<Template, Error> {
        Template::new(&self.path).map_err(|problem| Error::flag(self.flag, problem))
    }
}

impl Host {
    /// Names other than `localhost` don't count, even if they resolve to loopback today.
    fn is_this_machine(&self) -> bool {
        match self {
            Host::Address(ip) => is_loopback(*ip),
            Host::Name(name) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// IPv4 addresses written as IPv6 (`::ffff:127.0.0.1`) count as the IPv4 address.
pub(crate) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Accepts `host`, `host:port`, `[v6]` and `[v6]:port`, and nothing that other parsers might read
/// differently: no user part, no encoded or empty host, no empty port.
fn split_authority(authority: &str) -> Option<(Host, u16)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (inside, after) = rest.split_once(']')?;
        let host = Host::Address(inside.parse::<Ipv6Addr>().ok()?.into());
        (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
    } else {
        let (name, port) = match authority.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, None),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if name.is_empty() || !name.bytes().all(plain) {
            return None;
        }
        let host = match name.parse::<Ipv4Addr>() {
            Ok(ip) => Host::Address(ip.into()),
            Err(_) => Host::Name(name.to_owned()),
        };
        (host, port)
    };
    match port {
        None => Some((host, 80)),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|&port| port != 0).map(|port| (host, port))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::http::header;

    fn parse(url: &str) -> Result<Target, Error> {
        Target::parse("--url", url, AllowedHosts::Loopback)
    }

    #[test]
    fn loopback_hosts_are_allowed() {
        for url in [
            "http://127.0.0.1:8080/products/{id}",
            "http://127.0.0.1/{id}",
            "http://127.255.3.4/{id}",
            "http://localhost/{id}",
            "HTTP://LocalHost:1/{id}",
            "http://[::1]/{id}",
            "http://[::1]:80/{id}",
            "http://[::ffff:127.0.0.1]:80/{id}",
            "http://127.0.0.1?id={id}",
        ] {
            assert!(parse(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn other_hosts_are_refused_unless_owned() {
        for url in [
            "http://127.0.0.1.evil.com/{id}",
            "http://localhost.evil.com/{id}",
            "http://localhost./{id}",
            "http://evil.com/{id}",
            "http://0x7f.1/{id}",
            "http://0177.0.0.1/{id}",
            "http://127.1/{id}",
            "http://2130706433/{id}",
            "http://0.0.0.0/{id}",
            "http://128.0.0.1/{id}",
            "http://10.0.0.1/{id}",
            "http://[::]/{id}",
            "http://[::2]/{id}",
            "http://[::ffff:10.0.0.1]/{id}",
            "http://[fe80::1]/{id}",
        ] {
            let refused = parse(url).unwrap_err().to_string();
            assert!(refused.contains("--i-own-this-target"), "{url}: {refused}");
            assert!(Target::parse("--url", url, AllowedHosts::Anywhere).is_ok(), "{url}");
        }
    }

    #[test]
    fn malformed_urls_are_refused_even_if_owned() {
        for url in [
            "",
            "127.0.0.1/{id}",
            "https://127.0.0.1/{id}",
            "ftp://127.0.0.1/{id}",
            "http:///{id}",
            "http://:80/{id}",
            "http://127.0.0.1:/{id}",
            "http://127.0.0.1:0/{id}",
            "http://127.0.0.1:+80/{id}",
            "http://127.0.0.1:65536/{id}",
            "http://127.0.0.1@evil.com/{id}",
            "http://user:secret@127.0.0.1/{id}",
            "http://127.0.0.1%40evil.com/{id}",
            "http://127.0.0.1\\@evil.com/{id}",
            "http://evil.com\\.127.0.0.1/{id}",
            "http://[::1/{id}",
            "http://[::1]evil.com/{id}",
            "http://[::1%25eth0]/{id}",
            "http://[127.0.0.1]/{id}",
            "http://::1/{id}",
            "http://{id}/",
            "http://127.0.0.1 /{id}",
            "http://127.0.0.1/#{id}",
            "http://127.0.0.1/a b/{id}",
            "http://127.0.0.1/\r\nX: y/{id}",
        ] {
            let refused =
                Target::parse("--url", url, AllowedHosts::Anywhere).unwrap_err().to_string();
            assert!(refused.starts_with("--url: "), "{url}: {refused}");
            assert!(!refused.contains(['\r', '\n']), "{url}: {refused}");
        }
    }

    #[test]
    fn given_headers_are_added_and_host_is_replaced_for_the_url_only() {
        let given = ["X-A: 1", "X-A: 2", "Host: shop.example"];
        let given = given.map(|text| header::parse(text).unwrap());
        for (flag, host) in [("--url", "shop.example"), ("--guard-url", "[::1]:8080")] {
            let target = Target::parse(flag, "http://[::1]:8080/", AllowedHosts::Loopback).unwrap();
            let headers = target.headers(&given).unwrap();
            assert_eq!(headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
            assert_eq!(headers.get_all(HOST).iter().collect::<Vec<_>>(), [host]);
            assert_eq!(target.headers(&[]).unwrap()[HOST], "[::1]:8080");
        }
        let twice = [given[2].clone(), given[2].clone()];
        let target = parse("http://[::1]/").unwrap();
        assert_eq!(target.headers(&twice).unwrap().get_all(HOST).iter().count(), 1);
    }
}
