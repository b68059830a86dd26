//! Calls of this program itself, such as of its console: they pass the whole chain as those of a client do.

use std::sync::Arc;

use creole_proto::model::{ClientCapabilities, Implementation, Level, TaskPreference};
use creole_proto::operation::{Caller, InputResponses, Operation, Outcome};
use creole_proto::revision::Rules;
use creole_proto::server::{Call as Started, CallKey, encode_response};
use creole_proto::wire::Raw;

use crate::call::{Canceller, ClientChannel, Origin};
use crate::chain::BoxFuture;
use crate::principal::Principal;
use crate::server::Service;
use crate::telemetry::facts::{RequestFacts, Via};

/// One operation that this program requests of its own server.
#[derive(Clone, Debug)]
pub struct DirectCall {
    /// The operation.
    pub operation: Operation,
    /// Who calls. Its rights count as those of a client.
    pub principal: Principal,
    /// The rules of the revision that the call is made in.
    pub rules: &'static Rules,
    /// The capabilities of the caller. They decide which input requests it gets.
    pub capabilities: ClientCapabilities,
    /// What the caller says about itself.
    pub client: Option<Implementation>,
    /// The minimum level of log messages that the caller gets.
    pub log: Option<Level>,
    /// The input responses and the request state, if the call is repeated with them.
    pub input_responses: Option<InputResponses>,
    /// Where the call comes from, and its id and message for the record.
    pub facts: RequestFacts,
}

impl DirectCall {
    /// A call of the console, without capabilities.
    pub fn new(operation: Operation, principal: Principal, rules: &'static Rules) -> Self {
        Self {
            operation,
            principal,
            rules,
            capabilities: ClientCapabilities::default(),
            client: None,
            log: None,
            input_responses: None,
            facts: RequestFacts { via: Via::Console, ..RequestFacts::default() },
        }
    }
}

impl Service {
    /// Runs an operation through the whole chain. Progress, log messages and inline input requests go to the channel.
    /// In a revision whose input requests are an outcome, the caller repeats the call with its responses. Dropping the
    /// future cancels the call; the canceller also tells the handler.
    #[doc(hidden)]
    pub fn call_directly(
        &self,
        call: DirectCall,
        channel: Arc<dyn ClientChannel>,
    ) -> (BoxFuture<'static, Outcome>, Canceller) {
        let DirectCall { operation, principal, rules, facts, .. } = call;
        let origin = match rules.has_sessions {
            true => Origin::new(principal),
            false => Origin::sessionless(principal),
        };
        let caller = Caller {
            rules,
            capabilities: Arc::new(call.capabilities),
            client: call.client.as_ref().map(Raw::from_value),
            log: call.log,
            progress: true,
            input_responses: call.input_responses,
            task_preference: TaskPreference::Never,
            extra: None,
        };
        let started = Started { key: CallKey(0), operation, caller };
        self.start_request(started, channel, origin, || facts)
    }

    /// The response to an operation as a client of a revision gets it: a JSON-RPC message. `id` is JSON.
    #[doc(hidden)]
    pub fn encode_response(
        &self,
        id: &str,
        operation: &Operation,
        outcome: Outcome,
        rules: &'static Rules,
    ) -> String {
        encode_response(&self.current_profile(), id, operation, outcome, rules)
    }
}
