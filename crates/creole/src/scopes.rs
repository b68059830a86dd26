//! The scopes that operations require of access tokens.
//!
//! An operation requires one of the scopes that have a pattern for it. Scopes limit only callers with an access token:
//! users, keys and local callers are limited by roles and policies.

use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::Reference;
use creole_proto::operation::Operation;
use creole_proto::wire::Raw;

use crate::name_patterns::NamePatterns;
use crate::principal::Principal;

/// One scope: what it allows, and what its holders have besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeRule {
    /// The scope.
    pub name: Arc<str>,
    /// The tools that it allows.
    pub tools: NamePatterns,
    /// The resources that it allows, by their URIs.
    pub resources: NamePatterns,
    /// The prompts that it allows.
    pub prompts: NamePatterns,
    /// The tools whose tasks it allows.
    pub tasks: NamePatterns,
    /// The methods that it allows.
    pub methods: NamePatterns,
    /// The scopes that it includes.
    pub implies: Vec<Arc<str>>,
    /// The roles of its holders.
    pub roles: Vec<Arc<str>>,
}

/// The scopes of a server, in the order of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeRules {
    rules: Vec<ScopeRule>,
    denies_unlisted: bool,
}

/// What the scopes of a token bring along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpandedScopes {
    /// The scopes that they imply.
    pub implied: Vec<Arc<str>>,
    /// The roles of their holders.
    pub roles: Vec<Arc<str>>,
}

/// What the scopes of a caller lack for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeDenial {
    /// Any of these scopes would be enough for one part of the operation, and all of them for the whole.
    Missing(Vec<Arc<str>>),
    /// No scope allows the operation.
    Unlisted,
}

/// The kind of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Tool,
    Resource,
    Prompt,
    Task,
}

impl ScopeRules {
    /// These scopes. `denies_unlisted`: whether an operation on an item that no scope names is refused.
    #[must_use]
    pub fn new(rules: Vec<ScopeRule>, denies_unlisted: bool) -> Self {
        Self { rules, denies_unlisted }
    }

    /// The names of the scopes.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.rules.iter().map(|rule| &rule.name)
    }

    /// The scopes and roles that holders of these scopes also have. A circle of implied scopes ends.
    #[must_use]
    pub fn expand(&self, granted: &[Arc<str>]) -> ExpandedScopes {
        let mut held = granted.to_vec();
        let mut expanded = ExpandedScopes::default();
        let mut next = 0;
        while let Some(scope) = held.get(next).cloned() {
            next += 1;
            for rule in self.rules.iter().filter(|rule| rule.name == scope) {
                for implied in rule.implies.iter() {
                    if !held.contains(implied) {
                        held.push(Arc::clone(implied));
                        expanded.implied.push(Arc::clone(implied));
                    }
                }
                for role in rule.roles.iter() {
                    if !expanded.roles.contains(role) {
                        expanded.roles.push(Arc::clone(role));
                    }
                }
            }
        }
        expanded
    }

    /// Whether no caller can lack a scope for an operation.
    pub fn allows_everything(&self) -> bool {
        self.rules.is_empty() && !self.denies_unlisted
    }

    /// Checks that the principal has a scope for the operation.
    ///
    /// # Errors
    /// What it lacks.
    pub fn check(&self, principal: &Principal, operation: &Operation) -> Result<(), ScopeDenial> {
        let mut check = ScopeCheck::new(self, principal, operation.method());
        match operation {
            Operation::CallTool { name, .. } => check.item(ItemKind::Tool, name),
            Operation::GetPrompt { name, .. } => check.item(ItemKind::Prompt, name),
            Operation::ReadResource { uri }
            | Operation::ReadDirectory { uri, .. }
            | Operation::GetSkill { uri }
            | Operation::Subscribe { uri }
            | Operation::Unsubscribe { uri } => check.item(ItemKind::Resource, uri),
            Operation::Complete(request) => match &request.reference {
                Reference::Prompt(name) => check.item(ItemKind::Prompt, name),
                Reference::Resource(uri) => check.item(ItemKind::Resource, uri),
            },
            Operation::Listen(filter) if !filter.uris.is_empty() => {
                filter.uris.iter().for_each(|uri| check.item(ItemKind::Resource, uri));
            }
            _ => check.method(),
        }
        check.finish()
    }

    /// Checks that the principal has a scope for a task of this tool: that of the call that created it, or one for the
    /// tasks of the tool.
    ///
    /// # Errors
    /// What it lacks.
    pub fn check_task(
        &self,
        principal: &Principal,
        method: &str,
        tool: &str,
    ) -> Result<(), ScopeDenial> {
        let mut check = ScopeCheck::new(self, principal, method);
        check.item(ItemKind::Task, tool);
        check.finish()
    }
}

