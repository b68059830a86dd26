//! Defines what must be equal through Creole, and what may differ.
//!
//! Everything must be equal, with these exceptions:
//!
//! 1. Data of one connection: progress tokens and the rest of `_meta` of notifications and input requests. A server may
//!    request the roots at any time, so only the effect is compared. The `mode` of a form may be present or absent.
//! 2. The era of a response: `resultType`, `ttlMs` and `cacheScope` exist in the stateless era only, and the gateway
//!    sets the time to live of a list.
//! 3. Capabilities. A gateway can always announce list changes and always logs, so `listChanged` and `logging` may be
//!    added. The kinds of items and the support of subscriptions must be equal.
//! 4. The text of -32601 (method not found). A server that declares resources and does not implement templates has
//!    none: the list is empty then.
//! 5. Members of `serverInfo` that no revision defines.
//! 6. A client of the stateless era in front of a server that has the handshake only. Lists name the server that the
//!    handshake named. These are omitted, because 2026-07-28 does not have them: `execution` of a tool, `elicitationId`
//!    of an input request, log messages outside of a call. The code -32002 of a resource that does not exist is -32602
//!    there.

use serde_json::{Map, Value, json};

use super::client::ZooEra;
use super::record::{Record, RecordedStep};

/// The member of `_meta` that names the server.
pub const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The members of a server's description.
const SERVER_MEMBERS: [&str; 6] =
    ["name", "title", "version", "description", "websiteUrl", "icons"];

/// The code of a resource that does not exist, until 2025-11-25 and since 2026-07-28.
const NOT_FOUND: (i64, i64) = (-32002, -32602);

/// The code of an unknown method.
const NO_METHOD: i64 = -32601;

/// The differences between a run through Creole and the same run without it, each with the era of its client.
#[must_use]
pub fn differences(direct: (&Record, ZooEra), through: (&Record, ZooEra)) -> Vec<String> {
    let crosses = (direct.1, through.1) == (ZooEra::Handshake, ZooEra::Stateless);
    let reaches =
        |entry: &RecordedStep| !crosses || !entry.name.starts_with("hear notifications/message");
    let compared =
        |record: &Record| -> Record { plain(record).into_iter().filter(reaches).collect() };
    let (expected, seen) = (compared(direct.0), compared(through.0));
    let expected = translated(expected, crosses, through.1);
    let mut found = Vec::new();
    for (index, entry) in expected.iter().enumerate() {
        match seen.get(index) {
            Some(other) => compare(&entry.name, &entry.seen, &other.seen, &mut found),
            None => found.push(format!("{}: not reached", entry.name)),
        }
    }
    found
}

/// A record without the data of one connection.
fn plain(record: &Record) -> Record {
    let plain = |entry: &RecordedStep| {
        let mut seen = entry.seen.clone();
        if let Some(capabilities) = seen.get_mut("capabilities") {
            *capabilities = kinds(capabilities);
        }
        if let Some(server) = seen.get_mut("server").and_then(Value::as_object_mut) {
            server.retain(|member, _| SERVER_MEMBERS.contains(&member.as_str()));
        }
        if let Some(result) = seen.get_mut("result") {
            without(result, &["resultType", "ttlMs", "cacheScope"]);
            unnamed(result);
        }
        for message in each(&mut seen, "progress") {
            without(message, &["progressToken", "_meta"]);
        }
        if let Some(requests) = seen.get_mut("asked").and_then(Value::as_array_mut) {
            requests.retain(|request| request["method"] != "roots/list");
        }
        for received in each(&mut seen, "asked") {
            without(&mut received["params"], &["_meta"]);
            if received["params"]["mode"] == "form" {
                without(&mut received["params"], &["mode"]);
            }
        }
        if lacks_method(&seen) {
            seen["error"] = json!({"code": NO_METHOD});
        }
        RecordedStep { name: entry.name.clone(), seen }
    };
    record.iter().map(plain).collect()
}

/// The items of a member that is an array.
fn each<'a>(seen: &'a mut Value, member: &str) -> impl Iterator<Item = &'a mut Value> {
    seen.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten()
}

/// A record without Creole, translated for a client of this era.
fn translated(record: Record, crosses: bool, to: ZooEra) -> Record {
    let server = record.iter().find(|entry| entry.name == "connect");
    let has_resources = server.is_some_and(|entry| has(&entry.seen["capabilities"], "resources"));
    let server = server.map(|entry| entry.seen["server"].clone()).unwrap_or_default();
    let translate = |mut entry: RecordedStep| {
        let is_templates = entry.name == "resources/templates/list";
        if is_templates && has_resources && lacks_method(&entry.seen) {
            entry.seen = json!({"items": []});
        }
        if to == ZooEra::Stateless && entry.seen.get("items").is_some() {
            // A server of this era that names itself nowhere else is identified by its first response.
            if entry.seen["server"].is_null() {
                entry.seen["server"] = server.clone();
            }
        }
        if crosses {
            each(&mut entry.seen, "items").for_each(|item| without(item, &["execution"]));
            for request in each(&mut entry.seen, "asked") {
                without(&mut request["params"], &["elicitationId"]);
            }
            if entry.seen["error"]["code"] == NOT_FOUND.0 {
                entry.seen["error"]["code"] = json!(NOT_FOUND.1);
            }
        }
        entry
    };
    record.into_iter().map(translate).collect()
}

