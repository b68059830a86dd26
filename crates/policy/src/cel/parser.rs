//! Parses an expression, from the operator that binds least to the one that binds most.

use super::ExpressionError;
use super::ast::{Arithmetic, Constant, Expr, ItemMember, PrincipalMember, Relation, Variable};
use super::lexer::{Token, TokenKind, tokens};

/// The maximum depth of an expression.
const MAX_DEPTH: usize = 64;

const RELATIONS: [(&str, Relation); 6] = [
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<", Relation::Less),
    ("<=", Relation::LessOrEqual),
    (">", Relation::Greater),
    (">=", Relation::GreaterOrEqual),
];

/// Parses a whole expression.
pub(super) fn parse(text: &str) -> Result<Expr, ExpressionError> {
    let mut parser = Parser { tokens: tokens(text)?, position: 0, depth: 0, local: None };
    let root = parser.expression()?;
    if parser.peek() != &TokenKind::End {
        return Err(parser.unexpected("an operator or the end"));
    }
    if root.depth() > MAX_DEPTH {
        return Err(too_deep(0));
    }
    Ok(root)
}

fn too_deep(offset: usize) -> ExpressionError {
    let message = format!("the expression is nested deeper than {MAX_DEPTH} levels");
    ExpressionError { message, offset }
}

/// An operand whose members are not chosen yet.
pub(super) enum Operand {
    Value(Expr),
    /// `principal`, `tool`, `resource` or `prompt`, which are no values of their own.
    Root(&'static str),
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    position: usize,
    depth: usize,
    /// The variable of the comprehension that is being parsed.
    pub(super) local: Option<String>,
}

impl Parser {
    pub(super) fn peek(&self) -> &TokenKind {
        &self.tokens[self.position].kind
    }

    pub(super) fn offset(&self) -> usize {
        self.tokens[self.position].offset
    }

    pub(super) fn advance(&mut self) -> TokenKind {
        let kind = self.peek().clone();
        // The end is never passed.
        self.position = (self.position + 1).min(self.tokens.len() - 1);
        kind
    }

