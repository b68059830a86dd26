//! Text templates with bounded steps and output size, and without access to anything but their values.

use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};

/// Maximum number of steps of one rendering.
const MAX_STEPS: u64 = 200_000;
/// Maximum size of one rendering, in bytes.
const MAX_RENDERED_BYTES: usize = 1024 * 1024;
/// The name of the one template in each environment.
const TEMPLATE_NAME: &str = "text";

/// A text template.
#[derive(Debug)]
pub(crate) struct TextTemplate {
    environment: Environment<'static>,
    source: String,
    /// The line of the file in which it begins.
    line: usize,
}

/// An error in a template, and its position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplateError {
    pub(crate) line: usize,
    pub(crate) column: Option<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl TextTemplate {
    /// Parses a template that begins in this line of its file and may use these names.
    pub(crate) fn new(source: &str, line: usize, names: &[&str]) -> Result<Self, TemplateError> {
        let mut text = Self { environment: environment(), source: source.to_owned(), line };
        let added = text.environment.add_template_owned(TEMPLATE_NAME, source.to_owned());
        added.map_err(|error| text.to_template_error(&error))?;
        let undeclared = match text.environment.get_template(TEMPLATE_NAME) {
            Ok(template) => template.undeclared_variables(false),
            Err(error) => return Err(text.to_template_error(&error)),
        };
        let is_known = |name: &String| {
            names.contains(&name.as_str())
                || text.environment.globals().any(|(global, _)| global == name)
        };
        let mut unknown: Vec<&String> = undeclared.iter().filter(|name| !is_known(name)).collect();
        unknown.sort();
        match unknown.first() {
            Some(name) => Err(text.unknown_name_error(name, names)),
            None => Ok(text),
        }
    }

    /// The rendered text.
    pub(crate) fn render(&self, values: BTreeMap<String, String>) -> Result<String, TemplateError> {
        let mut bounded = BoundedWriter::default();
        let template = self
            .environment
            .get_template(TEMPLATE_NAME)
            .map_err(|error| self.to_template_error(&error))?;
        let rendered = template.render_captured_to(Value::from_object(values), &mut bounded);
        if bounded.is_full {
            let message = format!("the rendered text is longer than {MAX_RENDERED_BYTES} bytes");
            return Err(TemplateError { line: self.line, column: None, message, help: None });
        }
        rendered.map_err(|error| self.to_template_error(&error))?;
        // Only complete UTF-8 texts were written.
        Ok(String::from_utf8_lossy(&bounded.bytes).into_owned())
    }

    fn unknown_name_error(&self, name: &str, names: &[&str]) -> TemplateError {
        let known = match names {
            [] => "there are no arguments".to_owned(),
            names => format!("the arguments are `{}`", names.join("`, `")),
        };
        let help = Some(format!("{known}; add it to the arguments, or correct the name"));
        let (line, column) =
            self.line_and_column(find_word(&self.source, name).unwrap_or_default());
        TemplateError {
            line,
            column: Some(column),
            message: format!("unknown argument `{name}`"),
            help,
        }
    }

    fn to_template_error(&self, error: &Error) -> TemplateError {
        let message = match (error.kind(), error.detail()) {
            (ErrorKind::OutOfFuel, _) => format!("the text takes more than {MAX_STEPS} steps"),
            (kind, None) => kind.to_string(),
            (_, Some(detail)) => detail.to_owned(),
        };
        let (line, column) = match error.range() {
            Some(range) => {
                let (line, column) = self.line_and_column(range.start);
                (line, Some(column))
            }
            None => (self.line + error.line().unwrap_or(1) - 1, None),
        };
        TemplateError { line, column, message, help: None }
    }

    /// The line and column of a byte.
    fn line_and_column(&self, byte: usize) -> (usize, usize) {
        let before = &self.source[..self.source.floor_char_boundary(byte)];
        let line = before.rsplit('\n').next().unwrap_or_default();
        (self.line + before.matches('\n').count(), line.chars().count() + 1)
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(MAX_STEPS));
    // It would print all values of the template.
    environment.remove_global("debug");
    // A line with only a condition produces no empty line.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment
}

/// The first position of a word inside a placeholder.
fn find_word(source: &str, name: &str) -> Option<usize> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let first = source.find("{{").into_iter().chain(source.find("{%")).min()?;
    source.match_indices(name).map(|(offset, _)| offset).find(|offset| {
        let (before, after) = (&source[..*offset], &source[offset + name.len()..]);
        *offset > first
            && !before.chars().next_back().is_some_and(is_part)
            && !after.chars().next().is_some_and(is_part)
    })
}

/// A writer that stops at a limit.
#[derive(Default)]
struct BoundedWriter {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_RENDERED_BYTES {
            self.is_full = true;
            return Err(io::Error::other("too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn position_of(error: &TemplateError) -> (usize, Option<usize>) {
        (error.line, error.column)
    }

    #[test]
    fn gaps_are_filled_as_they_are() {
        let text = TextTemplate::new(
            "Hi {{ who }}!\n{% if tone %}\nBe {{ tone }}.\n{% endif %}\n",
            1,
            &["who", "tone"],
        );
        let text = text.unwrap();
        let arguments = values(&[("who", "<b>{{ x }}"), ("tone", "")]);
        assert_eq!(text.render(arguments).unwrap(), "Hi <b>{{ x }}!\n");
        assert_eq!(
            text.render(values(&[("who", "a"), ("tone", "kind")])).unwrap(),
            "Hi a!\nBe kind.\n"
        );
    }

    #[test]
    fn each_error_is_reported_with_its_position_in_the_file() {
        let error = TextTemplate::new("a\n  b {{ whom }}", 7, &["who"]).unwrap_err();
        assert_eq!(position_of(&error), (8, Some(8)));
        assert_eq!(error.message, "unknown argument `whom`");
        let error = TextTemplate::new("a\n{% if %}", 7, &[]).unwrap_err();
        assert_eq!(position_of(&error), (8, Some(7)));
        assert_eq!(
            TextTemplate::new("\n\n{{ a|nonsense }}", 1, &["a"])
                .unwrap()
                .render(values(&[("a", "")]))
                .unwrap_err()
                .line,
            3
        );
        let undefined =
            TextTemplate::new("x\n{{ a }}", 1, &["a"]).unwrap().render(values(&[])).unwrap_err();
        assert_eq!(undefined.line, 2);
    }

    #[test]
    fn nothing_is_reached_and_everything_ends() {
        for reaching in [
            "{% include '/etc/passwd' %}",
            "{% import 'x' as x %}",
            "{% extends 'x' %}",
            "{{ debug() }}",
            "{{ open('/etc/passwd') }}",
        ] {
            let text = TextTemplate::new(reaching, 1, &[]);
            assert!(text.is_err() || text.unwrap().render(values(&[])).is_err(), "{reaching}");
        }
        let endless =
            "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        let error = TextTemplate::new(endless, 1, &[]).unwrap().render(values(&[])).unwrap_err();
        assert!(error.message.contains("steps"), "{error:?}");
        let long = "{% for a in range(9999) %}{{ 'x' * 999 }}{% endfor %}";
        let error = TextTemplate::new(long, 1, &[]).unwrap().render(values(&[])).unwrap_err();
        assert!(error.message.contains("longer"), "{error:?}");
    }
}
