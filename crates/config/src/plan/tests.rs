//! Tests of how configurations are resolved, and of the errors for invalid ones.

use std::env::VarError;

use creole_proto::dialect::{
    BatchPolicy, CapabilityShape, DefinitionDetail, IdNumbers, IsErrorPolicy, Lifecycle,
    MissingIdPolicy, NullIdPolicy, RejectedIdPolicy, RepeatedInitializePolicy, SchemaPolicy,
    UnreadableIdPolicy, VersionPolicy, builtin,
};
use creole_proto::fault::{DataShape, ErrorChannel, FaultKind};
use creole_proto::method::{Method, MethodSet};
use creole_proto::revision::Revision;

use super::*;

mod chain;
mod data;
mod files;
mod http;
mod openapi;
mod policy;
mod restart;
mod servers;
mod state;
mod telemetry;
mod tools;
mod upstream;

const PACKS: &[&str] = &["hello", "echo", "calculate", "tasks"];

fn environment(name: &str) -> Result<String, VarError> {
    match name {
        "WHO" => Ok("ann".to_owned()),
        _ => Err(VarError::NotPresent),
    }
}

fn plan(text: &str) -> Plan {
    Plan::read(text, Path::new(""), PACKS, &environment)
        .map_err(|problem| problem.into_error("creole.toml", text).to_string())
        .unwrap_or_else(|shown| panic!("\n{shown}"))
}

fn refusal(text: &str) -> ConfigError {
    Plan::read(text, Path::new(""), PACKS, &environment)
        .unwrap_err()
        .into_error("creole.toml", text)
}

