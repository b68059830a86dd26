//! Writes metrics as text: the Prometheus text format 0.0.4, and OpenMetrics 1.0.
//!
//! The formats differ in three points: the name of a counter's family, the unit, and exemplars, which only OpenMetrics
//! has. The bounds of buckets are written alike, so that a scraper that changes the format continues its series.

#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::time::UNIX_EPOCH;

use creole::internal::telemetry::metrics::{
    Exemplar, FamilySnapshot, HistogramValue, MetricDef, MetricKind, SeriesSnapshot, SeriesValue,
    Snapshot, Unit,
};

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The Prometheus text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that an `Accept` header prefers. Without a preference it is the Prometheus text format.
    pub fn from_accept(accept: &str) -> Self {
        let open_metrics = quality(accept, &["application/openmetrics-text"]);
        let text = quality(accept, &["text/plain", "text/*", "*/*"]);
        match open_metrics > 0.0 && open_metrics >= text {
            true => Self::OpenMetrics,
            false => Self::Text,
        }
    }

    /// The value of the `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The highest weight that an `Accept` header gives one of these media types; 0 if it names none.
fn quality(accept: &str, media_types: &[&str]) -> f64 {
    let weights = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next()?;
        media_types.iter().find(|known| media_type.eq_ignore_ascii_case(known))?;
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        Some(weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
    });
    weights.fold(0.0, f64::max)
}

/// The metrics as text.
pub fn write(snapshot: &Snapshot, format: Format) -> String {
    let series: usize = snapshot.families.iter().map(|family| family.series.len()).sum();
    let mut writer = TextWriter { format, out: String::with_capacity(1024 + series * 256) };
    snapshot.families.iter().for_each(|family| writer.family(family));
    if format == Format::OpenMetrics {
        writer.out.push_str("# EOF\n");
    }
    writer.out
}

struct TextWriter {
    format: Format,
    out: String,
}

impl TextWriter {
    fn family(&mut self, family: &FamilySnapshot) {
        self.head(family.definition);
        for series in &family.series {
            match &series.value {
                SeriesValue::Integer(value) => self.number(family.definition, series, &value),
                SeriesValue::Float(value) => self.number(family.definition, series, &Float(*value)),
                SeriesValue::Histogram(value) => self.histogram(family.definition, series, value),
            }
        }
    }

    fn head(&mut self, definition: &MetricDef) {
        let is_open = self.format == Format::OpenMetrics;
        let is_counter = definition.kind == MetricKind::Counter;
        let name = match is_open && is_counter {
            true => definition.name.strip_suffix("_total").unwrap_or(definition.name),
            false => definition.name,
        };
        let kind = match definition.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {}", EscapedHelp(definition.help)));
        self.line(format_args!("# TYPE {name} {kind}"));
        let unit = match definition.unit {
            Unit::Count => None,
            Unit::Seconds => Some("seconds"),
            Unit::Bytes => Some("bytes"),
        };
        if let Some(unit) = unit.filter(|_| is_open) {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
    }

    fn number(
        &mut self,
        definition: &MetricDef,
        series: &SeriesSnapshot,
        value: &dyn std::fmt::Display,
    ) {
        self.sample(definition, "", series, None);
        self.line(format_args!(" {value}"));
    }

    fn histogram(
        &mut self,
        definition: &MetricDef,
        series: &SeriesSnapshot,
        value: &HistogramValue,
    ) {
        let mut sum = 0;
        for (index, count) in value.counts.iter().enumerate() {
            sum += count;
            let bound = definition.boundaries.get(index);
            let bound = bound.map_or(f64::INFINITY, |bound| *bound as f64 / 1e9);
            self.sample(definition, "_bucket", series, Some(bound));
            let exemplar = value.exemplars.get(index).and_then(Option::as_ref);
            match exemplar.filter(|_| self.format == Format::OpenMetrics) {
                None => self.line(format_args!(" {sum}")),
                Some(exemplar) => self.line(format_args!(" {sum} # {}", ExemplarText(exemplar))),
            }
        }
        self.sample(definition, "_sum", series, None);
        self.line(format_args!(" {}", Float(value.sum)));
        self.sample(definition, "_count", series, None);
        self.line(format_args!(" {}", value.count));
    }

    /// Writes the name and the labels of a sample.
    fn sample(
        &mut self,
        definition: &MetricDef,
        suffix: &str,
        series: &SeriesSnapshot,
        bound: Option<f64>,
    ) {
        self.out.push_str(definition.name);
        self.out.push_str(suffix);
        let mut separator = '{';
        for (label, value) in definition.labels.iter().zip(series.labels.iter()) {
            if value.is_empty() {
                continue;
            }
            self.out.push(separator);
            separator = ',';
            self.out.push_str(label.name);
            self.out.push_str("=\"");
            push_escaped(&mut self.out, value);
            self.out.push('"');
        }
        if let Some(bound) = bound {
            self.out.push(separator);
            separator = ',';
            self.push(format_args!("le=\"{}\"", Float(bound)));
        }
        if separator == ',' {
            self.out.push('}');
        }
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.push(text);
        self.out.push('\n');
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string never fails.
        _ = self.out.write_fmt(text);
    }
}

/// A label value with `\`, `"` and line feeds escaped.
fn push_escaped(out: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

/// A help text with `\` and line feeds escaped, and for OpenMetrics also `"`: our texts have none of them.
struct EscapedHelp(&'static str);

impl std::fmt::Display for EscapedHelp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        push_escaped(&mut text, self.0);
        formatter.write_str(&text)
    }
}

/// A number with a fraction, as both formats write it.
struct Float(f64);

impl std::fmt::Display for Float {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            infinite if infinite == f64::INFINITY => formatter.write_str("+Inf"),
            infinite if infinite == f64::NEG_INFINITY => formatter.write_str("-Inf"),
            number if number.is_nan() => formatter.write_str("NaN"),
            number => write!(formatter, "{number:?}"),
        }
    }
}

struct ExemplarText<'a>(&'a Exemplar);

impl std::fmt::Display for ExemplarText<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Exemplar { trace_id, span_id, value, at } = self.0;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let (trace_id, span_id) = (hex(trace_id), hex(span_id));
        write!(formatter, "{{trace_id=\"{trace_id}\",span_id=\"{span_id}\"}} {value:?} {at:.3}")
    }
}
