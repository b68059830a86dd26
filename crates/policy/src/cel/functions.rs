//! The functions of the language.

use std::borrow::Cow;

use super::EvaluationError;
use super::ast::Function;
use super::time::{Moment, parse_duration};
use super::value::{Value, wrong_kind};

/// Calls a function. The target of a method is its first argument.
pub(super) fn call<'a>(
    function: Function,
    arguments: &[Value<'a>],
) -> Result<Value<'a>, EvaluationError> {
    let Some(first) = arguments.first() else {
        return Err(EvaluationError::new("an argument is missing"));
    };
    match function {
        Function::Size => size(first),
        Function::Contains => texts("contains", arguments, |text, part| text.contains(part)),
        Function::StartsWith => texts("startsWith", arguments, |text, part| text.starts_with(part)),
        Function::EndsWith => texts("endsWith", arguments, |text, part| text.ends_with(part)),
        Function::Bool => boolean(first),
        Function::Int => integer(first),
        Function::Uint => unsigned(first),
        Function::Double => double(first),
        Function::String => string(first),
        Function::Timestamp => timestamp(first),
        Function::Duration => duration(first),
    }
}

fn size<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        other => return Err(wrong_kind("size", other)),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn texts<'a>(
    name: &str,
    arguments: &[Value<'a>],
    test: fn(&str, &str) -> bool,
) -> Result<Value<'a>, EvaluationError> {
    match arguments {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(test(text, part))),
        [Value::String(_), other] | [other, ..] => Err(wrong_kind(name, other)),
        [] => Err(EvaluationError::new("an argument is missing")),
    }
}

fn cannot_convert(to: &str, value: &Value<'_>) -> EvaluationError {
    EvaluationError::new(format!("this {} is no {to}", value.kind()))
}

fn boolean<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    match value {
        Value::Bool(value) => Ok(Value::Bool(*value)),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(cannot_convert("bool", value)),
        },
        other => Err(cannot_convert("bool", other)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn integer<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let converted = match value {
        Value::Int(value) => Some(*value),
        Value::Uint(value) => i64::try_from(*value).ok(),
        Value::Double(value) => (value.abs() < 9.2e18).then_some(*value as i64),
        Value::String(text) => text.parse().ok(),
        Value::Timestamp(moment) => Some(moment.seconds()),
        _ => None,
    };
    converted.map(Value::Int).ok_or_else(|| cannot_convert("int", value))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked before"
)]
fn unsigned<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let converted = match value {
        Value::Int(value) => u64::try_from(*value).ok(),
        Value::Uint(value) => Some(*value),
        Value::Double(value) => (*value >= 0.0 && *value < 1.8e19).then_some(*value as u64),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    converted.map(Value::Uint).ok_or_else(|| cannot_convert("uint", value))
}

#[expect(clippy::cast_precision_loss, reason = "CEL rounds to the nearest double")]
fn double<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let converted = match value {
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        Value::Double(value) => Some(*value),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    converted.map(Value::Double).ok_or_else(|| cannot_convert("double", value))
}

fn string<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => Cow::Owned(value.to_string()),
        Value::Int(value) => Cow::Owned(value.to_string()),
        Value::Uint(value) => Cow::Owned(value.to_string()),
        Value::Double(value) => Cow::Owned(value.to_string()),
        Value::Timestamp(moment) => Cow::Owned(moment.text()),
        other => return Err(cannot_convert("string", other)),
    };
    Ok(Value::String(text))
}

fn timestamp<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let converted = match value {
        Value::Timestamp(moment) => Some(*moment),
        Value::Int(seconds) => Moment::new(i128::from(*seconds) * 1_000_000_000),
        Value::String(text) => Moment::parse(text),
        _ => None,
    };
    converted.map(Value::Timestamp).ok_or_else(|| cannot_convert("timestamp", value))
}

fn duration<'a>(value: &Value<'a>) -> Result<Value<'a>, EvaluationError> {
    let converted = match value {
        Value::Duration(length) => Some(*length),
        Value::String(text) => parse_duration(text),
        _ => None,
    };
    converted.map(Value::Duration).ok_or_else(|| cannot_convert("duration", value))
}
