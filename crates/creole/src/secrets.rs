//! The secrets that replicas share, and the digest that derives keys from them.

use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes`, to bind data that is too long to be bound directly.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The secrets of a sealer from a file, which several machines may share.
pub struct Secrets(Vec<[u8; 32]>);

impl Secrets {
    /// The secrets, the newest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8; 32]> {
        self.0.iter()
    }

    /// Parses one or two secrets, each as 64 hexadecimal digits on its own line, the newest first. Empty lines and
    /// lines that start with `#` are skipped.
    ///
    /// # Errors
    /// The error and its line number, but not the content of the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).enumerate();
        let written = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let secrets = written.map(|(number, line)| {
            secret_of_hex(line)
                .ok_or_else(|| format!("line {}: not 64 hexadecimal digits", number + 1))
        });
        match secrets.collect::<Result<Vec<_>, _>>()? {
            none if none.is_empty() => {
                Err("the file has no key; create one with `openssl rand -hex 32`".to_owned())
            }
            some if some.len() <= 2 => Ok(Self(some)),
            _ => {
                Err("the file has more than two keys; keep the newest and the previous one"
                    .to_owned())
            }
        }
    }
}

fn secret_of_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text
        .chars()
        .map_while(|character| character.to_digit(16))
        .map(|value| value as u8)
        .collect();
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (text.len() == 64).then_some(())?;
    bytes.try_into().ok()
}
