//! A curated tool as data: what it takes, and which route it asks.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::errand::Errand;
use super::things::Thing;
use crate::wordpress::site::Answered;

/// One tool.
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) verb: Verb,
    /// The route; `{name}` stands for an argument.
    pub(super) route: &'static str,
    /// What it is about, for the sentence that says that there is none of that id.
    pub(super) noun: &'static str,
    pub(super) arguments: &'static [Argument],
    /// What is sent with every call.
    pub(super) fixed: &'static [(&'static str, Given)],
    /// Whether the platform must see who is logged in, or else says that it did what it did not.
    pub(super) needs_early: bool,
    /// What is done instead of one request.
    pub(super) course: Option<Course>,
    /// Whether it may destroy something.
    pub(super) destructive: bool,
    /// Whether the platform shows less to somebody whom it does not see as logged in.
    pub(super) view: View,
    /// Whether the route answers with the whole list, whatever its headers say of pages.
    pub(super) is_whole: bool,
}

/// What a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// The same to everybody who may ask.
    Same,
    /// Less to somebody whom the platform does not see as logged in.
    Own,
}

/// What a tool does that needs more than one request, or looks closely at the answer.
pub(super) type Course = for<'a> fn(&'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>>;

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
pub(super) enum Given {
    /// The id of the caller at the site.
    Me,
    Number(u64),
    Text(&'static str),
    Flag(bool),
}

/// One argument.
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
    /// What the site calls it; nothing if it is not sent as it is.
    pub(super) sent_as: Option<&'static str>,
    /// What is sent where a call does not have it.
    pub(super) default: Option<Given>,
    /// What it names, which must be there before anything is sent: the platform does not look.
    pub(super) names: Option<&'static Thing>,
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The number of a thing: 1 or more.
    Id,
    /// The number of a page: 1 or more.
    Page,
    /// How many items: 1 to 100.
    PerPage,
    Text,
    Flag,
    /// Yes or no, which the site wants as 1 or 0.
    Bit,
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
) -> Spec {
    Spec {
        name,
        about,
        verb,
        route,
        noun,
        arguments: &[],
        fixed: &[],
        needs_early: false,
        course: None,
        destructive: matches!(verb, Verb::Delete),
        view: View::Same,
        is_whole: false,
    }
}

impl Spec {
    pub(super) const fn takes(mut self, arguments: &'static [Argument]) -> Self {
        self.arguments = arguments;
        self
    }

    pub(super) const fn sends(mut self, fixed: &'static [(&'static str, Given)]) -> Self {
        self.fixed = fixed;
        self
    }

    pub(super) const fn early(mut self) -> Self {
        self.needs_early = true;
        self
    }

    /// Its list depends on who is logged in.
    pub(super) const fn own(mut self) -> Self {
        self.view = View::Own;
        self
    }

    /// Its list has no pages.
    pub(super) const fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    pub(super) const fn by(mut self, course: Course) -> Self {
        self.course = Some(course);
        self
    }

    /// Although its verb does not say so.
    pub(super) const fn destroys(mut self) -> Self {
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
pub(super) const fn may(name: &'static str, kind: Kind, about: &'static str) -> Argument {
    Argument { name, about, kind, required: false, sent_as: Some(name), default: None, names: None }
}

/// An argument that a call must have.
pub(super) const fn must(name: &'static str, kind: Kind, about: &'static str) -> Argument {
    Argument { required: true, ..may(name, kind, about) }
}

impl Argument {
    /// The same, by another name at the site.
    pub(super) const fn sent_as(mut self, name: &'static str) -> Self {
        self.sent_as = Some(name);
        self
    }

    /// The same, which the tool itself looks at.
    pub(super) const fn kept(mut self) -> Self {
        self.sent_as = None;
        self
    }

    /// The same, with what is sent where a call does not have it.
    pub(super) const fn or(mut self, default: Given) -> Self {
        self.default = Some(default);
        self
    }

    /// The same, which names something that must be there.
    pub(super) const fn of(mut self, thing: &'static Thing) -> Self {
        self.names = Some(thing);
        self
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Id | Kind::Page => json!({"type": "integer", "minimum": 1}),
            Kind::PerPage => json!({"type": "integer", "minimum": 1, "maximum": 100}),
            Kind::Text => json!({"type": "string"}),
            Kind::Flag | Kind::Bit => json!({"type": "boolean"}),
            Kind::Choice(words) => json!({"type": "string", "enum": words}),
            Kind::Choices(words) => {
                json!({"type": SEVERAL, "items": {"type": "string", "enum": words}})
            }
            Kind::Ids => {
                json!({"type": SEVERAL, "maxItems": 100, "items": {"type": "integer", "minimum": 1}})
            }
            Kind::Texts => json!({"type": SEVERAL, "maxItems": 100, "items": {"type": "string"}}),
            Kind::TextOrTexts => {
                json!({"type": ["string", "array"], "items": {"type": "string"}})
            }
        };
        schema["description"] = self.about.into();
        schema
    }
}

/// A list, or a text with its items between commas, as the plugin writes it that these tools are named after.
const SEVERAL: [&str; 2] = ["array", "string"];

pub(super) const PAGE: Argument =
    may("page", Kind::Page, "Page number for pagination (default: 1)");
pub(super) const PER_PAGE: Argument =
    may("per_page", Kind::PerPage, "Items per page (default: 20, max: 100)").or(Given::Number(20));
