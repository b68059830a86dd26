//! The policy around a server in memory.

use std::sync::Arc;
use std::time::SystemTime;

use creole::internal::call::Origin;
use creole::internal::registry::Announcement;
use creole::{
    Principal, Prompt, Resource, Server, Service, TokenIdentity, TokenMethod, Tool, ToolError,
};
use creole_gateway::layers::testing::{SilentChannel, plain_caller};
use creole_proto::model::{
    ClientCapabilities, CompletionRequest, Content, InputRequest, KeyedInputRequest, PromptResult,
    Reference, TaskPreference, TaskSupport, ToolResult,
};
use creole_proto::operation::{Caller, Payload, SubscriptionFilter};
use creole_proto::server::{Call as Started, CallKey};
use creole_proto::wire::Raw;
use proptest::prelude::*;

use super::*;
use crate::rule::{Effect, PolicySettings, RuleSettings};

fn rule(name: &str, effect: Effect, change: impl FnOnce(&mut RuleSettings)) -> RuleSettings {
    let mut rule = RuleSettings::new(name, effect);
    change(&mut rule);
    rule
}

fn layer(default: Effect, rules: Vec<RuleSettings>) -> PolicyLayer {
    PolicyLayer::new(Policy::compile(&PolicySettings { default, rules }).unwrap(), "house")
}

fn tool(name: &'static str) -> Tool {
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let run = move |_, _| -> BoxFuture<'static, Result<ToolResult, ToolError>> {
        Box::pin(async move { Ok(ToolResult::text(name)) })
    };
    Tool::raw(name, "Does", schema, run)
}

fn server() -> Server {
    let prompt = |name| {
        let says = |_, _| async { Ok::<_, ToolError>(PromptResult::default()) };
        Prompt::new(name, "Says", says)
    };
    let resource = |uri: &str| Resource::text(uri, "text", "text/plain", "text");
    Server::new("house")
        .tool(tool("read_a").read_only())
        .tool(tool("read_b").read_only())
        .tool(tool("write"))
        .resource(resource("file:///open"))
        .resource(resource("file:///secret"))
        .prompt(prompt("greet"))
        .prompt(prompt("plan"))
}

fn user(id: &str, roles: &[&str]) -> Principal {
    let roles: Vec<Arc<str>> = roles.iter().map(|role| Arc::from(*role)).collect();
    Principal::new(id, &roles)
}

fn bearer(subject: &str, scopes: &[&str]) -> Principal {
    let token = TokenIdentity {
        issuer: "https://id.example.com".into(),
        label: "corp".into(),
        subject: Some(subject.into()),
        subject_claim: "sub".into(),
        client: Some("editor".into()),
        is_program: false,
        scopes: scopes.iter().map(|scope| Arc::from(*scope)).collect(),
        claims: Map::new(),
        expires_at: SystemTime::UNIX_EPOCH,
        method: TokenMethod::Jwt,
        is_dpop: false,
        fingerprint: [0; 4],
    };
    Principal::from_token(token, &[], &[])
}

async fn ask(service: &Service, principal: &Principal, operation: Operation) -> Outcome {
    let started = Started { key: CallKey(1), operation, caller: plain_caller() };
    let origin = Origin::new(principal.clone());
    service.start_call(started, Arc::new(SilentChannel), origin).0.await
}

async fn call(service: &Service, principal: &Principal, name: &str, arguments: &str) -> Outcome {
    let arguments = Some(Raw::parse(arguments).unwrap());
    ask(service, principal, Operation::CallTool { name: name.to_owned(), arguments }).await
}

async fn listed(service: &Service, principal: &Principal, kind: ListKind) -> Vec<String> {
    match ask(service, principal, Operation::List(kind, None)).await {
        Outcome::Complete(Payload::Page(page)) => {
            page.items.iter().map(|item| item.name().to_owned()).collect()
        }
        other => panic!("no page: {other:?}"),
    }
}

fn text(outcome: &Outcome) -> (bool, String) {
    match outcome {
        Outcome::Complete(Payload::Tool(result)) => match &result.content[..] {
            [Content::Text { text, .. }] => (result.is_error, text.clone()),
            other => panic!("no text: {other:?}"),
        },
        other => panic!("no result: {other:?}"),
    }
}

fn fault(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Fail(fault) => fault,
        other => panic!("no fault: {other:?}"),
    }
}

