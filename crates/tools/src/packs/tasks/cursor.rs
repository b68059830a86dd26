//! List cursors: the number of the last listed task, with a checksum that detects invalid cursors.

/// The cursor after a task's number.
pub(crate) fn write(number: i64) -> String {
    format!("{number:016x}{:08x}", checksum(number))
}

/// The number in a cursor, if it is valid.
pub(crate) fn read(cursor: &str) -> Option<i64> {
    let number = i64::from_str_radix(cursor.get(..16)?, 16).ok()?;
    // Comparing the text also rejects other spellings of the same number.
    (write(number) == cursor).then_some(number)
}

/// FNV-1a. It guards against mistakes, not against attacks: a forged cursor gives access to nothing beyond a plain
/// call.
fn checksum(number: i64) -> u32 {
    let seeded = b"list_tasks".iter().copied().chain(number.to_be_bytes());
    seeded.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back() {
        for number in [0, 1, 255, i64::MAX] {
            assert_eq!(read(&write(number)), Some(number));
        }
    }

    #[test]
    fn garbage_is_refused() {
        let good = write(12);
        let upper = good.to_uppercase();
        let other = write(13);
        let mixed = format!("{}{}", &good[..16], &other[16..]);
        for bad in ["", "x", "12", "éééééééééééé", &good[..23], &upper, &mixed, &format!("{good}0")]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
