//! Tests of which changes a running process applies, and which need a restart.

use crate::plan::ClientScope;
use crate::plan::tests::plan;

#[track_caller]
fn between(old: &str, new: &str, scope: ClientScope) -> Option<&'static str> {
    plan(new).needs_restart(&plan(old), scope)
}

#[test]
fn process_wide_settings_need_a_restart() {
    let old = "[server]\nname = \"a\"";
    for (new, description) in [
        ("[server]\nname = \"a\"\ndialect = \"bossman\"", "`dialect`"),
        ("[server]\nname = \"a\"\n[http]\nlisten = \"127.0.0.1:1\"", "`[http]`"),
        ("[server]\nname = \"a\"\n[state]\nfile = \"s.sqlite\"", "`[state]`"),
        ("[server]\nname = \"a\"\n[log]\nformat = \"json\"", "`format` in `[log]`"),
    ] {
        assert_eq!(between(old, new, ClientScope::Many), Some(description), "{new}");
    }
}

#[test]
fn changed_definitions_are_announced_to_clients_again() {
    let old = "[server]\nname = \"a\"";
    for (new, description) in [
        ("[server]\nname = \"b\"", "`name`"),
        ("[server]\nname = \"a\"\ntitle = \"A\"", "`title`"),
        ("[server]\nname = \"a\"\nversion = \"2\"", "`version`"),
        ("[server]\nname = \"a\"\n[server.limits]\ncalls_in_flight = 7", "`limits`"),
    ] {
        assert_eq!(between(old, new, ClientScope::Single), Some(description), "{new}");
        assert_eq!(between(old, new, ClientScope::Many), None, "{new}");
    }
}

#[test]
fn all_other_settings_are_reloaded() {
    let old = "[server]\nname = \"a\"\npacks = [\"echo\"]";
    let new = "[server]\nname = \"a\"\npacks = [\"hello\"]\ninstructions = \"Ask.\"\npage_size = 3\n\
               [upstreams.far]\nurl = \"http://127.0.0.1:1/mcp\"\n\
               [[server.chain]]\nkind = \"timeout\"\nseconds = 3\n\
               [log]\nlevel = \"debug\"";
    assert_eq!(between(old, new, ClientScope::Single), None);
}
