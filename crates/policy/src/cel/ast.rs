//! The syntax tree of an expression. Names are resolved: a tree has no unknown variable or function.

use regex::Regex;

use super::time::{TimePart, Zone};

/// An expression.
#[derive(Debug)]
pub(super) enum Expr {
    Constant(Constant),
    Variable(Variable),
    /// A member of `principal`.
    Principal(PrincipalMember),
    /// A member of `tool`, `resource` or `prompt`.
    Item(ItemMember),
    /// The variable of the surrounding comprehension.
    Local,
    Select {
        operand: Box<Self>,
        field: Box<str>,
    },
    /// `has(operand.field)`
    Has {
        operand: Box<Self>,
        field: Box<str>,
    },
    /// `has(principal.member)`
    HasPrincipal(PrincipalMember),
    Index {
        operand: Box<Self>,
        index: Box<Self>,
    },
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Not(Box<Self>),
    Negate(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
    Conditional(Box<[Self; 3]>),
    Relation {
        operator: Relation,
        operands: Box<[Self; 2]>,
    },
    Arithmetic {
        operator: Arithmetic,
        operands: Box<[Self; 2]>,
    },
    /// A call. The target of a method is its first argument.
    Call {
        function: Function,
        arguments: Vec<Self>,
    },
    Matches {
        operand: Box<Self>,
        pattern: Regex,
    },
    /// A part of a timestamp in a time zone, or of a duration.
    Time {
        part: TimePart,
        operand: Box<Self>,
        zone: Zone,
    },
    Comprehension(Box<Comprehension>),
}

impl Expr {
    /// The expressions directly inside.
    pub(super) fn children(&self) -> Vec<&Self> {
        match self {
            Self::Constant(_)
            | Self::Variable(_)
            | Self::Principal(_)
            | Self::HasPrincipal(_)
            | Self::Item(_)
            | Self::Local => Vec::new(),
            Self::Select { operand, .. }
            | Self::Has { operand, .. }
            | Self::Matches { operand, .. }
            | Self::Time { operand, .. }
            | Self::Not(operand)
            | Self::Negate(operand) => vec![operand],
            Self::Index { operand, index } => vec![operand, index],
            Self::List(all) | Self::And(all) | Self::Or(all) => all.iter().collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Self::Conditional(parts) => parts.iter().collect(),
            Self::Relation { operands, .. } | Self::Arithmetic { operands, .. } => {
                operands.iter().collect()
            }
            Self::Call { arguments, .. } => arguments.iter().collect(),
            Self::Comprehension(inner) => {
                let Comprehension { range, condition, body, .. } = &**inner;
                [Some(range), condition.as_ref(), Some(body)].into_iter().flatten().collect()
            }
        }
    }

    /// The number of levels of the tree.
    pub(super) fn depth(&self) -> usize {
        1 + self.children().into_iter().map(Self::depth).max().unwrap_or(0)
    }
}

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Box<str>),
}

/// A variable without members, or with members that callers choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    /// The name of the server.
    Server,
    /// The method of the request.
    Method,
    /// The arguments of the call.
    Arguments,
    /// The current time.
    Now,
}

/// A member of `principal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PrincipalMember {
    Id,
    Kind,
    Name,
    Issuer,
    Client,
    Roles,
    Scopes,
    Claims,
}

impl PrincipalMember {
    pub(super) const ALL: [(&'static str, Self); 8] = [
        ("id", Self::Id),
        ("kind", Self::Kind),
        ("name", Self::Name),
        ("issuer", Self::Issuer),
        ("client", Self::Client),
        ("roles", Self::Roles),
        ("scopes", Self::Scopes),
        ("claims", Self::Claims),
    ];
}

/// A member of the item that the request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemMember {
    ToolName,
    ToolAnnotations,
    ResourceUri,
    PromptName,
}

impl ItemMember {
    pub(super) const ALL: [(&'static str, &'static str, Self); 4] = [
        ("tool", "name", Self::ToolName),
        ("tool", "annotations", Self::ToolAnnotations),
        ("resource", "uri", Self::ResourceUri),
        ("prompt", "name", Self::PromptName),
    ];
}

/// A relation of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

/// An operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A function of the language, apart from those with prepared arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Timestamp,
    Duration,
}

impl Function {
    /// The name, whether it is called as a method, as a function, and the number of arguments with the target.
    pub(super) const ALL: [(&'static str, Self, bool, bool, usize); 11] = [
        ("size", Self::Size, true, true, 1),
        ("contains", Self::Contains, true, false, 2),
        ("startsWith", Self::StartsWith, true, false, 2),
        ("endsWith", Self::EndsWith, true, false, 2),
        ("bool", Self::Bool, false, true, 1),
        ("int", Self::Int, false, true, 1),
        ("uint", Self::Uint, false, true, 1),
        ("double", Self::Double, false, true, 1),
        ("string", Self::String, false, true, 1),
        ("timestamp", Self::Timestamp, false, true, 1),
        ("duration", Self::Duration, false, true, 1),
    ];
}

/// A comprehension over the elements of a list or the keys of a map.
#[derive(Debug)]
pub(super) struct Comprehension {
    pub(super) kind: ComprehensionKind,
    pub(super) range: Expr,
    /// Which elements `map` takes, in its form with three arguments.
    pub(super) condition: Option<Expr>,
    pub(super) body: Expr,
}

/// The macro that a comprehension is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComprehensionKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

impl ComprehensionKind {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "all" => Self::All,
            "exists" => Self::Exists,
            "exists_one" => Self::ExistsOne,
            "map" => Self::Map,
            "filter" => Self::Filter,
            _ => return None,
        })
    }
}
