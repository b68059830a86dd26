//! Canonical spelling of decimal numbers.

use alloc::string::ToString;
use alloc::vec::Vec;

/// Appends the canonical spelling of a JSON number token.
///
/// The layout is that of ECMAScript, hence of RFC 8785, but the digits are exact: nothing is rounded to a double, so
/// two different integers beyond 2^53 have different spellings. A token with an exponent beyond any practical size is
/// left unchanged.
pub(super) fn push_canonical_number(out: &mut Vec<u8>, token: &str) {
    match Decimal::read(token) {
        Some(decimal) => decimal.push(out),
        None => out.extend_from_slice(token.as_bytes()),
    }
}

/// The number ±0.DIGITS × 10^point, without zeros at either end of the digits; zero has none.
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    fn read(token: &str) -> Option<Self> {
        let magnitude = token.strip_prefix('-').unwrap_or(token);
        let (significand, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
        let (whole, fraction) = significand.split_once('.').unwrap_or((significand, ""));

        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let Some(first) = digits.iter().position(|&digit| digit != b'0') else {
            return Some(Self { negative: false, digits: Vec::new(), point: 0 });
        };
        digits.drain(..first);
        digits.truncate(digits.iter().rposition(|&digit| digit != b'0')? + 1);

        let shift = i64::try_from(whole.len()).ok()?.checked_sub_unsigned(first as u64)?;
        let point = exponent.parse::<i64>().ok()?.checked_add(shift)?;
        // `point - 1` must be representable too, for the printed exponent.
        point.checked_sub(1)?;
        Some(Self { negative: token.len() > magnitude.len(), digits, point })
    }

    /// `Number::toString` of ECMA-262; `point` is its n and the number of digits is its k.
    fn push(&self, out: &mut Vec<u8>) {
        let (digits, count) = (&self.digits, self.digits.len());
        if self.negative {
            out.push(b'-');
        }
        match self.point {
            _ if count == 0 => out.push(b'0'),
            1..=21 if count <= self.point as usize => {
                out.extend_from_slice(digits);
                out.resize(out.len() + self.point as usize - count, b'0');
            }
            1..=21 => {
                let (whole, fraction) = digits.split_at(self.point as usize);
                push_pair(out, whole, fraction);
            }
            -5..=0 => {
                out.extend_from_slice(b"0.");
                out.resize(out.len() + self.point.unsigned_abs() as usize, b'0');
                out.extend_from_slice(digits);
            }
            _ => self.push_scientific(out),
        }
    }

    fn push_scientific(&self, out: &mut Vec<u8>) {
        let (whole, fraction) = self.digits.split_at(1);
        push_pair(out, whole, fraction);
        let exponent = self.point - 1;
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        out.extend_from_slice(exponent.unsigned_abs().to_string().as_bytes());
    }
}

fn push_pair(out: &mut Vec<u8>, whole: &[u8], fraction: &[u8]) {
    out.extend_from_slice(whole);
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn canonical(token: &str) -> String {
        let mut out = Vec::new();
        push_canonical_number(&mut out, token);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn spellings_of_one_number_agree() {
        let groups: [(&str, &[&str]); 8] = [
            ("1", &["1", "1.0", "1e0", "10e-1", "0.1E1", "1.000e+00"]),
            ("0", &["0", "-0", "0.0", "-0.00e5", "0e99999999999999999999999"]),
            ("100", &["100", "1e2", "1E+2", "100.0"]),
            ("-1.5", &["-1.5", "-15e-1", "-1.50"]),
            ("0.001", &["0.001", "1e-3", "0.1e-2"]),
            ("1e-7", &["1e-7", "0.0000001"]),
            ("1e+21", &["1e21", "1000000000000000000000", "0.1e22"]),
            ("1.5e+300", &["1.5e300", "15E299"]),
        ];
        for (expected, tokens) in groups {
            for token in tokens {
                assert_eq!(canonical(token), expected, "{token}");
            }
        }
    }

    #[test]
    fn large_integers_keep_their_digits() {
        for token in ["9007199254740993", "18446744073709551616", "-123456789012345678901"] {
            assert_eq!(canonical(token), token);
        }
        assert_eq!(canonical("1234567890123456789012345"), "1.234567890123456789012345e+24");
    }

    #[test]
    fn an_absurd_exponent_is_not_evaluated() {
        for token in ["1e99999999999999999999", "-2E-9223372036854775809", "1e9223372036854775807"]
        {
            assert_eq!(canonical(token), token);
        }
        assert_eq!(canonical("1e400"), "1e+400");
    }
}
