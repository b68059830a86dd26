//! Splits the text of an expression into tokens.

use super::ExpressionError;

/// A token, and its position in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) offset: usize,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// An integer without a sign.
    Int(u64),
    /// An integer with the suffix `u`.
    Uint(u64),
    Double(f64),
    String(String),
    Name(String),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

/// Operators and brackets. Those that begin others come after them.
const SYMBOLS: [&str; 25] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}", "=",
];

/// Words that CEL reserves for other languages.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The tokens of a text. The last one is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut lexer = Lexer { text, offset: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let offset = lexer.offset;
        let kind = lexer.next_kind()?;
        let is_end = kind == TokenKind::End;
        tokens.push(Token { kind, offset });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn error(&self, message: impl Into<String>) -> ExpressionError {
        ExpressionError { message: message.into(), offset: self.offset }
    }

    fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
            self.offset += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.offset += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn next_kind(&mut self) -> Result<TokenKind, ExpressionError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(TokenKind::End) };
        if let Some(prefix) = string_prefix(rest) {
            return self.string(prefix);
        }
        let starts_number =
            first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit());
        if first.is_ascii_digit() || starts_number {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let name = &rest[..length];
            if RESERVED.contains(&name) {
                return Err(self.error(format!("`{name}` is a reserved word")));
            }
            self.offset += length;
            return Ok(TokenKind::Name(name.to_owned()));
        }
        match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(&"=") => Err(self.error("`=` is not an operator; write `==` to compare")),
            Some(symbol) => {
                self.offset += symbol.len();
                Ok(TokenKind::Symbol(symbol))
            }
            None => Err(self.error(format!("unexpected character {first:?}"))),
        }
    }

    fn number(&mut self) -> Result<TokenKind, ExpressionError> {
        let rest = self.rest();
        if let Some(digits) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            let length =
                digits.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(digits.len());
            let value = u64::from_str_radix(&digits[..length], 16);
            let value = value.map_err(|_| self.error("invalid hexadecimal number"))?;
            self.offset += 2 + length;
            return Ok(self.integer(value));
        }
        let length = number_length(rest);
        let text = &rest[..length];
        if text.contains(['.', 'e', 'E']) {
            let value = text.parse().map_err(|_| self.error(format!("invalid number `{text}`")))?;
            self.offset += length;
            return Ok(TokenKind::Double(value));
        }
        let value = text.parse().map_err(|_| self.error(format!("`{text}` is too large")))?;
        self.offset += length;
        Ok(self.integer(value))
    }

    /// The integer, with its suffix.
    fn integer(&mut self, value: u64) -> TokenKind {
        match self.rest().starts_with(['u', 'U']) {
            true => {
                self.offset += 1;
                TokenKind::Uint(value)
            }
            false => TokenKind::Int(value),
        }
    }

    fn string(&mut self, prefix: StringPrefix) -> Result<TokenKind, ExpressionError> {
        let StringPrefix { is_raw, quote, length } = prefix;
        let start = self.offset;
        self.offset += length;
        let mut value = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(quote) {
                self.offset += quote.len();
                return Ok(TokenKind::String(value));
            }
            match rest.chars().next() {
                Some('\\') if !is_raw => value.push(self.escape()?),
                Some('\n') if quote.len() == 1 => break,
                Some(letter) => {
                    self.offset += letter.len_utf8();
                    value.push(letter);
                }
                None => break,
            }
        }
        Err(ExpressionError { message: "this string has no end".to_owned(), offset: start })
    }

    fn escape(&mut self) -> Result<char, ExpressionError> {
        let rest = &self.rest()[1..];
        let invalid = || self.error("invalid escape in a string; write `\\\\` for a backslash");
        let letter = rest.chars().next().ok_or_else(invalid)?;
        let (skip, digits, radix) = match letter {
            'x' | 'X' => (1, 2, 16),
            'u' => (1, 4, 16),
            'U' => (1, 8, 16),
            '0'..='3' => (0, 3, 8),
            _ => {
                let plain = match letter {
                    '\\' | '\'' | '"' | '`' | '?' => letter,
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    _ => return Err(invalid()),
                };
                self.offset += 2;
                return Ok(plain);
            }
        };
        let code = rest.get(skip..skip + digits).ok_or_else(invalid)?;
        let code = u32::from_str_radix(code, radix).ok().and_then(char::from_u32);
        let code = code.ok_or_else(invalid)?;
        self.offset += 1 + skip + digits;
        Ok(code)
    }
}

/// How a string begins.
struct StringPrefix {
    is_raw: bool,
    quote: &'static str,
    length: usize,
}

fn string_prefix(rest: &str) -> Option<StringPrefix> {
    let (is_raw, quoted) = match rest.strip_prefix(['r', 'R']) {
        Some(quoted) => (true, quoted),
        None => (false, rest),
    };
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|it| quoted.starts_with(it))?;
    Some(StringPrefix { is_raw, quote, length: usize::from(is_raw) + quote.len() })
}

/// The length of a decimal number at the start of the text.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |start: usize| {
        let count = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        start + count
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}
