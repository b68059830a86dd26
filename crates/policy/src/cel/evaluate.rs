//! Evaluates expressions within a budget of steps.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value as Json;

use super::EvaluationError;
use super::ast::{
    Arithmetic, Comprehension, ComprehensionKind, Constant, Expr, ItemMember, PrincipalMember,
    Relation, Variable,
};
use super::functions;
use super::time::{MAX_DURATION, Moment};
use super::value::{List, MAX_ELEMENTS, Map, Value, too_long, wrong_kind};
use crate::subject::Subject;

/// The steps of one evaluation. A step is one operator, one element, or 32 bytes of a text.
const MAX_STEPS: usize = 100_000;

/// What an expression sees of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvaluationInput<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) server: &'a str,
    pub(crate) method: &'a str,
    pub(crate) item: InputItem<'a>,
    /// The arguments of the call. `None` if they are not known or cannot be read.
    pub(crate) arguments: Option<&'a Json>,
    pub(crate) now: Moment,
}

/// The item that a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InputItem<'a> {
    None,
    Tool { name: &'a str, annotations: Option<&'a Json> },
    Resource { uri: &'a str },
    Prompt { name: &'a str },
}

type Evaluated<'a> = Result<Value<'a>, EvaluationError>;

/// Whether the expression is true.
pub(super) fn is_true(root: &Expr, input: &EvaluationInput<'_>) -> Result<bool, EvaluationError> {
    let evaluation = Evaluation { input, steps: Cell::new(MAX_STEPS) };
    boolean(&evaluation.value(root, None)?)
}

struct Evaluation<'a> {
    input: &'a EvaluationInput<'a>,
    /// The steps that are left.
    steps: Cell<usize>,
}

/// The variable of the surrounding comprehension.
type Local<'l, 'a> = Option<&'l Value<'a>>;

