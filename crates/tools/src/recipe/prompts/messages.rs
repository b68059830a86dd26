//! Splits a text into messages at lines `# user` and `# assistant`.

use creole::Role;

use crate::text_template::TemplateError;

/// A part of a text with one role.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PromptSection<'a> {
    pub(super) role: Role,
    pub(super) text: &'a str,
    /// Its first line.
    pub(super) line: usize,
}

/// Splits a text that begins in this line into messages. The split precedes the filling of placeholders, so that the
/// value of an argument cannot begin a message.
pub(super) fn split_sections(
    text: &str,
    first: usize,
) -> Result<Vec<PromptSection<'_>>, TemplateError> {
    let mut parts: Vec<PromptSection<'_>> = Vec::new();
    let (mut role, mut start, mut line) = (None, 0, first);
    let (mut fenced, mut offset, mut number) = (false, 0, first);
    for whole in text.split_inclusive('\n') {
        let bare = whole.trim_end();
        // Code blocks are not split.
        if bare.trim_start().starts_with("```") || bare.trim_start().starts_with("~~~") {
            fenced = !fenced;
        }
        let next = match bare {
            "# user" if !fenced => Some(Role::User),
            "# assistant" if !fenced => Some(Role::Assistant),
            _ => None,
        };
        let end = offset;
        offset += whole.len();
        number += 1;
        let Some(next) = next else { continue };
        match role {
            Some(role) => parts.push(PromptSection { role, text: &text[start..end], line }),
            None if text[..end].trim().is_empty() => {}
            None => {
                let blank = text.lines().take_while(|line| line.trim().is_empty()).count();
                return Err(TemplateError {
                    line: first + blank,
                    column: Some(1),
                    message: "there is text before the first message".to_owned(),
                    help: Some("move it below `# user` or `# assistant`".to_owned()),
                });
            }
        }
        (role, start, line) = (Some(next), offset, number);
    }
    parts.push(PromptSection { role: role.unwrap_or(Role::User), text: &text[start..], line });
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_roles_begin_messages_outside_of_code() {
        let text = "\n# user\nOne\n```\n# user\n```\n# Users\n# assistant\nTwo\n";
        let parts = split_sections(text, 5).unwrap();
        let found: Vec<_> = parts.iter().map(|part| (part.role, part.text, part.line)).collect();
        let expected =
            [(Role::User, "One\n```\n# user\n```\n# Users\n", 7), (Role::Assistant, "Two\n", 13)];
        assert_eq!(found, expected);
        let plain = split_sections("Text\n", 1).unwrap();
        assert_eq!((plain.len(), plain[0].role, plain[0].text), (1, Role::User, "Text\n"));
    }

    #[test]
    fn a_text_without_a_role_is_refused() {
        let error = split_sections("\nHello\n# user\nOne\n", 4).unwrap_err();
        assert_eq!((error.line, error.column), (5, Some(1)));
    }
}