/// Whether the server responded with method not found.
fn lacks_method(seen: &Value) -> bool {
    seen["error"]["code"] == NO_METHOD
}

/// Whether a server has this kind of items.
fn has(capabilities: &Value, kind: &str) -> bool {
    let kinds = capabilities["kinds"].as_array();
    kinds.is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

/// The kinds of items of a server, and whether its resources support subscriptions.
fn kinds(capabilities: &Value) -> Value {
    let kinds = ["tools", "resources", "prompts", "completions"];
    let has = |kind: &&str| capabilities.get(kind).is_some_and(Value::is_object);
    let subscribe = capabilities["resources"]["subscribe"] == true;
    json!({"kinds": kinds.into_iter().filter(has).collect::<Vec<_>>(), "subscribe": subscribe})
}

/// Removes the server's name from `_meta`, which the stateless era adds to every result.
fn unnamed(result: &mut Value) {
    if let Some(meta) = result.get_mut("_meta") {
        without(meta, &[SERVER]);
        if meta.as_object().is_some_and(Map::is_empty) {
            without(result, &["_meta"]);
        }
    }
}

fn without(value: &mut Value, members: &[&str]) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| !members.contains(&name.as_str()));
    }
}

/// Adds each path at which two values differ.
fn compare(location: &str, expected: &Value, seen: &Value, found: &mut Vec<String>) {
    match (expected, seen) {
        (Value::Object(left), Value::Object(right)) => {
            let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
            for name in names {
                let side = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or_default();
                compare(&format!("{location} / {name}"), &side(left), &side(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{location} / {index}"), left, right, found);
            }
        }
        _ if expected != seen => {
            found.push(format!(
                "{location}:\n    direct  {}\n    through {}",
                short(expected),
                short(seen)
            ));
        }
        _ => {}
    }
}

/// The beginning of a value as text.
fn short(value: &Value) -> String {
    const LENGTH: usize = 600;
    let text = value.to_string();
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{} and {} bytes more", &text[..end], text.len() - end),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, seen: Value) -> Record {
        let server = json!({"server": {"name": "s"}, "capabilities": {"tools": {}}});
        let connect = RecordedStep { name: "connect".to_owned(), seen: server };
        vec![connect, RecordedStep { name: name.to_owned(), seen }]
    }

    fn lists(direct: Value, through: Value) -> Vec<String> {
        let (direct, through) = (record("tools/list", direct), record("tools/list", through));
        differences((&direct, ZooEra::Handshake), (&through, ZooEra::Stateless))
    }

    #[test]
    fn a_list_is_the_same_but_for_its_era() {
        let direct = json!({"items": [{"name": "a", "execution": {}}], "server": null});
        let through = json!({"items": [{"name": "a"}], "server": {"name": "s"}});
        assert_eq!(lists(direct, through), Vec::<String>::new());
    }

    #[test]
    fn every_other_difference_of_a_list_is_reported() {
        let direct = json!({"items": [{"name": "a"}, {"name": "b"}], "server": null});
        for (items, server, location) in [
            (json!([{"name": "b"}, {"name": "a"}]), "s", "tools/list / items / 0 / name"),
            (json!([{"name": "a"}]), "s", "tools/list / items"),
            (
                json!([{"name": "a", "title": "A"}, {"name": "b"}]),
                "s",
                "tools/list / items / 0 / title",
            ),
            (json!([{"name": "a"}, {"name": "b"}]), "creole", "tools/list / server / name"),
        ] {
            let found = lists(direct.clone(), json!({"items": items, "server": {"name": server}}));
            assert!(found.first().is_some_and(|first| first.starts_with(location)), "{found:?}");
        }
    }

    #[test]
    fn a_step_that_was_not_reached_is_a_difference() {
        let direct = record("call a", json!({"result": {}}));
        let found =
            differences((&direct, ZooEra::Handshake), (&direct[..1].to_vec(), ZooEra::Handshake));
        assert_eq!(found, ["call a: not reached"]);
    }

    #[test]
    fn a_capability_that_the_server_lacks_is_a_difference() {
        let of = |capabilities: Value| {
            vec![RecordedStep {
                name: "connect".into(),
                seen: json!({"capabilities": capabilities}),
            }]
        };
        let direct = of(json!({"tools": {}, "resources": {}}));
        let more = of(json!({"tools": {"listChanged": true}, "resources": {}, "logging": {}}));
        let other = of(json!({"tools": {}, "resources": {"subscribe": true}}));
        let same =
            |through| differences((&direct, ZooEra::Handshake), (through, ZooEra::Handshake));
        assert!(same(&more).is_empty());
        assert_eq!(same(&other).len(), 1);
    }
}