#[test]
fn an_empty_server_is_the_usual_one() {
    let plan = plan("[server]");
    assert_eq!(plan.server.name, "creole");
    assert_eq!(plan.server.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(plan.server.dialect, builtin("spec").unwrap());
    assert_eq!((plan.server.page_size, plan.server.packs.len()), (100, 0));
    assert_eq!(plan.server.limits, LimitsPlan::default());
    let log = LogPlan { format: LogFormat::Text, level: LogLevel::Warn, payloads: false };
    assert_eq!(plan.log, log);
}

#[test]
fn everything_that_is_written_is_in_the_plan() {
    let plan = plan(
        r#"
        [server]
        name = "acme"
        title = "Acme for ${WHO}"
        version = "1.2.3"
        instructions = "Be kind.\nAlways."
        dialect = "bossman"
        packs = ["tasks", "echo"]
        page_size = 7
        [server.limits]
        call_timeout_seconds = 5
        call_timeout_max_seconds = 6
        calls_in_flight = 8
        input_timeout_seconds = 9
        list_wait_seconds = 4
        max_tasks = 10
        max_tasks_per_principal = 11
        task_lifetime_seconds = 12
        task_lifetime_max_seconds = 13
        [log]
        format = "json"
        level = "trace"
        payloads = true
        "#,
    );
    let server = plan.server;
    assert_eq!((server.name.as_str(), server.version.as_str()), ("acme", "1.2.3"));
    assert_eq!(server.title.as_deref(), Some("Acme for ann"));
    assert_eq!(server.instructions.as_deref(), Some("Be kind.\nAlways."));
    assert_eq!(server.dialect, builtin("bossman").unwrap());
    assert_eq!(server.packs, ["tasks", "echo"]);
    assert_eq!(server.page_size, 7);
    let mut tasks = TaskLimits::default();
    tasks.total = 10;
    tasks.per_principal = 11;
    tasks.ttl = Duration::from_secs(12);
    tasks.max_ttl = Duration::from_secs(13);
    let limits = LimitsPlan {
        call_timeout: Duration::from_secs(5),
        call_timeout_max: Duration::from_secs(6),
        calls_in_flight: 8,
        input_timeout: Duration::from_secs(9),
        list_wait: Duration::from_secs(4),
        tasks,
    };
    assert_eq!(server.limits, limits);
    let log = LogPlan { format: LogFormat::Json, level: LogLevel::Trace, payloads: true };
    assert_eq!(plan.log, log);
}

#[test]
fn telemetry_raises_the_usual_log_level() {
    assert_eq!(plan("[server]\ndialect = \"bb-mcp-server\"").log.level, LogLevel::Info);
    let quiet = plan("[server]\ndialect = \"bb-mcp-server\"\n[log]\nlevel = \"error\"");
    assert_eq!(quiet.log.level, LogLevel::Error);
}

#[test]
fn an_empty_dialect_table_is_the_extended_dialect_under_the_name_of_the_server() {
    let dialect = plan("[server]\nname = \"acme\"\ndialect.extends = \"bossman\"").server.dialect;
    assert_eq!(dialect.name, "acme");
    let expected = builtin("bossman").unwrap();
    assert_eq!(
        Dialect { name: expected.name.clone(), about: expected.about.clone(), ..dialect },
        expected
    );
}

#[test]
fn a_custom_dialect_can_set_every_key() {
    let dialect = plan(
        r#"
        [server.dialect]
        name = "house"
        about = "Ours."
        revision = "2024-11-05"
        stateless = false
        version = "1.0"
        initialize_requires = ["clientInfo.name"]
        lifecycle = "none"
        initialized_aliases = ["ready"]
        initialized_notification = "none"
        repeated_initialize = "refuse"
        methods = ["initialize", "tools/list"]
        capabilities = "flags"
        capability_flags = { zebra = true, ant = false }
        advertise = ["tools"]
        definitions = "plain"
        ids = "any"
        missing_id = "refuse"
        null_id = "notification"
        refused_id = "null"
        unreadable_id = "null"
        batch = "accept"
        arguments_required = true
        is_error = "never"
        paging = false
        schemas = "closed"
        max_message = 4096
        event_streams = false
        error_statuses = false
        telemetry = true
        "#,
    )
    .server
    .dialect;
    let flags = vec![("zebra".into(), true), ("ant".into(), false)];
    let expected = Dialect {
        name: "house".into(),
        about: "Ours.".into(),
        base: Revision::V2024_11_05,
        stateless: false,
        handshake: true,
        version: VersionPolicy::Fixed("1.0".into()),
        initialize_requires: vec!["clientInfo.name".into()].into(),
        lifecycle: Lifecycle::None,
        initialized_aliases: vec!["ready".into()].into(),
        initialized_notification: None,
        repeated_initialize: RepeatedInitializePolicy::Refuse,
        methods: Some(MethodSet::of(&[Method::Initialize, Method::ListTools])),
        capabilities: CapabilityShape::Flags(flags.into()),
        advertise: Some(vec!["tools".into()].into()),
        hidden_capabilities: vec![].into(),
        definitions: DefinitionDetail::Plain,
        errors: vec![].into(),
        ids: IdNumbers::Any,
        missing_id: MissingIdPolicy::Refuse,
        null_id: NullIdPolicy::Notification,
        refused_id: RejectedIdPolicy::Null,
        unreadable_id: UnreadableIdPolicy::Null,
        batch: BatchPolicy::Accept,
        arguments_required: true,
        is_error: IsErrorPolicy::Never,
        paging: false,
        schemas: SchemaPolicy::Closed,
        max_message: 4096,
        event_streams: false,
        error_statuses: false,
        telemetry: true,
    };
    assert_eq!(dialect, expected);
}

#[test]
fn capabilities_can_be_hidden_where_no_list_is_fixed() {
    let dialect = plan("[server.dialect]\nhidden_capabilities = [\"logging\"]").server.dialect;
    assert!(!dialect.shows_capability("logging", true) && dialect.shows_capability("tools", true));
}

#[test]
fn negotiate_is_a_keyword_and_not_a_version() {
    let text = "[server.dialect]\nextends = \"bossman\"\nversion = \"negotiate\"";
    assert_eq!(plan(text).server.dialect.version, VersionPolicy::Negotiate);
}

#[test]
fn flags_are_kept_from_the_extended_dialect_until_others_are_written() {
    let base = "[server.dialect]\nextends = \"bb-mcp-server\"\n";
    let inherited = builtin("bb-mcp-server").unwrap().capabilities;
    let shape = |more: &str| plan(&format!("{base}{more}")).server.dialect.capabilities;
    assert_eq!(shape("capabilities = \"flags\""), inherited);
    assert_eq!(
        shape("capability_flags = { x = true }"),
        CapabilityShape::Flags(vec![("x".into(), true)].into())
    );
    assert_eq!(shape("capabilities = \"plain\""), CapabilityShape::Plain);
}

#[test]
fn configured_errors_replace_those_of_the_extended_dialect_and_inherit_the_rest() {
    let dialect = plan(
        r#"
        [server.dialect]
        extends = "mcp-chain"
        [server.dialect.errors.unknown-tool]
        code = -32000
        [server.dialect.errors.tool-failed]
        channel = "tool-result"
        message = "no: {detail}"
        data = { why = "{detail}", at = "{trace}" }
        [server.dialect.errors.timeout]
        data = false
        [server.dialect.errors.busy]
        channel = "tool-result"
        code = -1
        data = "{tool}"
        "#,
    )
    .server
    .dialect;
    let row = |kind| dialect.error_row(kind, dialect.base_rules()).clone();
    assert_eq!(row(FaultKind::UnknownTool).channel, ErrorChannel::ProtocolError(-32000));
    assert_eq!(row(FaultKind::UnknownTool).message, "Tool not found");
    let failed = row(FaultKind::ToolFailed);
    assert_eq!(failed.channel, ErrorChannel::ToolResult { fallback_code: -32004 });
    assert_eq!(failed.message, "no: {detail}");
    let members = vec![("why".into(), "{detail}".into()), ("at".into(), "{trace}".into())];
    assert_eq!(failed.data, DataShape::Members(members.into()));
    assert_eq!(row(FaultKind::Timeout).data, DataShape::None);
    assert_eq!(row(FaultKind::Busy).channel, ErrorChannel::ToolResult { fallback_code: -1 });
    assert_eq!(row(FaultKind::Busy).data, DataShape::Text("{tool}".into()));
    assert_eq!(row(FaultKind::ResourceDenied).channel, ErrorChannel::ProtocolError(-32005));
}

#[test]
fn an_unknown_key_is_shown_in_the_style_of_a_compiler() {
    let expected = "\
error: unknown key `pakcs`
 --> creole.toml:4:1
  |
4 | pakcs = [\"echo\"]
  | ^^^^^
  = help: did you mean `packs`?";
    let text = "# A comment.\n[server]\nname = \"acme\"\npakcs = [\"echo\"]\n";
    assert_eq!(refusal(text).to_string(), expected);
}

#[test]
fn each_error_names_its_position_and_problem() {
    let cases = [
        ("", "the configuration describes nothing to serve"),
        ("server = 3", "1:10 expected a table, found the number `3`"),
        ("[[server]]\nname = \"a\"", "1:1 expected a string, found a table"),
        ("[server]\nname = \"a\"\nname = \"b\"", "3:1 not valid TOML: duplicate key"),
        ("[server]\nname = 5", "2:8 expected a string, found the number `5`"),
        ("[server]\nname = \" \"", "2:8 `name` is empty"),
        ("[server]\ntitle = \"a\\nb\"", "2:9 `title` has a control character or a line break"),
        ("[server]\nname = \"${NO}\"", "2:9 the environment variable `NO` is not set"),
        ("[server]\npacks = \"echo\"", "2:9 expected a list, found the string \"echo\""),
        ("[server]\npacks = [\"a\", 1]", "2:15 expected a string, found the number `1`"),
        ("[server]\npacks = [\"ecco\"]", "2:10 unknown pack `ecco`"),
        ("[server]\npacks = [\"echo\", \"echo\"]", "2:18 the pack `echo` is listed twice"),
        ("[server]\npage_size = 0", "2:13 0 is not an integer from 1 to 1000"),
        ("[server]\ndialect = \"spek\"", "2:11 unknown dialect `spek`"),
        (
            "[server]\ndialect = 7",
            "2:11 expected the name of a dialect or a table, found the number `7`",
        ),
        (
            "[server]\npage_size = 99999999999999999999",
            "2:13 expected an integer from 1 to 1000, found the number `99999999999999999999`",
        ),
        (
            "[server]\nlimits.call_timeout_seconds = 700",
            "2:31 `call_timeout_seconds` is 700, but `call_timeout_max_seconds` is 600",
        ),
        (
            "[server]\nlimits.task_lifetime_max_seconds = 60",
            "2:36 `task_lifetime_seconds` is 900, but `task_lifetime_max_seconds` is 60",
        ),
        ("[server]\n[log]\nformat = \"xml\"", "3:10 unknown value `xml`"),
        ("[server]\n[log]\nformat = 1", "3:10 expected a string in quotes"),
        (
            "[server]\n[log]\npayloads = \"yes\"",
            "3:12 expected `true` or `false`, found the string \"yes\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error_text(&refusal(text)), expected, "{text}");
    }
}

/// A secret in the wrong place is hidden too.
#[test]
fn the_value_of_a_variable_is_not_shown_in_an_error() {
    let secret = |_: &str| Ok("hunter2000".to_owned());
    for (tables, expected) in [
        ("[tools.t]\ndescription = 'x'\nhttp = { url = 'https://a/', auth = '${T}' }", "a table"),
        ("[tools.t]\ndescription = 'x'\nhttp = { url = 'https://a/', retries = '${T}' }", "from 0"),
        ("[tools.t]\ndescription = 'x'\nhttp = { url = 'https://a/', method = '${T}' }", "allowed"),
        ("[tools.t]\ndescription = 'x'\ncommand = '${T}'", "a list"),
    ] {
        let text = format!("[server]\n{tables}\n");
        let refused = Plan::read(&text, Path::new(""), &[], &secret).unwrap_err();
        let refused = format!("{refused:?}");
        assert!(refused.contains(expected) && !refused.contains("hunter2000"), "{refused}");
    }
}

#[test]
fn each_refusal_of_a_dialect_names_the_place_and_what_is_wrong_there() {
    let strict = "extends = \"bossman\"\nmethods = [\"initialize\", \"tools/list\"]";
    let cases = [
        ("extends = \"bosman\"", "2:11 unknown dialect `bosman`"),
        (strict, "3:11 `lifecycle` is strict, but `methods` has no notifications/initialized"),
        (
            "lifecycle = \"strict\"\nmissing_id = \"refuse\"",
            "2:13 `lifecycle` is strict and waits for a notification that `missing_id` refuses",
        ),
        ("methods = [\"tool/list\"]", "2:12 unknown method `tool/list`"),
        (
            "revision = \"2026-07-28\"",
            "2:12 `2026-07-28` has no handshake, so it cannot be the base of a dialect",
        ),
        ("revision = \"2025-03-27\"", "2:12 unknown revision `2025-03-27`"),
        ("version = \"\"", "2:11 `version` is empty"),
        ("initialize_requires = [\"a..b\"]", "2:24 invalid member path `a..b`"),
        (
            "initialized_aliases = [\"ping\"]",
            "2:24 `ping` is a method of the protocol and cannot be an alias",
        ),
        ("hidden_capabilities = [\"tolls\"]", "2:24 unknown capability `tolls`"),
        (
            "extends = \"bossman\"\nhidden_capabilities = [\"logging\"]",
            "3:23 `hidden_capabilities` has no effect together with `advertise`",
        ),
        ("advertise = [\"tolls\"]", "2:14 unknown capability `tolls`"),
        (
            "capability_flags = { a = true }",
            "2:20 `capability_flags` has no effect while `capabilities` are objects",
        ),
        ("lifecycle = \"strikt\"", "2:13 unknown value `strikt`"),
        ("max_message = 10", "2:15 10 is not an integer from 1024 to 268435456"),
        ("errors.unknown-tol.code = 1", "2:8 unknown kind of fault `unknown-tol`"),
        ("errors.busy.cod = 3", "2:13 unknown key `cod`"),
        ("errors.busy.message = \"no {toll} here\"", "2:27 unknown variable `{toll}`"),
        ("errors.busy.data = { a = \"{x}\" }", "2:27 unknown variable `{x}`"),
        (
            "errors.busy.data = 3",
            "2:20 expected `true`, `false`, a string or a table of strings, found the number `3`",
        ),
    ];
    for (table, expected) in cases {
        assert_eq!(
            error_text(&refusal(&format!("[server.dialect]\n{table}"))),
            expected,
            "{table}"
        );
    }
}

#[test]
fn help_names_a_valid_value() {
    let help = |text: &str| refusal(text).help.unwrap_or_default();
    assert_eq!(
        help("[server]\n[banana]"),
        "known keys: `server`, `servers`, `upstreams`, `http`, `auth`, `admin`, `policy`, `state`, `log`, `telemetry`, \
         `skills`, `tasks`, `wordpress`, `databases`, `tools`, `folders`, `prompts`, `resources`, `openapi`"
    );
    assert_eq!(
        help("[server.dialect]\nlifecycle = \"strikt\""),
        "did you mean `strict`? the allowed values are `none`, `flag`, `strict`"
    );
    assert_eq!(help("[server.dialect]\nmethods = [\"tool/list\"]"), "did you mean `tools/list`?");
    assert!(
        help("[server.dialect]\nmethods = [\"x\"]").starts_with("the methods are `initialize`")
    );
    assert!(
        help("[server.dialect.errors.busy]\nmessage = \"{toll}\"")
            .starts_with("did you mean `{tool}`?")
    );
}

#[test]
fn a_byte_order_mark_and_carriage_returns_are_no_fault() {
    assert_eq!(plan("\u{feff}[server]\r\nname = \"acme\"\r\n").server.name, "acme");
}

/// The location and the message.
fn error_text(error: &ConfigError) -> String {
    match &error.location {
        Some(location) => format!("{}:{} {}", location.line, location.column, error.message),
        None => error.message.clone(),
    }
}

#[test]
fn the_folder_of_skills_is_seen_from_the_folder_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("my/skills")).unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let read = |text: &str| {
        let plan = Plan::read(text, directory.path(), &["skills", "echo"], &environment);
        plan.map_err(|problem| problem.into_error("creole.toml", text))
    };
    let with = |folder: &str| {
        read(&format!("[server]\npacks = [\"skills\"]\n[skills]\nfolder = \"{folder}\"\n"))
    };
    assert_eq!(with("my/skills").unwrap().skills, Some(directory.path().join("my/skills")));
    for invalid in ["", "no", "file"] {
        let error = with(invalid).unwrap_err();
        let at = error.location.as_ref().map(|location| (location.line, location.column));
        assert_eq!(at, Some((4, 10)), "{error}");
        assert!(error.help.is_some(), "{error}");
    }
    let usual = read("[server]\npacks = [\"skills\"]").unwrap_err();
    assert!(usual.message.ends_with("does not exist"), "{usual}");
    std::fs::create_dir(directory.path().join("skills")).unwrap();
    let defaults = read("[server]\npacks = [\"skills\"]\n[skills]").unwrap();
    assert_eq!(defaults.skills, Some(directory.path().join("skills")));
    let alone = read("[server]\npacks = [\"echo\"]\n[skills]").unwrap_err();
    assert_eq!(alone.help.as_deref(), Some("add \"skills\" to `packs`"));
}
