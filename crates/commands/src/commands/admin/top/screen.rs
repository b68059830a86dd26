//! The screen of a live table: as many lines as the terminal has, and a note when the process does not answer.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::table;
use super::table::View;
use crate::output::layout::Layout;

/// Moves to the first cell.
const HOME: &str = "\x1b[H";
/// Erases the rest of a line, and the rest of the screen. Erasing what is not overwritten does not flicker.
const ERASE_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";
/// After this time without a response, the screen says so.
const MAX_SILENCE: Duration = Duration::from_secs(3);

/// The last answers of the process.
pub(super) struct Picture {
    pub(super) overview: Value,
    /// The upstream that is shown alone, or why it cannot be shown.
    upstream: Option<(String, Result<Value, String>)>,
    at: Instant,
}

impl Picture {
    pub(super) fn new(overview: Value, upstream: Option<(String, Result<Value, String>)>) -> Self {
        Self { overview, upstream, at: Instant::now() }
    }
}

/// The terminal at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    layout: Layout,
    rows: usize,
}

impl Screen {
    /// The terminal of stdout.
    pub(super) fn of_stdout() -> Self {
        let layout = Layout::of_stdout();
        Self { layout, rows: Layout::rows_of_stdout() }
    }

    /// The text that shows a picture.
    pub(super) fn draw(self, picture: &Picture, view: &View) -> String {
        let silence = picture.at.elapsed();
        let note = (silence > MAX_SILENCE)
            .then(|| format!("The process has not answered for {} s.", silence.as_secs()));
        let lines = self.lines(picture, view, note.as_deref());
        let lines = lines.join(&format!("{ERASE_LINE}\r\n"));
        format!("{HOME}{lines}{ERASE_LINE}{ERASE_BELOW}")
    }

    fn lines(self, picture: &Picture, view: &View, note: Option<&str>) -> Vec<String> {
        let rows = self.rows - usize::from(note.is_some());
        let mut lines = match (view.shown_upstream(), &picture.upstream) {
            (None, _) => table::overview(&picture.overview, view, self.layout, Some(rows)),
            (Some(name), Some((shown, upstream))) if name == shown => {
                table::upstream(upstream.as_ref().map_err(String::as_str), self.layout, rows)
            }
            (Some(_), _) => vec!["waiting for the upstream".to_owned()],
        };
        lines.extend(note.map(|note| self.layout.bad(table::fitted(note, self.layout))));
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::admin::top::keys::Key;

    fn many_upstreams() -> Value {
        let upstreams = (0..50).map(|number| json!({"name": format!("upstream-{number}")}));
        json!({"upstreams": upstreams.collect::<Vec<_>>(), "alerts": [{"text": "one"}, {"text": "two"}]})
    }

    fn shown(picture: &Picture, view: &View, rows: usize, width: usize) -> Vec<String> {
        let screen = Screen { layout: Layout::of_width(width), rows };
        let lines = screen.lines(picture, view, None);
        assert!(lines.len() <= rows, "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() < width), "{lines:#?}");
        lines
    }

    #[test]
    fn a_table_fits_into_the_terminal_and_shows_the_chosen_row() {
        let picture = Picture::new(many_upstreams(), None);
        for (rows, width) in [(24, 80), (12, 40), (5, 20), (3, 10), (1, 2)] {
            let mut view = View::default();
            for _ in 0..30 {
                view.press(Key::Down, &picture.overview);
            }
            let lines = shown(&picture, &view, rows, width);
            let has_chosen = lines.iter().any(|line| line.starts_with("> upstream-30"));
            assert_eq!(has_chosen, rows > 3 && width > 14, "{lines:#?}");
        }
        let lines = shown(&picture, &View::default(), 24, 80);
        assert!(lines.iter().any(|line| line.ends_with("q quits")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("sorted as configured")), "{lines:#?}");
    }

    #[test]
    fn a_long_failure_of_an_upstream_is_wrapped_and_cut_at_the_last_row() {
        let upstream = json!({"name": "wiki", "state": "backoff", "last_error": {
            "message": "the program ended before it answered ".repeat(9),
            "stderr": vec!["a line"; 40],
        }});
        let answer = Some(("upstream-0".to_owned(), Ok(upstream)));
        let picture = Picture::new(many_upstreams(), answer);
        let mut view = View::default();
        view.press(Key::Enter, &picture.overview);
        let lines = shown(&picture, &view, 24, 60);
        assert_eq!(lines.len(), 24);
        assert_eq!(lines[23], "Escape returns, q quits.");
        let gone = Some(("upstream-0".to_owned(), Err("There is no upstream".to_owned())));
        let lines = shown(&Picture::new(many_upstreams(), gone), &view, 24, 60);
        assert_eq!(lines, ["There is no upstream", "", "Escape returns, q quits."]);
    }

    #[test]
    fn a_process_that_does_not_answer_is_reported() {
        let mut picture = Picture::new(many_upstreams(), None);
        let screen = Screen { layout: Layout::of_width(80), rows: 10 };
        let quiet = "has not answered";
        assert!(!screen.draw(&picture, &View::default()).contains(quiet));
        picture.at -= Duration::from_secs(5);
        let text = screen.draw(&picture, &View::default());
        assert!(text.contains("The process has not answered for 5 s."), "{text}");
        assert_eq!(text.matches('\n').count(), 9, "{text}");
    }
}