fn readers() -> Vec<RuleSettings> {
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    vec![
        rule("readers", Effect::Allow, |rule| {
            (rule.roles, rule.tools) = (texts(&["dev"]), texts(&["read_*"]));
            (rule.resources, rule.prompts) = (texts(&["file:///open"]), texts(&["greet"]));
        }),
        rule("writers", Effect::Allow, |rule| {
            (rule.roles, rule.tools) = (texts(&["dev"]), texts(&["write"]));
            rule.when = Some("arguments.owner == principal.name".to_owned());
            rule.message = Some("You may change your own things.".to_owned());
        }),
    ]
}

#[tokio::test]
async fn a_list_has_what_the_caller_may_use_and_a_hidden_item_is_unknown() {
    let service = server().with(layer(Effect::Deny, readers())).start();
    let (dev, guest) = (user("user:ada", &["dev"]), user("user:eve", &[]));
    assert_eq!(listed(&service, &dev, ListKind::Tools).await, ["read_a", "read_b", "write"]);
    assert_eq!(listed(&service, &dev, ListKind::Resources).await, ["file:///open"]);
    assert_eq!(listed(&service, &dev, ListKind::Prompts).await, ["greet"]);
    for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
        assert!(listed(&service, &guest, kind).await.is_empty(), "{kind:?}");
    }
    assert_eq!(text(&call(&service, &dev, "read_a", "{}").await), (false, "read_a".to_owned()));
    // The fault of a name that does not exist at a server without a policy.
    let open = server().start();
    let unknown = fault(call(&open, &guest, "nothing", "{}").await);
    for name in ["read_a", "write", "nothing"] {
        let hidden = fault(call(&service, &guest, name, "{}").await);
        assert_eq!(hidden, unknown.clone().with_subject(name), "{name}");
    }
    for (hidden, unknown) in [("file:///secret", "file:///none")] {
        let read = |uri: &str| Operation::ReadResource { uri: uri.to_owned() };
        let mut unknown = fault(ask(&open, &dev, read(unknown)).await);
        let hidden = fault(ask(&service, &dev, read(hidden)).await);
        unknown.subject.clone_from(&hidden.subject);
        unknown.data.clone_from(&hidden.data);
        assert_eq!(hidden, unknown);
    }
    let complete = |name: &str| {
        Operation::Complete(Box::new(CompletionRequest {
            reference: Reference::Prompt(name.to_owned()),
            argument: "x".to_owned(),
            value: String::new(),
            context: Default::default(),
        }))
    };
    let refused = fault(ask(&service, &dev, complete("plan")).await);
    assert_eq!(refused.kind, FaultKind::InvalidParams);
    assert_eq!(refused.detail, "`ref` is not a prompt or resource template of this server");
}

