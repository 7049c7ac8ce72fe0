//! Card numbers (ISO/IEC 7812): the prefix and the length of a known issuer, a correct check digit, and groups as people
//! write them. Timestamps, order numbers and phone numbers have a correct check digit as often as not: one in ten.

use std::ops::Range;

use super::before;

/// The card number that begins with the digit at this byte, with all that overlap it or follow it directly.
pub(super) fn card_number(text: &str, at: usize) -> Option<Range<usize>> {
    let length = group_length(text, at);
    let may_continue = length == 1 || length >= 4;
    let may_be_card = length >= SHORTEST || may_continue && next_group(text, at).is_some();
    if !may_be_card || !begins_number(text, at) {
        return None;
    }
    let mut end = longest(text, at)?;
    let mut group = at;
    while let Some(next) = next_group(text, group).filter(|next| *next <= end + 1) {
        end = longest(text, next).map_or(end, |other| other.max(end));
        group = next;
    }
    Some(at..end)
}

/// Whether the digit at this byte begins a number, and no part of a word, a phone number or a decimal fraction.
fn begins_number(text: &str, at: usize) -> bool {
    match before(text, at) {
        None => true,
        Some('+' | '_') => false,
        Some('.') => !before(text, at - 1).is_some_and(|one| one.is_ascii_digit()),
        Some(one) => !one.is_alphanumeric(),
    }
}

/// Where the longest card number ends whose first group begins at this byte. People write groups of four or more digits,
/// except the last, or digit by digit.
fn longest(text: &str, at: usize) -> Option<usize> {
    let mut digits = [0; LONGEST];
    let (mut used, mut group, mut found) = (0, at, None);
    let (mut in_fours, mut in_ones) = (true, true);
    loop {
        let length = group_length(text, group);
        let end = group + length;
        let (from, to) = (text.as_bytes().get(group..end)?, digits.get_mut(used..used + length));
        let Some(to) = to else { return found };
        to.copy_from_slice(from);
        used += length;
        in_ones &= length == 1;
        let after = text.get(end..)?.chars().next();
        if after.is_some_and(|after| after.is_alphanumeric() || after == '_') {
            return found;
        }
        let next = next_group(text, group);
        // Single digits may be any list of numbers, unless there are exactly as many as a card has.
        let is_grouped = in_fours || in_ones && next.is_none() && !continues_number(text, at);
        let number = digits.get(..used)?;
        if is_grouped && is_issued(number) && is_checked(number) {
            found = Some(end);
        }
        in_fours &= length >= 4;
        match next {
            Some(next) if in_fours || in_ones => group = next,
            _ => return found,
        }
    }
}

/// No issuer gives fewer digits.
const SHORTEST: usize = 13;

/// No issuer gives more digits.
const LONGEST: usize = 19;

fn group_length(text: &str, at: usize) -> usize {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    rest.iter().take(LONGEST + 1).take_while(|byte| byte.is_ascii_digit()).count()
}

/// The group of digits that follows the one at this byte, behind one blank or hyphen.
fn next_group(text: &str, at: usize) -> Option<usize> {
    match text.as_bytes().get(at + group_length(text, at)..)? {
        [b' ' | b'-', b'0'..=b'9', ..] => Some(at + group_length(text, at) + 1),
        _ => None,
    }
}

/// Whether another group of digits stands before the one at this byte.
fn continues_number(text: &str, at: usize) -> bool {
    text.as_bytes().get(..at).is_some_and(|before| matches!(before, [.., b'0'..=b'9', b' ' | b'-']))
}

/// Whether an issuer gives numbers with this prefix and of this length.
///
/// Left out because phone numbers look the same: Maestro below 16 digits and Visa with 13, except for prefixes that are no
/// country's calling code. Left out because every number with a leading 1 would be one: UATP.
fn is_issued(digits: &[u8]) -> bool {
    let prefix = digits.iter().take(4).fold(0, |prefix, digit| prefix * 10 + u16::from(digit - b'0'));
    match digits.len() {
        // Visa
        13 => matches!(prefix, 4220..=4229 | 4240..=4299),
        // American Express
        15 if matches!(prefix, 3400..=3499 | 3700..=3799) => true,
        // Visa, Mastercard, Bankcard, RuPay and Hipercard, UzCard, Troy, Humo
        16 if matches!(
            prefix,
            4000..=4999 | 5100..=5599 | 2221..=2720 | 6000..=6099 | 8100..=8299 | 8600 | 9792 | 9860
        ) =>
        {
            true
        }
        // Visa
        19 if matches!(prefix, 4000..=4999) => true,
        // Diners Club
        14..=19 if matches!(prefix, 3000..=3059 | 3095 | 3600..=3699 | 3800..=3999) => true,
        // Mir; JCB; Maestro, Elo, Verve, Dankort; Discover; UnionPay; Solo, Switch, InterPayment; Maestro, Bancontact
        16..=19 => matches!(
            prefix,
            2200..=2205
                | 3528..=3589
                | 5000..=5099
                | 5600..=5899
                | 6011
                | 6200..=6299
                | 6300..=6399
                | 6440..=6599
                | 6700..=6799
        ),
        _ => false,
    }
}

/// Whether the last digit is the check digit of the others (Luhn).
fn is_checked(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, u32::from(digit - b'0') * 2) {
            (0, twice) => twice / 2,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    sum.is_multiple_of(10)
}
