//! The address of a target: its host resolved once, checked, and reachable.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::attack::error::Error;
use crate::attack::http::target::{AllowedHosts, Host, Target, is_loopback};

impl Target {
    /// Resolves the host and returns the first address that accepts a connection.
    ///
    /// All later connections go to this address: a name that resolves differently later
    /// doesn't redirect the traffic.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_resolves_beyond_this_machine_is_refused() {
        let here: Vec<SocketAddr> =
            vec!["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap()];
        let mut mixed = here.clone();
        mixed.push("192.0.2.1:80".parse().unwrap());
        assert!(check_resolved("--url", "localhost", &here, AllowedHosts::Loopback).is_ok());
        assert!(check_resolved("--url", "localhost", &mixed, AllowedHosts::Loopback).is_err());
        assert!(check_resolved("--url", "localhost", &mixed, AllowedHosts::Anywhere).is_ok());
    }
}
