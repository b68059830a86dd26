//! The hosts that are reached without a proxy, by curl's rules for `NO_PROXY`.

use std::net::IpAddr;

/// Hosts that are connected to directly.
#[derive(Debug, Default)]
pub(crate) struct Bypass {
    is_everything: bool,
    /// Without leading and trailing dots, in lower case.
    domains: Vec<String>,
    networks: Vec<Network>,
}

/// Addresses with a common prefix.
#[derive(Debug)]
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Bypass {
    /// Parses a list of names, addresses and networks, separated by commas or spaces. A name also matches its
    /// subdomains, with or without a leading dot; `*` matches all.
    pub(crate) fn parse(list: &str) -> Self {
        let mut bypass = Self::default();
        for entry in list.split([',', ' ', '\t']).filter(|entry| !entry.is_empty()) {
            if entry == "*" {
                bypass.is_everything = true;
            } else if let Some(network) = Network::parse(entry) {
                bypass.networks.push(network);
            } else {
                let domain = entry.strip_prefix('.').unwrap_or(entry);
                bypass.domains.push(without_dot(domain).to_ascii_lowercase());
            }
        }
        bypass
    }

    /// Whether a host matches. An address in brackets is IPv6.
    pub(crate) fn contains(&self, host: &str) -> bool {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if self.is_everything {
            return true;
        }
        if let Ok(address) = bare.parse::<IpAddr>() {
            return self.networks.iter().any(|network| network.contains(address));
        }
        let host = without_dot(host).to_ascii_lowercase();
        self.domains.iter().any(|domain| {
            let before = host.strip_suffix(domain.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }
}

/// A name may end with the dot of the root.
fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

impl Network {
    fn parse(entry: &str) -> Option<Self> {
        let (address, bits) = match entry.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (entry, None),
        };
        let bare =
            address.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(address);
        let address: IpAddr = bare.parse().ok()?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(max);
        (bits <= max).then_some(Self { address, bits })
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = u32::from(own) ^ u32::from(other);
                differing.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = u128::from(own) ^ u128::from(other);
                differing.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_matched_as_curl_does_it() {
        let rows: [(&str, &[&str], &[&str]); 9] = [
            ("", &[], &["a", "127.0.0.1"]),
            ("*", &["a", "127.0.0.1", "[::1]"], &[]),
            ("a.com", &["a.com", "A.COM.", "b.a.com"], &["ba.com", "a.com.org", "com"]),
            (".a.com", &["a.com", "b.a.com"], &["ba.com"]),
            ("a.com., localhost", &["a.com", "localhost"], &["local"]),
            (
                "10.0.0.1 192.168.0.0/16",
                &["10.0.0.1", "192.168.9.9"],
                &["10.0.0.2", "192.169.0.1", "x"],
            ),
            ("::1,fd00::/8", &["[::1]", "[fdab::1]"], &["[::2]", "[fe80::1]", "1.1.1.1"]),
            ("0.0.0.0/0", &["1.2.3.4"], &["[::1]", "a"]),
            ("10.0.0.0/33,127.1", &[], &["10.0.0.1", "127.0.0.1"]),
        ];
        for (list, direct, proxied) in rows {
            let bypass = Bypass::parse(list);
            for host in direct {
                assert!(bypass.contains(host), "{list}: {host}");
            }
            for host in proxied {
                assert!(!bypass.contains(host), "{list}: {host}");
            }
        }
    }
}
