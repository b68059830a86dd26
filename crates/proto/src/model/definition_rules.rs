//! What the revisions demand of each member of a definition, as tables.
//!
//! The tables have the strictest demand of all revisions and of the official TypeScript SDK, because one definition is
//! shown to clients of each of them. What one revision alone cannot express (boolean property schemas, results that are
//! no objects) is not demanded here: [`crate::adapt`] changes it for that revision.

use super::ListKind;

/// One member of an object.
pub(super) struct MemberRule {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) absent: Absent,
}

/// What an absent member means. A member that is null counts as absent: many servers write their empty fields so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// Nothing.
    Allowed,
    /// The definition cannot be used.
    Refused,
    /// This value is meant.
    Means(&'static str),
}

/// What the value of a member has to be.
pub(super) enum Shape {
    /// A string.
    Text,
    /// A string that people and programs tell items apart by.
    Name { longest: usize },
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number from 0 to 1.
    Share,
    /// A point in time as a string (RFC 3339). Another string is left out of the definition: it is only a hint.
    Moment,
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
pub(super) const LONGEST_NAME: usize = 128;

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

const fn may(name: &'static str, shape: Shape) -> MemberRule {
    MemberRule { name, shape, absent: Absent::Allowed }
}

const fn must(name: &'static str, shape: Shape) -> MemberRule {
    MemberRule { name, shape, absent: Absent::Refused }
}

const TOOL: &[MemberRule] = &[
    must("name", Shape::Name { longest: LONGEST_NAME }),
    may("title", Shape::Text),
    may("description", Shape::Text),
    must("inputSchema", Shape::Members(INPUT_SCHEMA)),
    may("outputSchema", Shape::Members(OUTPUT_SCHEMA)),
    may("annotations", Shape::Members(TOOL_ANNOTATIONS)),
    may("execution", Shape::Members(EXECUTION)),
    may("icons", ICONS),
    may("_meta", Shape::Object),
];

const RESOURCE: &[MemberRule] = &[
    must("uri", Shape::Name { longest: usize::MAX }),
    must("name", Shape::Name { longest: usize::MAX }),
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("mimeType", Shape::Text),
    may("size", Shape::Integer),
    may("annotations", Shape::Members(ANNOTATIONS)),
    may("icons", ICONS),
    may("_meta", Shape::Object),
];

const TEMPLATE: &[MemberRule] = &[
    must("uriTemplate", Shape::Name { longest: usize::MAX }),
    must("name", Shape::Name { longest: usize::MAX }),
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("mimeType", Shape::Text),
    may("annotations", Shape::Members(ANNOTATIONS)),
    may("icons", ICONS),
    may("_meta", Shape::Object),
];

const PROMPT: &[MemberRule] = &[
    must("name", Shape::Name { longest: LONGEST_NAME }),
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("arguments", Shape::Array(&Shape::Members(ARGUMENT))),
    may("icons", ICONS),
    may("_meta", Shape::Object),
];

const ARGUMENT: &[MemberRule] = &[
    must("name", Shape::Text),
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("required", Shape::Boolean),
];

/// Arguments are an object in every revision, so a schema without `type` can only mean one.
const INPUT_SCHEMA: &[MemberRule] = &[
    MemberRule {
        name: "type",
        shape: Shape::OneOf(&["object"]),
        absent: Absent::Means("\"object\""),
    },
    may("$schema", Shape::Text),
    may("properties", Shape::Map(&Shape::Schema)),
    may("required", Shape::Array(&Shape::Text)),
];

const OUTPUT_SCHEMA: &[MemberRule] = &[
    may("$schema", Shape::Text),
    may("properties", Shape::Map(&Shape::Schema)),
    may("required", Shape::Array(&Shape::Text)),
];

const TOOL_ANNOTATIONS: &[MemberRule] = &[
    may("title", Shape::Text),
    may("readOnlyHint", Shape::Boolean),
    may("destructiveHint", Shape::Boolean),
    may("idempotentHint", Shape::Boolean),
    may("openWorldHint", Shape::Boolean),
];

const EXECUTION: &[MemberRule] =
    &[may("taskSupport", Shape::OneOf(&["forbidden", "optional", "required"]))];

const ANNOTATIONS: &[MemberRule] = &[
    may("audience", Shape::Array(&Shape::OneOf(&["user", "assistant"]))),
    may("priority", Shape::Share),
    may("lastModified", Shape::Moment),
];

pub(super) const ICONS: Shape = Shape::Array(&Shape::Members(ICON));

const ICON: &[MemberRule] = &[
    must("src", Shape::Text),
    may("mimeType", Shape::Text),
    may("sizes", Shape::Array(&Shape::Text)),
    may("theme", Shape::OneOf(&["light", "dark"])),
];
