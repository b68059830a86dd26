//! The values in force: those of the file, and the defaults of the keys that it leaves out.

use std::collections::BTreeMap;
use std::time::Duration;

use creole_admin::EffectiveValue;
use serde_json::{Value, json};
use toml::Table;

use crate::Plan;
use crate::plan::admin::AdminPlan;
use crate::plan::upstream::UpstreamPlan;
use crate::plan::{HttpPlan, LimitsPlan, LogPlan, ServerPlan};

/// The values in force, by their keys. `text` is the configuration without secrets, and `source` says where it is from:
/// `file` or `preset`. `http` is the listener, if there is one.
pub(crate) fn effective_values(
    plan: &Plan,
    http: Option<&HttpPlan>,
    text: Option<&str>,
    source: &str,
) -> Vec<EffectiveValue> {
    let written = text.and_then(|text| text.parse::<Table>().ok()).unwrap_or_default();
    let mut values = BTreeMap::new();
    flatten("", &serde_json::to_value(&written).unwrap_or_default(), &mut values);
    let mut effective: BTreeMap<String, EffectiveValue> = values
        .iter()
        .map(|(path, value)| (path.clone(), entry(path, value.clone(), source)))
        .collect();
    for (path, value) in planned(plan, http, written.contains_key("servers")) {
        let from = match values.get(&path) {
            None => "default",
            // The value of a variable is in force, and the file names the variable.
            Some(written) if *written == value || names_variable(written) => source,
            Some(_) => "option",
        };
        effective.insert(path.clone(), entry(&path, value, from));
    }
    effective.into_values().collect()
}

fn entry(path: &str, value: Value, from: &str) -> EffectiveValue {
    EffectiveValue { path: path.to_owned(), value, from: from.to_owned() }
}

fn names_variable(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("${"))
}

/// The values of tables by their paths. Lists of plain values are values.
fn flatten(path: &str, value: &Value, values: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
                let name = match name.chars().all(is_plain) {
                    true => name.clone(),
                    false => format!("{name:?}"),
                };
                let inner = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(&inner, member, values);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), item, values);
            }
        }
        value => {
            values.insert(path.to_owned(), value.clone());
        }
    }
}

type PlannedValues = Vec<(String, Value)>;

/// The values of the plan that have defaults.
fn planned(plan: &Plan, http: Option<&HttpPlan>, has_several: bool) -> PlannedValues {
    let mut values = Vec::new();
    let servers = std::iter::once(&plan.server).chain(&plan.other_servers);
    for (index, server) in servers.enumerate() {
        let table = if has_several { format!("servers[{index}]") } else { "server".to_owned() };
        values.extend(with_table(&table, server_values(server)));
        let limits = format!("{table}.limits");
        values.extend(with_table(&limits, limit_values(&server.limits)));
    }
    for upstream in &plan.upstreams {
        let table = format!("upstreams.{}", upstream.name);
        values.extend(with_table(&table, upstream_values(upstream)));
    }
    if let Some(http) = http {
        values.extend(with_table("http", http_values(http)));
        values.extend(with_table("http.limits", http_limit_values(http)));
    }
    values.extend(plan.admin.iter().flat_map(|admin| with_table("admin", admin_values(admin))));
    values.extend(with_table("log", log_values(plan.log)));
    let policy = plan.policy.iter();
    values.extend(policy.map(|policy| ("policy.default".into(), json!(policy.default.name()))));
    values
}

