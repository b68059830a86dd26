//! What the revisions demand of each member of a definition, as tables.
//!
//! The tables have the strictest demand of all revisions and of the official TypeScript SDK, because one definition is
//! shown to clients of each of them. What one revision alone cannot express (boolean property schemas, results that are
//! no objects) is not demanded here: [`crate::adapt`] changes it for that revision.

use super::ListKind;

/// One member of an object.
pub(super) struct MemberRule {
    pub(super) name: &'static str,
    pub(super) shape: MemberShape,
    pub(super) absent: AbsentPolicy,
}

/// What an absent member means. A member that is null counts as absent: many servers write their empty fields so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentPolicy {
    /// Nothing.
    Allowed,
    /// The definition cannot be used.
    Refused,
    /// This value is meant.
    DefaultsTo(&'static str),
}

/// What the value of a member has to be.
pub(super) enum MemberShape {
    /// A string.
    Text,
    /// A string that people and programs tell items apart by.
    Name { max_chars: usize },
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number from 0 to 1.
    UnitInterval,
    /// A point in time as a string (RFC 3339). Another string is left out of the definition: it is only a hint.
    Timestamp,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An object with any members.
    Object,
    /// An object with these members and any others.
    Members(&'static [MemberRule]),
    /// An array of such values.
    Array(&'static Self),
    /// An object whose values are all such.
    Map(&'static Self),
    /// A JSON Schema: an object or a boolean.
    Schema,
}

/// The longest name of a tool (2025-11-25 server/tools, tool names), and of a prompt.
pub(super) const MAX_NAME_CHARS: usize = 128;

/// The members of an item of this kind; none are known of skills, which are an extension.
pub(super) fn members_of(kind: ListKind) -> &'static [MemberRule] {
    match kind {
        ListKind::Tools => TOOL,
        ListKind::Resources => RESOURCE,
        ListKind::Templates => TEMPLATE,
        ListKind::Prompts => PROMPT,
        ListKind::Skills => &[],
    }
}

const fn optional(name: &'static str, shape: MemberShape) -> MemberRule {
    MemberRule { name, shape, absent: AbsentPolicy::Allowed }
}

const fn required(name: &'static str, shape: MemberShape) -> MemberRule {
    MemberRule { name, shape, absent: AbsentPolicy::Refused }
}

const TOOL: &[MemberRule] = &[
    required("name", MemberShape::Name { max_chars: MAX_NAME_CHARS }),
    optional("title", MemberShape::Text),
    optional("description", MemberShape::Text),
    required("inputSchema", MemberShape::Members(INPUT_SCHEMA)),
    optional("outputSchema", MemberShape::Members(OUTPUT_SCHEMA)),
    optional("annotations", MemberShape::Members(TOOL_ANNOTATIONS)),
    optional("execution", MemberShape::Members(EXECUTION)),
    optional("icons", ICONS),
    optional("_meta", MemberShape::Object),
];

const RESOURCE: &[MemberRule] = &[
    required("uri", MemberShape::Name { max_chars: usize::MAX }),
    required("name", MemberShape::Name { max_chars: usize::MAX }),
    optional("title", MemberShape::Text),
    optional("description", MemberShape::Text),
    optional("mimeType", MemberShape::Text),
    optional("size", MemberShape::Integer),
    optional("annotations", MemberShape::Members(ANNOTATIONS)),
    optional("icons", ICONS),
    optional("_meta", MemberShape::Object),
];

const TEMPLATE: &[MemberRule] = &[
    required("uriTemplate", MemberShape::Name { max_chars: usize::MAX }),
    required("name", MemberShape::Name { max_chars: usize::MAX }),
    optional("title", MemberShape::Text),
    optional("description", MemberShape::Text),
    optional("mimeType", MemberShape::Text),
    optional("annotations", MemberShape::Members(ANNOTATIONS)),
    optional("icons", ICONS),
    optional("_meta", MemberShape::Object),
];

const PROMPT: &[MemberRule] = &[
    required("name", MemberShape::Name { max_chars: MAX_NAME_CHARS }),
    optional("title", MemberShape::Text),
    optional("description", MemberShape::Text),
    optional("arguments", MemberShape::Array(&MemberShape::Members(ARGUMENT))),
    optional("icons", ICONS),
    optional("_meta", MemberShape::Object),
];

const ARGUMENT: &[MemberRule] = &[
    required("name", MemberShape::Text),
    optional("title", MemberShape::Text),
    optional("description", MemberShape::Text),
    optional("required", MemberShape::Boolean),
];

/// Arguments are an object in every revision, so a schema without `type` can only mean one.
const INPUT_SCHEMA: &[MemberRule] = &[
    MemberRule {
        name: "type",
        shape: MemberShape::OneOf(&["object"]),
        absent: AbsentPolicy::DefaultsTo("\"object\""),
    },
    optional("$schema", MemberShape::Text),
    optional("properties", MemberShape::Map(&MemberShape::Schema)),
    optional("required", MemberShape::Array(&MemberShape::Text)),
];

const OUTPUT_SCHEMA: &[MemberRule] = &[
    optional("$schema", MemberShape::Text),
    optional("properties", MemberShape::Map(&MemberShape::Schema)),
    optional("required", MemberShape::Array(&MemberShape::Text)),
];

const TOOL_ANNOTATIONS: &[MemberRule] = &[
    optional("title", MemberShape::Text),
    optional("readOnlyHint", MemberShape::Boolean),
    optional("destructiveHint", MemberShape::Boolean),
    optional("idempotentHint", MemberShape::Boolean),
    optional("openWorldHint", MemberShape::Boolean),
];

const EXECUTION: &[MemberRule] =
    &[optional("taskSupport", MemberShape::OneOf(&["forbidden", "optional", "required"]))];

const ANNOTATIONS: &[MemberRule] = &[
    optional("audience", MemberShape::Array(&MemberShape::OneOf(&["user", "assistant"]))),
    optional("priority", MemberShape::UnitInterval),
    optional("lastModified", MemberShape::Timestamp),
];

pub(super) const ICONS: MemberShape = MemberShape::Array(&MemberShape::Members(ICON));

const ICON: &[MemberRule] = &[
    required("src", MemberShape::Text),
    optional("mimeType", MemberShape::Text),
    optional("sizes", MemberShape::Array(&MemberShape::Text)),
    optional("theme", MemberShape::OneOf(&["light", "dark"])),
];
