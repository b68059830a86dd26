//! Describes every setting of a dialect.

use creole_proto::dialect::{
    BatchPolicy, CapabilityShape, DefinitionDetail, Dialect, IdNumbers, IsErrorPolicy, Lifecycle,
    MissingIdPolicy, NullIdPolicy, RejectedIdPolicy, RepeatedInitializePolicy, SchemaPolicy,
    UnreadableIdPolicy, VersionPolicy,
};
use creole_proto::method::{Method, MethodSet};

use super::code_list;

/// One setting of one dialect.
pub(super) struct Setting {
    /// The field of [`Dialect`].
    pub(super) field: &'static str,
    /// What it determines.
    pub(super) about: &'static str,
    /// Its value.
    pub(super) value: String,
}

/// Every setting, in the order of the fields. A new field does not compile without a description.
#[expect(clippy::too_many_lines, reason = "a table with one entry for each setting")]
pub(super) fn settings(dialect: &Dialect) -> Vec<Setting> {
    let setting = |field, about, value: &str| Setting { field, about, value: value.to_owned() };
    let Dialect {
        name: _,
        about: _,
        base,
        stateless,
        handshake,
        version,
        initialize_requires,
        lifecycle,
        initialized_aliases,
        initialized_notification,
        repeated_initialize,
        methods,
        capabilities,
        advertise,
        hidden_capabilities,
        definitions,
        errors,
        ids,
        missing_id,
        null_id,
        refused_id,
        unreadable_id,
        batch,
        arguments_required,
        is_error,
        paging,
        schemas,
        max_message,
        event_streams,
        error_statuses,
        telemetry,
    } = dialect;
    vec![
        setting("base", "the revision before, or without, a negotiation", base.rules().name),
        setting(
            "stateless",
            "requests of the stateless era, with version and capabilities in `_meta`",
            if *stateless { "served, in addition to sessions" } else { "not served" },
        ),
        setting("handshake", "sessions that start with `initialize`", served(*handshake)),
        setting("version", "the version in the response to `initialize`", &version_answer(version)),
        setting(
            "initialize_requires",
            "required members of `initialize`",
            &words(initialize_requires),
        ),
        setting("lifecycle", "required before other requests", lifecycle_word(*lifecycle)),
        setting(
            "initialized_aliases",
            "other names of `notifications/initialized`",
            &words(initialized_aliases),
        ),
        setting(
            "initialized_notification",
            "the notification that Creole sends as a client to end the handshake",
            &sent(initialized_notification),
        ),
        setting("repeated_initialize", "a second `initialize`", repeated(*repeated_initialize)),
        setting("methods", "the methods that a client may use in a session", &allowed(*methods)),
        setting("capabilities", "the format of capabilities", &capability_shape(capabilities)),
        setting("advertise", "the announced capabilities", &shown(advertise.as_deref())),
        setting(
            "hidden_capabilities",
            "capabilities that are never announced",
            &words(hidden_capabilities),
        ),
        setting(
            "definitions",
            "the detail of announced tool definitions",
            definition_word(*definitions),
        ),
        setting("errors", "the encoding of faults", &error_count(errors.len())),
        setting("ids", "numbers that are accepted as ids", id_numbers(*ids)),
        setting("missing_id", "a message without an id", missing(*missing_id)),
        setting("null_id", "a message whose id is null", null(*null_id)),
        setting(
            "refused_id",
            "the id in the response to a refused message",
            refused_id_text(*refused_id),
        ),
        setting(
            "unreadable_id",
            "the id in the response to a message whose id is not readable",
            absence(*unreadable_id),
        ),
        setting("batch", "an array of messages", batch_word(*batch)),
        setting("arguments_required", "`arguments` of a tool call", required(*arguments_required)),
        setting("is_error", "`isError` in the result of a tool", is_error_word(*is_error)),
        setting("paging", "lists", paged(*paging)),
        setting("schemas", "`additionalProperties` of announced schemas", schema_style(*schemas)),
        setting("max_message", "the maximum size of a message", &format!("{max_message} bytes")),
        setting("event_streams", "HTTP responses", streamed(*event_streams)),
        setting("error_statuses", "HTTP statuses of protocol errors", statuses(*error_statuses)),
        setting("telemetry", "the log of every request", telemetry_text(*telemetry)),
    ]
}

fn served(handshake: bool) -> &'static str {
    if handshake { "served" } else { "not served" }
}

