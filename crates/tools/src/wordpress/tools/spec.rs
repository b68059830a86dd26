//! A curated tool as data: what it takes, and which route it asks.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::entities::EntityKind;
use super::tool_call::ToolCall;
use crate::wordpress::site::SiteResponse;

/// One tool.
pub(super) struct ToolSpec {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) verb: Verb,
    /// The route; `{name}` stands for an argument.
    pub(super) route: &'static str,
    /// What it is about, for the sentence that says that there is none of that id.
    pub(super) noun: &'static str,
    pub(super) arguments: &'static [ArgumentSpec],
    /// What is sent with every call.
    pub(super) fixed_values: &'static [(&'static str, FixedValue)],
    /// Whether the platform must see who is logged in, or else says that it did what it did not.
    pub(super) needs_visible_login: bool,
    /// What is done instead of one request.
    pub(super) custom_run: Option<CustomRun>,
    /// Whether it may destroy something.
    pub(super) destructive: bool,
    /// Whether the platform shows less to somebody whom it does not see as logged in.
    pub(super) list_view: ListView,
    /// Whether the route answers with the whole list, whatever its headers say of pages.
    pub(super) is_unpaged: bool,
}

/// What a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListView {
    /// The same to everybody who may ask.
    SameForAll,
    /// Less to somebody whom the platform does not see as logged in.
    PerUser,
}

/// What a tool does that needs more than one request, or looks closely at the answer.
pub(super) type CustomRun =
    for<'a> fn(&'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>>;

/// What is done to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    pub(super) fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Delete => Method::DELETE,
        }
    }
}

/// A value that is not the caller's.
#[derive(Clone, Copy, Debug)]
pub(super) enum FixedValue {
    /// The id of the caller at the site.
    CallerId,
    Number(u64),
    Text(&'static str),
    Flag(bool),
}

/// One argument.
pub(super) struct ArgumentSpec {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: SiteArgumentType,
    pub(super) required: bool,
    /// What the site calls it; nothing if it is not sent as it is.
    pub(super) sent_as: Option<&'static str>,
    /// What is sent where a call does not have it.
    pub(super) default: Option<FixedValue>,
    /// What it names, which must be there before anything is sent: the platform does not look.
    pub(super) entity: Option<&'static EntityKind>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub(super) enum SiteArgumentType {
    /// The number of a thing: 1 or more.
    Id,
    /// The number of a page: 1 or more.
    Page,
    /// How many items: 1 to 100.
    PerPage,
    Text,
    Flag,
    /// Yes or no, which the site wants as 1 or 0.
    ZeroOrOne,
    Choice(&'static [&'static str]),
    Choices(&'static [&'static str]),
    Ids,
    Texts,
    /// A text or several.
    TextOrTexts,
}

/// A tool that asks one route.
pub(super) const fn tool(
    verb: Verb,
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> ToolSpec {
    ToolSpec {
        name,
        about,
        verb,
        route,
        noun,
        arguments: &[],
        fixed_values: &[],
        needs_visible_login: false,
        custom_run: None,
        destructive: matches!(verb, Verb::Delete),
        list_view: ListView::SameForAll,
        is_unpaged: false,
    }
}

impl ToolSpec {
    pub(super) const fn with_arguments(mut self, arguments: &'static [ArgumentSpec]) -> Self {
        self.arguments = arguments;
        self
    }

    pub(super) const fn with_fixed_values(
        mut self,
        fixed: &'static [(&'static str, FixedValue)],
    ) -> Self {
        self.fixed_values = fixed;
        self
    }

    pub(super) const fn require_visible_login(mut self) -> Self {
        self.needs_visible_login = true;
        self
    }

    /// Its list depends on who is logged in.
    pub(super) const fn with_per_user_list(mut self) -> Self {
        self.list_view = ListView::PerUser;
        self
    }

    /// Its list has no pages.
    pub(super) const fn without_pages(mut self) -> Self {
        self.is_unpaged = true;
        self
    }

    pub(super) const fn with_custom_run(mut self, course: CustomRun) -> Self {
        self.custom_run = Some(course);
        self
    }

    /// Although its verb does not say so.
    pub(super) const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// The schema of its arguments; nothing else is taken, because the site ignores what it does not know.
    pub(super) fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.arguments.iter().map(|it| (it.name.to_owned(), it.schema())).collect();
        let required: Vec<&str> =
            self.arguments.iter().filter(|it| it.required).map(|it| it.name).collect();
        let mut schema =
            json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

/// An argument that a call may have.
pub(super) const fn optional(
    name: &'static str,
    kind: SiteArgumentType,
    about: &'static str,
) -> ArgumentSpec {
    ArgumentSpec {
        name,
        about,
        kind,
        required: false,
        sent_as: Some(name),
        default: None,
        entity: None,
    }
}

/// An argument that a call must have.
pub(super) const fn required(
    name: &'static str,
    kind: SiteArgumentType,
    about: &'static str,
) -> ArgumentSpec {
    ArgumentSpec { required: true, ..optional(name, kind, about) }
}

impl ArgumentSpec {
    /// The same, by another name at the site.
    pub(super) const fn sent_as(mut self, name: &'static str) -> Self {
        self.sent_as = Some(name);
        self
    }

    /// The same, which the tool itself looks at.
    pub(super) const fn not_sent(mut self) -> Self {
        self.sent_as = None;
        self
    }

    /// The same, with what is sent where a call does not have it.
    pub(super) const fn with_default(mut self, default: FixedValue) -> Self {
        self.default = Some(default);
        self
    }

    /// The same, which names something that must be there.
    pub(super) const fn naming(mut self, thing: &'static EntityKind) -> Self {
        self.entity = Some(thing);
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            SiteArgumentType::Id | SiteArgumentType::Page => {
                json!({"type": "integer", "minimum": 1})
            }
            SiteArgumentType::PerPage => json!({"type": "integer", "minimum": 1, "maximum": 100}),
            SiteArgumentType::Text => json!({"type": "string"}),
            SiteArgumentType::Flag | SiteArgumentType::ZeroOrOne => json!({"type": "boolean"}),
            SiteArgumentType::Choice(words) => json!({"type": "string", "enum": words}),
            SiteArgumentType::Choices(words) => {
                json!({"type": LIST_OR_TEXT, "items": {"type": "string", "enum": words}})
            }
            SiteArgumentType::Ids => {
                json!({"type": LIST_OR_TEXT, "maxItems": 100, "items": {"type": "integer", "minimum": 1}})
            }
            SiteArgumentType::Texts => {
                json!({"type": LIST_OR_TEXT, "maxItems": 100, "items": {"type": "string"}})
            }
            SiteArgumentType::TextOrTexts => {
                json!({"type": ["string", "array"], "items": {"type": "string"}})
            }
        };
        schema["description"] = self.about.into();
        schema
    }
}

/// A list, or a text with its items between commas, as the plugin writes it that these tools are named after.
const LIST_OR_TEXT: [&str; 2] = ["array", "string"];

pub(super) const PAGE: ArgumentSpec =
    optional("page", SiteArgumentType::Page, "Page number for pagination (default: 1)");
pub(super) const PER_PAGE: ArgumentSpec =
    optional("per_page", SiteArgumentType::PerPage, "Items per page (default: 20, max: 100)")
        .with_default(FixedValue::Number(20));
