//! Many clients that call at the same time, all with the same id.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use creole_acceptance::load::{Call, Client, Era, History, Pool, SeededRandom};
use creole_test_wait::delay;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

/// The number of clients and calls, and their behaviour.
#[derive(Clone, Copy)]
pub(crate) struct Crowd {
    pub(crate) clients: usize,
    pub(crate) calls: usize,
    /// The number of connections that they share.
    pub(crate) connections: usize,
    /// Clients with an even number use the first era, the others use the second.
    pub(crate) eras: [Era; 2],
    /// Whether an eighth of the calls use a tool that sleeps before it responds.
    pub(crate) sleeps: bool,
}

/// The maximum sleep of a call, in milliseconds.
const LONGEST_SLEEP: u64 = 40;

/// The maximum pause of a client between two calls, in milliseconds.
const LONGEST_PAUSE: u64 = 5;

impl Crowd {
    /// Runs all clients and returns the history of their calls.
    pub(crate) async fn call(self, server: SocketAddr) -> History {
        let seed = SeededRandom::seed();
        println!("LOAD_SEED={seed}");
        let pool = Arc::new(Pool::new(server, self.connections));
        let mut tasks = JoinSet::new();
        for tenant in 0..self.clients {
            let pool = Arc::clone(&pool);
            let random = SeededRandom::new(seed, tenant);
            tasks.spawn(async move {
                let client = Client::connect(&pool, self.eras[tenant % 2]).await;
                let client = client.expect("a handshake");
                let listener = Listener::start(&client).await;
                let calls = self.calls_of(&client, tenant, random).await;
                (tenant, calls, listener.end())
            });
        }
        let mut history = History::default();
        while let Some(ended) = tasks.join_next().await {
            let (tenant, calls, strays) = ended.unwrap();
            history.add(calls);
            for stray in &strays {
                history.add_stray(tenant, stray);
            }
        }
        history
    }

    async fn calls_of(self, client: &Client, tenant: usize, mut random: SeededRandom) -> Vec<Call> {
        let mut calls = Vec::with_capacity(self.calls);
        for number in 1..=self.calls {
            if random.below(2) == 0 {
                delay(random.milliseconds(LONGEST_PAUSE)).await;
            }
            let call = if self.sleeps && random.below(8) == 0 {
                let time = random.below(LONGEST_SLEEP + 1);
                let slept = format!("Slept {time} ms");
                let arguments = json!({"milliseconds": time});
                client.noted(tenant, number, "test_slow", &arguments, slept).await
            } else {
                client.echo(tenant, number, random.nonce()).await
            };
            calls.push(call);
        }
        calls
    }
}

/// Receives the messages on the stream of a session, where no response belongs.
struct Listener {
    heard: Arc<Mutex<Vec<Value>>>,
    task: Option<JoinHandle<()>>,
}

impl Listener {
    /// Opens the stream. A client without a session has none.
    async fn start(client: &Client) -> Self {
        let messages = Arc::new(Mutex::new(Vec::new()));
        if client.requests().era() == Era::Modern {
            return Self { heard: messages, task: None };
        }
        let mut stream = client.listen(&json!(1)).await.expect("a stream");
        let all = Arc::clone(&messages);
        let task = tokio::spawn(async move {
            while let Ok(Some(message)) = stream.next().await {
                all.lock().unwrap().push(message);
            }
        });
        Self { heard: messages, task: Some(task) }
    }

    /// All received messages.
    fn end(self) -> Vec<Value> {
        if let Some(task) = self.task {
            // If the server ended the stream, the test has checked nothing.
            assert!(!task.is_finished(), "the stream of a session ended");
            task.abort();
        }
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}
