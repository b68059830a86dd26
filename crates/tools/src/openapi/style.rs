//! Serialises parameter values in the styles of OpenAPI. Each value is encoded so that it cannot leave its position.

use creole::ToolError;
use serde_json::{Map, Value};

use crate::recipe::argument::{invalid_argument, text};
use crate::recipe::http::encode;

/// The serialisation of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `a,b`
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a,b`
    Matrix,
    /// `name=a&name=b`, or `name=a,b`
    Form,
    /// `name=a%20b`
    SpaceDelimited,
    /// `name=a%7Cb`
    PipeDelimited,
    /// `name[member]=a`
    DeepObject,
    /// `name={"member":"a"}`
    Json,
}

/// The position of an argument's value in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSlot {
    /// The argument.
    pub argument: String,
    /// Its name at the service.
    pub name: String,
    /// Its style.
    pub style: Style,
    /// Whether each item and member is a separate parameter.
    pub explode: bool,
    /// Whether characters such as `/` and `:` stay unencoded in the query.
    pub reserved: bool,
    /// The allowed members: where each becomes a parameter, callers cannot add others.
    pub members: Vec<String>,
}

/// Encodes a single value.
type Encode<'a> = &'a dyn Fn(&str, &mut String) -> Result<(), ToolError>;

impl ParameterSlot {
    /// Writes it as a part of the path.
    pub(crate) fn write_path(&self, value: &Value, path: &mut String) -> Result<(), ToolError> {
        let encode = |text: &str, to: &mut String| {
            encode::check_segment(&self.argument, text)?;
            encode::percent_encode(text, to);
            Ok(())
        };
        let start = path.len();
        match self.style {
            Style::Json => encode(&value.to_string(), path)?,
            Style::Label => {
                path.push('.');
                self.write_joined(value, if self.explode { "." } else { "," }, &encode, path)?;
            }
            Style::Matrix => self.matrix(value, &encode, path)?,
            _ => self.write_joined(value, ",", &encode, path)?,
        }
        match path.len() > start {
            true => Ok(()),
            false => Err(invalid_argument(&self.argument, "must not be empty")),
        }
    }

    fn matrix(
        &self,
        value: &Value,
        encode: Encode<'_>,
        path: &mut String,
    ) -> Result<(), ToolError> {
        let name = |path: &mut String| {
            path.push(';');
            encode::percent_encode(&self.name, path);
            path.push('=');
        };
        match value {
            Value::Array(items) if self.explode => items.iter().try_for_each(|item| {
                name(path);
                encode(&text(item), path)
            }),
            Value::Object(members) if self.explode => {
                path.push(';');
                self.members(members, ";", encode, path)
            }
            value => {
                name(path);
                self.write_joined(value, ",", encode, path)
            }
        }
    }

    /// Writes it as a header.
    pub(crate) fn format_header(&self, value: &Value) -> Result<String, ToolError> {
        let mut header = String::new();
        if self.style == Style::Json {
            return Ok(value.to_string());
        }
        let plain = |text: &str, to: &mut String| {
            to.push_str(text);
            Ok(())
        };
        self.write_joined(value, ",", &plain, &mut header)?;
        Ok(header)
    }

    /// Writes items or members with a separator.
    fn write_joined(
        &self,
        value: &Value,
        between: &str,
        encode: Encode<'_>,
        to: &mut String,
    ) -> Result<(), ToolError> {
        match value {
            Value::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    to.push_str(if position == 0 { "" } else { between });
                    encode(&text(item), to)?;
                }
                Ok(())
            }
            Value::Object(members) => self.members(members, between, encode, to),
            value => encode(&text(value), to),
        }
    }

    fn members(
        &self,
        members: &Map<String, Value>,
        between: &str,
        encode: Encode<'_>,
        to: &mut String,
    ) -> Result<(), ToolError> {
        for (position, (key, value)) in members.iter().enumerate() {
            to.push_str(if position == 0 { "" } else { between });
            encode(key, to)?;
            to.push_str(if self.explode { "=" } else { "," });
            encode(&text(value), to)?;
        }
        Ok(())
    }

    /// Writes it as parameters of a query, a form or a cookie.
    pub(crate) fn write_query(&self, value: &Value, query: &mut String) -> Result<(), ToolError> {
        let between = match self.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "%7C",
            _ => ",",
        };
        match (self.style, value) {
            (Style::Json, value) => self.write_pair(&value.to_string(), query),
            (Style::DeepObject, value) => write_deep_object(&self.name, value, query),
            (_, Value::Array(items)) if self.explode => {
                items.iter().for_each(|item| self.write_pair(&text(item), query));
            }
            (_, Value::Object(members)) if self.explode => {
                return self.write_exploded(members, query);
            }
            (_, Value::Array(items)) if items.is_empty() => {}
            (_, value @ (Value::Array(_) | Value::Object(_))) => {
                begin_pair(&self.name, query);
                let encode = |text: &str, to: &mut String| {
                    encode::percent_encode(text, to);
                    Ok(())
                };
                self.write_joined(value, between, &encode, query)?;
            }
            (_, value) => self.write_pair(&text(value), query),
        }
        Ok(())
    }

    fn write_pair(&self, value: &str, query: &mut String) {
        begin_pair(&self.name, query);
        match self.reserved {
            true => encode::percent_encode_except(value, ":/?@!$'()*,;", query),
            false => encode::percent_encode(value, query),
        }
    }

    /// Writes each member as a parameter. Only members of the document are allowed, since callers could send any
    /// parameter otherwise.
    fn write_exploded(
        &self,
        members: &Map<String, Value>,
        query: &mut String,
    ) -> Result<(), ToolError> {
        for (key, value) in members {
            if !self.members.contains(key) {
                let reason = format!("has no member `{key}`");
                return Err(invalid_argument(&self.argument, &reason));
            }
            encode::push_parameter(key, &text(value), query);
        }
        Ok(())
    }
}

fn begin_pair(name: &str, query: &mut String) {
    if !query.is_empty() {
        query.push('&');
    }
    encode::percent_encode(name, query);
    query.push('=');
}

/// `name[a][b]=c`. Arrays of scalars are `name[]=a`, which most services accept; other arrays are numbered.
fn write_deep_object(name: &str, value: &Value, query: &mut String) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                write_deep_object(&format!("{name}[{key}]"), value, query);
            }
        }
        Value::Array(items) => {
            let is_plain = !items.iter().any(|item| item.is_object() || item.is_array());
            for (position, item) in items.iter().enumerate() {
                let location = if is_plain { String::new() } else { position.to_string() };
                write_deep_object(&format!("{name}[{location}]"), item, query);
            }
        }
        Value::Null => {}
        value => encode::push_parameter(name, &text(value), query),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slot(style: Style, explode: bool) -> ParameterSlot {
        let members = vec!["R".to_owned(), "G".to_owned()];
        let (argument, name) = ("color".to_owned(), "color".to_owned());
        ParameterSlot { argument, name, style, explode, reserved: false, members }
    }

    fn path(style: Style, explode: bool, value: Value) -> String {
        let mut path = String::new();
        slot(style, explode).write_path(&value, &mut path).unwrap();
        path
    }

    fn query(style: Style, explode: bool, value: Value) -> String {
        let mut query = String::new();
        slot(style, explode).write_query(&value, &mut query).unwrap();
        query
    }

    /// The table of the specification, section 4.8.12.4 of 3.0.4 and 3.1.1.
    #[test]
    fn values_are_written_as_the_table_of_styles_says() {
        let (one, list) = (json!("blue"), json!(["blue", "black", "brown"]));
        let members = json!({ "R": 100, "G": 200 });
        for (style, explode, a, b, c) in [
            (Style::Simple, false, "blue", "blue,black,brown", "G,200,R,100"),
            (Style::Simple, true, "blue", "blue,black,brown", "G=200,R=100"),
            (Style::Label, false, ".blue", ".blue,black,brown", ".G,200,R,100"),
            (Style::Label, true, ".blue", ".blue.black.brown", ".G=200.R=100"),
            (Style::Matrix, false, ";color=blue", ";color=blue,black,brown", ";color=G,200,R,100"),
            (
                Style::Matrix,
                true,
                ";color=blue",
                ";color=blue;color=black;color=brown",
                ";G=200;R=100",
            ),
        ] {
            assert_eq!(path(style, explode, one.clone()), a);
            assert_eq!(path(style, explode, list.clone()), b);
            assert_eq!(path(style, explode, members.clone()), c);
        }
        let rows = [
            (Style::Form, false, &list, "color=blue,black,brown"),
            (Style::Form, true, &list, "color=blue&color=black&color=brown"),
            (Style::Form, false, &members, "color=G,200,R,100"),
            (Style::Form, true, &members, "G=200&R=100"),
            (Style::SpaceDelimited, false, &list, "color=blue%20black%20brown"),
            (Style::PipeDelimited, false, &list, "color=blue%7Cblack%7Cbrown"),
            (Style::DeepObject, true, &members, "color%5BG%5D=200&color%5BR%5D=100"),
            (Style::Form, true, &one, "color=blue"),
        ];
        for (style, explode, value, expected) in rows {
            assert_eq!(query(style, explode, value.clone()), expected);
        }
        assert_eq!(query(Style::Form, true, json!("")), "color=");
        assert_eq!(query(Style::Form, true, json!([])), "");
        assert_eq!(query(Style::Json, true, json!({ "a": 1 })), "color=%7B%22a%22%3A1%7D");
        let nested = json!({ "a": { "b": [1, 2] }, "c": [{ "d": 3 }], "e": null });
        assert_eq!(
            encode_less(&query(Style::DeepObject, true, nested)),
            "color[a][b][]=1&color[a][b][]=2&color[c][0][d]=3"
        );
    }

    fn encode_less(text: &str) -> String {
        text.replace("%5B", "[").replace("%5D", "]")
    }

    #[test]
    fn a_value_never_leaves_its_position() {
        let hostile = json!(["a&admin=1", "b,c", "d#e"]);
        let expected = "color=a%26admin%3D1,b%2Cc,d%23e";
        assert_eq!(query(Style::Form, false, hostile), expected);
        let mut query = String::new();
        let other = json!({ "admin": 1 });
        assert!(slot(Style::Form, true).write_query(&other, &mut query).is_err());
        let hostile = json!({ "x]=1&admin": "1" });
        slot(Style::DeepObject, true).write_query(&hostile, &mut query).unwrap();
        assert_eq!(query.matches('&').count() + query.matches('=').count(), 1, "{query}");
        query.clear();
        let reserved = ParameterSlot { reserved: true, ..slot(Style::Form, true) };
        reserved.write_query(&json!("a/b:c&d=e#f%20 +"), &mut query).unwrap();
        assert_eq!(query, "color=a/b:c%26d%3De%23f%2520%20%2B");
        for value in [json!("a/b"), json!(""), json!(["", "x"]), json!({ "a/b": 1 }), json!([])] {
            let mut path = String::new();
            assert!(slot(Style::Simple, false).write_path(&value, &mut path).is_err(), "{value}");
        }
    }
}
