//! Tools that are slow, report progress, write to the log, or panic.

use std::time::Duration;

use creole::proto::wire::Raw;
use creole::{Context, Json, Level, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::sleep;

use crate::packs::{NO_ARGUMENTS, tool};

const SLOW: &str = r#"{
    "type": "object",
    "properties": {
        "milliseconds": {
            "type": "integer", "description": "How long to sleep", "minimum": 0, "maximum": 600000
        }
    },
    "required": ["milliseconds"],
    "additionalProperties": false
}"#;

const WEATHER: &str = r#"{
    "type": "object",
    "properties": {
        "city": {"description": "Where", "type": "string"},
        "temperature": {"description": "In degrees Celsius", "type": "number", "format": "double"}
    },
    "additionalProperties": false,
    "required": ["city", "temperature"]
}"#;

/// The pause between two progress notifications.
const PAUSE: Duration = Duration::from_millis(50);

/// The reconnection delay of a client whose stream was closed.
const RETRY: Duration = Duration::from_millis(500);

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool("test_tool_with_progress", "Tells of its progress", NO_ARGUMENTS, progress)
            .read_only(),
        tool("test_tool_with_logging", "Writes to the log", NO_ARGUMENTS, logging).read_only(),
        tool("test_logging_tool", "Writes to the log, once", NO_ARGUMENTS, log_once).read_only(),
        tool("test_reconnection", "Lets the client go and come back", NO_ARGUMENTS, reconnection)
            .read_only(),
        tool("test_slow", "Sleeps and tells nothing", SLOW, slow).read_only(),
        tool("test_panic", "Panics, always", NO_ARGUMENTS, panic).read_only(),
        tool("test_structured", "Returns data", NO_ARGUMENTS, structured)
            .read_only()
            .output_schema(Raw::from_static(WEATHER)),
        tool("test_structured_list", "Returns a list of data", NO_ARGUMENTS, structured_list)
            .read_only()
            .output_schema(weather_list_schema()),
    ]
}

/// The schema of an array of the values that [`WEATHER`] describes.
fn weather_list_schema() -> Raw {
    let list = format!(r#"{{"type": "array", "items": {WEATHER}}}"#);
    Raw::parse(&list).expect("a schema within a schema is JSON")
}

async fn progress(_: Value, context: Context) -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        if done > 0.0 {
            sleep(PAUSE).await;
        }
        let message = format!("Completed step {done} of 100");
        context.progress(done, Some(100.0), Some(&message)).await;
    }
    "Tool with progress executed successfully"
}

async fn logging(_: Value, context: Context) -> &'static str {
    context.log(Level::Info, None, &"Tool execution started").await;
    sleep(PAUSE).await;
    context.log(Level::Info, None, &"Tool processing data").await;
    sleep(PAUSE).await;
    context.log(Level::Info, None, &"Tool execution completed").await;
    "Tool with logging executed successfully"
}

async fn log_once(_: Value, context: Context) -> &'static str {
    context.log(Level::Info, Some("everything"), &"One message, if anyone asked for it").await;
    "Logged once"
}

/// Closes the stream of a client that can resume at once. The client gets the result after it reconnects.
async fn reconnection(_: Value, context: Context) -> &'static str {
    sleep(PAUSE).await;
    context.release_connection(RETRY);
    sleep(PAUSE * 2).await;
    "Reconnection test completed successfully"
}

#[derive(Deserialize)]
struct SlowInput {
    milliseconds: u64,
}

async fn slow(input: SlowInput) -> String {
    sleep(Duration::from_millis(input.milliseconds)).await;
    format!("Slept {} ms", input.milliseconds)
}

async fn panic(_: Value) -> String {
    panic!("test_panic was called");
}

#[derive(Serialize)]
struct Weather {
    city: &'static str,
    temperature: f64,
}

const BERLIN: Weather = Weather { city: "Berlin", temperature: 21.5 };
const PORT_AU_PRINCE: Weather = Weather { city: "Port-au-Prince", temperature: 31.0 };

async fn structured(_: Value) -> Json<Weather> {
    Json(BERLIN)
}

async fn structured_list(_: Value) -> Json<Vec<Weather>> {
    Json(vec![BERLIN, PORT_AU_PRINCE])
}
