//! Tests of which changes a running process applies, and which need a restart.

use std::path::Path;

use crate::plan::tests::{environment, plan};
use crate::plan::{ClientScope, Plan};

#[track_caller]
fn between(old: &str, new: &str, told: ClientScope) -> Option<&'static str> {
    plan(new).needs_restart(&plan(old), told)
}

#[test]
fn what_everything_depends_on_needs_a_restart() {
    let old = "[server]\nname = \"a\"";
    for (new, what) in [
        ("[server]\nname = \"a\"\ndialect = \"bossman\"", "`dialect`"),
        ("[server]\nname = \"a\"\n[http]\nlisten = \"127.0.0.1:1\"", "`[http]`"),
        ("[server]\nname = \"a\"\n[state]\nfile = \"s.sqlite\"", "`[state]`"),
        ("[server]\nname = \"a\"\n[log]\nformat = \"json\"", "`format` in `[log]`"),
    ] {
        assert_eq!(between(old, new, ClientScope::Many), Some(what), "{new}");
    }
}

#[test]
fn what_one_client_was_told_is_told_to_others_anew() {
    let old = "[server]\nname = \"a\"";
    for (new, what) in [
        ("[server]\nname = \"b\"", "`name`"),
        ("[server]\nname = \"a\"\ntitle = \"A\"", "`title`"),
        ("[server]\nname = \"a\"\nversion = \"2\"", "`version`"),
        ("[server]\nname = \"a\"\n[server.limits]\ncalls_in_flight = 7", "`limits`"),
    ] {
        assert_eq!(between(old, new, ClientScope::Single), Some(what), "{new}");
        assert_eq!(between(old, new, ClientScope::Many), None, "{new}");
    }
}

#[test]
fn a_pack_that_would_have_no_tool_is_refused() {
    let text = "[server]\npacks = [\"wordpress\"]\n[wordpress]\nurl = \"https://example.org\"\n";
    let refused = Plan::read(text, Path::new(""), &["wordpress"], &environment).unwrap_err();
    assert!(format!("{refused:?}").contains("[wordpress.routes]"), "{refused:?}");
}

#[test]
fn a_site_may_be_asked_otherwise_but_stays_the_same() {
    let with = |lines: &str| {
        let text = format!(
            "[server]\npacks = [\"wordpress\"]\n[wordpress]\n{lines}\n[wordpress.routes]\nread = [\"wp/v2/posts\"]\n"
        );
        Plan::read(&text, Path::new(""), &["wordpress"], &environment).unwrap()
    };
    let old = with("url = \"https://example.org\"");
    for (new, what) in [
        ("url = \"https://example.org\"\nsets = [\"groups\"]\ntimeout_seconds = 3", None),
        ("url = \"https://example.org\"\ncapability = \"edit_posts\"", None),
        ("url = \"https://example.com\"", Some("`url` in `[wordpress]`")),
        (
            "url = \"https://example.org\"\nuser = \"a\"\npassword = \"b\"",
            Some("whether callers sign in at the site of `[wordpress]`"),
        ),
    ] {
        assert_eq!(with(new).needs_restart(&old, ClientScope::Many), what, "{new}");
    }
}

#[test]
fn everything_else_is_taken_over() {
    let old = "[server]\nname = \"a\"\npacks = [\"echo\"]";
    let new = "[server]\nname = \"a\"\npacks = [\"hello\"]\ninstructions = \"Ask.\"\npage_size = 3\n\
               [upstreams.far]\nurl = \"http://127.0.0.1:1/mcp\"\n\
               [[server.chain]]\nkind = \"timeout\"\nseconds = 3\n\
               [log]\nlevel = \"debug\"";
    assert_eq!(between(old, new, ClientScope::Single), None);
}
