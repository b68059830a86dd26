//! Templates: `{name}` is a placeholder for an argument, `{{` and `}}` are literal braces.

use std::fmt;

/// A text with placeholders.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

/// A part of a template.
#[derive(Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Literal text.
    Text(String),
    /// The name of an argument.
    Argument(String),
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// When a brace is neither part of a placeholder nor escaped; describes the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(index) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(index);
            plain.push_str(before);
            if brace.starts_with("{{") || brace.starts_with("}}") {
                plain.push_str(&brace[..1]);
                rest = &brace[2..];
                continue;
            }
            let end = brace.find('}').filter(|_| brace.starts_with('{'));
            let Some((name, after)) = end.map(|end| (&brace[1..end], &brace[end + 1..])) else {
                let brace = &brace[..1];
                return Err(format!(
                    "`{brace}` is not part of a placeholder; write `{brace}{brace}` for a \
                        literal brace"
                ));
            };
            if !is_argument_name(name) {
                return Err(format!(
                    "invalid placeholder `{{{name}}}`; write the name of an argument in braces, \
                        or `{{{{` for a literal brace"
                ));
            }
            if !plain.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
            }
            parts.push(TemplatePart::Argument(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(TemplatePart::Text(plain));
        }
        Ok(Self(parts))
    }

    /// Its parts.
    pub fn parts(&self) -> &[TemplatePart] {
        &self.0
    }

    /// The names of its arguments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Argument(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        })
    }

    /// The argument, if the template is a single placeholder.
    pub fn single_argument(&self) -> Option<&str> {
        match self.0.as_slice() {
            [TemplatePart::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// The text, if there is no placeholder.
    pub fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text before the first placeholder.
    pub fn literal_prefix(&self) -> &str {
        match self.0.first() {
            Some(TemplatePart::Text(text)) => text,
            _ => "",
        }
    }

    /// The text with the arguments' values; `None` if one of them has none.
    pub(crate) fn fill(&self, text_of: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => filled.push_str(text),
                TemplatePart::Argument(name) => filled.push_str(&text_of(name)?),
            }
        }
        Some(filled)
    }
}

/// Whether it is a valid name of an argument.
pub fn is_argument_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic();
    let rest = |byte: u8| is_allowed(byte) || byte == b'-' || byte.is_ascii_digit();
    name.len() <= 64 && name.bytes().next().is_some_and(is_allowed) && name.bytes().all(rest)
}

impl fmt::Debug for Template {
    /// Shows only the placeholders. The text around them may come from the environment and be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Template(")?;
        for part in &self.0 {
            match part {
                TemplatePart::Text(_) => formatter.write_str("…")?,
                TemplatePart::Argument(name) => write!(formatter, "{{{name}}}")?,
            }
        }
        formatter.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let text_of = |name: &str| (name != "no").then(|| format!("<{name}>"));
        Template::parse(text).unwrap().fill(text_of).unwrap_or_else(|| "nothing".into())
    }

    #[test]
    fn placeholders_are_filled_once_and_doubled_braces_are_braces() {
        assert_eq!(filled("--n={count}/{b-c}"), "--n=<count>/<b-c>");
        assert_eq!(filled("{{count}} {{{a}}}"), "{count} {<a>}");
        assert_eq!(filled("a{no}"), "nothing");
        assert_eq!(filled(""), "");
        assert_eq!(Template::parse("{a}").unwrap().single_argument(), Some("a"));
        assert_eq!(Template::parse("x").unwrap().literal(), Some("x"));
    }

    #[test]
    fn an_invalid_placeholder_is_refused() {
        for text in ["{", "}", "{}", "{a b}", "{1}", "a } b", "{$x}", "{-x}", "{a{b}}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_surrounding_text_is_not_shown() {
        let shown = format!("{:?}", Template::parse("Bearer hunter2 {a}").unwrap());
        assert_eq!(shown, "Template(…{a})");
    }
}
