//! The address of a client behind proxies, read from `Forwarded` (RFC 7239) and `X-Forwarded-For` of trusted proxies
//! only.
//!
//! Each proxy appends the address of its client at the right. The client can forge everything further left, so the
//! client's address is the right-most one that is not a trusted proxy's.

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

/// Maximum number of addresses that are examined.
const MAX_ADDRESSES: usize = 32;

/// A network: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// A text that is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNetwork;

impl fmt::Display for InvalidNetwork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("this is neither an address nor a network such as `10.0.0.0/8`")
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    /// Parses an address such as `192.0.2.7`, or a network such as `10.0.0.0/8` without bits after the prefix.
    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let max = width(address);
        let bits = match bits {
            None => max,
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                digits.parse().map_err(|_| InvalidNetwork)?
            }
            Some(_) => return Err(InvalidNetwork),
        };
        if bits > max || number(address) & !mask(max, bits) != 0 {
            return Err(InvalidNetwork);
        }
        Ok(Self { address, bits })
    }
}

impl Network {
    /// Whether an address belongs to the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let max = width(self.address);
        max == width(address) && number(address) & mask(max, self.bits) == number(self.address)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => address.into(),
    }
}

fn mask(max: u32, bits: u32) -> u128 {
    let ones = u128::MAX >> (128 - max);
    ones & !ones.checked_shr(bits).unwrap_or(0)
}

/// The proxies whose headers determine the address of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

impl FromIterator<Network> for TrustedProxies {
    fn from_iter<T: IntoIterator<Item = Network>>(networks: T) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl TrustedProxies {
    /// Whether this is the address of a trusted proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The address of the client of a request from `peer` with these values of both headers, in order.
    ///
    /// A proxy writes one of the headers and forwards its client's value of the other. If the two headers name
    /// different addresses, neither is used, and the proxy that sent them counts as the client.
    pub fn client_address<'a>(
        &self,
        peer: IpAddr,
        forwarded: impl Iterator<Item = &'a [u8]>,
        forwarded_for: impl Iterator<Item = &'a [u8]>,
    ) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let standard = self.rightmost_untrusted(peer, &addresses(forwarded, element_address));
        let default_value = self.rightmost_untrusted(peer, &addresses(forwarded_for, address));
        match (standard, default_value) {
            (Some(standard), Some(default_value)) if standard != default_value => peer,
            (Some(told), _) | (None, Some(told)) => told,
            (None, None) => peer,
        }
    }

    /// The right-most address that is not a proxy's; `None` if there is no address. An unreadable address hides the
    /// client, so the result is then the proxy that wrote it.
    fn rightmost_untrusted(&self, peer: IpAddr, told: &[Option<IpAddr>]) -> Option<IpAddr> {
        let mut client = peer;
        for address in told.iter().rev().take(MAX_ADDRESSES) {
            let Some(address) = address else { break };
            client = *address;
            if !self.contains(client) {
                break;
            }
        }
        (!told.is_empty()).then_some(client)
    }
}

/// The addresses in a list header; `None` for an unreadable one.
fn addresses<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    read: fn(&str) -> Option<IpAddr>,
) -> Vec<Option<IpAddr>> {
    let mut found = Vec::new();
    for value in values {
        match core::str::from_utf8(value) {
            Ok(text) => found.extend(split(text, ',').map(|part| read(part.trim()))),
            Err(_) => found.push(None),
        }
    }
    found
}

/// Splits a text at separators outside of quotation marks.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |character: char| {
        let is_literal = core::mem::take(&mut is_escaped);
        match character {
            '\\' => is_escaped = is_quoted && !is_literal,
            '"' if !is_literal => is_quoted = !is_quoted,
            _ => {}
        }
        character == separator && !is_quoted
    })
}