    pub(super) fn takes(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Symbol(it) if *it == symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), ExpressionError> {
        match self.takes(symbol) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{symbol}`"))),
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ExpressionError {
        ExpressionError { message: message.into(), offset: self.offset() }
    }

    pub(super) fn unexpected(&self, expected: &str) -> ExpressionError {
        let found = match self.peek() {
            TokenKind::End => "the end".to_owned(),
            TokenKind::Symbol(symbol) => format!("`{symbol}`"),
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::String(_) => "a string".to_owned(),
            TokenKind::Int(_) | TokenKind::Uint(_) | TokenKind::Double(_) => "a number".to_owned(),
        };
        self.error(format!("expected {expected}, found {found}"))
    }

    /// `a ? b : c`
    pub(super) fn expression(&mut self) -> Result<Expr, ExpressionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep(self.offset()));
        }
        let condition = self.alternatives()?;
        let parsed = match self.takes("?") {
            false => condition,
            true => {
                let then = self.alternatives()?;
                self.expect(":")?;
                Expr::Conditional(Box::new([condition, then, self.expression()?]))
            }
        };
        self.depth -= 1;
        Ok(parsed)
    }

    fn alternatives(&mut self) -> Result<Expr, ExpressionError> {
        let mut all = vec![self.conjunction()?];
        while self.takes("||") {
            all.push(self.conjunction()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::Or(all) })
    }

    fn conjunction(&mut self) -> Result<Expr, ExpressionError> {
        let mut all = vec![self.relation()?];
        while self.takes("&&") {
            all.push(self.relation()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::And(all) })
    }

    fn relation(&mut self) -> Result<Expr, ExpressionError> {
        let mut left = self.sum()?;
        loop {
            let operator = match self.peek() {
                TokenKind::Name(name) if name == "in" => Some(Relation::In),
                TokenKind::Symbol(symbol) => {
                    RELATIONS.iter().find(|(it, _)| it == symbol).map(|(_, operator)| *operator)
                }
                _ => None,
            };
            let Some(operator) = operator else { return Ok(left) };
            self.advance();
            let operands = Box::new([left, self.sum()?]);
            left = Expr::Relation { operator, operands };
        }
    }

    fn sum(&mut self) -> Result<Expr, ExpressionError> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                TokenKind::Symbol("+") => Arithmetic::Add,
                TokenKind::Symbol("-") => Arithmetic::Subtract,
                _ => return Ok(left),
            };
            self.advance();
            let operands = Box::new([left, self.product()?]);
            left = Expr::Arithmetic { operator, operands };
        }
    }

    fn product(&mut self) -> Result<Expr, ExpressionError> {
        let mut left = self.unary()?;
        loop {
            let operator = match self.peek() {
                TokenKind::Symbol("*") => Arithmetic::Multiply,
                TokenKind::Symbol("/") => Arithmetic::Divide,
                TokenKind::Symbol("%") => Arithmetic::Remainder,
                _ => return Ok(left),
            };
            self.advance();
            let operands = Box::new([left, self.unary()?]);
            left = Expr::Arithmetic { operator, operands };
        }
    }

    /// Signs before an operand. They are counted, because a row of them is no nesting of this parser.
    fn unary(&mut self) -> Result<Expr, ExpressionError> {
        let mut signs = Vec::new();
        loop {
            if self.takes("!") {
                signs.push('!');
            } else if self.takes("-") {
                signs.push('-');
            } else {
                break;
            }
        }
        let is_negative = signs.last() == Some(&'-');
        let mut operand = match self.peek() {
            TokenKind::Int(value) if is_negative => {
                let value = 0_i64.checked_sub_unsigned(*value);
                let value = value.ok_or_else(|| self.error("the number is too small"))?;
                self.advance();
                signs.pop();
                self.members(Operand::Value(Expr::Constant(Constant::Int(value))))?
            }
            _ => {
                let first = self.primary()?;
                self.members(first)?
            }
        };
        for sign in signs.into_iter().rev() {
            let inner = Box::new(operand);
            operand = if sign == '!' { Expr::Not(inner) } else { Expr::Negate(inner) };
        }
        Ok(operand)
    }

    /// `.member`, `[index]` and `.method(…)` after an operand.
    fn members(&mut self, mut operand: Operand) -> Result<Expr, ExpressionError> {
        loop {
            if self.takes(".") {
                let offset = self.offset();
                let TokenKind::Name(field) = self.advance() else {
                    return Err(ExpressionError {
                        message: "expected a name after `.`".to_owned(),
                        offset,
                    });
                };
                operand = Operand::Value(match (self.takes("("), operand) {
                    (false, operand) => self.select(operand, field, offset)?,
                    (true, Operand::Value(target)) => self.method(target, &field, offset)?,
                    (true, Operand::Root(root)) => return Err(bare_root(root, offset)),
                });
            } else if self.takes("[") {
                let offset = self.offset();
                let target = match operand {
                    Operand::Value(target) => target,
                    Operand::Root(root) => return Err(bare_root(root, offset)),
                };
                let index = self.expression()?;
                self.expect("]")?;
                operand = Operand::Value(match index {
                    Expr::Constant(Constant::String(field)) => {
                        Expr::Select { operand: Box::new(target), field }
                    }
                    index => Expr::Index { operand: Box::new(target), index: Box::new(index) },
                });
            } else {
                return match operand {
                    Operand::Value(value) => Ok(value),
                    Operand::Root(root) => Err(bare_root(root, self.offset())),
                };
            }
        }
    }

    fn select(
        &self,
        operand: Operand,
        field: String,
        offset: usize,
    ) -> Result<Expr, ExpressionError> {
        let unknown = |root: &str, known: Vec<&str>| ExpressionError {
            message: format!("`{root}` has no member `{field}`; it has: {}", known.join(", ")),
            offset,
        };
        match operand {
            Operand::Value(operand) => {
                Ok(Expr::Select { operand: Box::new(operand), field: field.into() })
            }
            Operand::Root("principal") => {
                let known = PrincipalMember::ALL;
                let found = known.iter().find(|(name, _)| *name == field);
                let found = found.map(|(_, member)| Expr::Principal(*member));
                found.ok_or_else(|| {
                    unknown("principal", known.iter().map(|(name, _)| *name).collect())
                })
            }
            Operand::Root(root) => {
                let own = || ItemMember::ALL.iter().filter(|(item, ..)| *item == root);
                let found = own().find(|(_, name, _)| *name == field);
                let found = found.map(|(.., member)| Expr::Item(*member));
                found.ok_or_else(|| unknown(root, own().map(|(_, name, _)| *name).collect()))
            }
        }
    }

    pub(super) fn primary(&mut self) -> Result<Operand, ExpressionError> {
        let offset = self.offset();
        Ok(Operand::Value(match self.peek().clone() {
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")")?;
                inner
            }
            TokenKind::Symbol("[") => {
                self.advance();
                Expr::List(self.separated("]", Self::expression)?)
            }
            TokenKind::Symbol("{") => {
                self.advance();
                Expr::Map(self.separated("}", |parser| {
                    let key = parser.expression()?;
                    parser.expect(":")?;
                    Ok((key, parser.expression()?))
                })?)
            }
            TokenKind::Name(name) => {
                self.advance();
                return match self.takes("(") {
                    true => self.function(&name, offset).map(Operand::Value),
                    false => self.variable(&name, offset),
                };
            }
            TokenKind::Int(value) => {
                let value = i64::try_from(value).map_err(|_| self.error("the number is too large"));
                let value = value?;
                self.advance();
                Expr::Constant(Constant::Int(value))
            }
            TokenKind::Uint(value) => {
                self.advance();
                Expr::Constant(Constant::Uint(value))
            }
            TokenKind::Double(value) => {
                self.advance();
                Expr::Constant(Constant::Double(value))
            }
            TokenKind::String(value) => {
                self.advance();
                Expr::Constant(Constant::String(value.into()))
            }
            _ => return Err(self.unexpected("a value")),
        }))
    }

    /// Parts that are separated by commas, up to the closing bracket. A comma may follow the last one.
    pub(super) fn separated<T>(
        &mut self,
        close: &str,
        mut part: impl FnMut(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<Vec<T>, ExpressionError> {
        let mut parts = Vec::new();
        while !self.takes(close) {
            parts.push(part(self)?);
            if !self.takes(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(parts)
    }

    fn variable(&self, name: &str, offset: usize) -> Result<Operand, ExpressionError> {
        if self.local.as_deref() == Some(name) {
            return Ok(Operand::Value(Expr::Local));
        }
        Ok(Operand::Value(match name {
            "true" => Expr::Constant(Constant::Bool(true)),
            "false" => Expr::Constant(Constant::Bool(false)),
            "null" => Expr::Constant(Constant::Null),
            "server" => Expr::Variable(Variable::Server),
            "method" => Expr::Variable(Variable::Method),
            "arguments" => Expr::Variable(Variable::Arguments),
            "now" => Expr::Variable(Variable::Now),
            "principal" => return Ok(Operand::Root("principal")),
            "tool" => return Ok(Operand::Root("tool")),
            "resource" => return Ok(Operand::Root("resource")),
            "prompt" => return Ok(Operand::Root("prompt")),
            _ => {
                let known = "principal, server, method, tool, resource, prompt, arguments and now";
                let message = format!("unknown variable `{name}`; the variables are {known}");
                return Err(ExpressionError { message, offset });
            }
        }))
    }
}

fn bare_root(root: &str, offset: usize) -> ExpressionError {
    let message = format!("`{root}` has no value of its own; write `{root}.` and a member");
    ExpressionError { message, offset }
}
