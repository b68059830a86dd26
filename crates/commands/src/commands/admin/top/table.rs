//! The tables of `creole top`.

use std::cmp::Ordering;

use serde_json::Value;

use super::keys::Key;
use crate::output::layout::{Layout, truncated};
use crate::output::printable;

/// The columns: the title, and whether the values are numbers.
const COLUMNS: [(&str, bool); 9] = [
    ("UPSTREAM", false),
    ("STATE", false),
    ("REVISION", false),
    ("RATE", true),
    ("P50", true),
    ("P95", true),
    ("CALLS", true),
    ("ERRORS", true),
    ("NOTE", false),
];

/// The maximum number of shown alerts.
const MAX_ALERTS: usize = 3;

/// What is shown, and in which order.
#[derive(Debug, Default)]
pub(super) struct View {
    order: Order,
    /// The upstream that the arrows chose, by its place in the table.
    chosen: usize,
    shown: Option<String>,
}

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// As in the configuration.
    #[default]
    Configured,
    Name,
    State,
    Rate,
    Latency,
    Errors,
    Calls,
}

impl Order {
    fn text(self) -> &'static str {
        match self {
            Self::Configured => "as configured",
            Self::Name => "by name",
            Self::State => "by state",
            Self::Rate => "by rate",
            Self::Latency => "by latency",
            Self::Errors => "by errors",
            Self::Calls => "by calls",
        }
    }
}

impl View {
    /// Changes the view.
    pub(super) fn press(&mut self, key: Key, overview: &Value) {
        let count = overview["upstreams"].as_array().map_or(0, Vec::len);
        match key {
            Key::Up => self.chosen = self.chosen.saturating_sub(1),
            Key::Down => self.chosen = (self.chosen + 1).min(count.saturating_sub(1)),
            Key::Escape => self.shown = None,
            Key::Enter => {
                let rows = self.sorted(overview);
                self.shown = rows.get(self.chosen).map(|row| text(row, "name"));
            }
            Key::Letter(letter) => {
                self.order = match letter {
                    'n' => Order::Name,
                    's' => Order::State,
                    'r' => Order::Rate,
                    'l' => Order::Latency,
                    'e' => Order::Errors,
                    'a' => Order::Calls,
                    'c' => Order::Configured,
                    _ => self.order,
                }
            }
            Key::Quit => {}
        }
    }

    /// The order, and the keys of the table.
    fn keys_text(&self) -> [String; 2] {
        let order = self.order.text();
        [
            format!(
                "sorted {order}; n name, s state, r rate, l latency, e errors, a calls, c config"
            ),
            "up and down choose an upstream, Enter shows it, q quits".to_owned(),
        ]
    }

    /// The upstream that is shown alone.
    pub(super) fn shown_upstream(&self) -> Option<&str> {
        self.shown.as_deref()
    }

    fn sorted<'a>(&self, overview: &'a Value) -> Vec<&'a Value> {
        let mut rows: Vec<&Value> =
            overview["upstreams"].as_array().into_iter().flatten().collect();
        let most = |member: &'static str| {
            move |one: &&Value, other: &&Value| {
                let number = |row: &Value| row[member].as_f64().unwrap_or(-1.0);
                number(other).partial_cmp(&number(one)).unwrap_or(Ordering::Equal)
            }
        };
        match self.order {
            Order::Configured => {}
            Order::Name => rows.sort_by_key(|row| text(row, "name")),
            Order::State => {
                rows.sort_by_key(|row| (text(row, "state") == "ready", text(row, "state")))
            }
            Order::Rate => rows.sort_by(most("calls_per_second")),
            Order::Latency => rows.sort_by(most("p95_ms")),
            Order::Errors => rows.sort_by(most("errors")),
            Order::Calls => rows.sort_by(most("calls")),
        }
        rows
    }
}

