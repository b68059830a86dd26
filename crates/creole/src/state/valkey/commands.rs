//! The connection for commands. One task keeps it open, and all operations share it.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, cmd};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::super::store_clock::StoreClock;
use super::super::{Result, StateError};
use super::connect::{ConnectPlan, OpenConnection, TaskGuard};
use super::failure::{ConnectFailure, needs_other_server, operation_error};
use super::reconnect_pause::ReconnectPause;
use super::server_check::{check_server, server_time};

/// Maximum number of operations that wait for the server. Further ones fail at once.
const MAX_WAITING_OPERATIONS: usize = 256;

/// Runs operations on the server.
#[derive(Debug)]
pub(super) struct Commands {
    plan: Arc<ConnectPlan>,
    status: watch::Receiver<Status>,
    alarms: Arc<ConnectionAlarms>,
    clock: Arc<StoreClock>,
    slots: Semaphore,
    _task: TaskGuard,
}

#[derive(Debug, Clone)]
enum Status {
    /// The first attempt after a loss is under way, so an operation waits for it.
    Connecting,
    Connected(MultiplexedConnection),
    /// The last attempt failed, so operations fail at once.
    Down(Arc<str>),
}

/// What operations tell the task.
#[derive(Debug, Default)]
struct ConnectionAlarms {
    /// A response is late: see whether the connection still works.
    is_late: Notify,
    /// The server is not the right one any more.
    is_wrong_server: Notify,
}

impl Commands {
    /// Connects. A server that cannot be reached is tried again later; one that must not be used is an error.
    pub(super) async fn start(plan: Arc<ConnectPlan>) -> std::result::Result<Self, ConnectFailure> {
        let clock = Arc::<StoreClock>::default();
        let (first, status) = match connect(&plan, &clock, true).await {
            Ok(open) => {
                let status = Status::Connected(open.connection.clone());
                (Some(open), status)
            }
            Err(ConnectFailure::Refused(problem)) => return Err(ConnectFailure::Refused(problem)),
            Err(ConnectFailure::Unreachable(problem)) => {
                tracing::warn!(store = %plan.store, %problem, "the state store cannot be reached; trying again");
                (None, Status::Down(problem.into()))
            }
        };
        let (sender, status) = watch::channel(status);
        let alarms = Arc::<ConnectionAlarms>::default();
        let task = keep_connected(
            Arc::clone(&plan),
            Arc::clone(&clock),
            first,
            sender,
            Arc::clone(&alarms),
        );
        let slots = Semaphore::new(MAX_WAITING_OPERATIONS);
        Ok(Self { plan, status, alarms, clock, slots, _task: TaskGuard(tokio::spawn(task)) })
    }

    /// The clock of the server.
    pub(super) fn clock(&self) -> &StoreClock {
        &self.clock
    }

    /// Runs an operation within the time limit. It is sent at most once.
    pub(super) async fn run<T, F>(
        &self,
        operation: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let _slot = self.slots.try_acquire().map_err(|_| {
            self.unavailable(&format!("{MAX_WAITING_OPERATIONS} operations wait for it"), false)
        })?;
        let deadline = Instant::now() + self.plan.timeout;
        let connection = match timeout_at(deadline, self.connection()).await {
            Ok(connection) => connection?,
            Err(_) => return Err(self.late("no connection", false)),
        };
        match timeout_at(deadline, operation(connection)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                if needs_other_server(&error) {
                    self.alarms.is_wrong_server.notify_one();
                }
                Err(operation_error(&self.plan.store, &error))
            }
            Err(_) => {
                self.alarms.is_late.notify_one();
                Err(self.late("no response", true))
            }
        }
    }

    async fn connection(&self) -> Result<MultiplexedConnection> {
        let mut status = self.status.clone();
        let known = status.wait_for(|status| !matches!(status, Status::Connecting)).await;
        match known.as_deref() {
            Ok(Status::Connected(connection)) => Ok(connection.clone()),
            Ok(Status::Down(problem)) => Err(self.unavailable(problem, false)),
            Ok(Status::Connecting) | Err(_) => Err(self.unavailable("its task has ended", false)),
        }
    }

    fn late(&self, problem: &str, is_unknown: bool) -> StateError {
        self.unavailable(&format!("{problem} within {:?}", self.plan.timeout), is_unknown)
    }

    /// An error about this server.
    pub(super) fn unavailable(&self, problem: &str, is_unknown: bool) -> StateError {
        let store = Arc::clone(&self.plan.store);
        StateError::Unavailable { store, problem: problem.into(), is_unknown }
    }
}

/// Connects, checks the server and reads its clock.
async fn connect(
    plan: &ConnectPlan,
    clock: &StoreClock,
    is_first: bool,
) -> std::result::Result<OpenConnection, ConnectFailure> {
    let mut open = plan.connect(None).await?;
    let connection = &mut open.connection;
    let checking = async {
        let warnings = check_server(connection, plan.wait_replicas).await?;
        clock.read(&plan.store, || server_time(connection.clone())).await;
        Ok(warnings)
    };
    let warnings = match timeout(plan.timeout, checking).await {
        Ok(checked) => checked?,
        Err(_) => return Err(ConnectFailure::unreachable("its settings did not come in time")),
    };
    if is_first {
        for warning in warnings {
            tracing::warn!(store = %plan.store, %warning, "the state store can be used, with a risk");
        }
    }
    Ok(open)
}

/// Watches the connection and replaces it when it is lost.
async fn keep_connected(
    plan: Arc<ConnectPlan>,
    clock: Arc<StoreClock>,
    first: Option<OpenConnection>,
    status: watch::Sender<Status>,
    alarms: Arc<ConnectionAlarms>,
) {
    let mut pause = ReconnectPause::default();
    let mut is_first = first.is_none();
    let mut open = first;
    loop {
        if let Some(mut connection) = open.take() {
            watch_connection(&mut connection, &alarms, plan.timeout).await;
            status.send_replace(Status::Connecting);
            tracing::warn!(store = %plan.store, "the connection to the state store was lost");
        }
        match connect(&plan, &clock, is_first).await {
            Ok(connection) => {
                tracing::info!(store = %plan.store, "connected to the state store");
                (is_first, pause) = (false, ReconnectPause::default());
                status.send_replace(Status::Connected(connection.connection.clone()));
                open = Some(connection);
            }
            Err(failure) => {
                status.send_replace(Status::Down(failure.problem().into()));
                pause.wait().await;
            }
        }
    }
}

/// Ends when the connection is lost.
async fn watch_connection(open: &mut OpenConnection, alarms: &ConnectionAlarms, limit: Duration) {
    loop {
        tokio::select! {
            _ = &mut open.task.0 => return,
            () = alarms.is_wrong_server.notified() => return,
            () = alarms.is_late.notified() => {
                let ping = cmd("PING");
                let answered = timeout(limit, ping.query_async::<()>(&mut open.connection)).await;
                if !matches!(answered, Ok(Ok(()))) {
                    return;
                }
            }
        }
    }
}
