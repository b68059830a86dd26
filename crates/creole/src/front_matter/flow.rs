//! Quotations, and lists and mappings in brackets; each ends in the line where it begins.

use super::block::{check_begin, without_comment};
use super::lines::{Line, begins_blank};
use super::{DEEPEST, Members, Node, Wrong, scalar};

/// The text that a quotation stands for, and what follows it.
pub(super) fn quoted<'a>(text: &'a str, line: Line<'_>) -> Result<(String, &'a str), Wrong> {
    match text.starts_with('\'') {
        true => single(&text[1..]),
        false => double(&text[1..], line)?,
    }
    .ok_or_else(|| {
        let help = "close it in the same line; a text of several lines follows `>-`";
        line.wrong("a quotation does not end", help)
    })
}

/// Between single quotes two of them stand for one.
fn single(mut rest: &str) -> Option<(String, &str)> {
    let mut said = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        said.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                said.push('\'');
                rest = more;
            }
            None => return Some((said, after)),
        }
    }
}

fn double<'a>(text: &'a str, line: Line<'_>) -> Result<Option<(String, &'a str)>, Wrong> {
    let mut said = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok(Some((said, &text[at + 1..]))),
            '\\' => {
                let Some((escape, meant)) = escaped(&text[at + 1..]) else {
                    let help = r#"`\n`, `\t`, `\"`, `\\`, `\xNN`, `\uNNNN` and their like are"#;
                    return Err(line.wrong("a backslash begins no escape that YAML knows", help));
                };
                said.push(meant);
                (0..escape).for_each(|_| _ = letters.next());
            }
            other => said.push(other),
        }
    }
    Ok(None)
}

/// How many letters an escape has after its backslash, and what it stands for.
fn escaped(text: &str) -> Option<(usize, char)> {
    let coded = |digits: usize| {
        let code =
            text.get(1..=digits).filter(|code| code.bytes().all(|it| it.is_ascii_hexdigit()));
        let letter = char::from_u32(u32::from_str_radix(code?, 16).ok()?)?;
        Some((1 + digits, letter))
    };
    let meant = match text.chars().next()? {
        'x' => return coded(2),
        'u' => return coded(4),
        'U' => return coded(8),
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        same @ (' ' | '"' | '/' | '\\') => same,
        _ => return None,
    };
    Some((1, meant))
}

/// A list or a mapping in brackets, and what follows it.
pub(super) fn collection<'a>(
    text: &'a str,
    line: Line<'_>,
    depth: usize,
) -> Result<(Node, &'a str), Wrong> {
    if depth > DEEPEST {
        let what = format!("this is nested deeper than {DEEPEST} levels");
        return Err(line.wrong(what, "front matter is flat; move the rest into a file"));
    }
    let is_map = text.starts_with('{');
    let closing = if is_map { '}' } else { ']' };
    let (mut items, mut members) = (Vec::new(), Members::new());
    let mut rest = text[1..].trim_start_matches([' ', '\t']);
    loop {
        if let Some(after) = rest.strip_prefix(closing) {
            return Ok((if is_map { Node::Map(members) } else { Node::List(items) }, after));
        }
        let after = if is_map {
            let ((name, value), after) = member(rest, line, depth)?;
            if members.iter().any(|(other, _)| *other == name) {
                return Err(line.wrong(format!("the key `{name}` comes twice"), "keep one of them"));
            }
            members.push((name, value));
            after
        } else {
            let (item, after) = item(rest, line, depth)?;
            items.push(item);
            after
        };
        let after = after.trim_start_matches([' ', '\t']);
        rest = match after.strip_prefix(',') {
            Some(more) => more.trim_start_matches([' ', '\t']),
            None if after.starts_with(closing) => after,
            None => {
                let what = format!("`,` or `{closing}` is missing");
                let help = "close the brackets in the same line, and quote what holds `: ` or ` #`";
                return Err(line.wrong(what, help));
            }
        };
    }
}

fn member<'a>(
    text: &'a str,
    line: Line<'_>,
    depth: usize,
) -> Result<((String, Node), &'a str), Wrong> {
    let is_quoted = text.starts_with(['"', '\'']);
    let (name, after) = item(text, line, depth)?;
    let Node::Text(name) = name else {
        return Err(line.wrong("a key in `{ }` is not a text", "put the key in quotes"));
    };
    let rest = after.trim_start_matches([' ', '\t']).strip_prefix(':');
    let Some(rest) = rest.filter(|rest| is_quoted || begins_blank(rest)) else {
        let what = format!("the key `{name}` has no value");
        return Err(line.wrong(what, "write `{ key: value }`, with a space after the colon"));
    };
    let (value, after) = item(rest.trim_start_matches([' ', '\t']), line, depth)?;
    Ok(((name, value), after))
}

fn item<'a>(text: &'a str, line: Line<'_>, depth: usize) -> Result<(Node, &'a str), Wrong> {
    if text.starts_with(['"', '\'']) {
        return quoted(text, line).map(|(text, after)| (Node::Text(text), after));
    }
    if text.starts_with(['[', '{']) {
        return collection(text, line, depth + 1);
    }
    if text.is_empty() {
        return Err(line.wrong("brackets do not end", "close the brackets in the same line"));
    }
    check_begin(text, line)?;
    let is_end = |(at, letter): &(usize, char)| match letter {
        ',' | '[' | ']' | '{' | '}' => true,
        ':' => text[at + 1..].is_empty() || text[at + 1..].starts_with([' ', '\t', ',', ']', '}']),
        _ => false,
    };
    let end = text.char_indices().find(is_end).map_or(text.len(), |(at, _)| at);
    let (said, has_comment) = without_comment(&text[..end]);
    if has_comment {
        return Err(line.wrong("a comment stands inside of brackets", "move it to the end"));
    }
    let said = said.trim_end_matches([' ', '\t']);
    let node = scalar::resolve(said).map_err(|what| line.wrong(what, "put it in quotes"))?;
    Ok((node, &text[end..]))
}
