//! Items of upstreams: their order, their names, and the endpoints of their calls.

use creole_proto::revision::{Era, Revision};
use std::sync::Mutex;

use creole_proto::fault::Fault;
use creole_proto::model::{ClientCapabilities, Tool as ToolDefinition};
use creole_proto::operation::{Caller, Outcome, Payload};
use creole_proto::server::{CallKey, InputResponse};
use creole_proto::wire::Raw;

use super::super::viewer::Viewer;
use super::super::{SessionList, UnlistedItem};
use super::*;
use crate::call::{Call, ClientChannel, Context, Origin};
use crate::chain::BoxFuture;
use crate::{Server, Tool};

/// An upstream: it has some resources, denies the withheld ones, and records its requests.
#[derive(Default)]
struct Other {
    knows: Vec<&'static str>,
    withholds: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Endpoint for Other {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        let target = call.operation.target().to_owned();
        let knows = self.knows.contains(&target.as_str());
        let refusal = match self.withholds.contains(&target.as_str()) {
            true => FaultKind::ResourceDenied,
            false => FaultKind::ResourceNotFound,
        };
        self.asked.lock().unwrap().push(format!("{} {target}", call.operation.method()));
        Box::pin(std::future::ready(match knows {
            true => Outcome::Complete(Payload::Empty),
            false => Fault::new(refusal, "").with_subject(&target).into(),
        }))
    }

    fn subscription_ended(&self, uri: &str, _: ConnectionId) {
        self.asked.lock().unwrap().push(format!("release {uri}"));
    }
}

struct NoInputChannel;

