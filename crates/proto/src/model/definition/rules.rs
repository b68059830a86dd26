//! Tables of the requirements for each member of a definition.
//!
//! The tables contain the strictest requirement of all revisions and of the official TypeScript SDK, because one
//! definition is shown to clients of each of them. Shapes that only some revisions cannot express (boolean property
//! schemas, results that are not objects) are allowed here: [`crate::model::adapt`] converts them for those revisions.

use crate::model::ListKind;

/// The rule for one member of an object.
pub(super) struct MemberRule {
    pub(super) name: &'static str,
    pub(super) shape: MemberShape,
    pub(super) absent: AbsentPolicy,
}

/// The treatment of an absent member. A null member counts as absent, because many servers write empty fields that way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AbsentPolicy {
    /// It is allowed.
    Allowed,
    /// The definition is invalid.
    Refused,
    /// It has this default.
    DefaultsTo(&'static str),
}

/// The required shape of a member.
pub(super) enum MemberShape {
    /// A string.
    Text,
    /// A string that identifies an item for people and programs.
    Name { max_chars: usize },
    /// `true` or `false`.
    Boolean,
    /// An integer.
    Integer,
    /// A number from 0 to 1 (2025-11-25 schema, `Annotations`).
    UnitInterval,
    /// A time as a string (RFC 3339). Another string is removed, because the member is only a hint.
    Timestamp,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// An object with any members.
    Object,
    /// An object with these members and any others.
    Members(&'static [MemberRule]),
    /// An array of values of this shape.
    Array(&'static Self),
    /// An object whose values have this shape.
    Map(&'static Self),
    /// A JSON Schema: an object or a boolean.
    Schema,
}

/// Maximum length of a tool's name (2025-11-25 server/tools, tool names), and of a prompt's.
pub(super) const MAX_NAME_CHARS: usize = 128;

/// The rules for the members of an item of this kind. Skills have none, because they are an extension.
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

/// Arguments are an object in every revision, so a schema without `type` is given that type
/// (2025-11-25 schema, `Tool`).
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