/// The address in an element of `Forwarded`, such as `for="[2001:db8::1]:4711";proto=https`.
fn element_address(element: &str) -> Option<IpAddr> {
    let mut nodes = split(element, ';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
    });
    let node = nodes.next().filter(|_| nodes.next().is_none())?;
    let quoted = node.strip_prefix('"').and_then(|node| node.strip_suffix('"'));
    address(quoted.unwrap_or(node))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let plain = bare.parse().ok();
    let found = plain.or_else(|| text.parse().ok().map(|address: SocketAddr| address.ip()));
    found.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(networks: &[&str]) -> TrustedProxies {
        networks.iter().map(|network| network.parse::<Network>().unwrap()).collect()
    }

    fn client(peer: &str, forwarded: &[&str], forwarded_for: &[&str]) -> alloc::string::String {
        let trusted = proxies(&["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"]);
        let [forwarded, usual] =
            [forwarded, forwarded_for].map(|values| values.iter().map(|value| value.as_bytes()));
        alloc::format!("{}", trusted.client_address(peer.parse().unwrap(), forwarded, usual))
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_with_its_bits() {
        let rows = [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("192.0.2.7/32", "192.0.2.6", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "2001:db9::1", true),
            ("::1", "::1", true),
        ];
        for (network, address, expected) in rows {
            let network: Network = network.parse().unwrap();
            assert_eq!(
                network.contains(address.parse().unwrap()),
                expected,
                "{network:?} {address}"
            );
        }
        for invalid in
            ["", "10.0.0.0/33", "::/129", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/+8", "a/8", "10/8"]
        {
            assert_eq!(invalid.parse::<Network>(), Err(InvalidNetwork), "{invalid}");
        }
    }

    #[test]
    fn the_client_is_the_right_most_address_that_is_not_a_proxys() {
        let rows: [(&str, &[&str], &[&str], &str); 19] = [
            // A peer that is not a trusted proxy is ignored.
            ("203.0.113.1", &["for=198.51.100.1"], &["198.51.100.1"], "203.0.113.1"),
            ("10.0.0.1", &[], &[], "10.0.0.1"),
            ("10.0.0.1", &[], &["198.51.100.1"], "198.51.100.1"),
            // The client's own entries are further left.
            ("10.0.0.1", &[], &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &[], &["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &[], &["1.1.1.1, 198.51.100.1, 10.0.0.2,192.0.2.7"], "198.51.100.1"),
            ("::ffff:10.0.0.1", &[], &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.0.0.1", &[], &["[2001:db9::1]:80"], "2001:db9::1"),
            ("10.0.0.1", &[], &["2001:db9::1"], "2001:db9::1"),
            ("10.0.0.1", &[], &["10.0.0.9, 10.0.0.8"], "10.0.0.9"),
            // An unreadable address hides the client, but the proxy that wrote it is known.
            ("10.0.0.1", &[], &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &[], &["unknown, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &[], &[""], "10.0.0.1"),
            ("10.0.0.1", &["for=198.51.100.1;proto=https, for=10.0.0.2"], &[], "198.51.100.1"),
            ("10.0.0.1", &["proto=https; For=\"[2001:db9::1]:4711\""], &[], "2001:db9::1"),
            ("10.0.0.1", &["for=\"a, for=1.1.1.1\", for=198.51.100.1"], &[], "198.51.100.1"),
            ("10.0.0.1", &["for=1.1.1.1;for=198.51.100.1"], &[], "10.0.0.1"),
            // One of the two headers may be the client's own. If they differ, it is unknown which.
            ("10.0.0.1", &["for=1.1.1.1"], &["198.51.100.1"], "10.0.0.1"),
            ("10.0.0.1", &["for=198.51.100.1"], &["198.51.100.1"], "198.51.100.1"),
        ];
        for (peer, forwarded, usual, expected) in rows {
            let expected: IpAddr = expected.parse().unwrap();
            let found: IpAddr = client(peer, forwarded, usual).parse().unwrap();
            assert_eq!(found.to_canonical(), expected, "{peer} {forwarded:?} {usual:?}");
        }
    }

    #[test]
    fn only_the_needed_part_of_a_long_list_is_read() {
        let long = alloc::vec!["10.0.0.3"; 100].join(",");
        let hidden = alloc::format!("198.51.100.1,{long}");
        assert_eq!(client("10.0.0.1", &[], &[&hidden]), "10.0.0.3");
    }
}
