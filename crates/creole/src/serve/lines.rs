//! Serves a connection of lines: a pair of byte streams with one message per line.
//!
//! Two workers serve a connection and share its state behind a lock. The reader takes the client's input and sends the
//! responses that are ready at once. The background worker does the rest: changes, deadlines, space in a full output, the
//! end. Standard input has a thread as its reader, which blocks in the read itself: a quick call then costs a read and a
//! write. Other input has a task.
//!
//! Handlers run without the lock. The reader polls a new call once, which is enough for most. If a handler computes and
//! does not return from that poll, the background worker starts another thread that reads, and the connection continues:
//! pings, deadlines, other calls and their reports. A reader in a task is not replaced: a handler that computes there
//! holds up the requests of its own connection, as it holds up a thread of the runtime.

mod background;
mod connection;
mod reader;
mod sink;
#[cfg(test)]
mod tests;
mod turn;

use std::io;
use std::sync::Arc;

use crate::call::Origin;
use crate::chain::BoxFuture;
use crate::principal::Principal;
use crate::server::{Server, Service};
use crate::stream::{ByteSink, ByteSource, Stdin, stdio};
use crate::telemetry::facts::Via;
use crate::telemetry::metrics::NetworkTransport;
use background::run_background;
use connection::LineConnection;
use reader::ReaderStarter;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The client closed its side; all its requests have their responses or were cancelled.
    InputClosed,
    /// The client no longer reads.
    OutputBroken,
}

impl Server {
    /// Serves on the process's stdin and stdout until the client disconnects.
    pub async fn serve_stdio(self) -> io::Result<()> {
        self.start().serve_stdio().await.map(|_| ())
    }
}

impl Service {
    /// Serves on the process's stdin and stdout until the client disconnects.
    ///
    /// The future is boxed so that its code is compiled in this crate. Otherwise it is compiled in the crate that awaits
    /// it, with the level of optimisation of that crate.
    pub fn serve_stdio(&self) -> BoxFuture<'_, io::Result<EndReason>> {
        Box::pin(async {
            let (input, output) = (Stdin::open()?, stdio::Output::stdout()?);
            serve(self.clone(), input, output, ReaderStarter::Threads).await
        })
    }

    /// Serves on a pair of byte streams, one message per line, until one of them ends.
    pub async fn serve(
        &self,
        input: impl ByteSource + 'static,
        output: impl ByteSink + 'static,
    ) -> io::Result<EndReason> {
        serve(self.clone(), input, output, ReaderStarter::tasks()).await
    }

    /// Serves a client within this process that acts for this principal.
    #[doc(hidden)]
    pub async fn serve_principal(
        &self,
        principal: Principal,
        via: Via,
        input: impl ByteSource + 'static,
        output: impl ByteSink + 'static,
    ) -> io::Result<EndReason> {
        let origin = Origin::new(principal).via(via);
        serve_origin(self.clone(), origin, input, output, ReaderStarter::tasks()).await
    }
}

/// Serves one connection until it ends. The owner of the pipe is one principal, whatever it declares.
async fn serve<I, O>(
    service: Service,
    input: I,
    output: O,
    readers: ReaderStarter,
) -> io::Result<EndReason>
where
    I: ByteSource + 'static,
    O: ByteSink + 'static,
{
    serve_origin(service, Origin::new(Principal::local()), input, output, readers).await
}

/// Serves one connection of this origin until it ends.
async fn serve_origin<I, O>(
    service: Service,
    origin: Origin,
    input: I,
    output: O,
    readers: ReaderStarter,
) -> io::Result<EndReason>
where
    I: ByteSource + 'static,
    O: ByteSink + 'static,
{
    let changes = service.registry().changes();
    let meter = service.server_metrics().map(|server| server.session(NetworkTransport::Pipe));
    let connection = ServedConnection(LineConnection::new(service, origin, output, readers));
    connection.0.start_reader(input)?;
    let ended = run_background(&connection.0, changes).await;
    if let Some(meter) = meter {
        connection.0.end_session(meter);
    }
    ended
}

/// A connection that ends with its last use, however that comes.
struct ServedConnection<I: ByteSource + 'static, O: ByteSink + 'static>(Arc<LineConnection<I, O>>);

impl<I: ByteSource + 'static, O: ByteSink + 'static> Drop for ServedConnection<I, O> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
