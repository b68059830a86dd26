//! The durations of operations: one histogram for each method, item, protocol version, transport and type of error.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use creole_proto::method::Method;
use creole_proto::revision::{Revision, Rules};

use super::definition::MetricDef;
use super::instruments::Histogram;
use super::registry::Metrics;
use super::{OTHER, OVERFLOW, table};
use crate::sync::Mutex;

/// The maximum number of tools, and of prompts, of one server or upstream that have series of their own.
pub const MAX_LABELLED_ITEMS: usize = 200;

/// The number of combinations of a revision and a transport.
const VARIANTS: usize = Revision::ALL.len() * 2;

/// The transport of a session, as OpenTelemetry names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkTransport {
    /// The pipes of a process.
    #[default]
    Pipe,
    /// HTTP.
    Tcp,
}

impl NetworkTransport {
    /// The value of the label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Tcp => "tcp",
        }
    }
}

/// The ids of a call whose trace is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedCall {
    /// The id of the trace.
    pub trace_id: [u8; 16],
    /// The id of the call's span.
    pub span_id: [u8; 8],
}

/// The items that have series of their own, by method and name.
type LabelledItems = BTreeMap<(Method, Box<str>), Weak<OperationSeries>>;

/// The operations of one server, or of one upstream.
pub struct Operations {
    metrics: Arc<Metrics>,
    definition: &'static MetricDef,
    owner: Arc<str>,
    /// One for each method, and one for all others.
    methods: [OnceLock<OperationSeries>; Method::ALL.len() + 1],
    items: Mutex<LabelledItems>,
    /// Tools and prompts beyond the bound.
    overflow: [OnceLock<Arc<OperationSeries>>; 2],
}

impl Operations {
    /// The operations of a server.
    pub fn of_server(metrics: &Arc<Metrics>, server: &str) -> Self {
        Self::new(metrics, &table::SERVER_OPERATION_DURATION, server)
    }

    /// The operations of an upstream.
    pub fn of_upstream(metrics: &Arc<Metrics>, upstream: &str) -> Self {
        Self::new(metrics, &table::CLIENT_OPERATION_DURATION, upstream)
    }

    fn new(metrics: &Arc<Metrics>, definition: &'static MetricDef, owner: &str) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            definition,
            owner: Arc::from(owner),
            methods: [const { OnceLock::new() }; Method::ALL.len() + 1],
            items: Mutex::default(),
            overflow: [const { OnceLock::new() }; 2],
        }
    }

    /// The series of a method without an item.
    pub fn method(&self, name: &str) -> &OperationSeries {
        let method = Method::from_name(name);
        let index = method.map_or(Method::ALL.len(), |method| method as usize);
        let name = method.map_or(OTHER, Method::name);
        self.methods[index].get_or_init(|| self.series(name, "", ""))
    }

    /// The series of a listed tool. The tool's entry holds it.
    pub fn tool(&self, name: &str) -> Arc<OperationSeries> {
        self.item(Method::CallTool, name, |name| self.series("tools/call", name, ""))
    }

    /// The series of a listed prompt. The prompt's entry holds it.
    pub fn prompt(&self, name: &str) -> Arc<OperationSeries> {
        self.item(Method::GetPrompt, name, |name| self.series("prompts/get", "", name))
    }

    fn item(
        &self,
        method: Method,
        name: &str,
        make: impl Fn(&str) -> OperationSeries,
    ) -> Arc<OperationSeries> {
        let overflow = &self.overflow[usize::from(method == Method::GetPrompt)];
        if !self.metrics.has_tool_labels() {
            return Arc::clone(overflow.get_or_init(|| Arc::new(make(""))));
        }
        let mut items = self.items.lock();
        if let Some(known) = items.get(&(method, Box::from(name))).and_then(Weak::upgrade) {
            return known;
        }
        items.retain(|_, series| series.strong_count() > 0);
        let same_kind = items.keys().filter(|(known, _)| *known == method).count();
        if same_kind >= MAX_LABELLED_ITEMS {
            return Arc::clone(overflow.get_or_init(|| Arc::new(make(OVERFLOW))));
        }
        let series = Arc::new(make(name));
        items.insert((method, Box::from(name)), Arc::downgrade(&series));
        series
    }

    fn series(&self, method: &'static str, tool: &str, prompt: &str) -> OperationSeries {
        OperationSeries {
            metrics: Arc::clone(&self.metrics),
            definition: self.definition,
            owner: Arc::clone(&self.owner),
            method,
            tool: tool.into(),
            prompt: prompt.into(),
            successes: [const { OnceLock::new() }; VARIANTS],
            others: Mutex::default(),
        }
    }
}

/// The histograms of one method or item. Each begins with the first call that it counts.
pub struct OperationSeries {
    metrics: Arc<Metrics>,
    definition: &'static MetricDef,
    owner: Arc<str>,
    method: &'static str,
    tool: Box<str>,
    prompt: Box<str>,
    /// The calls that succeeded, by revision and transport.
    successes: [OnceLock<Histogram>; VARIANTS],
    /// The calls that failed, by version, transport and type of error.
    others: Mutex<Vec<(FailureKey, Histogram)>>,
}

type FailureKey = (&'static str, NetworkTransport, &'static str);

impl OperationSeries {
    /// Counts a call. `error_type` is empty for a call without an error.
    #[inline]
    pub fn record(
        &self,
        rules: &'static Rules,
        transport: NetworkTransport,
        error_type: &'static str,
        duration: Duration,
        traced: Option<TracedCall>,
    ) {
        let revision = rules.revision;
        // A dialect may have changed rules with a version of its own.
        match std::ptr::eq(revision.rules(), rules) && error_type.is_empty() {
            true => {
                let variant = &self.successes[revision as usize * 2 + transport as usize];
                let make = || self.histogram((rules.name, transport, ""));
                record(variant.get_or_init(make), duration, traced);
            }
            false => self.record_other((rules.name, transport, error_type), duration, traced),
        }
    }

    #[cold]
    fn record_other(&self, key: FailureKey, duration: Duration, traced: Option<TracedCall>) {
        let mut others = self.others.lock();
        if let Some((_, histogram)) = others.iter().find(|(known, _)| *known == key) {
            return record(histogram, duration, traced);
        }
        let histogram = self.histogram(key);
        record(&histogram, duration, traced);
        others.push((key, histogram));
    }

    fn histogram(&self, (version, transport, error_type): FailureKey) -> Histogram {
        let transport = transport.name();
        let labels =
            [&*self.owner, self.method, &self.tool, &self.prompt, version, transport, error_type];
        self.metrics.histogram(self.definition, &labels)
    }
}

#[inline]
fn record(histogram: &Histogram, duration: Duration, traced: Option<TracedCall>) {
    match traced {
        None => histogram.record(duration),
        Some(TracedCall { trace_id, span_id }) => {
            histogram.record_traced(duration, trace_id, span_id);
        }
    }
}
