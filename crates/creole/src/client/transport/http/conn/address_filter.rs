//! Resolves names and filters their addresses. The checked addresses are the ones that are used, so a second lookup
//! cannot return others.

use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, io};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// Resolves names, and returns the addresses that may be connected to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilteredResolver {
    /// Whether addresses that are not public may be connected to as well.
    pub(crate) allows_private: bool,
}

/// The error for a name without a public address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotPublic;

impl fmt::Display for NotPublic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the host name resolves to no public address")
    }
}

impl Error for NotPublic {}

type ResolveResult = Result<std::vec::IntoIter<SocketAddr>, Box<dyn Error + Send + Sync>>;

impl Service<Name> for FilteredResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = ResolveResult> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = *self;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            resolver.filter(name.as_str(), found.collect())
        })
    }
}

impl FilteredResolver {
    fn filter(self, name: &str, addresses: Vec<SocketAddr>) -> ResolveResult {
        if addresses.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        }
        // This name explicitly means this machine.
        let is_here = name.eq_ignore_ascii_case("localhost");
        let may = |address: &SocketAddr| {
            self.allows_private
                || is_public(address.ip())
                || (is_here && address.ip().is_loopback())
        };
        let kept: Vec<SocketAddr> = addresses.into_iter().filter(may).collect();
        if kept.is_empty() { Err(NotPublic.into()) } else { Ok(kept.into_iter()) }
    }
}

/// Whether an address is on the public internet: not this machine, a private network, a link, a cloud's own services or
/// unassigned.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Excludes the blocks of RFC 6890 and the IANA registry that are not globally reachable.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224.., _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

/// Of IPv6 only 2000::/3 is assigned; parts of it are for documentation, tunnels and embedded IPv4.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let inner = || {
        let [.., high, low] = segments;
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(inner()),
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_outside_of_the_internet_are_detected() {
        let private = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:a9fe:a9fe::1",
            "2002:808:808::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
        ];
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ];
        for address in public {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_name_with_several_addresses_uses_the_public_ones() {
        let address = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let (closed, open) =
            (FilteredResolver { allows_private: false }, FilteredResolver { allows_private: true });
        let addresses = vec![address("127.0.0.1"), address("8.8.8.8"), address("10.0.0.1")];
        let kept: Vec<_> = closed.filter("example.com", addresses.clone()).unwrap().collect();
        assert_eq!(kept, [address("8.8.8.8")]);
        assert_eq!(open.filter("example.com", addresses).unwrap().count(), 3);
        let rebound = closed.filter("example.com", vec![address("127.0.0.1")]).unwrap_err();
        assert!(rebound.downcast_ref::<NotPublic>().is_some());
    }

    #[test]
    fn this_machine_by_its_own_name_is_this_machine_only() {
        let address = |text: &str| vec![SocketAddr::new(text.parse().unwrap(), 0)];
        let closed = FilteredResolver { allows_private: false };
        assert!(closed.filter("LocalHost", address("127.0.0.1")).is_ok());
        assert!(closed.filter("localhost", address("10.0.0.1")).is_err());
        assert!(closed.filter("localhost.", address("127.0.0.1")).is_err());
        assert!(closed.filter("a.localhost", address("127.0.0.1")).is_err());
    }
}
