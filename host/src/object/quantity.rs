//! Kubernetes quantities (`10Gi`, `0.5`, `2e9`, `100m`), compared exactly.
//!
//! As the API server has it: rounded up to a billionth, and at most 2^63 - 1.

use std::cmp::Ordering;

/// Billionths in one.
const NANO: u128 = 1_000_000_000;
const MOST: u128 = (i64::MAX as u128) * NANO;

/// `None` where either is no quantity: then the API server says so.
pub(crate) fn compare(a: &str, b: &str) -> Option<Ordering> {
    Some(billionths(a)?.cmp(&billionths(b)?))
}

fn billionths(text: &str) -> Option<u128> {
    // A negative one is no size.
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let (binary, decimal) = scale(suffix)?;
    // digits * 2^binary * 10^decimal * 10^9
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let exponent = decimal.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    // More digits than u128 has are beyond the most, unless the exponent takes them away.
    let taken = usize::try_from(exponent.min(0).unsigned_abs()).ok()?.min(digits.len());
    let (kept, lost) = digits.split_at_checked(digits.len() - taken)?;
    if kept.len() > 30 {
        return Some(MOST);
    }
    let value = if kept.is_empty() { 0 } else { kept.parse::<u128>().ok()? };
    let scaled = match u32::try_from(exponent.max(0)).ok().and_then(|power| 10_u128.checked_pow(power)) {
        Some(power) => value.checked_mul(power),
        None => None,
    };
    let Some(scaled) = scaled.and_then(|scaled| scaled.checked_mul(1 << binary)) else { return Some(MOST) };
    // What was cut off counts with its binary factor, rounded up.
    let rest = match lost.bytes().any(|digit| digit != b'0') {
        true => cut(lost, usize::try_from(exponent.min(0).unsigned_abs()).ok()?, binary),
        false => 0,
    };
    Some(scaled.saturating_add(rest).min(MOST))
}

/// `0.000lost * 2^binary`, rounded up; `places` is how many decimals there are.
fn cut(lost: &str, places: usize, binary: u32) -> u128 {
    let zeros = places.saturating_sub(lost.len());
    let decimals: String = std::iter::repeat_n('0', zeros).chain(lost.chars()).take(18).collect();
    let more = zeros + lost.len() > 18;
    let numerator = decimals.parse::<u128>().unwrap_or(0) + u128::from(more);
    let denominator = 10_u128.pow(u32::try_from(decimals.len()).unwrap_or(0));
    (numerator << binary).div_ceil(denominator)
}

/// Powers of 2 and of 10.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => (0, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_compared_by_what_they_mean() {
        for (a, b, expected) in [
            ("1Gi", "1024Mi", Ordering::Equal),
            ("1Gi", "1073741824", Ordering::Equal),
            ("1G", "1Gi", Ordering::Less),
            ("1.5Gi", "1536Mi", Ordering::Equal),
            ("0.5", "500m", Ordering::Equal),
            ("2e3", "2k", Ordering::Equal),
            ("2E", "2e18", Ordering::Equal),
            ("1E", "1Ei", Ordering::Less),
            ("10Gi", "9Gi", Ordering::Greater),
            ("010", "10", Ordering::Equal),
            (".5Ki", "512", Ordering::Equal),
            ("100Ei", "200Ei", Ordering::Equal),
            ("1e400", "1", Ordering::Greater),
            ("1n", "0.1n", Ordering::Equal),
            ("0.0000000001", "0", Ordering::Greater),
            ("0.0000000000000000000000000000000000000000", "0", Ordering::Equal),
            ("0.00000000001Gi", "0.010737419", Ordering::Equal),
            ("0.00000000001Gi", "0.010737418", Ordering::Greater),
            ("1.00000000000000000000000000000000000000000", "1", Ordering::Equal),
        ] {
            assert_eq!(compare(a, b), Some(expected), "{a} {b}");
            assert_eq!(compare(b, a), Some(expected.reverse()), "{b} {a}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_not_judged() {
        for text in ["", "Gi", "-1Gi", "1.2.3", "1 Gi", "1GiB", "1e", "ten", ".", "1e99999999999"] {
            assert_eq!(compare(text, "1"), None, "{text}");
        }
    }
}
