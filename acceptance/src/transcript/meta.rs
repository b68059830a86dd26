//! `Meta NAME: {…}` headers: metadata that a file writes once and uses in many messages.
//!
//! `"_meta":@client` becomes the whole object of the header `Meta client:`. `"_meta":{@client,"progressToken":7}`
//! becomes an object with the members of the header and those that follow. `@` has no meaning at other places.

use serde_json::{Map, Value};

/// The `Meta` headers of one file.
#[derive(Debug, Default)]
pub(super) struct MetaHeaders(Vec<MetaHeader>);

#[derive(Debug)]
struct MetaHeader {
    name: String,
    /// The members of the object as text, without the braces.
    members: String,
    used: bool,
}

/// The text before a name.
const MEMBER: &str = "\"_meta\":";

impl MetaHeaders {
    /// Adds a header. `object` is the text after the colon.
    pub(super) fn declare(&mut self, name: &str, object: &str) -> Result<(), String> {
        if name.is_empty() || !name.chars().all(is_name_character) {
            return Err(format!("Meta {name}: a name has only the characters a-z, 0-9 and _"));
        }
        if self.0.iter().any(|header| header.name == name) {
            return Err(format!("a second header Meta {name}:"));
        }
        let parsed: Map<String, Value> = serde_json::from_str(object)
            .map_err(|error| format!("Meta {name}: not a JSON object: {error}"))?;
        let members = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let members = members.filter(|_| !parsed.is_empty());
        let members = members.ok_or_else(|| format!("Meta {name}: the object has no member"))?;
        self.0.push(MetaHeader { name: name.to_owned(), members: members.to_owned(), used: false });
        Ok(())
    }

    /// The text with the object or the members of a header in place of each name after `"_meta":`.
    pub(super) fn expand(&mut self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(offset) = rest.find(MEMBER) {
            let (before, after) = rest.split_at(offset + MEMBER.len());
            out.push_str(before);
            rest = after;
            let (named, closing) = match (after.strip_prefix("{@"), after.strip_prefix('@')) {
                (Some(named), _) => (named, ""),
                (None, Some(named)) => (named, "}"),
                (None, None) => continue,
            };
            let end = named.find(|c| !is_name_character(c)).unwrap_or(named.len());
            let (name, after_name) = named.split_at(end);
            out.push('{');
            out.push_str(self.members(name)?);
            out.push_str(closing);
            rest = after_name;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Refuses a header that no message uses.
    pub(super) fn check_all_used(&self) -> Result<(), String> {
        match self.0.iter().find(|header| !header.used) {
            None => Ok(()),
            Some(MetaHeader { name, .. }) => {
                Err(format!("no message uses \"_meta\":@{name}: remove the header Meta {name}:"))
            }
        }
    }

    fn members(&mut self, name: &str) -> Result<&str, String> {
        let header = self.0.iter_mut().find(|header| header.name == name);
        let header = header.ok_or_else(|| {
            format!("\"_meta\":@{name} has no header: add the header Meta {name}: {{…}}")
        })?;
        header.used = true;
        Ok(&header.members)
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> MetaHeaders {
        let mut headers = MetaHeaders::default();
        headers.declare("client", r#"{"version":"2","can":{}}"#).unwrap();
        headers
    }

    #[test]
    fn a_name_becomes_the_object_and_a_name_in_braces_its_members() {
        let expand = |text: &str| headers().expand(text).unwrap();
        assert_eq!(
            expand(r#"{"a":1,"_meta":@client}"#),
            r#"{"a":1,"_meta":{"version":"2","can":{}}}"#
        );
        assert_eq!(
            expand(r#"[{"_meta":{@client,"t":7}},{"_meta":@client}]"#),
            r#"[{"_meta":{"version":"2","can":{},"t":7}},{"_meta":{"version":"2","can":{}}}]"#
        );
    }

    #[test]
    fn text_without_a_name_after_the_member_stays_as_it_is() {
        let text = r#"{"_meta":{"a":"@client"},"to":"x@client","_meta": @client}"#;
        assert_eq!(headers().expand(text).unwrap(), text);
    }

    #[test]
    fn an_unknown_name_and_an_unused_header_are_refused() {
        let mut headers = headers();
        let unused = headers.check_all_used().unwrap_err();
        assert!(unused.contains("remove the header Meta client:"), "{unused}");
        let unknown = headers.expand(r#"{"_meta":@clients}"#).unwrap_err();
        assert!(unknown.contains("add the header Meta clients:"), "{unknown}");
        headers.expand(r#"{"_meta":@client}"#).unwrap();
        headers.check_all_used().unwrap();
    }

    #[test]
    fn a_header_is_a_new_name_and_an_object_with_members() {
        let refusal = |name, object| headers().declare(name, object).unwrap_err();
        assert!(refusal("client", r#"{"a":1}"#).contains("a second header"));
        assert!(refusal("Client", r#"{"a":1}"#).contains("a name has only"));
        assert!(refusal("a", "[]").contains("not a JSON object"));
        assert!(refusal("a", "{}").contains("no member"));
    }
}
