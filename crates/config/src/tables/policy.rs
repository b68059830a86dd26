//! The table `[policy]`: rules that allow and deny requests.

use creole_policy::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::Spanned;

/// Who may call what. Rules decide about tools, resources, prompts and tasks. Clients only see what they may use.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTable {
    /// What happens to requests that no rule decides. Default: `deny`.
    pub default: Option<PolicyEffect>,
    /// The rules. Their order has no effect: a rule that denies wins over a rule that allows.
    pub rules: Option<Vec<Spanned<PolicyRuleTable>>>,
}

/// One rule. It matches a request if each of its keys about the caller matches, if one of its patterns for items
/// matches, and if `when` is true. In patterns `*` matches any characters and `?` one character. A rule without patterns
/// for items matches all items.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRuleTable {
    /// The name, for messages and the audit log. No two rules have the same name.
    pub name: Spanned<String>,
    /// What the rule does with the requests that it matches.
    pub effect: PolicyEffect,
    /// Patterns of roles. The caller has a role that matches one of them. Default: any caller.
    pub roles: Option<Vec<Spanned<String>>>,
    /// Patterns of callers, such as `user:ada`, `key:ci`, `oauth:LABEL:SUBJECT` and `local` (stdio, and HTTP without
    /// `[auth]`). Default: any caller.
    pub principals: Option<Vec<Spanned<String>>>,
    /// Patterns of the ids of clients that access tokens were issued to. Default: any client.
    pub clients: Option<Vec<Spanned<String>>>,
    /// Patterns of the labels of issuers, as in `[auth.issuers.LABEL]`. Default: any issuer, and callers without an
    /// access token.
    pub issuers: Option<Vec<Spanned<String>>>,
    /// Patterns of the names of servers. Default: any server.
    pub servers: Option<Vec<Spanned<String>>>,
    /// The scopes that an access token must have, all of them. A caller without them is asked to get them. Callers
    /// without an access token are not limited by scopes. Only with `effect = "allow"`.
    pub scopes: Option<Vec<Spanned<String>>>,
    /// Patterns of tools, under the names that clients use.
    pub tools: Option<Vec<Spanned<String>>>,
    /// Patterns of the URIs of resources, skills and resource templates.
    pub resources: Option<Vec<Spanned<String>>>,
    /// Patterns of prompts.
    pub prompts: Option<Vec<Spanned<String>>>,
    /// Patterns of tools. The rule matches requests about the tasks that these tools made. `tools` includes them.
    pub tasks: Option<Vec<Spanned<String>>>,
    /// Patterns of methods, such as `resources/subscribe` and `completion/*`. Lists are only denied by such a pattern.
    pub methods: Option<Vec<Spanned<String>>>,
    /// An expression in CEL that must be true, such as `arguments.owner == principal.name`. Its variables are
    /// `principal` (`id`, `kind`, `name`, `issuer`, `client`, `roles`, `scopes`, `claims`), `server`, `method`, `tool`
    /// (`name`, `annotations`), `resource` (`uri`), `prompt` (`name`), `arguments` and `now`. If it cannot be evaluated,
    /// a rule that denies matches, and a rule that allows does not.
    pub when: Option<Spanned<String>>,
    /// What the caller of a tool is told if this rule refuses the call, or if `when` keeps it from allowing the call.
    /// Default: `not allowed: NAME`.
    pub message: Option<Spanned<String>>,
}

/// What a rule of a policy does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyEffect {
    /// It lets them pass.
    Allow,
    /// It refuses them.
    Deny,
}

impl From<PolicyEffect> for Effect {
    fn from(word: PolicyEffect) -> Self {
        match word {
            PolicyEffect::Allow => Self::Allow,
            PolicyEffect::Deny => Self::Deny,
        }
    }
}
