//! What happens while a call goes on, told to the person at stderr.

use creole::proto::op::Event;
use serde_json::Value;

use crate::output;

/// Tells of progress, at a terminal, and of log messages.
pub(crate) fn tell(event: Event) {
    match event {
        Event::Progress { progress, total, message } => {
            output::status(&progress_line(progress, total, message.as_deref()));
        }
        Event::Log { level, logger, data } => {
            let data: Value = data.decode().unwrap_or(Value::Null);
            output::talk(&log_line(level.name(), logger.as_deref(), &data));
        }
        // Whoever visited a page here knows.
        Event::Visited(_) => {}
    }
}

fn progress_line(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let so_far = match total {
        Some(total) if total > 0.0 => format!("{progress}/{total}"),
        _ => progress.to_string(),
    };
    match message {
        Some(message) => format!("creole: {so_far} {message}"),
        None => format!("creole: {so_far}"),
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
    fn progress_is_a_share_where_the_whole_is_known() {
        assert_eq!(progress_line(1.0, Some(4.0), Some("half")), "creole: 1/4 half");
        assert_eq!(progress_line(2.5, None, None), "creole: 2.5");
    }

    #[test]
    fn a_log_message_is_a_line_of_its_server() {
        assert_eq!(log_line("warning", Some("db"), &json!("slow")), "server db: warning: slow");
        assert_eq!(log_line("info", None, &json!({"a": 1})), "server: info: {\"a\":1}");
    }
}