#[tokio::test]
async fn a_visible_tool_explains_its_refusal_and_the_rule_is_recorded() {
    let service = server().with(layer(Effect::Deny, readers())).start();
    let dev = user("user:ada", &["dev"]);
    for (arguments, expected) in [
        (r#"{"owner":"ada"}"#, (false, "write")),
        (r#"{"owner":"bob"}"#, (true, "You may change your own things.")),
        ("{}", (true, "You may change your own things.")),
    ] {
        let outcome = call(&service, &dev, "write", arguments).await;
        assert_eq!(text(&outcome), (expected.0, expected.1.to_owned()), "{arguments}");
    }
}

#[tokio::test]
async fn missing_scopes_are_a_challenge_and_the_tool_is_listed() {
    let scopes = vec!["files:write".to_owned(), "files:admin".to_owned()];
    let rules = vec![rule("write", Effect::Allow, |rule| {
        (rule.tools, rule.scopes) = (vec!["write".to_owned()], scopes);
    })];
    let service = server().with(layer(Effect::Deny, rules)).start();
    let narrow = bearer("ada", &["mcp"]);
    assert_eq!(listed(&service, &narrow, ListKind::Tools).await, ["write"]);
    let refused = fault(call(&service, &narrow, "write", "{}").await);
    assert_eq!(refused.kind, FaultKind::InsufficientScope);
    let data = refused.data.unwrap();
    assert_eq!(data.as_str(), r#"{"required_scopes":["files:write","files:admin"]}"#);
    let wide = bearer("ada", &["mcp", "files:write", "files:admin"]);
    assert_eq!(text(&call(&service, &wide, "write", "{}").await), (false, "write".to_owned()));
    let local = Principal::local();
    assert_eq!(text(&call(&service, &local, "write", "{}").await), (false, "write".to_owned()));
}

#[tokio::test]
async fn rules_see_the_annotations_of_tools() {
    let rules = vec![rule("reads", Effect::Allow, |rule| {
        rule.when = Some("tool.annotations.readOnlyHint".to_owned());
    })];
    let service = server().with(layer(Effect::Deny, rules)).start();
    let local = Principal::local();
    assert_eq!(listed(&service, &local, ListKind::Tools).await, ["read_a", "read_b"]);
    assert!(!text(&call(&service, &local, "read_a", "{}").await).0);
    assert_eq!(fault(call(&service, &local, "write", "{}").await).kind, FaultKind::UnknownTool);
    // A tool that comes later is decided by its own annotations.
    service.registry().add_tool(tool("read_c").read_only());
    service.registry().add_tool(tool("read_a"));
    assert_eq!(listed(&service, &local, ListKind::Tools).await, ["read_b", "read_c"]);
}

#[tokio::test]
async fn a_subscription_is_refused_and_a_filter_loses_what_is_hidden() {
    let service = server().with(layer(Effect::Deny, readers())).start();
    let dev = user("user:ada", &["dev"]);
    let subscribe = |uri: &str| Operation::Subscribe { uri: uri.to_owned() };
    let hidden = fault(ask(&service, &dev, subscribe("file:///secret")).await);
    assert_eq!(hidden.kind, FaultKind::ResourceNotFound);
    let uris = vec!["file:///open".to_owned(), "file:///secret".to_owned()];
    let filter = SubscriptionFilter { uris, ..SubscriptionFilter::default() };
    match ask(&service, &dev, Operation::Listen(filter)).await {
        Outcome::Complete(Payload::Listening(accepted)) => {
            assert_eq!(accepted.uris, ["file:///open"]);
        }
        other => panic!("not listening: {other:?}"),
    }
}

#[tokio::test]
async fn a_denied_method_is_unknown() {
    let methods = vec!["prompts/*".to_owned()];
    let rules = vec![rule("no prompts", Effect::Deny, |rule| rule.methods = methods)];
    let service = server().with(layer(Effect::Allow, rules)).start();
    let local = Principal::local();
    let refused = fault(ask(&service, &local, Operation::List(ListKind::Prompts, None)).await);
    assert_eq!((refused.kind, &*refused.subject), (FaultKind::MethodNotFound, "prompts/list"));
    assert_eq!(listed(&service, &local, ListKind::Tools).await.len(), 3);
}

#[tokio::test]
async fn an_input_request_whose_method_is_denied_does_not_reach_the_client() {
    let methods = vec!["sampling/*".to_owned()];
    let rules = vec![rule("no sampling", Effect::Deny, |rule| rule.methods = methods)];
    let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
    let asks = |_, _| -> BoxFuture<'static, Result<ToolResult, ToolError>> {
        let question = InputRequest::Sample { params: Raw::parse("{}").unwrap() };
        let request = KeyedInputRequest { key: "a".to_owned(), question };
        Box::pin(async move { Err(ToolError::InputRequired(vec![request])) })
    };
    let tool = Tool::raw("asks", "Asks", schema, asks);
    let service = server().tool(tool).with(layer(Effect::Allow, rules)).start();
    let refused = fault(call(&service, &Principal::local(), "asks", "{}").await);
    assert_eq!(refused.kind, FaultKind::InputRefused);
    assert_eq!(refused.detail, "not allowed: no sampling");
}

/// The outcome for a client that can follow tasks.
async fn ask_with_tasks(service: &Service, who: &Principal, operation: Operation) -> Outcome {
    let capabilities = ClientCapabilities { tasks: true, ..ClientCapabilities::default() };
    let caller = Caller {
        capabilities: Arc::new(capabilities),
        task_preference: TaskPreference::Allowed,
        ..plain_caller()
    };
    let started = Started { key: CallKey(1), operation, caller };
    service.start_call(started, Arc::new(SilentChannel), Origin::new(who.clone())).0.await
}

#[tokio::test]
async fn a_task_is_known_to_those_who_may_use_its_tool() {
    let task_tool = tool("read_long").task(TaskSupport::Required);
    let service = server().tool(task_tool).with(layer(Effect::Deny, readers())).start();
    let (dev, demoted) = (user("user:ada", &["dev"]), user("user:ada", &[]));
    let start = || Operation::CallTool { name: "read_long".to_owned(), arguments: None };
    let id = match ask_with_tasks(&service, &dev, start()).await {
        Outcome::Complete(Payload::TaskCreated(task)) => task.id.clone(),
        other => panic!("no task: {other:?}"),
    };
    let requests = [
        Operation::GetTask { id: id.clone() },
        Operation::TaskResult { id: id.clone() },
        Operation::CancelTask { id: id.clone() },
        Operation::UpdateTask { id: id.clone(), responses: Raw::parse("{}").unwrap() },
    ];
    for operation in requests.clone() {
        let refused = fault(ask_with_tasks(&service, &demoted, operation.clone()).await);
        assert_eq!(refused.kind, FaultKind::UnknownTask, "{operation:?}");
    }
    let listed = |outcome: Outcome| match outcome {
        Outcome::Complete(Payload::Tasks(page)) => page.tasks.len(),
        other => panic!("no tasks: {other:?}"),
    };
    assert_eq!(listed(ask_with_tasks(&service, &demoted, Operation::ListTasks(None)).await), 0);
    assert_eq!(listed(ask_with_tasks(&service, &dev, Operation::ListTasks(None)).await), 1);
    let result = ask_with_tasks(&service, &dev, requests[1].clone()).await;
    assert_eq!(text(&result), (false, "read_long".to_owned()));
    // A hidden tool does not say whether it runs as a task.
    let hidden = fault(ask_with_tasks(&service, &demoted, start()).await);
    assert_eq!(hidden.kind, FaultKind::UnknownTool);
    let plain = fault(ask(&service, &demoted, start()).await);
    assert_eq!(plain, hidden);
}

#[tokio::test]
async fn a_task_without_the_scopes_ends_with_an_error_that_names_them() {
    let rules = vec![rule("long", Effect::Allow, |rule| rule.scopes = vec!["long".to_owned()])];
    let task_tool = tool("read_long").task(TaskSupport::Required);
    let service = server().tool(task_tool).with(layer(Effect::Deny, rules)).start();
    let narrow = bearer("ada", &["mcp"]);
    let start = Operation::CallTool { name: "read_long".to_owned(), arguments: None };
    let id = match ask_with_tasks(&service, &narrow, start).await {
        Outcome::Complete(Payload::TaskCreated(task)) => task.id.clone(),
        other => panic!("no task: {other:?}"),
    };
    let result = ask_with_tasks(&service, &narrow, Operation::TaskResult { id }).await;
    let expected = "not allowed: the access token lacks scopes; this needs: long";
    assert_eq!(text(&result), (true, expected.to_owned()));
}

#[tokio::test]
async fn a_script_cannot_call_what_its_caller_may_not() {
    // A layer that redirects every call of a tool.
    fn redirect(mut call: Call, next: Next<'_>) -> BoxFuture<'_, Outcome> {
        if let Operation::CallTool { name, .. } = &mut call.operation {
            "write".clone_into(name);
        }
        next.call(call)
    }
    let policy = layer(Effect::Deny, readers());
    let recheck = policy.recheck();
    let service = server().with(policy).with(redirect).with(recheck).start();
    let dev = user("user:ada", &["dev"]);
    let outcome = call(&service, &dev, "read_a", "{}").await;
    assert_eq!(text(&outcome), (true, "You may change your own things.".to_owned()));
}

#[test]
fn callers_that_rules_cannot_tell_apart_share_a_class() {
    let by_name = rule("name", Effect::Deny, |rule| {
        rule.when = Some("principal.claims.level == 3".to_owned());
    });
    let policy = layer(Effect::Deny, readers());
    let class = |layer: &PolicyLayer, who: &Principal| layer.core.known_caller(who).class.id();
    let (ada, bob) = (user("user:ada", &["dev"]), user("user:bob", &["dev", "ops"]));
    assert_eq!(class(&policy, &ada), class(&policy, &bob));
    assert_ne!(class(&policy, &ada), class(&policy, &user("user:eve", &["ops"])));
    let reads_claims = layer(Effect::Deny, vec![by_name]);
    assert_eq!(class(&reads_claims, &ada), class(&reads_claims, &bob));
    // More principals than are remembered.
    for number in 0..5000 {
        policy.core.known_caller(&user(&format!("user:{number}"), &["dev"]));
    }
    assert_eq!(class(&policy, &ada), class(&policy, &bob));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the rules are: a hidden item is in no list, its refusal is that of an unknown item, and a listed one is
    /// never reported as unknown.
    #[test]
    fn hidden_items_never_appear(
        allow in prop::collection::vec(prop::sample::select(vec!["read_*", "write", "greet", "file:///*", "*a"]), 0..3),
        deny in prop::collection::vec(prop::sample::select(vec!["read_b", "*", "plan", "file:///secret"]), 0..2),
        is_dev in any::<bool>(),
    ) {
        let texts = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let (allow, deny) = (texts(allow), texts(deny));
        let of = |patterns: Vec<String>| move |rule: &mut RuleSettings| {
            rule.roles = vec!["dev".to_owned()];
            (rule.tools, rule.resources, rule.prompts) = (patterns.clone(), patterns.clone(), patterns);
        };
        let rules = [("allow", Effect::Allow, allow), ("deny", Effect::Deny, deny)].into_iter()
            .filter(|(_, _, patterns)| !patterns.is_empty())
            .map(|(name, effect, patterns)| rule(name, effect, of(patterns))).collect();
        let service = server().with(layer(Effect::Deny, rules)).start();
        let who = user("user:ada", if is_dev { &["dev"] } else { &[] });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let tools = listed(&service, &who, ListKind::Tools).await;
            for name in ["read_a", "read_b", "write"] {
                let outcome = call(&service, &who, name, "{}").await;
                let is_unknown = matches!(&outcome, Outcome::Fail(fault) if fault.kind == FaultKind::UnknownTool);
                assert_eq!(is_unknown, !tools.iter().any(|listed| listed == name), "{name}");
            }
            let resources = listed(&service, &who, ListKind::Resources).await;
            for uri in ["file:///open", "file:///secret"] {
                let outcome = ask(&service, &who, Operation::ReadResource { uri: uri.to_owned() }).await;
                let is_unknown = matches!(&outcome, Outcome::Fail(fault) if fault.kind == FaultKind::ResourceNotFound);
                assert_eq!(is_unknown, !resources.iter().any(|listed| listed == uri), "{uri}");
            }
        });
    }
}

/// The changes of lists that a client of this principal is told of.
fn told(changes: &mut tokio::sync::broadcast::Receiver<Announcement>, who: &Principal) -> usize {
    let origin = Origin::new(who.clone());
    std::iter::from_fn(|| changes.try_recv().ok()).filter(|it| it.to.includes(&origin)).count()
}

#[tokio::test]
async fn a_change_of_a_hidden_item_is_announced_to_those_who_see_it() {
    let service = server().with(layer(Effect::Deny, readers())).start();
    let registry = service.registry();
    let (dev, guest) = (user("user:ada", &["dev"]), user("user:eve", &[]));
    for who in [&dev, &guest] {
        listed(&service, who, ListKind::Tools).await;
    }
    let (mut of_dev, mut of_guest) = (registry.changes(), registry.changes());
    registry.add_tool(tool("read_c"));
    assert_eq!((told(&mut of_dev, &dev), told(&mut of_guest, &guest)), (1, 0));
    registry.add_tool(tool("hidden"));
    assert_eq!((told(&mut of_dev, &dev), told(&mut of_guest, &guest)), (0, 0));
    // Callers that have not listed anything are told.
    let new = user("user:new", &["ops"]);
    assert_eq!(listed(&service, &dev, ListKind::Tools).await.len(), 4);
    registry.remove_tool("read_c");
    assert_eq!((told(&mut of_dev, &dev), told(&mut of_guest, &new)), (1, 0), "as the other guest");
    registry.resource_updated("file:///open");
    registry.resource_updated("file:///secret");
    assert_eq!((told(&mut of_dev, &dev), told(&mut of_guest, &guest)), (1, 0));
}

#[tokio::test]
async fn a_replacement_with_other_rules_announces_its_lists() {
    let service = server().with(layer(Effect::Deny, readers())).start();
    let same = server().with(layer(Effect::Deny, readers()));
    assert!(same.prepare_replacement(&service).swap().changed_lists().is_empty());
    let open = server().with(layer(Effect::Allow, readers()));
    assert!(!open.prepare_replacement(&service).swap().changed_lists().is_empty());
}
