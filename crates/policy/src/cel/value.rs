//! Values of expressions. Lists and maps of the input are borrowed, so an evaluation copies nothing of a request.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value as Json;

use super::EvaluationError;
use super::time::Moment;

/// The maximum number of elements of a list.
pub(super) const MAX_ELEMENTS: usize = 1000;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Cow<'a, str>),
    List(List<'a>),
    Map(Map<'a>),
    Timestamp(Moment),
    /// A duration in nanoseconds.
    Duration(i128),
}

/// A list.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Json(&'a [Json]),
    Texts(&'a [Arc<str>]),
    Made(Arc<[Value<'a>]>),
}

/// A map.
#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    Json(&'a serde_json::Map<String, Json>),
    Made(Arc<[(Value<'a>, Value<'a>)]>),
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(all) => all.len(),
            Self::Texts(all) => all.len(),
            Self::Made(all) => all.len(),
        }
    }

    /// The element at this index, which is within the list.
    pub(super) fn get(&self, index: usize) -> Result<Value<'a>, EvaluationError> {
        let outside = || EvaluationError::new("the index is outside of the list");
        match self {
            Self::Json(all) => Value::of_json(all.get(index).ok_or_else(outside)?),
            Self::Texts(all) => Ok(Value::of_text(all.get(index).ok_or_else(outside)?)),
            Self::Made(all) => all.get(index).cloned().ok_or_else(outside),
        }
    }
}

impl<'a> Map<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(all) => all.len(),
            Self::Made(all) => all.len(),
        }
    }

    /// The value of a key, if there is one.
    pub(super) fn get(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvaluationError> {
        match (self, key) {
            (Self::Json(all), Value::String(key)) => {
                all.get(&**key).map(Value::of_json).transpose()
            }
            (Self::Json(_), _) => Ok(None),
            (Self::Made(all), key) => {
                Ok(all.iter().find(|(own, _)| own.equals(key)).map(|(_, value)| value.clone()))
            }
        }
    }

    /// The keys.
    pub(super) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json(all) => all.keys().map(|key| Value::of_text(key)).collect(),
            Self::Made(all) => all.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn of_text(text: &'a str) -> Self {
        Self::String(Cow::Borrowed(text))
    }

    /// A value of the input.
    pub(super) fn of_json(json: &'a Json) -> Result<Self, EvaluationError> {
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::String(text) => Self::of_text(text),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), ..) => Self::Int(value),
                (None, Some(value), _) => Self::Uint(value),
                (None, None, Some(value)) => Self::Double(value),
                (None, None, None) => return Err(EvaluationError::new("a number is too large")),
            },
            Json::Array(all) if all.len() > MAX_ELEMENTS => return Err(too_long()),
            Json::Array(all) => Self::List(List::Json(all)),
            Json::Object(members) => Self::Map(Map::Json(members)),
        })
    }

    /// The name of its type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "timestamp",
            Self::Duration(_) => "duration",
        }
    }

    /// Equality: numbers are compared by their values, and values of different types are never equal.
    pub(super) fn equals(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(left), Value::Bool(right)) => left == right,
            (Self::String(left), Value::String(right)) => left == right,
            (Self::Timestamp(left), Value::Timestamp(right)) => left == right,
            (Self::Duration(left), Value::Duration(right)) => left == right,
            (Self::List(left), Value::List(right)) => {
                left.len() == right.len()
                    && (0..left.len()).all(|index| match (left.get(index), right.get(index)) {
                        (Ok(left), Ok(right)) => left.equals(&right),
                        _ => false,
                    })
            }
            (Self::Map(left), Value::Map(right)) => {
                let is_same = |key: &Value<'_>| match (left.get(key), right.get(key)) {
                    (Ok(Some(left)), Ok(Some(right))) => left.equals(&right),
                    _ => false,
                };
                left.len() == right.len() && left.keys().iter().all(is_same)
            }
            _ => self.compare_numbers(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values, if they have one.
    pub(super) fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (Self::String(left), Value::String(right)) => {
                Some(left.as_bytes().cmp(right.as_bytes()))
            }
            (Self::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
            (Self::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
            _ => self.compare_numbers(other),
        }
    }

    fn compare_numbers(&self, other: &Value<'_>) -> Option<Ordering> {
        if let (Some(left), Some(right)) = (self.integer(), other.integer()) {
            return Some(left.cmp(&right));
        }
        match (self, other) {
            (Self::Double(left), Value::Double(right)) => left.partial_cmp(right),
            (Self::Double(left), right) => compare_double(*left, right.integer()?),
            (left, Value::Double(right)) => {
                compare_double(*right, left.integer()?).map(Ordering::reverse)
            }
            _ => None,
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some((*value).into()),
            Self::Uint(value) => Some((*value).into()),
            _ => None,
        }
    }

    /// The size of the text, list or map, in units of the budget of an evaluation.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::String(text) => text.len() / 32,
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            _ => 0,
        }
    }
}

/// The order of a double and an integer, without a loss of precision.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn compare_double(left: f64, right: i128) -> Option<Ordering> {
    if left.is_nan() {
        return None;
    }
    // Every integer of 64 bits is between these.
    if left >= 1e30 {
        return Some(Ordering::Greater);
    }
    if left <= -1e30 {
        return Some(Ordering::Less);
    }
    let whole = left.floor();
    let order = (whole as i128).cmp(&right);
    Some(if order == Ordering::Equal && left > whole { Ordering::Greater } else { order })
}

pub(super) fn too_long() -> EvaluationError {
    EvaluationError::new(format!("a list has more than {MAX_ELEMENTS} elements"))
}

pub(super) fn wrong_kind(function: &str, value: &Value<'_>) -> EvaluationError {
    EvaluationError::new(format!("`{function}` cannot be used on a {}", value.kind()))
}
