//! What an expression depends on.

use std::collections::BTreeSet;

use super::ExpressionError;
use super::ast::{Expr, ItemMember, PrincipalMember, Variable};

/// What an expression depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Whether it depends on the arguments of a call or on the time, so that its value differs between two calls of the
    /// same caller.
    pub varies_by_call: bool,
    /// Whether it reads the annotations of tools.
    pub annotations: bool,
    /// The claims of tokens that it reads.
    pub claims: BTreeSet<String>,
    /// The kinds of items whose members it reads: `tool`, `resource`, `prompt`.
    pub items: BTreeSet<&'static str>,
    /// The members of the principal that it reads, besides claims.
    pub(super) members: BTreeSet<PrincipalMember>,
}

impl References {
    pub(super) fn of(root: &Expr) -> Result<Self, ExpressionError> {
        let mut found = Self::default();
        found.add(root)?;
        Ok(found)
    }

    /// The names of the members of the principal that it reads, besides claims.
    pub fn principal_members(&self) -> impl Iterator<Item = &'static str> {
        let all = PrincipalMember::ALL.iter();
        all.filter(|(_, member)| self.members.contains(member)).map(|(name, _)| *name)
    }

    fn add(&mut self, expr: &Expr) -> Result<(), ExpressionError> {
        match expr {
            Expr::Variable(Variable::Arguments | Variable::Now) => self.varies_by_call = true,
            Expr::Item(member) => {
                self.annotations |= *member == ItemMember::ToolAnnotations;
                let known = ItemMember::ALL.iter().find(|(.., it)| it == member);
                self.items.extend(known.map(|(item, ..)| *item));
            }
            Expr::Select { operand, field } | Expr::Has { operand, field }
                if matches!(**operand, Expr::Principal(PrincipalMember::Claims)) =>
            {
                self.claims.insert(field.to_string());
                return Ok(());
            }
            // Tokens are kept without the claims that no rule names.
            Expr::Principal(PrincipalMember::Claims)
            | Expr::HasPrincipal(PrincipalMember::Claims) => {
                let message = "a claim must be named, such as `principal.claims.department` or \
                     `principal.claims[\"https://example.com/department\"]`";
                return Err(ExpressionError { message: message.to_owned(), offset: 0 });
            }
            Expr::Principal(member) | Expr::HasPrincipal(member) => {
                self.members.insert(*member);
            }
            _ => {}
        }
        expr.children().into_iter().try_for_each(|child| self.add(child))
    }
}
