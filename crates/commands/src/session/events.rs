//! Prints the events of a call to stderr.

use creole::proto::operation::Event;
use creole_tools::ordered_value::OrderedValue;
use serde_json::Value;

use crate::output;
use crate::output::progress;

/// Prints log messages, and progress at a terminal.
pub(crate) fn show_event(event: Event) {
    match event {
        Event::Progress { progress, total, message } => {
            progress::report(progress, total, message);
        }
        Event::Log { level, logger, data } => {
            let data = data.decode().unwrap_or(OrderedValue::Leaf(Value::Null));
            output::write_message(&log_line(level.name(), logger.as_deref(), &data));
        }
        // The user who completed the URL elicitation here knows it already.
        Event::ElicitationCompleted(_) => {}
    }
}

fn log_line(level: &str, logger: Option<&str>, data: &OrderedValue) -> String {
    let logger = logger.map(|logger| format!(" {logger}")).unwrap_or_default();
    let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
    format!("server{}: {level}: {}", output::printable(&logger), output::printable(&text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_message_is_one_line_with_its_server() {
        let slow = OrderedValue::from(json!("slow"));
        assert_eq!(log_line("warning", Some("db"), &slow), "server db: warning: slow");
        let data: OrderedValue = serde_json::from_str(r#"{"z":1,"a":2}"#).unwrap();
        assert_eq!(log_line("info", None, &data), r#"server: info: {"z":1,"a":2}"#);
    }
}