impl ClientChannel for NoInputChannel {
    fn send_event(&self, _: CallKey, _: creole_proto::operation::Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request_input(
        &self,
        _: CallKey,
        _: creole_proto::model::InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(std::future::ready(Err("the upstream is unavailable".to_owned())))
    }
}

fn context() -> Context {
    context_of(Era::Handshake, ClientCapabilities::default(), Origin::new("ada".into()))
}

fn context_of(era: Era, capabilities: ClientCapabilities, origin: Origin) -> Context {
    let caller = Caller {
        rules: Revision::newest(era).rules(),
        capabilities: Arc::new(capabilities),
        client: None,
        log: None,
        progress: false,
        input_responses: None,
        extra: None,
        task_preference: creole_proto::model::TaskPreference::Never,
    };
    Context::new(CallKey(1), caller, origin, Arc::new(NoInputChannel), false, None)
}

fn tool(name: &str, there: &str, endpoint: &Arc<Other>) -> RemoteItem {
    let definition = ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: Raw::parse(r#"{"type":"object"}"#).unwrap(),
        output_schema: None,
        annotations: None,
        task_support: TaskSupport::Forbidden,
        meta: None,
    };
    RemoteItem {
        definition: (&definition).into(),
        name: there.to_owned(),
        endpoint: Arc::clone(endpoint) as _,
        task_support: TaskSupport::Forbidden,
        decides_task: false,
    }
}

async fn call(registry: &Registry, operation: Operation) -> Outcome {
    registry.call(Call { operation, context: context() }).await
}

async fn tools(registry: &Registry) -> Vec<String> {
    tools_for(registry, context()).await
}

async fn tools_for(registry: &Registry, context: Context) -> Vec<String> {
    let operation = Operation::List(ListKind::Tools, None);
    match registry.call(Call { operation, context }).await {
        Outcome::Complete(Payload::Page(page)) => {
            page.items.iter().map(|item| item.name().to_owned()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn lists_have_the_order_of_the_servers() {
    let service = Server::new("t").tool(Tool::new("own", "", own)).start();
    let registry = &service.registry();
    let (first, second) = (registry.add_source(), registry.add_source());
    let other = Arc::new(Other::default());
    assert!(second.set_items(ListKind::Tools, vec![tool("b", "b", &other)]).is_empty());
    assert!(first.set_items(ListKind::Tools, vec![tool("a", "a", &other)]).is_empty());
    registry.add_tool(Tool::new("late", "", own));
    assert_eq!(tools(registry).await, ["own", "late", "a", "b"]);
    let refused =
        first.set_items(ListKind::Tools, vec![tool("own", "x", &other), tool("c", "c", &other)]);
    assert_eq!(
        refused.iter().map(|name_collision| &*name_collision.name).collect::<Vec<_>>(),
        ["own"]
    );
    assert_eq!(tools(registry).await, ["own", "late", "c", "b"]);
    registry.add_tool(Tool::new("b", "", own));
    assert_eq!(tools(registry).await, ["own", "late", "b", "c"], "own items come first");
    drop(first);
    assert_eq!(tools(registry).await, ["own", "late", "b"]);
}

#[tokio::test]
async fn a_tool_that_is_confusable_with_one_of_another_server_is_excluded() {
    let service = Server::new("t").tool(Tool::new("read", "", own)).start();
    let registry = &service.registry();
    let (owner, thief) = (registry.add_source(), registry.add_source());
    owner.set_name("bank");
    thief.set_name("thief");
    let other = Arc::new(Other::default());
    assert!(owner.set_items(ListKind::Tools, vec![tool("pay", "pay", &other)]).is_empty());
    let alike = ["p\u{430}y", "Read", "steal", "Steal"].map(|name| tool(name, name, &other));
    let left_out: Vec<_> =
        thief.set_items(ListKind::Tools, alike.to_vec()).iter().map(ToString::to_string).collect();
    assert_eq!(left_out.len(), 3);
    assert!(left_out[0].contains("is confusable with \"pay\" of `bank`"), "{left_out:?}");
    assert!(
        left_out[1].contains("is confusable with \"read\" of this server itself"),
        "{left_out:?}"
    );
    assert!(left_out[2].contains("is confusable with \"steal\" of `thief`"), "{left_out:?}");
    assert_eq!(tools(registry).await, ["read", "pay", "steal"]);
    // The server's own items are never excluded, and removed items are confusable with nothing.
    registry.add_tool(Tool::new("Steal", "", own));
    assert_eq!(tools(registry).await, ["read", "Steal", "pay"]);
    drop(owner);
    registry.remove_tool("Steal");
    assert_eq!(thief.set_items(ListKind::Tools, alike.to_vec()).len(), 2);
    assert_eq!(tools(registry).await, ["read", "p\u{430}y", "steal"]);
}

#[tokio::test]
async fn confusable_uris_are_two_resources() {
    let service = Server::new("t").start();
    let (registry, other) = (&service.registry(), Arc::new(Other::default()));
    let resource = |uri: &str| {
        let text = format!(r#"{{"uri":"{uri}","name":"n"}}"#);
        let definition = Definition::from_upstream(ListKind::Resources, &text, None).unwrap();
        RemoteItem { definition, ..tool("n", uri, &other) }
    };
    let source = registry.add_source();
    let two = vec![resource("file:///README.md"), resource("file:///readme.md")];
    assert!(source.set_items(ListKind::Resources, two).is_empty());
    let again = source.set_items(ListKind::Resources, vec![resource("x://a"), resource("x://a")]);
    assert_eq!(again.len(), 1, "one URI is one resource");
}

#[tokio::test]
async fn a_call_reaches_the_other_server_under_the_name_it_has_there() {
    let service = Server::new("t").start();
    let source = service.registry().add_source();
    let other = Arc::new(Other { knows: vec!["echo"], ..Other::default() });
    source.set_items(ListKind::Tools, vec![tool("far__echo", "echo", &other)]);
    let operation = Operation::CallTool { name: "far__echo".to_owned(), arguments: None };
    assert_eq!(call(&service.registry(), operation).await, Outcome::Complete(Payload::Empty));
    assert_eq!(*other.asked.lock().unwrap(), ["tools/call echo"]);
}

#[tokio::test]
async fn an_unlisted_resource_is_searched_and_released_everywhere() {
    let service = Server::new("t").start();
    let registry = &service.registry();
    let others = [vec![], vec!["x://a"]].map(|knows| Arc::new(Other { knows, ..Other::default() }));
    let _sources = others.each_ref().map(|other| offered(registry, Arc::clone(other) as _));
    let read = |uri: &str| call(registry, Operation::ReadResource { uri: uri.to_owned() });
    assert_eq!(read("x://a").await, Outcome::Complete(Payload::Empty));
    assert!(matches!(read("x://b").await, Outcome::Fail(_)));
    registry.subscription_ended("x://a", context().connection_id());
    let asked = ["resources/read x://a", "resources/read x://b", "release x://a"];
    assert_eq!(others.map(|other| other.asked.lock().unwrap().clone()), [asked, asked]);
}

/// An upstream that is unavailable: it fails in this way, or never responds.
struct Away(Option<FaultKind>);

impl Endpoint for Away {
    fn call(&self, _: Call) -> BoxFuture<'_, Outcome> {
        match self.0 {
            Some(kind) => Box::pin(std::future::ready(Fault::new(kind, "away").into())),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// The source of an upstream that has resources and lists none.
fn offered(registry: &Registry, endpoint: Arc<dyn Endpoint>) -> ItemSource {
    let capabilities = ServerCapabilities { resources: true, ..Default::default() };
    let source = registry.add_source();
    let (identity, instructions, sessions) = (None, None, None);
    source.set_server(RemoteServer { capabilities, identity, instructions, endpoint, sessions });
    source
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_or_silent_hides_no_resource_of_the_others() {
    let service = Server::new("t").start();
    let registry = &service.registry();
    let _dead = offered(registry, Arc::new(Away(Some(FaultKind::BackendUnavailable))));
    let other = Arc::new(Other { knows: vec!["x://a"], ..Other::default() });
    let _living = offered(registry, Arc::clone(&other) as _);
    let target = |uri: &str| uri.to_owned();
    let read = |uri| call(registry, Operation::ReadResource { uri: target(uri) });
    let subscribe = |uri| call(registry, Operation::Subscribe { uri: target(uri) });
    assert_eq!(read("x://a").await, Outcome::Complete(Payload::Empty));
    assert_eq!(subscribe("x://a").await, Outcome::Complete(Payload::Empty));
    let nobody = read("x://b").await;
    let Outcome::Fail(fault) = nobody else { panic!("{nobody:?}") };
    assert_eq!(fault.kind, FaultKind::BackendUnavailable, "the unavailable upstream may have it");

    let _silent = offered(registry, Arc::new(Away(None)));
    let started = tokio::time::Instant::now();
    let late = Arc::new(Other { knows: vec!["x://c"], ..Other::default() });
    let _last = offered(registry, Arc::clone(&late) as _);
    assert_eq!(read("x://c").await, Outcome::Complete(Payload::Empty));
    assert!(started.elapsed().as_secs() < 1, "the silent upstream is not awaited");
    assert_eq!(read("x://a").await, Outcome::Complete(Payload::Empty));
    let requests = late.asked.lock().unwrap().clone();
    assert_eq!(
        requests,
        ["resources/read x://c"],
        "an upstream gets no request for a resource that another one returned"
    );
}

#[tokio::test]
async fn what_is_known_is_known_by_the_names_of_clients() {
    let service = Server::new("t").tool(Tool::new("own", "", own)).start();
    let registry = &service.registry();
    let (source, other) = (registry.add_source(), Arc::new(Other::default()));
    source.set_items(ListKind::Tools, vec![tool("far__echo", "echo", &other)]);
    let tool = |name: &str| Operation::CallTool { name: name.to_owned(), arguments: None };
    let prompt = |name: &str| Operation::GetPrompt { name: name.to_owned(), arguments: None };
    assert!(registry.has_target(&tool("own")) && registry.has_target(&tool("far__echo")));
    assert!(!registry.has_target(&tool("echo")) && !registry.has_target(&prompt("own")));
    assert!(!registry.has_target(&Operation::ReadResource { uri: "x://a".to_owned() }));
    assert!(registry.has_target(&Operation::Discover), "the operation has no target");
}

#[tokio::test]
async fn a_resource_that_one_server_withholds_may_be_read_from_another() {
    let service = Server::new("t").start();
    let registry = &service.registry();
    let withholding = Other { withholds: vec!["x://a", "x://b"], ..Other::default() };
    let giving = Other { knows: vec!["x://a"], ..Other::default() };
    let _sources = [withholding, giving].map(|other| offered(registry, Arc::new(other)));
    let read = |uri: &str| call(registry, Operation::ReadResource { uri: uri.to_owned() });
    assert_eq!(read("x://a").await, Outcome::Complete(Payload::Empty));
    for (uri, kind) in
        [("x://b", FaultKind::ResourceDenied), ("x://c", FaultKind::ResourceNotFound)]
    {
        let Outcome::Fail(fault) = read(uri).await else { panic!("{uri}") };
        assert_eq!(fault.kind, kind, "{uri}");
    }
}

async fn own(_: serde_json::Value) -> String {
    "own".to_owned()
}

#[tokio::test]
async fn the_items_of_a_folder_are_added_and_removed_together() {
    use crate::Resource;

    let service = Server::new("front").start();
    let registry = service.registry();
    let (first, last) = (registry.add_source(), registry.add_source());
    let text = |uri: &str| Resource::text(uri, uri, "text/plain", uri);
    last.set_resources(vec![text("z://1")]);
    let refused =
        first.set_resources(vec![text("a://1"), text("z://1"), text("a://1"), text("a://2")]);
    assert_eq!(refused, ["z://1", "a://1"]);
    let names = || {
        let state = registry.read();
        let rules = Rules::CANONICAL;
        let viewer = Viewer::of(&context(), state.resources.layers());
        let (page, _) = state.resources.page(None, 9, rules, &viewer);
        page.iter().map(|item| item.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["a://1", "a://2", "z://1"]);
    assert!(registry.find_reader("a://2").is_some() && registry.capabilities().resources);
    first.set_resources(vec![text("a://3")]);
    assert_eq!(names(), ["a://3", "z://1"]);
    assert!(!registry.capabilities().prompts);
    first.set_prompts(Vec::new());
    assert!(registry.capabilities().prompts, "an empty folder of prompts has the capability");
    drop(first);
    assert_eq!(names(), ["z://1"]);
}

#[tokio::test]
async fn the_tools_of_a_source_are_added_and_removed_together_and_take_no_existing_name() {
    let service = Server::new("t").tool(Tool::new("own", "", own)).start();
    let registry = &service.registry();
    let source = registry.add_source();
    let named = |name: &str| Tool::new(name, "", own);
    assert_eq!(source.set_tools(vec![named("a"), named("own"), named("b")]), ["own"]);
    assert_eq!(tools(registry).await, ["own", "a", "b"]);
    let operation = Operation::CallTool { name: "a".to_owned(), arguments: None };
    assert!(matches!(call(registry, operation).await, Outcome::Complete(_)));
    assert!(source.set_tools(vec![named("c")]).is_empty());
    assert_eq!(tools(registry).await, ["own", "c"]);
    drop(source);
    assert_eq!(tools(registry).await, ["own"]);
}

#[test]
fn background_work_ends_with_the_registry() {
    let kept = Arc::new(());
    let service = Server::new("front").start();
    service.registry().attach(Arc::clone(&kept));
    assert_eq!(Arc::strong_count(&kept), 2);
    drop(service);
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// The session lists of an upstream for clients that support forms.
struct ForForms {
    prefix: &'static str,
    list: SessionList,
}

impl SessionLists for ForForms {
    fn list(&self, kind: ListKind, context: &Context) -> Option<SessionList> {
        let is_able = context.caller().capabilities.elicitation_form;
        (kind == ListKind::Tools && is_able).then(|| Arc::clone(&self.list))
    }

    fn find(&self, kind: ListKind, name: &str, context: &Context) -> Option<UnlistedItem> {
        let there = name.strip_prefix(self.prefix)?;
        let is_listed = self.list(kind, context)?.iter().any(|item| item.name() == name);
        Some(UnlistedItem { name: there.to_owned(), is_listed, is_refused: false })
    }
}

/// The source of an upstream that lists `shared` for all and these in sessions.
fn with_sessions(
    registry: &Registry,
    other: &Arc<Other>,
    shared: &str,
    prefix: &'static str,
    names: &[&str],
) -> ItemSource {
    let source = registry.add_source();
    let list = names.iter().map(|name| Arc::new(tool(name, name, other).definition)).collect();
    source.set_server(RemoteServer {
        capabilities: ServerCapabilities { tools: true, ..Default::default() },
        identity: None,
        instructions: None,
        endpoint: Arc::clone(other) as _,
        sessions: Some(Arc::new(ForForms { prefix, list })),
    });
    source.set_items(ListKind::Tools, vec![tool(shared, shared, other)]);
    source
}

#[tokio::test]
async fn a_caller_sees_the_lists_of_its_own_sessions_in_the_order_of_the_servers() {
    let service = Server::new("front").tool(Tool::new("own", "", own)).page_size(2).start();
    let registry = &service.registry();
    let (first, second) = (Arc::new(Other::default()), Arc::new(Other::default()));
    let _first = with_sessions(registry, &first, "a", "", &["ask", "own", "b", "a"]);
    let _second = with_sessions(registry, &second, "b", "second_", &["b", "second_c"]);
    let form = ClientCapabilities { elicitation_form: true, ..ClientCapabilities::default() };
    let able = context_of(Era::Handshake, form, Origin::new("ada".into()));
    // Two other upstreams each have a name that the first one lists in the session too: those names are not the first
    // one's.
    let (mut cursor, mut seen) = (None, Vec::new());
    loop {
        let operation = Operation::List(ListKind::Tools, cursor.clone());
        let listed = registry.call(Call { operation, context: able.clone() }).await;
        let Outcome::Complete(Payload::Page(page)) = listed else { panic!("{listed:?}") };
        assert!(page.items.iter().count() <= 2);
        seen.extend(page.items.iter().map(|item| item.name().to_owned()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["own", "ask", "a", "b", "second_c"]);
    for (name, server, there) in [
        ("ask", &first, "tools/call ask"),
        ("second_c", &second, "tools/call c"),
        // Both may have it: the prefix of the first is empty.
        ("second_unknown", &first, ""),
        ("unknown", &first, "tools/call unknown"),
    ] {
        let operation = Operation::CallTool { name: name.to_owned(), arguments: None };
        let outcome = registry.call(Call { operation, context: able.clone() }).await;
        let asked = std::mem::take(&mut *server.asked.lock().unwrap());
        match there {
            "" => {
                let Outcome::Fail(fault) = outcome else { panic!("{outcome:?}") };
                assert_eq!((fault.kind, asked.len()), (FaultKind::UnknownTool, 0));
            }
            there => assert_eq!(asked, [there]),
        }
    }
}

#[tokio::test]
async fn a_tool_with_an_invalid_header_name_is_not_listed_for_http_clients() {
    let service = Server::new("front").start();
    let (registry, other) = (service.registry(), Arc::new(Other::default()));
    let source = registry.add_source();
    let text = r#"{"name":"wrong","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}}"#;
    let mut wrong = tool("wrong", "wrong", &other);
    wrong.definition = Definition::from_upstream(ListKind::Tools, text, None).unwrap();
    source.set_items(ListKind::Tools, vec![wrong, tool("echo", "echo", &other)]);
    let nothing = ClientCapabilities::default;
    let over_http = context_of(Era::Stateless, nothing(), Origin::sessionless("ada".into()));
    assert_eq!(tools_for(&registry, over_http).await, ["echo"]);
    let on_a_pipe = context_of(Era::Stateless, nothing(), Origin::new("ada".into()));
    assert_eq!(tools_for(&registry, on_a_pipe).await, ["wrong", "echo"]);
    assert_eq!(tools(&registry).await, ["wrong", "echo"]);
}
