//! Finds the line of a rule or of a layer in the text of a configuration.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The tables of layers that no chain has: what checks credentials, and what checks hosts and origins.
const TABLES: [(&str, &str); 3] = [("auth", "auth"), ("scopes", "auth"), ("guard", "http")];

/// The line of this rule of the policy, or of the first layer with this kind or name, from 1.
pub(crate) fn rule_line(text: &str, layer: &str, rule: Option<&str>) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let root = document.get_ref();
    let range = match rule {
        Some(rule) => policy_rule(root, rule),
        None => layer_of_chain(root, layer).or_else(|| {
            let (_, table) = TABLES.iter().find(|(name, _)| *name == layer)?;
            root.iter().find(|(key, _)| key.get_ref() == table).map(|(key, _)| key.span())
        }),
    }?;
    Some(text.get(..range.start)?.matches('\n').count() + 1)
}

fn policy_rule(root: &DeTable<'_>, rule: &str) -> Option<Range<usize>> {
    let rules = member(member(root, "policy")?.as_table()?, "rules")?.as_array()?;
    let named = |each: &&Spanned<DeValue<'_>>| {
        each.get_ref().as_table().and_then(|table| text_of(table, "name")) == Some(rule)
    };
    let found = rules.iter().find(named)?;
    // The line of the name: the table itself begins at its head.
    let table = found.get_ref().as_table()?;
    table.iter().find(|(key, _)| key.get_ref() == "name").map(|(key, _)| key.span())
}

/// The first layer of this kind or name: of the servers, then of the upstreams.
fn layer_of_chain(root: &DeTable<'_>, layer: &str) -> Option<Range<usize>> {
    let server = member(root, "server").and_then(DeValue::as_table);
    let servers = member(root, "servers").and_then(DeValue::as_array);
    let servers = servers.into_iter().flat_map(|all| all.iter());
    let servers = servers.filter_map(|each| each.get_ref().as_table());
    let upstreams = member(root, "upstreams").and_then(DeValue::as_table);
    let upstreams = upstreams.into_iter().flat_map(|all| all.iter());
    let upstreams = upstreams.filter_map(|(_, each)| each.get_ref().as_table());
    let tables = server.into_iter().chain(servers).chain(upstreams);
    let chains = tables.filter_map(|table| member(table, "chain")?.as_array());
    let layers = chains.flat_map(|chain| chain.iter());
    let mut tables = layers.filter_map(|each| each.get_ref().as_table());
    let is_it = |table: &&DeTable<'_>| {
        [text_of(table, "kind"), text_of(table, "name")].contains(&Some(layer))
    };
    let found = tables.find(is_it)?;
    found.iter().find(|(key, _)| key.get_ref() == "kind").map(|(key, _)| key.span())
}

fn member<'a, 'text>(table: &'a DeTable<'text>, name: &str) -> Option<&'a DeValue<'text>> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value.get_ref())
}

fn text_of<'a>(table: &'a DeTable<'_>, name: &str) -> Option<&'a str> {
    member(table, name).and_then(DeValue::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"[server]
name = "team"
chain = [
  { kind = "rate-limit" },
  { kind = "filter", deny = ["x"] },
]

[auth]
keys_file = "keys"

[[policy.rules]]
name = "readers"

[[policy.rules]]
effect = "deny"
name = "no-writes"

[[upstreams.wiki.chain]]
kind = "circuit-breaker"
"#;

    #[test]
    fn rules_layers_and_tables_have_lines() {
        assert_eq!(rule_line(TEXT, "policy", Some("no-writes")), Some(16));
        assert_eq!(rule_line(TEXT, "filter", None), Some(5));
        assert_eq!(rule_line(TEXT, "circuit-breaker", None), Some(19));
        assert_eq!(rule_line(TEXT, "auth", None), Some(8));
        assert_eq!(rule_line(TEXT, "guard", None), None);
        assert_eq!(rule_line(TEXT, "policy", Some("gone")), None);
        assert_eq!(rule_line("[", "filter", None), None);
    }
}
