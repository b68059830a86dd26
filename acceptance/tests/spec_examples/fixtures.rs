//! Definitions, content and input requests of every shape.

use super::*;

pub(super) fn identity() -> Implementation {
    Implementation {
        name: "s".into(),
        title: Some("S".into()),
        version: "1".into(),
        ..Implementation::default()
    }
}

pub(super) fn server_info() -> ServerInfo {
    ServerInfo {
        identity: Arc::new(identity()),
        capabilities: ServerCapabilities {
            tools: true,
            resources: true,
            prompts: true,
            completions: true,
            logging: true,
            list_changed: true,
            subscribe: true,
            tasks: true,
            skills: true,
        },
        instructions: Some("Use it well.".into()),
        cache: CacheHints { ttl_ms: 5, public: true },
    }
}

pub(super) fn items(kind: ListKind) -> Vec<Definition> {
    match kind {
        ListKind::Tools => tools().iter().map(Definition::from).collect(),
        ListKind::Resources => vec![
            (&resource()).into(),
            (&Resource { uri: "test://r".into(), ..Resource::default() }).into(),
        ],
        ListKind::Templates => vec![(&template()).into()],
        ListKind::Skills => vec![(&skill()).into()],
        ListKind::Prompts => {
            vec![(&prompt()).into(), (&Prompt { name: "bare".into(), ..Prompt::default() }).into()]
        }
    }
}

pub(super) fn skill() -> Skill {
    let uri = "skill://a/b/SKILL.md";
    let file = SkillFile { uri: uri.into(), digest: format!("sha256:{:064x}", 10), size: 7 };
    let front_matter =
        Raw::from_value(&json!({"name": "b", "description": "x", "metadata": {"k": "v"}}));
    Skill { uri: uri.into(), front_matter, files: vec![file] }
}

pub(super) fn tools() -> Vec<Tool> {
    let full = Tool {
        name: "full".into(),
        title: Some("Full".into()),
        description: "All there is".into(),
        input_schema: Raw::from_value(
            &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": true, "c": false},
            "required": ["a"], "additionalProperties": false}),
        ),
        output_schema: Some(Raw::from_value(&json!({"type": "object", "properties": {"a": true}}))),
        task_support: TaskSupport::Optional,
        annotations: Some(ToolAnnotations {
            title: Some("Full".into()),
            read_only_hint: Some(true),
            destructive_hint: Some(false),
            idempotent_hint: Some(true),
            open_world_hint: Some(false),
        }),
        meta: Some(Raw::from_value(&json!({"example.org/x": 1}))),
    };
    let bare = Tool {
        name: "bare".into(),
        title: None,
        description: String::new(),
        input_schema: Raw::from_value(&json!({"type": "object"})),
        output_schema: Some(Raw::from_value(
            &json!({"type": "array", "items": {"type": "integer"}}),
        )),
        task_support: TaskSupport::Forbidden,
        annotations: None,
        meta: None,
    };
    vec![full, bare]
}

pub(super) fn resource() -> Resource {
    Resource {
        uri: "test://a".into(),
        name: "a".into(),
        title: Some("A".into()),
        description: Some("d".into()),
        mime_type: Some("text/plain".into()),
        size: Some(3),
        annotations: Some(annotations()),
        meta: Some(Raw::from_value(&json!({"example.org/x": 1}))),
    }
}

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate {
        uri_template: "test://{id}".into(),
        name: "t".into(),
        title: Some("T".into()),
        description: Some("d".into()),
        mime_type: Some("text/plain".into()),
    }
}

pub(super) fn prompt() -> Prompt {
    let description = Some("d".to_owned());
    let argument = PromptArgument { name: "a".into(), description, required: true };
    Prompt {
        name: "p".into(),
        title: Some("P".into()),
        description: Some("d".into()),
        arguments: vec![argument],
    }
}

pub(super) fn annotations() -> Annotations {
    Annotations {
        audience: Some(vec![Role::User, Role::Assistant]),
        priority: Some(0.5),
        last_modified: Some("2026-01-01T00:00:00Z".into()),
    }
}

pub(super) fn blocks() -> Vec<Content> {
    vec![
        Content::Text { text: "text".into(), annotations: Some(annotations()) },
        Content::Image { data: "AAAA".into(), mime_type: "image/png".into() },
        Content::Audio { data: "AAAA".into(), mime_type: "audio/wav".into() },
        Content::Resource { resource: Contents::text("test://a", "text/plain", "text") },
        Content::ResourceLink {
            uri: "test://a".into(),
            name: "a".into(),
            description: Some("d".into()),
            mime_type: Some("text/plain".into()),
        },
    ]
}

/// The input requests of a revision.
pub(super) fn input_requests(revision: Revision) -> Vec<InputRequest> {
    let text = json!({"role": "user", "content": {"type": "text", "text": "hello"}});
    let params = Raw::from_value(&json!({"messages": [text], "maxTokens": 10}));
    let mut input_requests = vec![InputRequest::Roots, InputRequest::Sample { params }];
    let elicitation = revision.rules().elicitation;
    if elicitation != ElicitationSupport::Absent {
        let schema = Raw::from_value(&json!({"type": "object", "properties": {
            "name": {"type": "string", "title": "Name"},
            "age": {"type": "integer", "minimum": 0},
            "sure": {"type": "boolean", "default": false},
            "colour": {"type": "string", "enum": ["red", "green"]},
        }, "required": ["name"]}));
        input_requests.push(InputRequest::Form { message: "Who?".into(), schema });
    }
    if !matches!(elicitation, ElicitationSupport::Absent | ElicitationSupport::Form) {
        input_requests.push(InputRequest::Url {
            message: "Go there".into(),
            url: "https://example.org/x".into(),
            id: "unused".to_owned(),
        });
    }
    input_requests
}
