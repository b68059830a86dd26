//! Every method once: its name on the wire, and sets of methods.

/// A method or notification that a client may send to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Opens the handshake (revisions up to 2025-11-25).
    Initialize,
    /// Asks whether the other side is alive.
    Ping,
    /// Asks for versions, capabilities and identity (from 2026-07-28).
    Discover,
    /// Lists tools.
    ListTools,
    /// Calls a tool.
    CallTool,
    /// Lists resources.
    ListResources,
    /// Lists resource templates.
    ListTemplates,
    /// Reads a resource.
    ReadResource,
    /// Lists what is directly in a directory (skills extension, from 2026-07-28).
    ReadDirectory,
    /// Subscribes the session to a resource.
    Subscribe,
    /// Ends a subscription of the session.
    Unsubscribe,
    /// Lists prompts.
    ListPrompts,
    /// Renders a prompt.
    GetPrompt,
    /// Lists skills (skills extension, from 2026-07-28).
    ListSkills,
    /// Tells of one skill (skills extension, from 2026-07-28).
    GetSkill,
    /// Completes an argument.
    Complete,
    /// Sets the session's log level.
    SetLevel,
    /// Opens a stream of notifications (from 2026-07-28).
    Listen,
    /// Asks how a task stands.
    GetTask,
    /// Waits for what a task comes to (2025-11-25).
    TaskResult,
    /// Lists tasks (2025-11-25).
    ListTasks,
    /// Answers the questions of a task (extension of 2026-07-28).
    UpdateTask,
    /// Cancels a task.
    CancelTask,
    /// Ends the handshake.
    Initialized,
    /// Cancels a request.
    Cancelled,
    /// Reports progress on a request of the server.
    Progress,
    /// Tells that the client's roots changed.
    RootsChanged,
}

impl Method {
    /// Every method with its standard name.
    pub const ALL: [(Self, &'static str); 27] = [
        (Self::Initialize, "initialize"),
        (Self::Ping, "ping"),
        (Self::Discover, "server/discover"),
        (Self::ListTools, "tools/list"),
        (Self::CallTool, "tools/call"),
        (Self::ListResources, "resources/list"),
        (Self::ListTemplates, "resources/templates/list"),
        (Self::ReadResource, "resources/read"),
        (Self::ReadDirectory, "resources/directory/read"),
        (Self::Subscribe, "resources/subscribe"),
        (Self::Unsubscribe, "resources/unsubscribe"),
        (Self::ListPrompts, "prompts/list"),
        (Self::GetPrompt, "prompts/get"),
        (Self::ListSkills, "skills/list"),
        (Self::GetSkill, "skills/get"),
        (Self::Complete, "completion/complete"),
        (Self::SetLevel, "logging/setLevel"),
        (Self::Listen, "subscriptions/listen"),
        (Self::GetTask, "tasks/get"),
        (Self::TaskResult, "tasks/result"),
        (Self::ListTasks, "tasks/list"),
        (Self::UpdateTask, "tasks/update"),
        (Self::CancelTask, "tasks/cancel"),
        (Self::Initialized, "notifications/initialized"),
        (Self::Cancelled, "notifications/cancelled"),
        (Self::Progress, "notifications/progress"),
        (Self::RootsChanged, "notifications/roots/list_changed"),
    ];

    /// The method of that standard name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(method, _)| *method)
    }

    /// The standard name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// A set of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodSet(u32);

impl MethodSet {
    /// The set of these methods.
    pub const fn of(methods: &[Method]) -> Self {
        let mut bits = 0;
        let mut next = 0;
        while next < methods.len() {
            bits |= 1 << methods[next] as u32;
            next += 1;
        }
        Self(bits)
    }

    /// This set and that one.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the method is in the set.
    pub const fn contains(self, method: Method) -> bool {
        self.0 & (1 << method as u32) != 0
    }

    /// The methods of the set, in the order of [`Method::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Method> {
        Method::ALL.iter().map(|(method, _)| *method).filter(move |method| self.contains(*method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stands_in_the_order_of_the_enum() {
        for (position, (method, name)) in Method::ALL.iter().enumerate() {
            assert_eq!(*method as usize, position, "{name}");
            assert_eq!(Method::from_name(name), Some(*method));
            assert_eq!(method.name(), *name);
        }
    }
}
