//! `creole top`: a live table of the upstreams of a running process.

mod keys;
mod table;

use std::io;
use std::io::IsTerminal;
use std::time::Duration;

use creole_admin::AdminClient;
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::{MissedTickBehavior, interval};

use self::keys::{Key, RawTerminal};
use self::table::View;
pub(super) use self::table::duration;
use super::{client, failure};
use crate::args::TopArgs;
use crate::failure::Failure;
use crate::instance::runtime;
use crate::output;
use crate::output::layout::Layout;

/// The time between two redraws.
const REFRESH: Duration = Duration::from_secs(1);
/// Moves to the first cell and erases the screen.
const ERASE: &str = "\x1b[H\x1b[2J";

/// Runs the verb.
pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let is_live = !args.once && io::stdin().is_terminal() && io::stdout().is_terminal();
    let done = runtime.block_on(async {
        let client = client(&args.admin).await?;
        match (is_live, args.json) {
            (true, false) => live(&client).await,
            (false, _) | (true, true) => once(&client, args.json).await,
        }
    });
    runtime.shutdown_background();
    done
}

async fn once(client: &AdminClient, as_json: bool) -> Result<(), Failure> {
    let overview = client.get("/overview").await.map_err(failure)?;
    match as_json {
        true => output::write_data(&format!("{overview}\n")),
        false => {
            let lines = table::overview(&overview, &View::default(), Layout::of_stdout());
            output::write_data(&format!("{}\n", lines.join("\n")))
        }
    }
}

/// Redraws the table until a key ends it.
async fn live(client: &AdminClient) -> Result<(), Failure> {
    let (terminal, mut keys) = RawTerminal::open()
        .map_err(|error| Failure::Call(format!("cannot use the terminal: {error}")))?;
    let mut view = View::default();
    let mut ticks = interval(REFRESH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut overview = Value::Null;
    let ended = loop {
        tokio::select! {
            _ = ticks.tick() => match client.get("/overview").await {
                Ok(answer) => overview = answer,
                Err(error) => break Err(failure(error)),
            },
            key = keys.recv() => match key {
                None | Some(Key::Quit) => break Ok(()),
                Some(key) => view.press(key, &overview),
            },
        }
        let layout = Layout::of_stdout();
        let lines = match view.shown_upstream() {
            None => table::overview(&overview, &view, layout),
            Some(name) => match client.get(&format!("/upstreams/{}", escaped(name))).await {
                Ok(upstream) => table::upstream(&upstream, layout),
                Err(error) => vec![error.message],
            },
        };
        if let Err(error) = output::write_data(&format!("{ERASE}{}", lines.join("\r\n"))) {
            break Err(error);
        }
    };
    drop(terminal);
    ended
}

/// A name as a part of a path.
pub(super) fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.bytes().map(escape).collect()
}
