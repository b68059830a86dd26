//! What a running process takes over from a new configuration, and what it does not.

use super::plan;

#[track_caller]
fn between(old: &str, new: &str) -> Option<&'static str> {
    plan(new).needs_restart(&plan(old))
}

#[test]
fn what_clients_were_told_needs_a_restart() {
    let old = "[server]\nname = \"a\"";
    for (new, what) in [
        ("[server]\nname = \"b\"", "`name`"),
        ("[server]\nname = \"a\"\nversion = \"2\"", "`version`"),
        ("[server]\nname = \"a\"\ndialect = \"bossman\"", "`dialect`"),
        ("[server]\nname = \"a\"\n[server.limits]\ncalls_in_flight = 7", "`limits`"),
        ("[server]\nname = \"a\"\n[http]\nlisten = \"127.0.0.1:1\"", "`[http]`"),
        ("[server]\nname = \"a\"\n[state]\nfile = \"s.sqlite\"", "`[state]`"),
        ("[server]\nname = \"a\"\n[log]\nlevel = \"debug\"", "`[log]`"),
    ] {
        assert_eq!(between(old, new), Some(what), "{new}");
    }
}

#[test]
fn everything_else_is_taken_over() {
    let old = "[server]\nname = \"a\"\npacks = [\"echo\"]";
    let new = "[server]\nname = \"a\"\npacks = [\"hello\"]\ninstructions = \"Ask.\"\npage_size = 3\n\
               [upstreams.far]\nurl = \"http://127.0.0.1:1/mcp\"\n\
               [[server.chain]]\nkind = \"timeout\"\nseconds = 3";
    assert_eq!(between(old, new), None);
}
