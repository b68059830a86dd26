//! Curated tools as data: their arguments and routes.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::tool_call::ToolCall;
use crate::site::SiteResponse;
use crate::tools::tool_call::entities::EntityKind;

/// One tool.
pub(super) struct ToolSpec {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) verb: Verb,
    /// The route; `{name}` is a placeholder for an argument.
    pub(super) route: &'static str,
    /// The noun for the entity, for messages about unknown ids.
    pub(super) noun: &'static str,
    pub(super) arguments: &'static [ArgumentSpec],
    /// The values that are sent with every call.
    pub(super) fixed_values: &'static [(&'static str, FixedValue)],
    /// Whether the platform must see the caller's login; otherwise it falsely reports success.
    pub(super) needs_visible_login: bool,
    /// The function that replaces the single request.
    pub(super) custom_run: Option<CustomRun>,
    /// Whether it may perform destructive updates.
    pub(super) destructive: bool,
    /// Whether the platform shows less if it does not see the caller's login.
    pub(super) list_view: ListView,
    /// Whether the route returns the whole list, whatever its headers say about pages.
    pub(super) is_unpaged: bool,
}

/// The visibility of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListView {
    /// The same for all callers with permission.
    SameForAll,
    /// Less if the platform does not see the caller's login.
    PerUser,
}

/// The implementation of a tool that needs several requests, or inspects the response.
pub(super) type CustomRun =
    for<'a> fn(&'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>>;

/// The action on a route.
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

/// A value that does not come from the caller.
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
    /// Its name at the site; `None` if it is not sent directly.
    pub(super) sent_as: Option<&'static str>,
    /// The value if the call does not have it.
    pub(super) default: Option<FixedValue>,
    /// The entity it names, which must exist before anything is sent, because the platform does not check.
    pub(super) entity: Option<&'static EntityKind>,
}

/// The type of an argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum SiteArgumentType {
    /// The id of an entity: 1 or more.
    Id,
    /// The number of a page: 1 or more.
    Page,
    /// A number of items: 1 to 100.
    PerPage,
    Text,
    Flag,
    /// A boolean, which the site expects as 1 or 0.
    ZeroOrOne,
    Choice(&'static [&'static str]),
    Choices(&'static [&'static str]),
    Ids,
    Texts,
    /// A text or several.
    TextOrTexts,
}

/// A tool for one route.
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

    /// Marks that its list depends on the logged-in user.
    pub(super) const fn with_per_user_list(mut self) -> Self {
        self.list_view = ListView::PerUser;
        self
    }

    /// Marks that its list has no pages.
    pub(super) const fn without_pages(mut self) -> Self {
        self.is_unpaged = true;
        self
    }

    pub(super) const fn with_custom_run(mut self, run: CustomRun) -> Self {
        self.custom_run = Some(run);
        self
    }

    /// Marks it as destructive, although its verb is not.
    pub(super) const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    /// The schema of its arguments. Additional ones are not allowed, because the site ignores unknown ones.
    pub(super) fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .arguments
            .iter()
            .map(|argument| (argument.name.to_owned(), argument.schema()))
            .collect();
        let required: Vec<&str> = self
            .arguments
            .iter()
            .filter(|argument| argument.required)
            .map(|argument| argument.name)
            .collect();
        let mut schema =
            json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

/// An optional argument.
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

/// A required argument.
pub(super) const fn required(
    name: &'static str,
    kind: SiteArgumentType,
    about: &'static str,
) -> ArgumentSpec {
    ArgumentSpec { required: true, ..optional(name, kind, about) }
}

impl ArgumentSpec {
    /// Sets its name at the site.
    pub(super) const fn sent_as(mut self, name: &'static str) -> Self {
        self.sent_as = Some(name);
        self
    }

    /// Marks that only the tool itself reads it.
    pub(super) const fn not_sent(mut self) -> Self {
        self.sent_as = None;
        self
    }

    /// Sets the value that is sent if the call does not have it.
    pub(super) const fn with_default(mut self, default: FixedValue) -> Self {
        self.default = Some(default);
        self
    }

    /// Sets the entity it names, which must exist.
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

/// An array, or a text with comma-separated items, as in the plugin after which these tools are named.
const LIST_OR_TEXT: [&str; 2] = ["array", "string"];

pub(super) const PAGE: ArgumentSpec =
    optional("page", SiteArgumentType::Page, "Page number for pagination (default: 1)");
pub(super) const PER_PAGE: ArgumentSpec =
    optional("per_page", SiteArgumentType::PerPage, "Items per page (default: 20, max: 100)")
        .with_default(FixedValue::Number(20));