fn allowed(methods: Option<MethodSet>) -> String {
    let named = |methods: MethodSet| code_list(methods.iter().map(Method::name));
    methods.map_or_else(|| "those of the revision".into(), named)
}

fn words(list: &[creole_proto::dialect::DialectText]) -> String {
    code_list(list.iter().map(AsRef::as_ref))
}

fn shown(capabilities: Option<&[creole_proto::dialect::DialectText]>) -> String {
    capabilities.map_or_else(|| "those of the server".into(), words)
}

fn sent(notification: &Option<creole_proto::dialect::DialectText>) -> String {
    notification.as_ref().map_or_else(|| "none".into(), |name| format!("`{name}`"))
}

fn definition_word(definitions: DefinitionDetail) -> &'static str {
    match definitions {
        DefinitionDetail::Full => "all members",
        DefinitionDetail::Plain => "name, description and input schema",
    }
}

fn version_answer(version: &VersionPolicy) -> String {
    match version {
        VersionPolicy::Negotiate => {
            "the proposed version if it is supported, otherwise the newest".into()
        }
        VersionPolicy::Fixed(version) => format!("always `{version}`"),
    }
}

fn lifecycle_word(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::None => "none",
        Lifecycle::Flag => "`initialize`",
        Lifecycle::Strict => "`initialize`, its response and the client's confirmation",
    }
}

fn repeated(repeated: RepeatedInitializePolicy) -> &'static str {
    match repeated {
        RepeatedInitializePolicy::Accept => "starts a new session",
        RepeatedInitializePolicy::Refuse => "is refused",
    }
}

fn capability_shape(shape: &CapabilityShape) -> String {
    match shape {
        CapabilityShape::Detailed => "objects with `listChanged` and `subscribe`".into(),
        CapabilityShape::Plain => "empty objects; changes are not announced".into(),
        CapabilityShape::Flags(flags) => {
            let flags: Vec<String> =
                flags.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            format!("booleans, with {}", code_list(flags.iter().map(String::as_str)))
        }
    }
}

fn error_count(own: usize) -> String {
    match own {
        0 => "as in the revision".into(),
        own => format!("{own} kinds differ, see below"),
    }
}

fn id_numbers(ids: IdNumbers) -> &'static str {
    match ids {
        IdNumbers::Integers => "integers",
        IdNumbers::Any => "any",
    }
}

fn missing(missing: MissingIdPolicy) -> &'static str {
    match missing {
        MissingIdPolicy::Notification => "is a notification",
        MissingIdPolicy::Refuse => "is refused",
    }
}

fn null(null: NullIdPolicy) -> &'static str {
    match null {
        NullIdPolicy::Refuse => "is refused",
        NullIdPolicy::Notification => "is a notification",
    }
}

fn refused_id_text(refused: RejectedIdPolicy) -> &'static str {
    match refused {
        RejectedIdPolicy::Echo => "the id of the message, if it is readable",
        RejectedIdPolicy::Null => "null",
    }
}

fn absence(absence: UnreadableIdPolicy) -> &'static str {
    match absence {
        UnreadableIdPolicy::ByRevision => "as the revision requires",
        UnreadableIdPolicy::Null => "null",
    }
}

fn batch_word(batch: BatchPolicy) -> &'static str {
    match batch {
        BatchPolicy::ByRevision => "a batch if the revision has batches",
        BatchPolicy::Accept => "a batch",
        BatchPolicy::Refuse => "is refused",
    }
}

fn required(required: bool) -> &'static str {
    if required { "required" } else { "optional" }
}

fn is_error_word(is_error: IsErrorPolicy) -> &'static str {
    match is_error {
        IsErrorPolicy::Always => "always",
        IsErrorPolicy::WhenTrue => "if true",
        IsErrorPolicy::Never => "never; failures are protocol errors",
    }
}

fn paged(paging: bool) -> &'static str {
    if paging { "paginated" } else { "in one page" }
}

fn schema_style(style: SchemaPolicy) -> &'static str {
    match style {
        SchemaPolicy::AsWritten => "unchanged",
        SchemaPolicy::Closed => "`false` is added where it is not set",
        SchemaPolicy::Open => "`false` is removed",
    }
}

fn streamed(event_streams: bool) -> &'static str {
    if event_streams { "JSON or event streams" } else { "JSON only" }
}

fn statuses(error_statuses: bool) -> &'static str {
    if error_statuses { "as the revision requires" } else { "200" }
}

fn telemetry_text(telemetry: bool) -> &'static str {
    if telemetry { "always" } else { "if enabled" }
}
