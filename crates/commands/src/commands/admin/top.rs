//! `creole top`: a live table of the upstreams of a running process.

mod interrupts;
mod keys;
mod screen;
mod table;

use std::io;
use std::io::IsTerminal;
use std::time::Duration;

use creole_admin::{AdminClient, AdminError};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::interrupts::{Interrupt, Interrupts};
use self::keys::{Key, RawTerminal};
use self::screen::{Picture, Screen};
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
            let lines = table::overview(&overview, &View::default(), Layout::of_stdout(), None);
            output::write_data(&format!("{}\n", lines.join("\n")))
        }
    }
}

/// Redraws the table until a key or a signal ends it. Keys work also while the process does not answer.
async fn live(client: &AdminClient) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::Call(format!("cannot use the terminal: {error}"));
    let mut interrupts = Interrupts::new().map_err(cannot)?;
    let (terminal, mut keys) = RawTerminal::open().map_err(cannot)?;
    let (chosen, wanted) = watch::channel(None);
    let (sender, mut pictures) = watch::channel(None);
    let fetching = fetch(client, wanted, &sender);
    tokio::pin!(fetching);
    let mut view = View::default();
    let mut ticks = interval(REFRESH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = loop {
        tokio::select! {
            error = &mut fetching => break Err(lost(error)),
            _ = pictures.changed() => {}
            _ = ticks.tick() => {}
            key = keys.recv() => match key {
                None | Some(Key::Quit) => break Ok(()),
                Some(key) => {
                    if let Some(picture) = &*pictures.borrow() {
                        view.press(key, &picture.overview);
                    }
                    chosen.send_if_modified(|name| {
                        let is_other = name.as_deref() != view.shown_upstream();
                        *name = view.shown_upstream().map(str::to_owned);
                        is_other
                    });
                }
            },
            interrupt = interrupts.next() => match interrupt {
                Interrupt::Resize => {}
                Interrupt::End => break Ok(()),
            },
        }
        let screen = Screen::of_stdout();
        let text = match &*pictures.borrow() {
            None => continue,
            Some(picture) => screen.draw(picture, &view),
        };
        if let Err(error) = output::write_data(&text) {
            break Err(error);
        }
    };
    drop(terminal);
    ended
}

/// Fetches what is shown from time to time, and at once when another upstream is wanted. Ends with the first failure.
async fn fetch(
    client: &AdminClient,
    mut wanted: watch::Receiver<Option<String>>,
    pictures: &watch::Sender<Option<Picture>>,
) -> AdminError {
    loop {
        let name = wanted.borrow_and_update().clone();
        let overview = match client.get("/overview").await {
            Ok(overview) => overview,
            Err(error) => return error,
        };
        let upstream = match &name {
            None => None,
            Some(name) => {
                let answer = client.get(&format!("/upstreams/{}", escaped(name))).await;
                Some((name.clone(), answer.map_err(|error| error.message)))
            }
        };
        pictures.send_replace(Some(Picture::new(overview, upstream)));
        tokio::select! {
            () = sleep(REFRESH) => {}
            // The sender lives as long as this future.
            _ = wanted.changed() => {}
        }
    }
}

/// The failure of a table whose process no longer answers.
fn lost(error: AdminError) -> Failure {
    let is_answered = error.status.is_some();
    match failure(error) {
        Failure::Call(message) if !is_answered => {
            Failure::Call(format!("{message}; the process may have ended"))
        }
        failure => failure,
    }
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
