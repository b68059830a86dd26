//! Hexadecimal encoding of bytes.

use alloc::string::String;

/// The bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
    let mut text = String::with_capacity(bytes.len() * 2);
    text.extend(digits.map(|digit| DIGITS[usize::from(digit)]));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_two_digits() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
