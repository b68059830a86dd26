//! Sanitises the texts of a document for models and terminals.

/// A text of at most `most` bytes, without deceptive characters: control characters, zero-width characters and
/// characters that change the writing direction.
pub(super) fn clean_text(text: &str, most: usize) -> String {
    let mut cleaned: String = text.chars().filter(|letter| is_shown(*letter)).collect();
    cleaned = cleaned.trim().to_owned();
    if cleaned.len() <= most {
        return cleaned;
    }
    let room = cleaned.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    cleaned.truncate(room);
    cleaned.truncate(cleaned.trim_end().len());
    if !cleaned.is_empty() {
        cleaned.push('…');
    }
    cleaned
}

fn is_shown(letter: char) -> bool {
    let deceives = matches!(letter,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    letter == '\n' || !(letter.is_control() || deceives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_is_taken_out_and_what_is_long_is_cut() {
        assert_eq!(clean_text(" a\u{1b}[31m\u{202e}b\u{e0041}\nc\u{200b} ", 100), "a[31mb\nc");
        assert_eq!(clean_text("äöü äöü", 10), "äöü…");
        assert_eq!(clean_text("abc", 0), "");
    }
}
