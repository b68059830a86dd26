//! What happens while a call goes on, told to the person at stderr.

use creole::proto::op::Event;
use serde_json::Value;

use crate::{output, progress};

/// Tells of progress, at a terminal, and of log messages.
pub(crate) fn tell(event: Event) {
    match event {
        Event::Progress { progress, total, message } => {
            progress::tell(progress, total, message);
        }
        Event::Log { level, logger, data } => {
            let data: Value = data.decode().unwrap_or(Value::Null);
            output::talk(&log_line(level.name(), logger.as_deref(), &data));
        }
        // Whoever visited a page here knows.
        Event::Visited(_) => {}
    }
}

fn log_line(level: &str, logger: Option<&str>, data: &Value) -> String {
    let logger = logger.map(|logger| format!(" {logger}")).unwrap_or_default();
    let said = match data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("server{}: {level}: {}", output::printable(&logger), output::printable(&said))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_message_is_a_line_of_its_server() {
        assert_eq!(log_line("warning", Some("db"), &json!("slow")), "server db: warning: slow");
        assert_eq!(log_line("info", None, &json!({"a": 1})), "server: info: {\"a\":1}");
    }
}
