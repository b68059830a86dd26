//! Which calls have spans, and what spans contain.

use std::time::Duration;

use creole::internal::telemetry::trace::{ParentTrust, Sampler, TraceContext, TraceSettings};
use creole_telemetry::otlp::{PrincipalNames, SpanSettings};

use super::environment::OtelVariables;
use crate::syntax::error::ConfigProblem;
use crate::tables::telemetry::{PrincipalNamesChoice, TraceParent, TracesTable};

/// The share of the traces that is recorded by default.
const SAMPLE: f64 = 0.01;

/// The duration of a slow call by default, in milliseconds.
const SLOW_MS: i64 = 1000;

/// Which calls have spans, and what spans contain.
#[derive(Clone, Debug, PartialEq)]
pub struct TracesPlan {
    /// Which calls are sampled.
    pub settings: TraceSettings,
    /// What spans contain.
    pub spans: SpanSettings,
}

pub(super) fn resolve(
    table: &TracesTable,
    variables: &OtelVariables<'_>,
) -> Result<TracesPlan, ConfigProblem> {
    let sampler = match &table.sample {
        Some(ratio) if !(0.0..=1.0).contains(&ratio.value) => {
            let message = format!("`sample` is {}, but a share is from 0 to 1", ratio.value);
            return Err(ConfigProblem::new(message).at(ratio.span.clone()));
        }
        Some(ratio) => Sampler::new(ratio.value, true),
        None => variable_sampler(variables),
    };
    let slow = table.slow_ms.map_or(SLOW_MS, |slow| slow.get());
    let slow = Some(Duration::from_millis(slow.unsigned_abs()));
    let keeps_errors = table.errors.unwrap_or(true);
    let process = variables.get("TRACEPARENT");
    let settings = TraceSettings {
        sampler,
        parent: match table.parent {
            None | Some(TraceParent::Auto) => ParentTrust::Auto,
            Some(TraceParent::Client) => ParentTrust::Client,
            Some(TraceParent::Link) => ParentTrust::Link,
        },
        process: process.and_then(|text| TraceContext::parse(text.as_bytes())),
    };
    let spans = SpanSettings {
        batches: variables.batches("OTEL_BSP"),
        has_payloads: table.payloads.unwrap_or(false),
        principals: match table.principals {
            None | Some(PrincipalNamesChoice::None) => PrincipalNames::None,
            Some(PrincipalNamesChoice::Hash) => PrincipalNames::Hash,
            Some(PrincipalNamesChoice::Name) => PrincipalNames::Name,
        },
        keeps_errors,
        slow,
    };
    Ok(TracesPlan { settings, spans })
}

/// The sampler of `OTEL_TRACES_SAMPLER` and its argument.
fn variable_sampler(variables: &OtelVariables<'_>) -> Sampler {
    let name = "OTEL_TRACES_SAMPLER";
    let argument = "OTEL_TRACES_SAMPLER_ARG";
    let ratio = || {
        let Some(text) = variables.get(argument) else { return 1.0 };
        match text.trim().parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            _ => {
                variables.warn(argument, "it is no number from 0 to 1");
                1.0
            }
        }
    };
    match variables.get(name).as_deref() {
        None => Sampler::new(SAMPLE, true),
        Some("always_on") => Sampler::new(1.0, false),
        Some("always_off") => Sampler::new(0.0, false),
        Some("traceidratio") => Sampler::new(ratio(), false),
        Some("parentbased_always_on") => Sampler::new(1.0, true),
        Some("parentbased_always_off") => Sampler::new(0.0, true),
        Some("parentbased_traceidratio") => Sampler::new(ratio(), true),
        Some(_) => {
            variables.warn(name, "the sampler is not known");
            Sampler::new(SAMPLE, true)
        }
    }
}
