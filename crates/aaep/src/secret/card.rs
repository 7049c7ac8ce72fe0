//! Detection of card numbers (ISO/IEC 7812). A card number has the prefix and length of a known
//! issuer, a valid check digit and a common grouping. The check digit alone is not enough, because
//! one in ten timestamps, order numbers and phone numbers has a valid check digit.

use std::ops::Range;

use super::char_before;

/// Returns the range of the card number that starts with the digit at this byte. The range includes
/// other card numbers that overlap it or follow directly.
pub(super) fn match_card_number(text: &str, at: usize) -> Option<Range<usize>> {
    let length = group_length(text, at);
    let may_continue = length == 1 || length >= 4;
    let may_be_card = length >= MIN_DIGITS || may_continue && next_group(text, at).is_some();
    if !may_be_card || !begins_number(text, at) {
        return None;
    }
    let mut end = longest_card_end(text, at)?;
    let mut group = at;
    while let Some(next) = next_group(text, group).filter(|next| *next <= end + 1) {
        end = longest_card_end(text, next).map_or(end, |other| other.max(end));
        group = next;
    }
    Some(at..end)
}

/// Returns whether the digit at this byte starts a number, and is not part of a word, a phone
/// number or a decimal fraction.
fn begins_number(text: &str, at: usize) -> bool {
    match char_before(text, at) {
        None => true,
        Some('+' | '_') => false,
        Some('.') => !char_before(text, at - 1).is_some_and(|previous| previous.is_ascii_digit()),
        Some(previous) => !previous.is_alphanumeric(),
    }
}

/// Returns the end of the longest card number whose first group starts at this byte. Either all
/// groups have four or more digits (the last may be shorter), or all have one digit.
fn longest_card_end(text: &str, at: usize) -> Option<usize> {
    let mut digits = [0; MAX_DIGITS];
    let (mut used, mut group, mut found) = (0, at, None);
    let (mut has_long_groups, mut has_single_digits) = (true, true);
    loop {
        let length = group_length(text, group);
        let end = group + length;
        let (from, to) = (text.as_bytes().get(group..end)?, digits.get_mut(used..used + length));
        let Some(to) = to else { return found };
        to.copy_from_slice(from);
        used += length;
        has_single_digits &= length == 1;
        let after = text.get(end..)?.chars().next();
        if after.is_some_and(|after| after.is_alphanumeric() || after == '_') {
            return found;
        }
        let next = next_group(text, group);
        // A list of single digits may be anything, so it counts only if it has exactly as many
        // digits as a card number.
        let is_grouped =
            has_long_groups || has_single_digits && next.is_none() && !continues_number(text, at);
        let number = digits.get(..used)?;
        if is_grouped && is_known_issuer(number) && passes_luhn(number) {
            found = Some(end);
        }
        has_long_groups &= length >= 4;
        match next {
            Some(next) if has_long_groups || has_single_digits => group = next,
            _ => return found,
        }
    }
}

/// The number of digits in the shortest card numbers.
const MIN_DIGITS: usize = 13;

/// The number of digits in the longest card numbers.
const MAX_DIGITS: usize = 19;

fn group_length(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    rest.iter().take(MAX_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the start of the next group of digits, which follows the group at this byte after one
/// space or hyphen.
fn next_group(text: &str, at: usize) -> Option<usize> {
    match text.as_bytes().get(at + group_length(text, at)..)? {
        [b' ' | b'-', b'0'..=b'9', ..] => Some(at + group_length(text, at) + 1),
        _ => None,
    }
}

/// Returns whether another group of digits precedes the group at this byte.
fn continues_number(text: &str, at: usize) -> bool {
    text.as_bytes().get(..at).is_some_and(|before| matches!(before, [.., b'0'..=b'9', b' ' | b'-']))
}

/// The numbers of an issuer: the number of digits, and the ranges of the first four digits.
pub(super) struct Issuer {
    pub(super) min_digits: usize,
    pub(super) max_digits: usize,
    pub(super) prefixes: &'static [(u16, u16)],
}

/// The known issuers.
///
/// Some ranges are left out because phone numbers look the same: Maestro with fewer than 16 digits,
/// and Visa with 13 digits if the prefix starts with a country calling code. UATP is left out
/// because it would match every 15-digit number that starts with 1.
pub(super) const ISSUERS: [Issuer; 6] = [
    // Visa
    Issuer { min_digits: 13, max_digits: 13, prefixes: &[(4220, 4229), (4240, 4299)] },
    // American Express
    Issuer { min_digits: 15, max_digits: 15, prefixes: &[(3400, 3499), (3700, 3799)] },
    // Visa, Mastercard, Bankcard, RuPay and Hipercard, UzCard, Troy, Humo
    Issuer {
        min_digits: 16,
        max_digits: 16,
        prefixes: &[
            (4000, 4999),
            (5100, 5599),
            (2221, 2720),
            (6000, 6099),
            (8100, 8299),
            (8600, 8600),
            (9792, 9792),
            (9860, 9860),
        ],
    },
    // Visa
    Issuer { min_digits: 19, max_digits: 19, prefixes: &[(4000, 4999)] },
    // Diners Club
    Issuer {
        min_digits: 14,
        max_digits: 19,
        prefixes: &[(3000, 3059), (3095, 3095), (3600, 3699), (3800, 3999)],
    },
    // Mir; JCB; Maestro, Elo, Verve, Dankort; Maestro; Discover; UnionPay; Solo, Switch, InterPayment; Discover, RuPay;
    // Maestro, Bancontact
    Issuer {
        min_digits: 16,
        max_digits: 19,
        prefixes: &[
            (2200, 2205),
            (3528, 3589),
            (5000, 5099),
            (5600, 5899),
            (6011, 6011),
            (6200, 6299),
            (6300, 6399),
            (6440, 6599),
            (6700, 6799),
        ],
    },
];

/// Returns whether an issuer uses this prefix and length.
fn is_known_issuer(digits: &[u8]) -> bool {
    let prefix = digits.iter().take(4).fold(0, |prefix, digit| prefix * 10 + u16::from(digit - b'0'));
    ISSUERS.iter().any(|issuer| {
        (issuer.min_digits..=issuer.max_digits).contains(&digits.len())
            && issuer.prefixes.iter().any(|(first, last)| (*first..=*last).contains(&prefix))
    })
}

/// Returns whether the last digit is the check digit of the others (Luhn).
fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, u32::from(digit - b'0') * 2) {
            (0, doubled) => doubled / 2,
            (_, doubled) if doubled > 9 => doubled - 9,
            (_, doubled) => doubled,
        })
        .sum();
    sum.is_multiple_of(10)
}
