//! The calls of a host: those that are open, and those whose futures a transport polls.

use std::task::{Context, Poll};

use creole_proto::operation::Outcome;
use creole_proto::revision::Rules;
use creole_proto::server::CallKey;
use tokio::task::AbortHandle;

use crate::call::Canceller;
use crate::chain::BoxFuture;
use crate::host::{COMMON_STREAM, StreamKey};
use crate::scopes::ScopeDenial;
use crate::server::MeasuredCalls;
use crate::telemetry::request_log;

/// A call without its response.
pub(super) struct OpenCall {
    pub(super) key: CallKey,
    pub(super) stream: StreamKey,
    pub(super) canceller: Canceller,
    /// The task that runs the call, if it has one.
    pub(super) task: Option<AbortHandle>,
}

impl OpenCall {
    fn stop(self) {
        self.canceller.cancel();
        if let Some(task) = self.task {
            task.abort();
        }
    }
}

/// The open calls of a host, in the order of their keys, which is that of their start.
#[derive(Default)]
pub(crate) struct OpenCalls(Vec<OpenCall>);

impl OpenCalls {
    pub(super) fn push(&mut self, call: OpenCall) {
        if self.0.capacity() == 0 {
            // Mostly there is one call.
            self.0.reserve_exact(1);
        }
        self.0.push(call);
    }

    fn position(&self, key: CallKey) -> Option<usize> {
        self.0.binary_search_by_key(&key, |open| open.key).ok()
    }

    pub(super) fn get_mut(&mut self, key: CallKey) -> Option<&mut OpenCall> {
        self.position(key).map(|index| &mut self.0[index])
    }

    pub(super) fn remove(&mut self, key: CallKey) -> Option<OpenCall> {
        // Mostly it is the latest one, which is not searched for.
        if self.0.last().is_some_and(|open| open.key == key) {
            return self.0.pop();
        }
        self.position(key).map(|index| self.0.remove(index))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stream of a call's messages.
    pub(crate) fn stream_of(&self, key: CallKey) -> StreamKey {
        self.position(key).map_or(COMMON_STREAM, |index| self.0[index].stream)
    }

    /// Whether a call has its messages in this stream.
    pub(super) fn has_stream(&self, stream: StreamKey) -> bool {
        self.0.iter().any(|open| open.stream == stream)
    }

    /// The call of this key.
    pub(super) fn get(&self, key: CallKey) -> Option<&OpenCall> {
        self.position(key).map(|index| &self.0[index])
    }

    /// Cancels a call for this reason; returns its stream.
    pub(super) fn cancel(&mut self, key: CallKey, reason: &str) -> Option<StreamKey> {
        let open = self.remove(key)?;
        let stream = open.stream;
        tracing::debug!(target: request_log::TARGET, reason, "call cancelled");
        open.canceller.cancel_with_reason(reason);
        open.stop();
        Some(stream)
    }

    pub(super) fn stop_all(&mut self, measured: &mut MeasuredCalls) {
        for open in self.0.drain(..) {
            measured.abort(&open.canceller, open.key);
            open.stop();
        }
    }
}

/// A registered call whose future the transport polls.
pub(crate) struct HostedCall {
    pub(crate) key: CallKey,
    pub(crate) future: BoxFuture<'static, Outcome>,
    pub(super) canceller: Canceller,
    /// Whether the call is a subscription to changes.
    pub(crate) is_listener: bool,
}

impl HostedCall {
    /// Polls the call; `None` if it was cancelled.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Option<Poll<Outcome>> {
        (!self.is_cancelled()).then(|| self.future.as_mut().poll(context))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.canceller.is_cancelled()
    }
}

/// The calls that one message starts: mostly one, so that one needs no allocation.
#[derive(Default)]
pub(crate) struct StartedCalls {
    first: Option<HostedCall>,
    rest: Vec<HostedCall>,
    /// Why none of them may run, with the rules of the request.
    denial: Option<Box<(ScopeDenial, &'static Rules)>>,
}

impl StartedCalls {
    pub(super) fn push(&mut self, call: HostedCall) {
        match self.first {
            None => self.first = Some(call),
            Some(_) => self.rest.push(call),
        }
    }

    /// Records that the caller lacks a scope for one of them.
    pub(super) fn deny(&mut self, denial: ScopeDenial, rules: &'static Rules) {
        match (self.denial.as_deref_mut(), denial) {
            (None, denial) => self.denial = Some(Box::new((denial, rules))),
            (Some((ScopeDenial::Missing(all), _)), ScopeDenial::Missing(scopes)) => {
                let further: Vec<_> = scopes.into_iter().filter(|it| !all.contains(it)).collect();
                all.extend(further);
            }
            (Some((other, _)), ScopeDenial::Unlisted) => *other = ScopeDenial::Unlisted,
            (Some((ScopeDenial::Unlisted, _)), _) => {}
        }
    }

    /// Why none of them may run, if the caller lacks a scope.
    pub(crate) fn take_denial(&mut self) -> Option<(ScopeDenial, &'static Rules)> {
        self.denial.take().map(|denial| *denial)
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// The first call, and the others of a batch.
    pub(crate) fn into_parts(self) -> (Option<HostedCall>, Vec<HostedCall>) {
        (self.first, self.rest)
    }

    /// Whether one of them is a subscription to changes.
    pub(crate) fn has_listener(&self) -> bool {
        self.first.iter().chain(&self.rest).any(|call| call.is_listener)
    }
}

impl IntoIterator for StartedCalls {
    type Item = HostedCall;
    type IntoIter =
        std::iter::Chain<std::option::IntoIter<HostedCall>, std::vec::IntoIter<HostedCall>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}
