//! Card numbers (ISO/IEC 7812), whatever digits stand before and behind them.
//!
//! Digits in groups, with a blank or a hyphen between them, are a chain. In it, a card is one of two:
//! - from the start of a group to the end of one, 13 to 19 digits that begin like a card's and check, in groups of three or
//!   more, of which the last may be shorter;
//! - anywhere, also within a group, as many digits as an issuer gives, that begin as that issuer's do and check.

use std::ops::Range;

/// The card that begins in the first group of a text, with all cards that overlap or touch it.
pub(super) fn card(rest: &str) -> Option<Range<usize>> {
    let mut chain = Chain { text: rest, digits: Vec::new(), ended: false };
    let mut found: Option<Range<usize>> = None;
    let mut at = 0;
    while chain.reaches(at) {
        let reached = match &found {
            None => chain.group(at) == Some(0),
            Some(found) => at <= found.end || chain.group(at) == chain.group(found.end - 1),
        };
        if !reached {
            break;
        }
        if let Some(length) = chain.longest_card(at) {
            let start = found.as_ref().map_or(at, |found| found.start);
            let end = found.as_ref().map_or(0, |found| found.end).max(at + length);
            found = Some(start..end);
        }
        at += 1;
    }
    let found = found?;
    Some(chain.digits.get(found.start)?.place..chain.digits.get(found.end - 1)?.place + 1)
}

/// Digits in groups, read a group at a time.
struct Chain<'t> {
    text: &'t str,
    digits: Vec<Digit>,
    ended: bool,
}

struct Digit {
    value: u32,
    /// Which byte of the text it is.
    place: usize,
    group: usize,
    /// The group is a number of its own: no letter goes on behind it.
    whole: bool,
}

impl Chain<'_> {
    /// Whether there is a digit of that number, counted from 0.
    fn reaches(&mut self, at: usize) -> bool {
        while self.digits.len() <= at && !self.ended {
            self.read_group();
        }
        at < self.digits.len()
    }

    fn read_group(&mut self) {
        let (from, group) = match self.digits.last() {
            None => (Some(0), 0),
            Some(last) => (self.after_gap(last.place + 1), last.group + 1),
        };
        let rest = from.and_then(|from| self.text.get(from..)).unwrap_or_default();
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let next = rest.get(length..).and_then(|after| after.chars().next());
        let whole = next.is_none_or(|next| !next.is_alphanumeric() && next != '_');
        let from = from.unwrap_or_default();
        let digits = rest.bytes().take(length).enumerate().map(|(at, byte)| Digit {
            value: u32::from(byte - b'0'),
            place: from + at,
            group,
            whole,
        });
        self.digits.extend(digits);
        self.ended = length == 0 || !whole;
    }

    /// Where the next group begins, behind one blank or hyphen.
    fn after_gap(&self, end: usize) -> Option<usize> {
        let gap = self.text.as_bytes().get(end)?;
        matches!(gap, b' ' | b'-').then_some(end + 1)
    }

    fn group(&self, at: usize) -> Option<usize> {
        self.digits.get(at).map(|digit| digit.group)
    }

    fn begins_group(&self, at: usize) -> bool {
        at == 0 || self.group(at - 1) != self.group(at)
    }

    /// How many digits the longest card has that begins there.
    fn longest_card(&mut self, at: usize) -> Option<usize> {
        (13..=19).rev().find(|length| {
            let end = at + length;
            if !self.reaches(end - 1) {
                return false;
            }
            // The next group, too, must be known: with it the last one of the card is.
            self.reaches(end);
            let Some(digits) = self.digits.get(at..end) else { return false };
            let apart = self.begins_group(at) && (end == self.digits.len() || self.begins_group(end));
            if !(apart && is_grouped(digits) || is_of_an_issuer(digits)) {
                return false;
            }
            let whole = digits.last().is_some_and(|last| last.whole);
            let alike = digits.windows(2).all(|two| matches!(two, [one, other] if one.value == other.value));
            whole && !alike && checks(digits.iter().map(|digit| digit.value))
        })
    }
}

/// Whether digits look like a card's and are grouped like one.
fn is_grouped(digits: &[Digit]) -> bool {
    let mut groups = digits.chunk_by(|one, other| one.group == other.group);
    let _last = groups.next_back();
    groups.all(|group| group.len() >= 3) && digits.first().is_some_and(|first| (2..=6).contains(&first.value))
}

/// Whether an issuer gives out numbers that begin so, and so many digits long.
fn is_of_an_issuer(digits: &[Digit]) -> bool {
    let begin = digits.iter().take(4).fold(0, |begin, digit| begin * 10 + digit.value);
    match digits.len() {
        15 => matches!(begin, 3400..=3499 | 3700..=3799),
        16 => {
            matches!(begin, 2221..=2720 | 3528..=3589 | 4000..=4999 | 5100..=5599 | 6011 | 6200..=6299 | 6440..=6599)
        }
        _ => false,
    }
}

/// Luhn's check digit.
pub(super) fn checks(digits: impl DoubleEndedIterator<Item = u32>) -> bool {
    let sum: u32 = digits
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    sum.is_multiple_of(10)
}
