//! The servers of the process, and their items as clients of each revision see them.

use std::sync::Arc;

use creole::internal::registry::InspectedItem;
use creole::internal::seal::digest;
use creole_proto::model::{Definition, ListKind};
use creole_proto::revision::Revision;
use creole_proto::wire::hex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Admin;
use crate::host::ServerView;
use crate::http::problem::Problem;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;

/// How many characters of a description a list shows.
const SHORT_DESCRIPTION: usize = 300;
/// The kinds of items: the name in the API, and the list.
const KINDS: [(&str, ListKind); 4] = [
    ("tool", ListKind::Tools),
    ("resource", ListKind::Resources),
    ("resource_template", ListKind::Templates),
    ("prompt", ListKind::Prompts),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/servers", Role::Read, "The servers of this process", list_servers),
        Route::get("/servers/{server}", Role::Read, "One server", show_server),
        Route::get("/servers/{server}/items", Role::Read, "The items of a server", list)
            .query(&["kind", "q", "state", "limit", "cursor"]),
        Route::get("/items/{item}", Role::Read, "One item, as each revision sees it", show),
    ]
}

/// The servers.
#[derive(Serialize, JsonSchema)]
struct ServerList {
    items: Vec<ServerDetail>,
}

/// A server.
#[derive(Serialize, JsonSchema)]
struct ServerDetail {
    /// Its name.
    name: String,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Its version.
    version: String,
    /// The path of its endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// `stdio` or `http`.
    transport: &'static str,
    /// Its dialect.
    dialect: String,
    /// The revisions that clients can use.
    revisions: Vec<&'static str>,
    /// The layers around its calls, outermost first.
    layers: Vec<LayerDetail>,
    /// Its upstreams.
    upstreams: Vec<String>,
    counts: ServerCounts,
}