fn with_table<const N: usize>(
    table: &str,
    values: [(&'static str, Value); N],
) -> impl Iterator<Item = (String, Value)> {
    let table = table.to_owned();
    values
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(move |(key, value)| (format!("{table}.{key}"), value))
}

fn server_values(server: &ServerPlan) -> [(&'static str, Value); 4] {
    [
        ("name", json!(server.name)),
        ("version", json!(server.version)),
        ("packs", json!(server.packs)),
        ("page_size", json!(server.page_size)),
    ]
}

fn limit_values(limits: &LimitsPlan) -> [(&'static str, Value); 9] {
    [
        ("call_timeout_seconds", seconds(limits.call_timeout)),
        ("call_timeout_max_seconds", seconds(limits.call_timeout_max)),
        ("calls_in_flight", json!(limits.calls_in_flight)),
        ("input_timeout_seconds", seconds(limits.input_timeout)),
        ("list_wait_seconds", seconds(limits.list_wait)),
        ("max_tasks", json!(limits.tasks.total)),
        ("max_tasks_per_principal", json!(limits.tasks.per_principal)),
        ("task_lifetime_seconds", seconds(limits.tasks.ttl)),
        ("task_lifetime_max_seconds", seconds(limits.tasks.max_ttl)),
    ]
}

fn upstream_values(upstream: &UpstreamPlan) -> [(&'static str, Value); 6] {
    [
        ("prefix", json!(upstream.prefix)),
        ("interactive", json!(upstream.interactive)),
        ("timeout_seconds", seconds(upstream.timeout)),
        ("startup_timeout_seconds", seconds(upstream.startup_timeout)),
        ("max_parked_calls", json!(upstream.max_parked_calls)),
        ("max_sessions", json!(upstream.max_sessions)),
    ]
}

fn http_values(http: &HttpPlan) -> [(&'static str, Value); 3] {
    [
        ("listen", json!(http.listen.to_string())),
        ("path", json!(http.path)),
        ("legacy_sse", json!(http.legacy_sse)),
    ]
}

fn http_limit_values(http: &HttpPlan) -> [(&'static str, Value); 12] {
    let limits = &http.limits;
    [
        ("max_body", json!(limits.max_body)),
        ("max_buffered", json!(limits.max_buffered)),
        ("max_connections", json!(limits.max_connections)),
        ("max_connections_per_address", json!(limits.max_connections_per_address)),
        ("max_sessions", json!(limits.max_sessions)),
        ("session_timeout_seconds", seconds(limits.session_timeout)),
        ("header_timeout_seconds", seconds(limits.header_timeout)),
        ("body_timeout_seconds", seconds(limits.body_timeout)),
        ("idle_timeout_seconds", seconds(limits.idle_timeout)),
        ("write_timeout_seconds", seconds(limits.write_timeout)),
        ("drain_delay_seconds", seconds(limits.drain_delay)),
        ("drain_timeout_seconds", seconds(limits.drain_timeout)),
    ]
}

fn admin_values(admin: &AdminPlan) -> [(&'static str, Value); 4] {
    [
        ("listen", json!(admin.listen.to_string())),
        ("console", json!(admin.console)),
        ("capture", json!(admin.capture)),
        ("metrics_open", json!(admin.metrics_open)),
    ]
}

fn log_values(log: LogPlan) -> [(&'static str, Value); 3] {
    [
        ("format", json!(format!("{:?}", log.format).to_lowercase())),
        ("level", json!(format!("{:?}", log.level).to_lowercase())),
        ("payloads", json!(log.payloads)),
    ]
}

fn seconds(time: Duration) -> Value {
    json!(time.as_secs())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::redacted_text::redacted;

    const TEXT: &str = r#"
[server]
name = "${TEAM}"
chain = [{ kind = "filter", deny = ["x"] }]
[server.limits]
calls_in_flight = 7
[http]
listen = "127.0.0.1:7000"
[upstreams.wiki]
url = "https://wiki.example.com/mcp"
headers = { Authorization = "Bearer canary" }
"#;

    fn values(http: &str) -> BTreeMap<String, (Value, String)> {
        let lookup = |name: &str| match name {
            "TEAM" => Ok("house".to_owned()),
            _ => Err(std::env::VarError::NotPresent),
        };
        let plan = Plan::load_text("creole.toml", TEXT, Path::new(""), &[], &lookup).unwrap();
        let mut listener = plan.http.clone().unwrap();
        listener.listen = http.parse().unwrap();
        let shown = redacted(TEXT);
        let values = effective_values(&plan, Some(&listener), Some(&shown), "file");
        values.into_iter().map(|it| (it.path, (it.value, it.from))).collect()
    }

    #[test]
    fn each_value_says_where_it_is_from() {
        let values = values("127.0.0.1:7000");
        let get = |path: &str| {
            let (value, from) = &values[path];
            (value.clone(), from.as_str())
        };
        assert_eq!(get("server.name"), (json!("house"), "file"));
        assert_eq!(get("server.limits.calls_in_flight"), (json!(7), "file"));
        assert_eq!(get("server.limits.call_timeout_seconds").1, "default");
        assert_eq!(get("server.chain[0].deny"), (json!(["x"]), "file"));
        assert_eq!(get("http.listen"), (json!("127.0.0.1:7000"), "file"));
        assert_eq!(get("http.path"), (json!("/mcp"), "default"));
        assert_eq!(get("upstreams.wiki.prefix"), (json!("wiki__"), "default"));
        let all = format!("{values:?}");
        assert!(!all.contains("canary"), "{all}");
    }

    #[test]
    fn an_option_of_the_command_line_wins() {
        let values = values("127.0.0.1:9000");
        assert_eq!(values["http.listen"], (json!("127.0.0.1:9000"), "option".to_owned()));
    }
}
