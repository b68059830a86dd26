//! Rules as they are written.

/// What a rule does with the requests that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Lets them pass.
    Allow,
    /// Refuses them.
    Deny,
}

impl Effect {
    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// A policy as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// What happens to requests that no rule decides.
    pub default: Effect,
    /// The rules. Their order has no effect.
    pub rules: Vec<RuleSettings>,
}

/// One rule as it is written. In lists of patterns `*` matches any characters and `?` one. An empty list does not
/// limit the rule, except that a rule with patterns for one kind of item does not match the other kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSettings {
    /// The name, for messages and the audit log.
    pub name: String,
    /// The effect.
    pub effect: Effect,
    /// The caller has one of these roles (patterns).
    pub roles: Vec<String>,
    /// The caller's id is one of these (patterns).
    pub principals: Vec<String>,
    /// The caller's client is one of these (patterns).
    pub clients: Vec<String>,
    /// The label of the issuer of the caller's token is one of these (patterns).
    pub issuers: Vec<String>,
    /// The server is one of these (patterns).
    pub servers: Vec<String>,
    /// The scopes that an allowed caller must hold, all of them.
    pub scopes: Vec<String>,
    /// The tools (patterns).
    pub tools: Vec<String>,
    /// The URIs of resources (patterns).
    pub resources: Vec<String>,
    /// The prompts (patterns).
    pub prompts: Vec<String>,
    /// The tools whose tasks are requested (patterns).
    pub tasks: Vec<String>,
    /// The methods (patterns).
    pub methods: Vec<String>,
    /// The expression that must be true.
    pub when: Option<String>,
    /// What a refused caller is told.
    pub message: Option<String>,
}

impl RuleSettings {
    /// A rule that matches everything.
    pub fn new(name: &str, effect: Effect) -> Self {
        let none = Vec::new;
        Self {
            name: name.to_owned(),
            effect,
            roles: none(),
            principals: none(),
            clients: none(),
            issuers: none(),
            servers: none(),
            scopes: none(),
            tools: none(),
            resources: none(),
            prompts: none(),
            tasks: none(),
            methods: none(),
            when: None,
            message: None,
        }
    }
}