impl ScopeDenial {
    /// The fault of a call that is denied after it began. Over HTTP it becomes a challenge.
    pub(crate) fn into_fault(self) -> Fault {
        let scopes = match &self {
            Self::Missing(scopes) => scopes.as_slice(),
            Self::Unlisted => &[],
        };
        insufficient_scope_fault(scopes, "the access token needs the scopes")
    }
}

/// The fault of an access token that lacks scopes. `problem` precedes their names.
pub fn insufficient_scope_fault(required: &[Arc<str>], problem: &str) -> Fault {
    let names: Vec<&str> = required.iter().map(|scope| &**scope).collect();
    let detail = format!("{problem}: {}", names.join(" "));
    let data = Raw::from_value(&serde_json::json!({ "required_scopes": names }));
    Fault::new(FaultKind::InsufficientScope, detail).with_data(data)
}

impl ScopeRule {
    fn patterns(&self, kind: ItemKind) -> impl Iterator<Item = &NamePatterns> {
        let (first, second) = match kind {
            ItemKind::Tool => (&self.tools, None),
            ItemKind::Resource => (&self.resources, None),
            ItemKind::Prompt => (&self.prompts, None),
            ItemKind::Task => (&self.tools, Some(&self.tasks)),
        };
        std::iter::once(first).chain(second)
    }

    /// The length of the longest pattern that matches.
    fn longest_match<'a>(
        patterns: impl Iterator<Item = &'a NamePatterns>,
        name: &str,
    ) -> Option<usize> {
        patterns.flat_map(|patterns| patterns.matching(name)).map(str::len).max()
    }
}

/// The check of one operation, which may concern several items.
struct ScopeCheck<'a> {
    rules: &'a ScopeRules,
    principal: &'a Principal,
    method: &'a str,
    missing: Vec<Arc<str>>,
    is_unlisted: bool,
}

impl<'a> ScopeCheck<'a> {
    fn new(rules: &'a ScopeRules, principal: &'a Principal, method: &'a str) -> Self {
        Self { rules, principal, method, missing: Vec::new(), is_unlisted: false }
    }

    fn item(&mut self, kind: ItemKind, name: &str) {
        let method = self.method;
        let is_listed = self.require_one_of(|rule| {
            let by_name = ScopeRule::longest_match(rule.patterns(kind), name);
            by_name.max(ScopeRule::longest_match(std::iter::once(&rule.methods), method))
        });
        self.is_unlisted |= !is_listed && self.rules.denies_unlisted;
    }

    fn method(&mut self) {
        let method = self.method;
        self.require_one_of(|rule| {
            ScopeRule::longest_match(std::iter::once(&rule.methods), method)
        });
    }

    /// Requires one of the scopes that match. Returns whether there is one. Of those that the principal lacks, the one
    /// with the longest pattern is asked for, since it is the narrowest.
    fn require_one_of(&mut self, longest_match: impl Fn(&ScopeRule) -> Option<usize>) -> bool {
        let mut narrowest: Option<(usize, &Arc<str>)> = None;
        for rule in &self.rules.rules {
            let Some(length) = longest_match(rule) else { continue };
            if self.principal.has_scope(&rule.name) {
                return true;
            }
            if narrowest.is_none_or(|(longest, _)| length > longest) {
                narrowest = Some((length, &rule.name));
            }
        }
        let Some((_, scope)) = narrowest else { return false };
        if !self.missing.contains(scope) {
            self.missing.push(Arc::clone(scope));
        }
        true
    }

