//! Splits a command line into words like a shell.

/// The words of a command line. Quotes keep a word together, and a backslash escapes the next character. Nothing else
/// is special.
///
/// # Errors
/// When a quote is not closed.
pub(crate) fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(character) = letters.next() {
        match character {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                read_quoted(character, &mut letters, word)
                    .ok_or_else(|| format!("the quote {character} is not closed"))?;
            }
            '\\' => word.get_or_insert_default().push(letters.next().unwrap_or('\\')),
            character => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing quote. Between single quotes a backslash is an ordinary character.
fn read_quoted(quote: char, letters: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match letters.next()? {
            character if character == quote => return Some(()),
            '\\' if quote == '"' => match letters.next()? {
                character @ ('"' | '\\') => word.push(character),
                character => word.extend(['\\', character]),
            },
            character => word.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_keep_words_together() {
        let rows: [(&str, &[&str]); 6] = [
            ("npx -y  server /data", &["npx", "-y", "server", "/data"]),
            ("  ", &[]),
            ("a 'b c' \"d \\\"e\\\" \\n\" f'g'h", &["a", "b c", "d \"e\" \\n", "fgh"]),
            ("a\\ b '' \"\"", &["a b", "", ""]),
            ("'C:\\x'", &["C:\\x"]),
            ("a$b;c", &["a$b;c"]),
        ];
        for (line, expected) in rows {
            assert_eq!(split_words(line).unwrap(), expected, "{line}");
        }
        assert_eq!(split_words("a 'b"), Err("the quote ' is not closed".to_owned()));
    }
}
