//! The methods that clients send: their names on the wire, and sets of methods.

/// A method or notification that a client may send to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Starts the handshake, up to 2025-11-25 (2025-11-25 schema, `InitializeRequest`).
    Initialize,
    /// Checks whether the peer is alive (2025-11-25 schema, `PingRequest`).
    Ping,
    /// Requests versions, capabilities and identity (2026-07-28 schema, `DiscoverRequest`).
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
    /// Lists the direct children of a directory, from 2026-07-28 (SEP-2640, reading directories).
    ReadDirectory,
    /// Subscribes the session to a resource (2025-11-25 schema, `SubscribeRequest`).
    Subscribe,
    /// Ends a subscription of the session.
    Unsubscribe,
    /// Lists prompts.
    ListPrompts,
    /// Renders a prompt.
    GetPrompt,
    /// Lists skills, from 2026-07-28 (SEP-2640, listing skills).
    ListSkills,
    /// Describes one skill, from 2026-07-28 (SEP-2640, getting a skill).
    GetSkill,
    /// Completes an argument.
    Complete,
    /// Sets the session's log level (2025-11-25 schema, `SetLevelRequest`).
    SetLevel,
    /// Opens a stream of notifications (2026-07-28 schema, `SubscriptionsListenRequest`).
    Listen,
    /// Requests the state of a task.
    GetTask,
    /// Waits for the result of a task (2025-11-25 schema, `GetTaskPayloadRequest`).
    TaskResult,
    /// Lists tasks (2025-11-25 schema, `ListTasksRequest`).
    ListTasks,
    /// Sends input responses to a task (SEP-2663, task update requests).
    UpdateTask,
    /// Cancels a task.
    CancelTask,
    /// Ends the handshake.
    Initialized,
    /// Cancels a request.
    Cancelled,
    /// Reports progress on a request of the server.
    Progress,
    /// Reports that the client's roots changed (2025-11-25 schema, `RootsListChangedNotification`).
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

    /// The union of both sets.
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
    fn the_table_has_the_order_of_the_enum() {
        for (position, (method, name)) in Method::ALL.iter().enumerate() {
            assert_eq!(*method as usize, position, "{name}");
            assert_eq!(Method::from_name(name), Some(*method));
            assert_eq!(method.name(), *name);
        }
    }
}
