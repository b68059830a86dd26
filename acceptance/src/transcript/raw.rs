//! The notation of `>raw`: JSON strings with `\xff` for one byte, each repeatable with `*N`.

/// The bytes that the text after `>raw` stands for.
pub(super) fn bytes(notation: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = notation.trim();
    if rest.is_empty() {
        return Err("nothing to send".to_owned());
    }
    while !rest.is_empty() {
        let after_quote = rest.strip_prefix('"').ok_or_else(|| format!("no string: {rest}"))?;
        let (piece, after) = string(after_quote)?;
        let (times, after) = repetition(after)?;
        out.extend(piece.repeat(times));
        rest = after.trim_start();
    }
    Ok(out)
}

/// Reads up to the closing quote. Returns the bytes and the rest.
fn string(text: &str) -> Result<(Vec<u8>, &str), String> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let mut characters = rest.chars();
        match characters.next() {
            None => return Err("a string without an end".to_owned()),
            Some('"') => return Ok((out, characters.as_str())),
            Some('\\') => rest = escape(characters.as_str(), &mut out)?,
            Some(character) => {
                out.extend(character.to_string().bytes());
                rest = characters.as_str();
            }
        }
    }
}

/// Reads an escape after a backslash. Returns the rest.
fn escape<'a>(text: &'a str, out: &mut Vec<u8>) -> Result<&'a str, String> {
    let length = match text.as_bytes().first() {
        Some(b'x') => 3,
        Some(b'u') => 5,
        _ => 1,
    };
    let (output, rest) =
        text.split_at_checked(length).ok_or_else(|| format!("unknown escape: \\{text}"))?;
    if let Some(digits) = output.strip_prefix('x') {
        out.push(u8::from_str_radix(digits, 16).map_err(|_| format!("not a byte: \\{output}"))?);
    } else {
        let character: String = serde_json::from_str(&format!("\"\\{output}\""))
            .map_err(|_| format!("unknown escape: \\{output}"))?;
        out.extend(character.bytes());
    }
    Ok(rest)
}

fn repetition(text: &str) -> Result<(usize, &str), String> {
    let Some(rest) = text.strip_prefix('*') else {
        return Ok((1, text));
    };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let times = rest[..end].parse().map_err(|_| format!("not a number: {rest}"))?;
    Ok((times, &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_means_its_bytes_without_a_newline() {
        assert_eq!(bytes(r#""ping\r\n""#).unwrap(), b"ping\r\n");
        assert_eq!(bytes(r#""\u00e9\"\\""#).unwrap(), "é\"\\".as_bytes());
    }

    #[test]
    fn any_byte_can_be_written() {
        assert_eq!(bytes(r#""\xff\x00é""#).unwrap(), b"\xff\x00\xc3\xa9");
    }

    #[test]
    fn pieces_are_joined_and_repeated() {
        assert_eq!(bytes(r#""[" "ab"*3 "]\n""#).unwrap(), b"[ababab]\n");
        assert_eq!(bytes(r#""a"*1048576"#).unwrap().len(), 1_048_576);
    }

    #[test]
    fn a_mistake_is_named() {
        for mistake in ["", "ping", r#""open"#, r#""\q""#, r#""\xfg""#, r#""\u12""#, r#""a"*b"#] {
            assert!(bytes(mistake).is_err(), "{mistake}");
        }
    }
}
