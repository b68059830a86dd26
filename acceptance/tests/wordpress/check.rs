//! Tests of `creole check --wordpress` on sites in every reported state.

use std::process::{Command, Stdio};

use creole_acceptance::peers::wordpress::RunningSite;
use creole_acceptance::stage::stdio::binary;

use crate::mock::{Mock, answer};
use crate::real::{early_auth, site};

/// The output of the check as this user, and its exit code.
fn check(url: &str, account: Option<(&str, &str)>) -> (String, Option<i32>) {
    let mut command = Command::new(binary().unwrap());
    command.args(["check", "--wordpress", url]).stdin(Stdio::null());
    command.env_remove("CREOLE_WORDPRESS_USER").env_remove("CREOLE_WORDPRESS_PASSWORD");
    if let Some((user, password)) = account {
        command.env("CREOLE_WORDPRESS_USER", user).env("CREOLE_WORDPRESS_PASSWORD", password);
    }
    let output = command.output().unwrap();
    let bytes = [output.stdout, output.stderr].concat();
    (String::from_utf8(bytes).unwrap(), output.status.code())
}

#[track_caller]
fn assert_says(site: &RunningSite, user: &str, lines: &[&str]) {
    let (text, code) = check(&site.url(), Some((user, site.password(user))));
    assert_eq!(code, Some(0), "{text}");
    for line in lines {
        assert!(text.lines().any(|text| text.starts_with(line)), "{line}\n{text}");
    }
}

#[test]
fn missing_parts_of_a_site_are_reported() {
    let Some(site) = site(&[]) else { return };
    let late = [
        "ok     permalinks routes are found below",
        "ok     passwords  Application Passwords are accepted",
        "ok     platform   BuddyBoss is active",
        "ok     account    `admin` is authenticated, with the id 1",
        "wrong  early auth BuddyBoss determines the user before",
    ];
    assert_says(&site, "admin", &late);
    // The output contains the plugin, so that a user without the repository has it.
    let (text, _) = check(&site.url(), Some(("admin", site.password("admin"))));
    assert!(text.contains(&early_auth()), "{text}");
    let (text, _) = check(&site.url(), None);
    assert!(text.contains("\n       account    not checked"), "{text}");
    site.plugin("early-auth.php", Some(&early_auth()));
    assert_says(&site, "admin", &["ok     early auth BuddyBoss sees the authenticated user"]);
    assert_says(
        &site,
        "sam",
        &["wrong  account    `sam` is authenticated, but lacks the capability `manage_options`"],
    );
    site.plugin("platform-off", Some(""));
    assert_says(&site, "admin", &["wrong  platform   BuddyBoss is not active"]);
    let (text, _) = check(&site.url(), Some(("admin", "the password of admin")));
    assert!(
        text.contains("wrong  account    the site rejects this user name and password"),
        "{text}"
    );
}

#[test]
fn missing_permalinks_and_dropped_headers_are_distinguished() {
    let Some(plain) = site(&[("TEST_PERMALINKS", "none")]) else { return };
    assert_says(
        &plain,
        "admin",
        &["wrong  permalinks routes are found only with ?rest_route=", "ok     account    `admin`"],
    );
    let Some(front) = site(&[("TEST_PERMALINKS", "front")]) else { return };
    assert_says(
        &front,
        "admin",
        &["wrong  permalinks routes are found only with ?rest_route=", "ok     account    `admin`"],
    );
    let Some(public) = site(&[("TEST_ENVIRONMENT", "production")]) else { return };
    let over_http = "wrong  passwords  this site does not accept Application Passwords over http";
    assert_says(&public, "admin", &[over_http]);
    let Some(deaf) = site(&[("TEST_DROPS_AUTHORIZATION", "1")]) else { return };
    assert_says(
        &deaf,
        "admin",
        &["wrong  account    the site rejects this user name and password"],
    );
}

#[test]
fn a_url_without_a_site_is_reported() {
    let html = |_: &crate::mock::ServiceRequest| {
        Some(answer("200 OK", "Content-Type: text/html\r\n", "<h1>Hello</h1>"))
    };
    let page = Mock::with(html);
    let (text, code) = check(&page.url(), None);
    assert_eq!(code, Some(1));
    assert!(text.contains("the site is not WordPress"), "{text}");
    let (text, code) = check("example.org", None);
    assert_eq!((code, text.contains("begins with neither https://")), (Some(2), true), "{text}");
    let (text, code) = check(&page.url(), Some(("admin", "")));
    assert_eq!((code, text.contains("set both, or neither")), (Some(2), true), "{text}");
    let (text, code) = check("http://127.0.0.1:1", None);
    assert_eq!(
        (code, text.contains("http://127.0.0.1:1: could not reach")),
        (Some(1), true),
        "{text}"
    );
    let (text, code) = check("http://example.org", Some(("admin", "secret")));
    assert_eq!((code, text.contains("would be sent unencrypted")), (Some(2), true), "{text}");
}
