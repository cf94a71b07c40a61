//! URLs that may be attacked: parsed strictly, held to this machine, resolved once.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use hyper::Uri;
use hyper::header::HeaderValue;
use tokio::net::TcpStream;

use super::error::Error;

/// Replaced by an id in every request.
const PLACEHOLDER: &str = "{id}";
/// The most digits that a `u64` has.
const MAX_ID: usize = 20;

/// Which hosts may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllowedHosts {
    /// `localhost`, 127.0.0.0/8 and `[::1]`.
    Loopback,
    /// Any host: the caller says that they own it.
    Anywhere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    Name(String),
}

/// A URL split into what to connect to, what to name in `Host`, and what to ask for.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    flag: &'static str,
    host: Host,
    port: u16,
    authority: String,
    /// Path with query; never empty, begins with `/`.
    path: String,
}

impl Target {
    /// Parses `url`, which the user gave as `flag`, and refuses hosts beyond `allowed`.
    ///
    /// Nothing is looked up here, so that a refused host leaves no trace in any name server.
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
                    "https is not spoken; give the service's plain http port".into(),
                ));
            }
            _ => {
                return Err(wrong(format!("{url:?} is no http URL; begin it with http://")));
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

    /// What to send in the `Host` header.
    pub(crate) fn host_header(&self) -> Result<HeaderValue, Error> {
        HeaderValue::from_str(&self.authority)
            .map_err(|_| Error::flag(self.flag, "the host has characters that can't be sent"))
    }

    /// Path with query, to ask for as it stands.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The path as a form to fill in; it must hold `{id}` once.
    pub(crate) fn template(&self) -> Result<Template, Error> {
        match self.path.split(PLACEHOLDER).collect::<Vec<_>>().as_slice() {
            [before, after] => Ok(Template {
                before: (*before).as_bytes().to_vec(),
                after: (*after).as_bytes().to_vec(),
            }),
            _ => Err(Error::flag(
                self.flag,
                "write {id} once, in the path or query, where the id belongs",
            )),
        }
    }

    /// Resolves the host and returns the first address that accepts a connection.
    ///
    /// All later connections go to this address: a name that changes its mind in between can't
    /// lead the traffic elsewhere.
    pub(crate) async fn connectable(
        &self,
        allowed: AllowedHosts,
        wait: Duration,
    ) -> Result<SocketAddr, Error> {
        let unreachable =
            |source| Error::Unreachable { flag: self.flag, host: self.authority.clone(), source };
        let addresses: Vec<SocketAddr> = match &self.host {
            Host::Address(ip) => vec![SocketAddr::new(*ip, self.port)],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), self.port)).await;
                found.map_err(unreachable)?.collect()
            }
        };
        check_resolved(self.flag, &self.authority, &addresses, allowed)?;
        let mut last = io::Error::other("the name has no address");
        for address in addresses {
            match tokio::time::timeout(wait, TcpStream::connect(address)).await {
                Ok(Ok(_)) => return Ok(address),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(unreachable(last))
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

/// IPv4 addresses written as IPv6 (`::ffff:127.0.0.1`) count as what they lead to.
fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Every address of the name must be allowed, since any of them may be the one that answers.
fn check_resolved(
    flag: &'static str,
    authority: &str,
    addresses: &[SocketAddr],
    allowed: AllowedHosts,
) -> Result<(), Error> {
    match addresses.iter().find(|address| !is_loopback(address.ip())) {
        Some(address) if allowed == AllowedHosts::Loopback => Err(Error::flag(
            flag,
            format!(
                "{authority} resolves to {}, which is not this machine; use 127.0.0.1, \
                 or add --i-own-this-target",
                address.ip()
            ),
        )),
        _ => Ok(()),
    }
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

/// A path with a gap for the id.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    /// The path for one id, in one allocation.
    pub(crate) fn fill(&self, id: u64) -> Result<Uri, hyper::http::uri::InvalidUri> {
        let mut digits = [0u8; MAX_ID];
        let mut at = MAX_ID;
        let mut rest = id;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let id = &digits[at..];
        let mut path = BytesMut::with_capacity(self.before.len() + id.len() + self.after.len());
        path.put_slice(&self.before);
        path.put_slice(id);
        path.put_slice(&self.after);
        Uri::from_maybe_shared::<Bytes>(path.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Target, Error> {
        Target::parse("--url", url, AllowedHosts::Loopback)
    }

    #[test]
    fn this_machine_is_allowed() {
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
    fn everything_else_is_refused_unless_owned() {
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
    fn what_is_no_plain_http_url_is_refused_even_if_owned() {
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
    fn what_a_name_resolves_to_is_checked() {
        let here: Vec<SocketAddr> =
            vec!["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
        let mut mixed = here.clone();
        mixed.push("192.0.2.1:80".parse().unwrap());
        assert!(check_resolved("--url", "localhost", &here, AllowedHosts::Loopback).is_ok());
        assert!(check_resolved("--url", "localhost", &mixed, AllowedHosts::Loopback).is_err());
        assert!(check_resolved("--url", "localhost", &mixed, AllowedHosts::Anywhere).is_ok());
    }

    #[test]
    fn the_id_has_one_place() {
        for (url, path) in [
            ("http://[::1]/a/{id}", "/a/7"),
            ("http://[::1]/a/{id}/b?c=d", "/a/7/b?c=d"),
            ("http://[::1]?id={id}", "/?id=7"),
        ] {
            assert_eq!(parse(url).unwrap().template().unwrap().fill(7).unwrap(), path);
        }
        for url in ["http://[::1]/", "http://[::1]/{id}/{id}", "http://[::1]/{ID}"] {
            assert!(parse(url).unwrap().template().is_err(), "{url}");
        }
    }

    #[test]
    fn ids_are_plain_decimals() {
        let template = parse("http://[::1]/{id}").unwrap().template().unwrap();
        for id in [0, 9, 10, 1 << 40, i64::MAX as u64, u64::MAX] {
            assert_eq!(template.fill(id).unwrap().path(), format!("/{id}"));
        }
    }
}