impl<'a> Evaluation<'a> {
    /// Takes steps from the budget.
    fn charge(&self, steps: usize) -> Result<(), EvaluationError> {
        match self.steps.get().checked_sub(steps + 1) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(EvaluationError::new("the expression takes too many steps")),
        }
    }

    fn value(&self, expr: &'a Expr, local: Local<'_, 'a>) -> Evaluated<'a> {
        self.charge(0)?;
        match expr {
            Expr::Constant(constant) => Ok(constant_value(constant)),
            Expr::Variable(variable) => self.variable(*variable),
            Expr::Principal(member) => {
                self.principal(*member).ok_or_else(|| missing(member_name(*member)))
            }
            Expr::HasPrincipal(member) => Ok(Value::Bool(self.principal(*member).is_some())),
            Expr::Item(member) => self.item(*member),
            Expr::Local => local.cloned().ok_or_else(|| EvaluationError::new("no such variable")),
            Expr::Select { operand, field } => {
                let found = self.select(operand, field, local)?;
                found.ok_or_else(|| missing(field))
            }
            Expr::Has { operand, field } => {
                Ok(Value::Bool(self.select(operand, field, local)?.is_some()))
            }
            Expr::Index { operand, index } => {
                let (operand, index) = (self.value(operand, local)?, self.value(index, local)?);
                self.index(&operand, &index)
            }
            Expr::List(all) => {
                let all: Result<Vec<_>, _> =
                    all.iter().map(|element| self.value(element, local)).collect();
                Ok(Value::List(List::Made(all?.into())))
            }
            Expr::Map(entries) => {
                let entry = |(key, value): &'a (Expr, Expr)| {
                    Ok((self.value(key, local)?, self.value(value, local)?))
                };
                let entries: Result<Vec<_>, EvaluationError> = entries.iter().map(entry).collect();
                Ok(Value::Map(Map::Made(entries?.into())))
            }
            Expr::Not(operand) => Ok(Value::Bool(!boolean(&self.value(operand, local)?)?)),
            Expr::Negate(operand) => negated(&self.value(operand, local)?),
            Expr::And(all) => self.connect(all, false, local),
            Expr::Or(all) => self.connect(all, true, local),
            Expr::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                let is_true = boolean(&self.value(condition, local)?)?;
                self.value(if is_true { then } else { otherwise }, local)
            }
            Expr::Relation { operator, operands } => {
                let [left, right] = &**operands;
                let (left, right) = (self.value(left, local)?, self.value(right, local)?);
                self.relation(*operator, &left, &right).map(Value::Bool)
            }
            Expr::Arithmetic { operator, operands } => {
                let [left, right] = &**operands;
                let (left, right) = (self.value(left, local)?, self.value(right, local)?);
                self.charge(left.weight() + right.weight())?;
                arithmetic(*operator, left, right)
            }
            Expr::Call { function, arguments } => {
                let arguments: Result<Vec<_>, _> =
                    arguments.iter().map(|argument| self.value(argument, local)).collect();
                let arguments = arguments?;
                self.charge(arguments.iter().map(Value::weight).sum())?;
                functions::call(*function, &arguments)
            }
            Expr::Matches { operand, pattern } => match self.value(operand, local)? {
                Value::String(text) => {
                    // A state machine reads each byte once, and a step of it costs more than a comparison.
                    self.charge(text.len())?;
                    Ok(Value::Bool(pattern.is_match(&text)))
                }
                other => Err(wrong_kind("matches", &other)),
            },
            Expr::Time { part, operand, zone } => match self.value(operand, local)? {
                Value::Timestamp(moment) => Ok(Value::Int(part.of_moment(moment, zone))),
                Value::Duration(length) => {
                    let value = part.of_duration(length).map(Value::Int);
                    value.ok_or_else(|| EvaluationError::new("a duration has no such part"))
                }
                other => Err(wrong_kind("this function", &other)),
            },
            Expr::Comprehension(inner) => self.comprehension(inner),
        }
    }

    fn variable(&self, variable: Variable) -> Evaluated<'a> {
        match variable {
            Variable::Server => Ok(Value::of_text(self.input.server)),
            Variable::Method => Ok(Value::of_text(self.input.method)),
            Variable::Now => Ok(Value::Timestamp(self.input.now)),
            Variable::Arguments => {
                let arguments = self.input.arguments.ok_or_else(|| missing("arguments"))?;
                Value::of_json(arguments)
            }
        }
    }

    fn principal(&self, member: PrincipalMember) -> Option<Value<'a>> {
        let subject = self.input.subject;
        Some(match member {
            PrincipalMember::Id => Value::of_text(&subject.id),
            PrincipalMember::Kind => Value::of_text(subject.kind()),
            PrincipalMember::Name => Value::of_text(&subject.name),
            PrincipalMember::Issuer => Value::of_text(subject.issuer.as_deref()?),
            PrincipalMember::Client => Value::of_text(subject.client.as_deref()?),
            PrincipalMember::Roles => Value::List(List::Texts(&subject.roles)),
            PrincipalMember::Scopes => {
                Value::List(List::Texts(subject.scopes.as_deref().unwrap_or_default()))
            }
            PrincipalMember::Claims => Value::Map(Map::Json(&subject.claims)),
        })
    }

    fn item(&self, member: ItemMember) -> Evaluated<'a> {
        match (member, self.input.item) {
            (ItemMember::ToolName, InputItem::Tool { name, .. })
            | (ItemMember::PromptName, InputItem::Prompt { name }) => Ok(Value::of_text(name)),
            (ItemMember::ResourceUri, InputItem::Resource { uri }) => Ok(Value::of_text(uri)),
            (ItemMember::ToolAnnotations, InputItem::Tool { annotations, .. }) => {
                Value::of_json(annotations.ok_or_else(|| missing("annotations"))?)
            }
            _ => Err(EvaluationError::new("the request is about another kind of item")),
        }
    }

    fn select(
        &self,
        operand: &'a Expr,
        field: &'a str,
        local: Local<'_, 'a>,
    ) -> Result<Option<Value<'a>>, EvaluationError> {
        match self.value(operand, local)? {
            Value::Map(map) => map.get(&Value::of_text(field)),
            other => Err(EvaluationError::new(format!(
                "`{field}` is read from a {}, which has no members",
                other.kind()
            ))),
        }
    }

    fn index(&self, operand: &Value<'a>, index: &Value<'a>) -> Evaluated<'a> {
        match (operand, index) {
            (Value::List(list), Value::Int(_) | Value::Uint(_)) => {
                let index = match index {
                    Value::Int(index) => usize::try_from(*index).ok(),
                    Value::Uint(index) => usize::try_from(*index).ok(),
                    _ => None,
                };
                list.get(index.unwrap_or(usize::MAX))
            }
            (Value::Map(map), key) => {
                self.charge(map.len())?;
                let found = map.get(key)?;
                found.ok_or_else(|| EvaluationError::new("the map has no such key"))
            }
            (other, _) => Err(wrong_kind("[]", other)),
        }
    }

    /// `&&` and `||`: a part that decides wins over one that fails, whatever their order.
    fn connect(&self, all: &'a [Expr], decides: bool, local: Local<'_, 'a>) -> Evaluated<'a> {
        let mut failure = None;
        for part in all {
            match self.value(part, local).and_then(|value| boolean(&value)) {
                Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(error) => _ = failure.get_or_insert(error),
            }
        }
        failure.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn relation(
        &self,
        operator: Relation,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Result<bool, EvaluationError> {
        let order = |accepts: fn(Ordering) -> bool| {
            let order = left.compare(right).ok_or_else(|| {
                EvaluationError::new(format!(
                    "a {} and a {} cannot be compared",
                    left.kind(),
                    right.kind()
                ))
            })?;
            Ok(accepts(order))
        };
        self.charge(left.weight().min(right.weight()))?;
        match operator {
            Relation::Equal => self.equal(left, right),
            Relation::NotEqual => self.equal(left, right).map(|equal| !equal),
            Relation::Less => order(Ordering::is_lt),
            Relation::LessOrEqual => order(Ordering::is_le),
            Relation::Greater => order(Ordering::is_gt),
            Relation::GreaterOrEqual => order(Ordering::is_ge),
            Relation::In => match right {
                Value::List(list) => {
                    for index in 0..list.len() {
                        self.charge(0)?;
                        if self.equal(left, &list.get(index)?)? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                }
                Value::Map(map) => {
                    self.charge(map.len())?;
                    Ok(map.get(left)?.is_some())
                }
                other => Err(wrong_kind("in", other)),
            },
        }
    }

    /// Equality. The contents of lists and maps are charged as they are compared.
    fn equal(&self, left: &Value<'a>, right: &Value<'a>) -> Result<bool, EvaluationError> {
        self.charge(left.weight().min(right.weight()))?;
        match (left, right) {
            (Value::List(all), Value::List(others)) if all.len() == others.len() => {
                for index in 0..all.len() {
                    if !self.equal(&all.get(index)?, &others.get(index)?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Map(map), Value::Map(other)) if map.len() == other.len() => {
                for key in map.keys() {
                    self.charge(other.len())?;
                    let is_same = match (map.get(&key)?, other.get(&key)?) {
                        (Some(left), Some(right)) => self.equal(&left, &right)?,
                        _ => false,
                    };
                    if !is_same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => Ok(false),
            _ => Ok(left.equals(right)),
        }
    }

    fn comprehension(&self, inner: &'a Comprehension) -> Evaluated<'a> {
        let Comprehension { kind, range, condition, body } = inner;
        let range = match self.value(range, None)? {
            Value::List(list) => list,
            Value::Map(map) => List::Made(map.keys().into()),
            other => return Err(wrong_kind("a comprehension", &other)),
        };
        if range.len() > MAX_ELEMENTS {
            return Err(too_long());
        }
        let (mut made, mut count, mut failure) = (Vec::new(), 0, None);
        for index in 0..range.len() {
            let element = range.get(index)?;
            let local = Some(&element);
            let holds = |expr| self.value(expr, local).and_then(|value| boolean(&value));
            match kind {
                ComprehensionKind::Map => {
                    if condition.as_ref().map_or(Ok(true), holds)? {
                        made.push(self.value(body, local)?);
                    }
                }
                ComprehensionKind::Filter => {
                    if holds(body)? {
                        made.push(element);
                    }
                }
                ComprehensionKind::ExistsOne => count += usize::from(holds(body)?),
                ComprehensionKind::All | ComprehensionKind::Exists => {
                    let decides = *kind == ComprehensionKind::Exists;
                    match holds(body) {
                        Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                        Ok(_) => {}
                        Err(error) => _ = failure.get_or_insert(error),
                    }
                }
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        Ok(match kind {
            ComprehensionKind::Map | ComprehensionKind::Filter => {
                Value::List(List::Made(made.into()))
            }
            ComprehensionKind::ExistsOne => Value::Bool(count == 1),
            ComprehensionKind::All => Value::Bool(true),
            ComprehensionKind::Exists => Value::Bool(false),
        })
    }
}

fn constant_value(constant: &Constant) -> Value<'_> {
    match constant {
        Constant::Null => Value::Null,
        Constant::Bool(value) => Value::Bool(*value),
        Constant::Int(value) => Value::Int(*value),
        Constant::Uint(value) => Value::Uint(*value),
        Constant::Double(value) => Value::Double(*value),
        Constant::String(text) => Value::of_text(text),
    }
}

fn boolean(value: &Value<'_>) -> Result<bool, EvaluationError> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(EvaluationError::new(format!("expected a bool, found a {}", other.kind()))),
    }
}

fn missing(name: &str) -> EvaluationError {
    EvaluationError::new(format!("there is no `{name}`"))
}

fn member_name(member: PrincipalMember) -> &'static str {
    let known = PrincipalMember::ALL.iter().find(|(_, it)| *it == member);
    known.map_or("member", |(name, _)| name)
}

fn overflow() -> EvaluationError {
    EvaluationError::new("the result is out of range")
}

fn negated<'a>(value: &Value<'a>) -> Evaluated<'a> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        Value::Double(value) => Ok(Value::Double(-value)),
        other => Err(wrong_kind("-", other)),
    }
}

fn arithmetic<'a>(operator: Arithmetic, left: Value<'a>, right: Value<'a>) -> Evaluated<'a> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => {
            let result = match operator {
                Arithmetic::Add => left.checked_add(right),
                Arithmetic::Subtract => left.checked_sub(right),
                Arithmetic::Multiply => left.checked_mul(right),
                Arithmetic::Divide => left.checked_div(right),
                Arithmetic::Remainder => left.checked_rem(right),
            };
            result.map(Value::Int).ok_or_else(overflow)
        }
        (Value::Uint(left), Value::Uint(right)) => {
            let result = match operator {
                Arithmetic::Add => left.checked_add(right),
                Arithmetic::Subtract => left.checked_sub(right),
                Arithmetic::Multiply => left.checked_mul(right),
                Arithmetic::Divide => left.checked_div(right),
                Arithmetic::Remainder => left.checked_rem(right),
            };
            result.map(Value::Uint).ok_or_else(overflow)
        }
        (Value::Double(left), Value::Double(right)) => match operator {
            Arithmetic::Add => Ok(Value::Double(left + right)),
            Arithmetic::Subtract => Ok(Value::Double(left - right)),
            Arithmetic::Multiply => Ok(Value::Double(left * right)),
            Arithmetic::Divide => Ok(Value::Double(left / right)),
            Arithmetic::Remainder => Err(EvaluationError::new("`%` needs integers")),
        },
        (Value::String(left), Value::String(right)) if operator == Arithmetic::Add => {
            Ok(Value::String(Cow::Owned(left.into_owned() + &right)))
        }
        (Value::List(left), Value::List(right)) if operator == Arithmetic::Add => {
            if left.len() + right.len() > MAX_ELEMENTS {
                return Err(too_long());
            }
            let left_elements = (0..left.len()).map(|index| left.get(index));
            let right_elements = (0..right.len()).map(|index| right.get(index));
            let all: Result<Vec<_>, _> = left_elements.chain(right_elements).collect();
            Ok(Value::List(List::Made(Arc::from(all?))))
        }
        (left, right) => time_arithmetic(operator, &left, &right),
    }
}

fn time_arithmetic<'a>(operator: Arithmetic, left: &Value<'a>, right: &Value<'a>) -> Evaluated<'a> {
    let moment = |nanoseconds| Moment::new(nanoseconds).map(Value::Timestamp).ok_or_else(overflow);
    let duration = |nanoseconds: i128| match nanoseconds.abs() <= MAX_DURATION {
        true => Ok(Value::Duration(nanoseconds)),
        false => Err(overflow()),
    };
    match (operator, left, right) {
        (Arithmetic::Add, Value::Timestamp(at), Value::Duration(length))
        | (Arithmetic::Add, Value::Duration(length), Value::Timestamp(at)) => moment(at.0 + length),
        (Arithmetic::Subtract, Value::Timestamp(at), Value::Duration(length)) => {
            moment(at.0 - length)
        }
        (Arithmetic::Subtract, Value::Timestamp(at), Value::Timestamp(before)) => {
            duration(at.0 - before.0)
        }
        (Arithmetic::Add, Value::Duration(left), Value::Duration(right)) => duration(left + right),
        (Arithmetic::Subtract, Value::Duration(left), Value::Duration(right)) => {
            duration(left - right)
        }
        _ => Err(EvaluationError::new(format!(
            "this operator cannot be used on a {} and a {}",
            left.kind(),
            right.kind()
        ))),
    }
}
