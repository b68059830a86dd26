//! A call of the tool `ask` of a recording server, which waits for the input of its client.

use std::net::SocketAddr;

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::replicas::tenant_key;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

/// A call that waits for input.
pub(crate) struct ParkedCall {
    tool: &'static str,
    tenant: usize,
    arguments: Value,
    required: Value,
}

/// The first caller. It can be asked.
pub(crate) fn client(address: SocketAddr) -> StatelessClient {
    client_of(0, address)
}

/// A caller that can be asked.
fn client_of(tenant: usize, address: SocketAddr) -> StatelessClient {
    StatelessClient::new(address).that_can(json!({"elicitation": {}})).with_key(&tenant_key(tenant))
}

impl ParkedCall {
    /// Calls the tool, which asks.
    #[track_caller]
    pub(crate) fn begin(address: SocketAddr, tool: &'static str, nonce: &str) -> Self {
        Self::begin_as(0, address, tool, json!({"nonce": nonce}))
    }

    /// The same for a caller by its number. One caller may have 16 parked calls.
    #[track_caller]
    pub(crate) fn begin_as(
        tenant: usize,
        address: SocketAddr,
        tool: &'static str,
        arguments: Value,
    ) -> Self {
        let response = client_of(tenant, address).call(tool, arguments.clone());
        assert_eq!(response["result"]["resultType"], "input_required", "{response}");
        Self { tool, tenant, arguments, required: response["result"].clone() }
    }

    /// What tells it apart from other calls.
    pub(crate) fn nonce(&self) -> &str {
        self.arguments["nonce"].as_str().unwrap()
    }

    /// The text of its result.
    pub(crate) fn result(&self) -> String {
        format!("{} by Ann", self.nonce())
    }

    /// Returns with the input.
    #[track_caller]
    pub(crate) fn return_to(&self, address: SocketAddr) -> Value {
        let keys = self.required["inputRequests"].as_object().unwrap().keys();
        let input = json!({"action": "accept", "content": {"name": "Ann"}});
        let responses: Value = keys.map(|key| (key.clone(), input.clone())).collect();
        let state = &self.required["requestState"];
        client_of(self.tenant, address).again(self.tool, self.arguments.clone(), state, responses)
    }

    /// Returns until the replica is not busy any more, which it is while it cannot say what became of the call, or until
    /// it says that another one continues the call.
    #[track_caller]
    pub(crate) fn settle_at(&self, address: SocketAddr) -> Value {
        eventually("the replica says what became of the call", || {
            let response = self.return_to(address);
            let text = response.to_string();
            let is_settled =
                !text.contains("busy") || text.contains("another replica continues the call");
            is_settled.then_some(response)
        })
    }
}
