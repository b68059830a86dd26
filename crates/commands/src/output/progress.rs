//! Shows the progress of a call: a bar if the total is known, otherwise a spinner and the elapsed time. Only at a
//! terminal, and erased at the end.

use creole::internal::sync::Mutex;
use std::future::Future;
use std::pin::pin;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::output;
use crate::output::layout::Layout;

/// How often the line is redrawn.
const TICK: Duration = Duration::from_millis(120);

/// Calls that end sooner show no progress.
const SHOW_DELAY: Duration = Duration::from_millis(400);

/// The width of the bar in columns, if there is room.
const BAR: usize = 24;

/// The frames of the spinner.
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];

/// The current wait. `None` between two waits.
static CURRENT_WAIT: Mutex<Option<WaitState>> = Mutex::new(None);

/// The number of open prompts, during which no progress is shown.
static OPEN_PROMPTS: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct WaitState {
    began: Instant,
    spinner_index: usize,
    step: Option<ProgressStep>,
}

/// A progress report.
#[derive(Debug)]
struct ProgressStep {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// Runs the work and shows progress meanwhile.
pub(crate) async fn with_progress<T>(work: impl Future<Output = T>) -> T {
    if !output::can_show_status() {
        return work.await;
    }
    *wait() = Some(WaitState { began: Instant::now(), spinner_index: 0, step: None });
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            () = sleep(TICK) => tick(),
        }
    };
    *wait() = None;
    output::erase_status();
    done
}

/// Records a progress report.
pub(crate) fn report(progress: f64, total: Option<f64>, message: Option<String>) {
    if let Some(wait) = wait().as_mut() {
        wait.step = Some(ProgressStep { progress, total, message });
        draw(wait, Instant::now());
    }
}

/// Hides progress during a prompt, until this is dropped.
pub(crate) struct PromptGuard;

impl PromptGuard {
    pub(crate) fn begin() -> Self {
        OPEN_PROMPTS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for PromptGuard {
    fn drop(&mut self) {
        OPEN_PROMPTS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn wait() -> MutexGuard<'static, Option<WaitState>> {
    CURRENT_WAIT.lock()
}

fn tick() {
    if let Some(wait) = wait().as_mut() {
        wait.spinner_index += 1;
        let now = Instant::now();
        if wait.step.is_some() || now.duration_since(wait.began) >= SHOW_DELAY {
            draw(wait, now);
        }
    }
}

fn draw(wait: &WaitState, now: Instant) {
    if OPEN_PROMPTS.load(Ordering::Relaxed) == 0 {
        let width = Layout::of_stderr().width().unwrap_or(0);
        output::show_status(&line(wait, now.duration_since(wait.began), width));
    }
}

/// The progress line for a terminal of this width.
fn line(wait: &WaitState, elapsed: Duration, width: usize) -> String {
    let turn = SPINNER[wait.spinner_index % SPINNER.len()];
    let mut parts = match &wait.step {
        None => vec![turn.to_string(), "waiting".to_owned()],
        Some(ProgressStep { progress, total, .. }) => match total.filter(|total| *total > 0.0) {
            Some(total) => {
                let columns = BAR.min(width / 3);
                vec![
                    bar(progress / total, columns),
                    format!("{}/{}", number(*progress), number(total)),
                ]
            }
            None => vec![turn.to_string(), number(*progress)],
        },
    };
    parts.extend(wait.step.as_ref().and_then(|step| step.message.clone()));
    parts.extend(time(elapsed));
    parts.join(" ")
}

fn bar(share: f64, columns: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let done = (share * columns as f64).round() as usize;
    format!("[{}{}]", "#".repeat(done), "-".repeat(columns.saturating_sub(done)))
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.1}") }
}

/// The elapsed time, from the first second on.
fn time(elapsed: Duration) -> Option<String> {
    match elapsed.as_secs() {
        0 => None,
        seconds @ 1..60 => Some(format!("({seconds} s)")),
        seconds => Some(format!("({} min {:02} s)", seconds / 60, seconds % 60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(step: Option<(f64, Option<f64>, Option<&str>)>, seconds: u64) -> String {
        let step = step.map(|(progress, total, message)| ProgressStep {
            progress,
            total,
            message: message.map(str::to_owned),
        });
        line(
            &WaitState { began: Instant::now(), spinner_index: 1, step },
            Duration::from_secs(seconds),
            60,
        )
    }

    #[test]
    fn a_known_total_shows_a_bar() {
        let half = shown(Some((50.0, Some(100.0), Some("half"))), 3);
        assert_eq!(half, "[##########----------] 50/100 half (3 s)");
        assert_eq!(shown(Some((9.0, Some(4.0), None)), 0), "[####################] 9/4");
        assert_eq!(shown(Some((f64::NAN, Some(1.0), None)), 0), "[--------------------] NaN/1");
    }

    #[test]
    fn there_is_a_turning_mark_and_the_time_where_it_is_not() {
        assert_eq!(shown(None, 0), "/ waiting");
        assert_eq!(shown(None, 65), "/ waiting (1 min 05 s)");
        assert_eq!(shown(Some((2.5, None, Some("on it"))), 1), "/ 2.5 on it (1 s)");
        assert_eq!(shown(Some((2.0, Some(0.0), None)), 0), "/ 2");
    }
}