/// The lines of the overview. A live table has this many rows, a chosen upstream, and a line about its keys.
pub(super) fn overview(
    overview: &Value,
    view: &View,
    layout: Layout,
    rows: Option<usize>,
) -> Vec<String> {
    let mut lines = vec![fitted(&totals(overview), layout).to_owned(), String::new()];
    let upstreams = view.sorted(overview);
    let alerts = overview["alerts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let alerts: Vec<String> =
        alerts.iter().map(|alert| printable(&format!("! {}", text(alert, "text")))).collect();
    let keys = rows.map(|_| view.keys_text()).unwrap_or_default();
    let chosen = rows.map(|_| view.chosen.min(upstreams.len().saturating_sub(1)));
    let cells: Vec<[String; 9]> = upstreams.iter().map(|row| row_cells(row)).collect();
    let mut table = aligned(&cells, layout, chosen);
    if upstreams.is_empty() {
        table.push(fitted("There are no upstreams.", layout).to_owned());
    }
    let Some(rows) = rows else {
        lines.extend(table);
        lines.extend(alerts.iter().map(|alert| layout.bad(alert)));
        return lines;
    };
    // The rows of the upstreams are the last ones to go.
    let mut free = rows.saturating_sub(lines.len() + 2);
    let mut below: Vec<String> = Vec::new();
    let mut add = |line: &str, style: &dyn Fn(&str) -> String| {
        if free > 1 {
            below.push(style(fitted(line, layout)));
            free -= 1;
        }
    };
    alerts.iter().take(MAX_ALERTS).for_each(|alert| add(alert, &|line| layout.bad(line)));
    if let Some(more) = alerts.len().checked_sub(MAX_ALERTS + 1) {
        add(&format!("! and {} more", more + 1), &|line| layout.bad(line));
    }
    keys.iter().for_each(|line| add(line, &|line| layout.faint(line)));
    let titles = table.remove(0);
    lines.push(titles);
    let shown = free + 1;
    let chosen = chosen.unwrap_or(0);
    let skipped = (chosen + 1).saturating_sub(shown);
    lines.extend(table.into_iter().skip(skipped).take(shown));
    lines.extend(below);
    lines.truncate(rows);
    lines
}

/// The line with the totals.
fn totals(overview: &Value) -> String {
    let (totals, minute) = (&overview["totals"], &overview["rates"]["minute"]);
    let count = |member: &str| totals[member].as_u64().unwrap_or(0);
    let ratio = minute["error_ratio"].as_f64().unwrap_or(0.0) * 100.0;
    format!(
        "calls/s {:.1}   errors {ratio:.1} %   p95 {}   in flight {}   calls {}   sessions {}   parked {}",
        minute["calls_per_second"].as_f64().unwrap_or(0.0),
        duration(&minute["p95_ms"]),
        count("active"),
        count("calls"),
        count("sessions"),
        count("parked"),
    )
}

fn row_cells(row: &Value) -> [String; 9] {
    [
        text(row, "name"),
        text(row, "state"),
        text(row, "revision"),
        format!("{:.1}/s", row["calls_per_second"].as_f64().unwrap_or(0.0)),
        duration(&row["p50_ms"]),
        duration(&row["p95_ms"]),
        row["calls"].as_u64().unwrap_or(0).to_string(),
        row["errors"].as_u64().unwrap_or(0).to_string(),
        text(row, "note"),
    ]
}

fn aligned(cells: &[[String; 9]], layout: Layout, chosen: Option<usize>) -> Vec<String> {
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| {
            let longest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            longest.max(COLUMNS[column].0.len())
        })
        .collect();
    let line = |row: &[String]| {
        let cell = |(column, text): (usize, &String)| {
            let space = " ".repeat(widths[column].saturating_sub(text.chars().count()));
            match COLUMNS[column].1 {
                true => format!("{space}{text}"),
                false => format!("{text}{space}"),
            }
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        cells.join("  ")
    };
    // The mark shows the chosen row also without colours.
    let marked = |index: Option<usize>, line: String| {
        let mark = match (chosen, index) {
            (None, _) => "",
            (Some(chosen), Some(index)) if chosen == index => "> ",
            (Some(_), _) => "  ",
        };
        fitted(&printable(format!("{mark}{line}").trim_end()), layout).to_owned()
    };
    let titles: Vec<String> = COLUMNS.iter().map(|(title, _)| (*title).to_owned()).collect();
    let mut lines = vec![layout.heading(&marked(None, line(&titles)))];
    for (index, row) in cells.iter().enumerate() {
        let text = marked(Some(index), line(row));
        lines.push(if chosen == Some(index) { layout.name(&text) } else { text });
    }
    lines
}

/// The part of a line that fits into the terminal.
pub(super) fn fitted(line: &str, layout: Layout) -> &str {
    layout.width().map_or(line, |width| truncated(line, width.saturating_sub(1)))
}

/// The lines of one upstream, or why it cannot be shown, in this many rows.
pub(super) fn upstream(upstream: Result<&Value, &str>, layout: Layout, rows: usize) -> Vec<String> {
    let mut lines = match upstream {
        Ok(upstream) => upstream_lines(upstream, layout),
        Err(message) => vec![fitted(message, layout).to_owned()],
    };
    lines.truncate(rows.saturating_sub(2));
    lines.extend([String::new(), fitted("Escape returns, q quits.", layout).to_owned()]);
    lines.truncate(rows);
    lines
}

fn upstream_lines(upstream: &Value, layout: Layout) -> Vec<String> {
    let name = printable(&text(upstream, "name"));
    let mut lines = vec![layout.heading(fitted(&name, layout)), String::new()];
    let mut add = |label: &str, value: String| {
        if !value.is_empty() {
            let plain = |text: &str| text.to_owned();
            let before = format!("{label:<12} ");
            let entry = layout.entry(&before, plain, printable(&value).trim_end(), plain);
            lines.extend(entry.lines().map(|line| fitted(line, layout).to_owned()));
        }
    };
    add("state", text(upstream, "state"));
    add("note", text(upstream, "note"));
    add("address", text(upstream, "address"));
    add("program", text(upstream, "program"));
    add("revision", text(upstream, "revision"));
    add("era", text(upstream, "era"));
    add("transport", text(upstream, "transport"));
    add("breaker", text(upstream, "breaker"));
    add("calls", upstream["calls"].to_string());
    add("errors", upstream["errors"].to_string());
    add(
        "p50, p95",
        format!("{}, {}", duration(&upstream["p50_ms"]), duration(&upstream["p95_ms"])),
    );
    for list in upstream["lists"].as_array().into_iter().flatten() {
        let kind = match &*text(list, "kind") {
            "resourceTemplates" => "templates".to_owned(),
            kind => kind.to_owned(),
        };
        add(&kind, format!("{} {}", list["items"], text(list, "failure")));
    }
    for excluded in upstream["excluded"].as_array().into_iter().flatten() {
        add("excluded", excluded.as_str().unwrap_or_default().to_owned());
    }
    add("last error", text(&upstream["last_error"], "message"));
    for line in upstream["last_error"]["stderr"].as_array().into_iter().flatten() {
        add("  stderr", line.as_str().unwrap_or_default().to_owned());
    }
    lines
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

/// A duration in a unit that fits.
pub(in super::super) fn duration(ms: &Value) -> String {
    match ms.as_f64() {
        None => "-".to_owned(),
        Some(ms) if ms < 1.0 => format!("{:.0} µs", ms * 1000.0),
        Some(ms) if ms < 1000.0 => format!("{ms:.1} ms"),
        Some(ms) => format!("{:.1} s", ms / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn example() -> Value {
        json!({
            "totals": {"calls": 8430, "errors": 12, "active": 3, "sessions": 4, "parked": 1},
            "rates": {"minute": {"calls_per_second": 4.25, "error_ratio": 0.003, "p95_ms": 41.0}},
            "upstreams": [
                {"name": "files", "state": "ready", "revision": "2025-06-18", "calls_per_second": 0.5,
                 "p50_ms": 0.25, "p95_ms": 12.0, "calls": 8120, "errors": 3},
                {"name": "wiki\u{1b}[2J", "state": "backoff", "calls_per_second": 0.0, "calls": 310,
                 "errors": 9, "note": "exit 1"}],
            "alerts": [{"text": "The upstream wiki cannot be used"}],
        })
    }

    #[test]
    fn the_table_is_aligned_and_shows_no_control_characters() {
        let lines = overview(&example(), &View::default(), Layout::PLAIN, None);
        assert_eq!(
            lines[0],
            "calls/s 4.2   errors 0.3 %   p95 41.0 ms   in flight 3   calls 8430   sessions 4   parked 1"
        );
        assert!(lines[2].starts_with("UPSTREAM"), "{lines:?}");
        assert!(lines[3].contains("ready") && lines[3].contains("12.0 ms"), "{lines:?}");
        let column = |line: &str| line.find("ready").or_else(|| line.find("backoff"));
        assert_eq!(column(&lines[3]).is_some(), column(&lines[4]).is_some());
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "{lines:?}");
        assert_eq!(lines[5], "! The upstream wiki cannot be used");
    }

    #[test]
    fn keys_sort_and_choose() {
        let example = example();
        let mut view = View::default();
        let first = |view: &View| text(view.sorted(&example)[0], "name");
        for (key, name) in
            [('e', "wiki\u{1b}[2J"), ('a', "files"), ('s', "wiki\u{1b}[2J"), ('l', "files")]
        {
            view.press(Key::Letter(key), &example);
            assert_eq!(first(&view), name, "{key}");
        }
        view.press(Key::Down, &example);
        view.press(Key::Down, &example);
        view.press(Key::Enter, &example);
        assert_eq!(view.shown_upstream(), Some("wiki\u{1b}[2J"));
        view.press(Key::Escape, &example);
        assert_eq!(view.shown_upstream(), None);
    }
}
