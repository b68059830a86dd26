//! Tests of accepted and rejected hosts and origins.

use proptest::prelude::*;

use super::*;

fn host(text: &str) -> Result<(), OriginGuardError> {
    OriginGuard::loopback().check_host(None, [text.as_bytes()].into_iter(), true).map(drop)
}

fn origin(guard: &OriginGuard, text: &str) -> Result<(), OriginGuardError> {
    page(guard, text, None)
}

fn page(guard: &OriginGuard, text: &str, port: Option<u16>) -> Result<(), OriginGuardError> {
    guard.check_origin([text.as_bytes()].into_iter(), port).map(|seen| assert_eq!(seen, Some(text)))
}

#[test]
fn the_machine_itself_is_known_by_its_names_with_any_port() {
    for text in [
        "localhost",
        "localhost:8080",
        "LOCALHOST:8080",
        "LocalHost",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:65535",
        "[0:0:0:0:0:0:0:1]:80",
    ] {
        assert_eq!(host(text), Ok(()), "{text}");
    }
}

#[test]
fn a_guard_is_of_loopback_until_another_host_is_known() {
    let mut guard = OriginGuard::loopback();
    guard.allow_address(Ipv4Addr::LOCALHOST.into());
    guard.allow_host("localhost:8080").unwrap();
    assert!(guard.is_loopback());
    for other in ["mcp.example.com", "10.1.2.3", "localhost.example.com"] {
        let mut guard = guard.clone();
        guard.allow_host(other).unwrap();
        assert!(!guard.is_loopback(), "{other}");
    }
}

#[test]
fn every_other_host_is_refused() {
    let unknown = [
        "evil.example",
        "localhost.evil.com",
        "evil.localhost",
        "127.0.0.1.nip.io",
        "127.0.0.2",
        "0.0.0.0",
        "192.168.0.1:8080",
        "[::]",
        "[::ffff:127.0.0.1]",
        "localhost_",
    ];
    for text in unknown {
        assert_eq!(host(text), Err(OriginGuardError::HostUnknown), "{text}");
    }
    let unreadable = [
        "",
        " localhost",
        "localhost ",
        "localhost.",
        "localhost.:80",
        "evil@localhost",
        "user:pass@localhost:80",
        "localhost@evil.example",
        "localhost:",
        "localhost:80:80",
        "localhost:+80",
        "localhost:99999",
        "localhost:123456",
        "localhost:eighty",
        "localhost/mcp",
        "http://localhost",
        "localhost,evil.example",
        "localhost#",
        "127.1",
        "127.0.0.01",
        "0x7f.0x0.0x0.0x1",
        "2130706433",
        "::1",
        "[::1",
        "[::1]x",
        "[::1%lo]",
        "[localhost]",
        "..",
        "a..b",
        "lo\u{0}calhost",
        "löcalhost",
    ];
    for text in unreadable {
        assert_eq!(host(text), Err(OriginGuardError::HostUnreadable), "{text}");
    }
}

#[test]
fn there_is_exactly_one_host() {
    let guard = OriginGuard::loopback();
    let check = |target: Option<&str>, headers: &[&'static str], needed| {
        guard.check_host(target, headers.iter().map(|text| text.as_bytes()), needed)
    };
    assert_eq!(check(None, &[], true), Err(OriginGuardError::HostMissing));
    assert_eq!(check(None, &[], false), Err(OriginGuardError::HostMissing));
    assert_eq!(check(Some("localhost"), &[], true), Err(OriginGuardError::HostMissing));
    assert_eq!(check(Some("localhost"), &[], false), Ok(None));
    assert_eq!(check(None, &["localhost", "localhost"], true), Err(OriginGuardError::HostRepeated));
    assert_eq!(
        check(None, &["localhost", "evil.example"], true),
        Err(OriginGuardError::HostRepeated)
    );
    assert_eq!(check(Some("localhost:1"), &["LOCALHOST:1"], true), Ok(Some(1)));
    for (target, header) in [
        ("localhost", "127.0.0.1"),
        ("localhost:1", "localhost:2"),
        ("localhost", "localhost:80"),
        ("evil.example", "localhost"),
        ("localhost", "evil.example"),
    ] {
        let headers: &[&str] = &[header];
        let seen = guard.check_host(Some(target), headers.iter().map(|text| text.as_bytes()), true);
        assert_eq!(seen, Err(OriginGuardError::HostDiffers), "{target} {header}");
    }
    assert_eq!(check(Some("evil.example"), &[], false), Err(OriginGuardError::HostUnknown));
    assert_eq!(
        check(Some("x@localhost"), &["localhost"], true),
        Err(OriginGuardError::HostUnreadable)
    );
}