    fn finish(self) -> Result<(), ScopeDenial> {
        match (self.is_unlisted, self.missing.is_empty()) {
            (true, _) => Err(ScopeDenial::Unlisted),
            (false, false) => Err(ScopeDenial::Missing(self.missing)),
            (false, true) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use creole_proto::operation::SubscriptionFilter;

    use super::*;
    use crate::principal::{TokenIdentity, TokenMethod};

    fn rule(name: &str, tools: &[&str], resources: &[&str]) -> ScopeRule {
        ScopeRule {
            name: name.into(),
            tools: NamePatterns::new(tools.iter().copied()),
            resources: NamePatterns::new(resources.iter().copied()),
            ..ScopeRule::default()
        }
    }

    fn rules() -> ScopeRules {
        let read = rule("files:read", &["files__read_*", "files__list_*"], &["folder://docs/**"]);
        let write = ScopeRule {
            implies: vec!["files:read".into()],
            roles: vec!["writer".into()],
            ..rule("files:write", &["files__*"], &[])
        };
        ScopeRules::new(vec![read, write], false)
    }

    fn holder(rules: &ScopeRules, scopes: &[&str]) -> Principal {
        let scopes: Vec<Arc<str>> = scopes.iter().map(|scope| (*scope).into()).collect();
        let expanded = rules.expand(&scopes);
        let token = TokenIdentity {
            issuer: "https://id.example.com".into(),
            label: "corp".into(),
            subject: Some("ada".into()),
            subject_claim: "sub".into(),
            client: None,
            is_program: false,
            scopes,
            claims: serde_json::Map::default(),
            expires_at: SystemTime::UNIX_EPOCH,
            method: TokenMethod::Jwt,
            is_dpop: false,
            fingerprint: [0; 4],
        };
        Principal::from_token(token, &expanded.roles, &expanded.implied)
    }

    fn call(tool: &str) -> Operation {
        Operation::CallTool { name: tool.to_owned(), arguments: None }
    }

    fn missing(scopes: &[&str]) -> Result<(), ScopeDenial> {
        Err(ScopeDenial::Missing(scopes.iter().map(|scope| (*scope).into()).collect()))
    }

    #[test]
    fn an_operation_needs_one_of_the_scopes_with_a_pattern_and_asks_for_the_narrowest() {
        let rules = rules();
        let check = |scopes: &[&str], operation| rules.check(&holder(&rules, scopes), &operation);
        assert_eq!(check(&["files:read"], call("files__read_text")), Ok(()));
        assert_eq!(check(&["files:read"], call("files__write")), missing(&["files:write"]));
        assert_eq!(check(&[], call("files__read_text")), missing(&["files:read"]));
        assert_eq!(check(&[], call("clock")), Ok(()), "no scope names the tool");
        assert_eq!(check(&[], Operation::Discover), Ok(()));
    }

    #[test]
    fn a_scope_includes_those_that_it_implies_and_brings_its_roles() {
        let rules = rules();
        let writer = holder(&rules, &["files:write"]);
        assert!(writer.has_scope("files:read") && writer.has_role("writer"));
        assert_eq!(rules.check(&writer, &call("files__read_text")), Ok(()));
        let uri = "folder://docs/a/b.md".to_owned();
        assert_eq!(rules.check(&writer, &Operation::ReadResource { uri }), Ok(()));
        assert!(!holder(&rules, &["files:read"]).has_role("writer"));
    }

    #[test]
    fn scopes_that_imply_each_other_are_no_endless_loop() {
        let implying = |name: &str, implied: &str| ScopeRule {
            implies: vec![implied.into()],
            ..rule(name, &[], &[])
        };
        let rules = ScopeRules::new(vec![implying("a", "b"), implying("b", "a")], false);
        let expanded = rules.expand(&["a".into()]);
        assert_eq!(expanded.implied, [Arc::<str>::from("b")]);
    }

    #[test]
    fn a_subscription_to_several_resources_needs_the_scopes_of_all_at_once() {
        let rules = ScopeRules::new(
            vec![
                rule("a", &[], &["a://*"]),
                rule("b", &[], &["b://*"]),
                rule("c", &[], &["c://*"]),
            ],
            false,
        );
        let uris = ["a://1", "b://1", "b://2", "c://1"].map(str::to_owned).to_vec();
        let listen =
            Operation::Listen(SubscriptionFilter { uris, ..SubscriptionFilter::default() });
        assert_eq!(rules.check(&holder(&rules, &["c"]), &listen), missing(&["a", "b"]));
    }

    #[test]
    fn unlisted_items_can_be_denied_and_lists_cannot() {
        let rules = ScopeRules::new(vec![rule("files", &["files__*"], &[])], true);
        let caller = holder(&rules, &["files"]);
        assert_eq!(rules.check(&caller, &call("clock")), Err(ScopeDenial::Unlisted));
        assert_eq!(rules.check(&caller, &call("files__read")), Ok(()));
        assert_eq!(rules.check(&caller, &Operation::Discover), Ok(()));
        let empty = ScopeRules::new(Vec::new(), true);
        assert!(!empty.allows_everything() && ScopeRules::default().allows_everything());
    }

    #[test]
    fn methods_and_tasks_have_patterns() {
        let mut listing = rule("list", &[], &[]);
        listing.methods = NamePatterns::new(["tools/list"]);
        let mut follow = rule("follow", &["build"], &[]);
        follow.tasks = NamePatterns::new(["deploy"]);
        let rules = ScopeRules::new(vec![listing, follow], false);
        let list = Operation::List(creole_proto::model::ListKind::Tools, None);
        assert_eq!(rules.check(&holder(&rules, &[]), &list), missing(&["list"]));
        assert_eq!(rules.check(&holder(&rules, &["list"]), &list), Ok(()));
        let without_scopes = holder(&rules, &[]);
        for tool in ["build", "deploy"] {
            assert_eq!(rules.check_task(&without_scopes, "tasks/get", tool), missing(&["follow"]));
        }
        assert_eq!(rules.check_task(&without_scopes, "tasks/get", "other"), Ok(()));
    }

    #[test]
    fn callers_without_a_token_are_not_limited() {
        let rules = rules();
        for principal in [Principal::local(), "key:ci".into()] {
            assert_eq!(rules.check(&principal, &call("files__write")), Ok(()));
        }
    }
}