/// A layer.
#[derive(Serialize, JsonSchema)]
struct LayerDetail {
    /// Its kind.
    kind: String,
    /// Its name in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// How much a server has.
#[derive(Serialize, JsonSchema)]
struct ServerCounts {
    tools: usize,
    resources: usize,
    resource_templates: usize,
    prompts: usize,
    sessions: usize,
}

async fn list_servers(admin: Arc<Admin>, _: ApiRequest) -> Result<ServerList, Problem> {
    Ok(ServerList { items: admin.host.servers().iter().map(server_detail).collect() })
}

async fn show_server(admin: Arc<Admin>, request: ApiRequest) -> Result<ServerDetail, Problem> {
    Ok(server_detail(&find_server(&admin, request.name(0))?))
}

/// The server of this name.
pub(super) fn find_server(admin: &Admin, name: &str) -> Result<ServerView, Problem> {
    let found = admin.host.servers().into_iter().find(|server| server.name == name);
    found.ok_or_else(|| Problem::not_found("server", name))
}

fn server_detail(server: &ServerView) -> ServerDetail {
    let registry = server.service.registry();
    let count = |kind| registry.inspect(kind).iter().filter(|it| it.visible.is_some()).count();
    let dialect = &server.service.profile().dialect;
    let is_served = |revision: &Revision| dialect.serves_era(revision.rules().era);
    ServerDetail {
        name: server.name.clone(),
        title: server.title.clone(),
        version: server.version.clone(),
        path: server.path.clone(),
        transport: if server.path.is_some() { "http" } else { "stdio" },
        dialect: server.dialect.clone(),
        revisions: Revision::ALL.into_iter().filter(is_served).map(|it| it.rules().name).collect(),
        layers: server
            .layers
            .iter()
            .map(|layer| LayerDetail { kind: layer.kind.clone(), name: layer.name.clone() })
            .collect(),
        upstreams: server.federation.upstreams().iter().map(|it| it.name().to_owned()).collect(),
        counts: ServerCounts {
            tools: count(ListKind::Tools),
            resources: count(ListKind::Resources),
            resource_templates: count(ListKind::Templates),
            prompts: count(ListKind::Prompts),
            sessions: server.endpoint.as_ref().map_or(0, |it| it.inspect_sessions().len()),
        },
    }
}

/// A page of items.
#[derive(Serialize, JsonSchema)]
struct ItemList {
    items: Vec<ItemSummary>,
    /// Where the list continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An item.
#[derive(Clone, Serialize, JsonSchema)]
struct ItemSummary {
    /// Its id in this API.
    id: String,
    /// The server.
    server: String,
    /// `tool`, `resource`, `resource_template` or `prompt`.
    kind: &'static str,
    /// Its name, or its URI.
    name: String,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Its description, or the start of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The upstream that it comes from, or `server`.
    origin: String,
    /// Its name before the layers of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_name: Option<String>,
    /// `listed`, `excluded` or `withheld`.
    state: &'static str,
    /// Why it is not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The size of its definition.
    bytes: usize,
    /// An estimate of its tokens: a quarter of the bytes.
    tokens: usize,
    /// What the tool says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    hints: Option<Map<String, Value>>,
    /// `none`, `approved` or `withheld`.
    pin: &'static str,
}

/// An item with its definitions.
#[derive(Serialize, JsonSchema)]
struct ItemDetail {
    #[serde(flatten)]
    item: ItemSummary,
    /// The definition in the newest form.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<Value>,
    /// The definition that each revision announces.
    announced: Vec<Announced>,
}

/// A definition as a revision announces it.
#[derive(Serialize, JsonSchema)]
struct Announced {
    /// The revision.
    revision: &'static str,
    /// The definition.
    definition: Value,
    /// The members of the newest form that a client of this revision does not get.
    missing: Vec<String>,
}

/// An item and its definition.
struct FoundItem {
    summary: ItemSummary,
    definition: Option<Arc<Definition>>,
}

fn json(definition: &Definition, rules: &'static creole_proto::revision::Rules) -> Value {
    serde_json::from_str(definition.text(rules)).unwrap_or_default()
}

fn newest(definition: &Definition) -> Value {
    json(definition, creole_proto::revision::Rules::CANONICAL)
}

fn text(value: &Value, member: &str) -> Option<String> {
    value[member].as_str().map(str::to_owned)
}

fn found_item(server: &str, kind: &'static str, item: &InspectedItem) -> FoundItem {
    let definition = item.visible.as_ref().unwrap_or(&item.own);
    let value = newest(definition);
    let name = definition.name().to_owned();
    let hints = value["annotations"].as_object().filter(|_| kind == "tool").map(|annotations| {
        let hint = |(name, value): (&String, &Value)| {
            Some((name.strip_suffix("Hint")?.to_owned(), value.clone()))
        };
        annotations.iter().filter_map(hint).collect()
    });
    let bytes = definition.text(creole_proto::revision::Rules::CANONICAL).len();
    let summary = ItemSummary {
        id: id(server, kind, item.source.as_deref(), &name),
        server: server.to_owned(),
        kind,
        title: text(&value, "title"),
        description: text(&value, "description"),
        origin: item.source.clone().unwrap_or_else(|| "server".to_owned()),
        original_name: Some(item.own.name().to_owned()).filter(|own| *own != name),
        state: if item.visible.is_some() { "listed" } else { "excluded" },
        reason: item.visible.is_none().then(|| "a layer of the server hides it".to_owned()),
        bytes,
        tokens: bytes.div_ceil(4),
        hints,
        pin: "none",
        name,
    };
    FoundItem { summary, definition: Some(Arc::clone(definition)) }
}

fn id(server: &str, kind: &str, source: Option<&str>, name: &str) -> String {
    let text = [server, kind, source.unwrap_or_default(), name].join("\u{0}");
    hex(&digest(text.as_bytes())[..12])
}

/// All items of a server: also those that are not listed.
fn all_items(server: &ServerView, wanted: Option<&str>) -> Vec<FoundItem> {
    let registry = server.service.registry();
    let mut found = Vec::new();
    for (kind, list) in KINDS.into_iter().filter(|(kind, _)| wanted.is_none_or(|it| it == *kind)) {
        let items = registry.inspect(list);
        found.extend(items.iter().map(|item| found_item(&server.name, kind, item)));
    }
    let unlisted = |kind: &'static str, source: String, name: String, state, reason| FoundItem {
        summary: ItemSummary {
            id: id(&server.name, kind, Some(&source), &name),
            server: server.name.clone(),
            kind,
            title: None,
            description: None,
            origin: source,
            original_name: None,
            state,
            reason: Some(reason),
            bytes: 0,
            tokens: 0,
            hints: None,
            pin: if state == "withheld" { "withheld" } else { "none" },
            name,
        },
        definition: None,
    };
    if wanted.is_none_or(|kind| kind == "tool") {
        let tools = registry.withheld_tools().into_iter();
        found.extend(
            tools.map(|tool| unlisted("tool", tool.source, tool.name, "withheld", tool.reason)),
        );
    }
    for status in server.federation.status() {
        for (kind, item) in status.excluded_items {
            let Some((name, _)) = KINDS.into_iter().find(|(_, list)| *list == kind) else {
                continue;
            };
            if wanted.is_some_and(|wanted| wanted != name) {
                continue;
            }
            let (shown, reason) = (item.name.clone(), item.to_string());
            found.push(unlisted(name, status.name.clone(), shown, "excluded", reason));
        }
    }
    found
}

async fn list(admin: Arc<Admin>, request: ApiRequest) -> Result<ItemList, Problem> {
    let server = find_server(&admin, request.name(0))?;
    let kind = request.query.text("kind");
    if kind.is_some_and(|kind| KINDS.iter().all(|(known, _)| *known != kind)) {
        return Err(Problem::query("kind", "tool, resource, resource_template or prompt"));
    }
    let state = request.query.text("state");
    if state.is_some_and(|state| !["listed", "excluded", "withheld"].contains(&state)) {
        return Err(Problem::query("state", "listed, excluded or withheld"));
    }
    let (skip, limit) = (request.query.offset()?, request.query.limit()?);
    let wanted = request.query.text("q").map(str::to_lowercase);
    let matches = |item: &ItemSummary| {
        let contains = |text: &str| {
            wanted.as_ref().is_none_or(|wanted| text.to_lowercase().contains(wanted.as_str()))
        };
        state.is_none_or(|state| item.state == state)
            && (contains(&item.name)
                || item.title.as_deref().is_some_and(contains)
                || item.description.as_deref().is_some_and(contains))
    };
    let items = all_items(&server, kind).into_iter().map(|item| item.summary);
    let mut items = items.filter(matches).skip(skip);
    let mut page: Vec<ItemSummary> = items.by_ref().take(limit).collect();
    for item in &mut page {
        if let Some(text) = &mut item.description
            && let Some((end, _)) = text.char_indices().nth(SHORT_DESCRIPTION)
        {
            text.truncate(end);
        }
    }
    let next = items.next().is_some().then(|| (skip + page.len()).to_string());
    Ok(ItemList { items: page, next })
}

async fn show(admin: Arc<Admin>, request: ApiRequest) -> Result<ItemDetail, Problem> {
    let wanted = request.name(0);
    for server in admin.host.servers() {
        let found = all_items(&server, None).into_iter().find(|item| item.summary.id == wanted);
        let Some(found) = found else { continue };
        let is_listed = found.summary.state == "listed";
        let definition = found.definition.as_deref().map(newest);
        let announced = match found.definition.as_deref().filter(|_| is_listed) {
            Some(item) => Revision::ALL.map(|revision| announced(item, revision)).into(),
            None => Vec::new(),
        };
        return Ok(ItemDetail { item: found.summary, definition, announced });
    }
    Err(Problem::not_found("item", wanted))
}

fn announced(item: &Definition, revision: Revision) -> Announced {
    let rules = revision.rules();
    let (shown, whole) = (json(item, rules), newest(item));
    let members = whole.as_object().into_iter().flat_map(Map::keys);
    let missing = members.filter(|name| shown.get(name.as_str()).is_none()).cloned().collect();
    Announced { revision: rules.name, definition: shown, missing }
}