#[test]
fn a_configured_host_is_known_too_and_keeps_its_port() {
    let mut guard = OriginGuard::loopback();
    guard.allow_host("MCP.example.com").unwrap();
    guard.allow_host("ports.example.com:8443").unwrap();
    guard.allow_address("10.0.0.7".parse().unwrap());
    let check = |text: &str| guard.check_host(None, [text.as_bytes()].into_iter(), true).map(drop);
    for text in ["mcp.example.com", "mcp.EXAMPLE.com:9", "ports.example.com:8443", "10.0.0.7:80"] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
    for text in ["ports.example.com", "ports.example.com:443", "example.com", "10.0.0.8"] {
        assert_eq!(check(text), Err(OriginGuardError::HostUnknown), "{text}");
    }
    assert_eq!(guard.allow_host("http://x"), Err(InvalidHostOrOrigin));
    assert_eq!(guard.allow_host("*"), Err(InvalidHostOrOrigin));
}

#[test]
fn pages_of_the_server_itself_and_programs_may_call() {
    let guard = OriginGuard::loopback();
    assert_eq!(guard.check_origin([].into_iter(), Some(80)), Ok(None));
    for (text, port) in [
        ("http://localhost", None),
        ("https://[::1]", None),
        ("http://localhost", Some(80)),
        ("https://localhost", Some(443)),
        ("http://127.0.0.1:8080", Some(8080)),
        ("https://localhost:8080", Some(8080)),
    ] {
        assert_eq!(page(&guard, text, port), Ok(()), "{text} {port:?}");
    }
}

#[test]
fn pages_of_other_servers_on_the_same_machine_may_not_call() {
    let guard = OriginGuard::loopback();
    for (text, port) in [
        ("http://localhost:6274", None),
        ("http://localhost", Some(8080)),
        ("http://localhost:6274", Some(8080)),
        ("http://127.0.0.1:1", Some(8080)),
        ("https://localhost", Some(80)),
    ] {
        assert_eq!(
            page(&guard, text, port),
            Err(OriginGuardError::OriginUnknown),
            "{text} {port:?}"
        );
    }
}

#[test]
fn a_public_name_has_pages_at_the_usual_port_whatever_a_proxy_calls_us() {
    let mut guard = OriginGuard::loopback();
    guard.allow_host("mcp.example.com").unwrap();
    for (text, port) in [
        ("https://mcp.example.com", Some(8080)),
        ("https://mcp.example.com", None),
        ("https://mcp.example.com:8443", Some(8443)),
    ] {
        assert_eq!(page(&guard, text, port), Ok(()), "{text} {port:?}");
    }
    let other = page(&guard, "https://mcp.example.com:9000", Some(8443));
    assert_eq!(other, Err(OriginGuardError::OriginUnknown));
}

