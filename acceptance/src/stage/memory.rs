//! The stage `memory`: the real driver inside this process, with a simulated clock.

use std::time::Duration;

use creole::Service;
use creole::stream::{MemoryConnection, memory_pair};
use creole_test_wait::blocking::within;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::Stage;

/// The name in a `Skip` header.
pub const NAME: &str = "memory";

/// A served connection and the client's end of it.
pub struct MemoryStage {
    runtime: Runtime,
    client: MemoryConnection,
    server: Option<JoinHandle<std::io::Result<()>>>,
    received: Vec<u8>,
    paused: bool,
}

impl MemoryStage {
    /// Serves a connection. With `paused` its clock advances only by [`Stage::advance`].
    pub fn new(service: Service, paused: bool) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(paused)
            .build()
            .map_err(|error| error.to_string())?;
        let (client, server) = memory_pair();
        let (source, sink) = server.split();
        let server = runtime.spawn(async move { service.serve(source, sink).await.map(|_| ()) });
        Ok(Self { runtime, client, server: Some(server), received: Vec::new(), paused })
    }

    fn next_line(&mut self) -> Option<String> {
        let end = self.received.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    /// Runs the server without ever being idle, so that a paused clock does not advance by itself.
    fn work(&mut self, wait: Duration, mut is_done: impl FnMut(&mut Self) -> bool) {
        let _ = within(wait, || {
            if is_done(self) {
                return true;
            }
            let client = &mut self.client;
            let received = &mut self.received;
            self.runtime.block_on(async {
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                while let Ok(Some(bytes)) =
                    tokio::time::timeout(Duration::ZERO, client.receive()).await
                {
                    received.extend_from_slice(&bytes);
                }
            });
            is_done(self)
        });
    }
}

impl Stage for MemoryStage {
    fn send(&mut self, bytes: &[u8]) {
        // A server that has ended accepts nothing more. The next expectation fails then.
        _ = self.runtime.block_on(self.client.send(bytes));
    }

    fn receive(&mut self, wait: Duration) -> Option<String> {
        self.work(wait, |stage| stage.received.contains(&b'\n'));
        self.next_line()
    }

    fn advance(&mut self, by: Duration) -> bool {
        if !self.paused {
            return false;
        }
        self.work(Duration::from_millis(5), |_| false);
        self.runtime.block_on(tokio::time::advance(by));
        self.work(Duration::from_millis(5), |_| false);
        true
    }

    fn close(&mut self) -> Result<(), String> {
        self.client.close();
        self.work(Duration::from_secs(12), |stage| {
            stage.server.as_ref().is_none_or(JoinHandle::is_finished)
        });
        match self.server.take() {
            Some(server) if server.is_finished() => {
                let ended = self.runtime.block_on(server).map_err(|error| error.to_string())?;
                ended.map_err(|error| error.to_string())
            }
            _ => Err("still serving after its input ended".to_owned()),
        }
    }
}
