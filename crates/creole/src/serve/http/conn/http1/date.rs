//! The `Date` header of a response, formatted once a second.

use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// The length of every date (RFC 9110, 5.6.7).
const LENGTH: usize = 29;

thread_local! {
    /// The second that was formatted last, and its text.
    static LAST: Cell<(u64, [u8; LENGTH])> = const { Cell::new((u64::MAX, [0; LENGTH])) };
}

/// Writes the header with the current date.
pub(crate) fn write(out: &mut Vec<u8>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let words = LAST.with(|last| match last.get() {
        (second, words) if second == now => words,
        _ => {
            let words = format_date(now);
            last.set((now, words));
            words
        }
    });
    out.extend_from_slice(b"date: ");
    out.extend_from_slice(&words);
    out.extend_from_slice(b"\r\n");
}

fn format_date(second: u64) -> [u8; LENGTH] {
    let mut words = [b' '; LENGTH];
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(second));
    // The buffer has room for every date that can be formatted.
    let _ = write!(&mut words[..], "{date}");
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_written_as_rfc_9110_has_it_and_follows_the_clock() {
        assert_eq!(&format_date(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        LAST.set((0, format_date(0)));
        let mut out = Vec::new();
        write(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("date: ") && text.ends_with(" GMT\r\n"), "{text}");
        assert!(!text.contains("1970"), "{text}");
    }
}