#[test]
fn other_pages_may_not_call() {
    let guard = OriginGuard::loopback();
    for text in [
        "http://evil.example",
        "http://localhost.evil",
        "https://localhost.evil.com:443",
        "http://127.0.0.1.nip.io",
    ] {
        assert_eq!(origin(&guard, text), Err(OriginGuardError::OriginUnknown), "{text}");
    }
    for text in [
        "null",
        "",
        "*",
        "garbage",
        "localhost",
        "//localhost",
        "HTTP://LOCALHOST",
        "http://LOCALHOST:8080",
        "Http://localhost",
        "file://localhost",
        "chrome-extension://localhost",
        "http://localhost/",
        "http://localhost:8080/mcp",
        "http://user@localhost",
        "http://localhost http://evil.example",
        "http://localhost, http://evil.example",
        "http://localhost.",
        "http:///",
        "http://",
    ] {
        assert_eq!(origin(&guard, text), Err(OriginGuardError::OriginUnreadable), "{text}");
    }
    let two = ["http://localhost".as_bytes(), b"http://localhost"];
    assert_eq!(guard.check_origin(two.into_iter(), None), Err(OriginGuardError::OriginRepeated));
    assert_eq!(
        guard.check_origin([&b"http://\xff"[..]].into_iter(), None),
        Err(OriginGuardError::OriginUnreadable)
    );
}

#[test]
fn a_configured_origin_is_exact() {
    let mut guard = OriginGuard::loopback();
    guard.allow_origin("https://app.example.com").unwrap();
    guard.allow_host("mcp.example.com:443").unwrap();
    for text in ["https://app.example.com", "https://mcp.example.com", "http://mcp.example.com:443"]
    {
        assert_eq!(origin(&guard, text), Ok(()), "{text}");
    }
    for text in [
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://x.app.example.com",
        "http://mcp.example.com",
    ] {
        assert_eq!(origin(&guard, text), Err(OriginGuardError::OriginUnknown), "{text}");
    }
    for text in ["*", "null", "app.example.com", "https://app.example.com/", "https://App.example"]
    {
        assert_eq!(guard.allow_origin(text), Err(InvalidHostOrOrigin), "{text}");
    }
}

#[test]
fn every_refusal_names_the_setting_that_would_allow_it() {
    use OriginGuardError::{
        HostDiffers, HostMissing, HostRepeated, HostUnknown, HostUnreadable, OriginRepeated,
        OriginUnknown, OriginUnreadable,
    };
    for refusal in [
        HostMissing,
        HostRepeated,
        HostUnreadable,
        HostDiffers,
        HostUnknown,
        OriginRepeated,
        OriginUnreadable,
        OriginUnknown,
    ] {
        let text = alloc::format!("{refusal}");
        assert!(text.contains(';') || text.contains("such as"), "{text}");
    }
}

proptest! {
    /// Only a known name itself, with or without a port, is accepted, whatever surrounds it.
    #[test]
    fn nothing_but_the_names_of_the_machine_is_let_in(text in ".{0,40}") {
        let bare = text.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        let name = bare.map_or(text.as_str(), |(name, _)| name).to_ascii_lowercase();
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let loopback = address.is_some_and(|text| text.parse() == Ok(Ipv6Addr::LOCALHOST));
        let mine = loopback || name == "localhost" || name == "127.0.0.1";
        prop_assert!(mine || host(&text).is_err());
    }

    #[test]
    fn no_prefix_or_suffix_makes_a_known_host(before in "[a-z.@:/]{0,8}", after in "[a-z.@/]{1,8}") {
        for name in ["localhost", "127.0.0.1"] {
            let text = alloc::format!("{before}{name}{after}");
            prop_assert!(host(&text).is_err());
        }
    }

    #[test]
    fn an_origin_is_let_in_exactly_when_its_host_is(name in "[a-z]{1,9}(\\.[a-z]{1,9}){0,2}", port in 1..=u16::MAX) {
        let guard = OriginGuard::loopback();
        let authority = alloc::format!("{name}:{port}");
        let seen = page(&guard, &alloc::format!("https://{authority}"), Some(port)).is_ok();
        prop_assert_eq!(seen, host(&authority).is_ok());
    }

    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let guard = OriginGuard::loopback();
        let _ = guard.check_host(None, [&bytes[..]].into_iter(), true);
        let _ = guard.check_origin([&bytes[..]].into_iter(), None);
    }
}
