//! What people hear, in each language.
//!
//! A text from the other side, such as its promise, stays in its own language. Everything around it is translated.

mod en;
mod es;
mod yo;

use asp::dispute::DisputeReason;
use asp::trust::TrustLevel;
use asp::{Amount, Currency};
use seal::json::JsonWriter;
use seal::{Timestamp, UnixMillis};

/// The languages: the suffix of a member's name in the hub's API, and the phrases. The first is the primary language.
const LANGUAGES: [(&str, &dyn Phrases); 3] =
    [("", &en::English), ("_es", &es::Spanish), ("_yo", &yo::Yoruba)];

/// The phrases of one language. `who` is the name of the other side, or `None` for the person's own agent. `peer` is the name
/// with its host, as `name_at_host` writes it. All phrases are whole sentences unless their comments say otherwise.
pub(crate) trait Phrases: Sync {
    /// The other side at its first mention, as a part of a sentence.
    fn name_at_host(&self, name: &str, host: &str) -> String;
    /// An amount of money, as a part of a sentence.
    fn amount(&self, number: &str, currency: &str) -> String;
    /// A deadline, as a part of a sentence.
    fn date(&self, date: &SpokenDate) -> String;
    fn trust(&self, name: &str, level: TrustLevel) -> String;
    /// How the identity of the other side is known.
    fn identity(&self, name: &str, is_pinned_by_operator: bool) -> String;

    fn may_commit(&self, peer: &str, subject: &str) -> String;
    fn may_accept(&self, peer: &str, subject: &str) -> String;
    fn own_promise(&self, action: &str, deadline: &str) -> String;
    fn promise(&self, name: &str, action: &str, deadline: &str) -> String;
    fn no_own_promise(&self) -> &'static str;
    /// The person pays into escrow. `is_payment` says that the other side gets the money for keeping its promises.
    fn own_escrow(&self, name: &str, amount: &str, is_payment: bool) -> String;
    /// The other side pays into escrow. `is_payment` says that the person gets the money for keeping their promises.
    fn escrow(&self, name: &str, amount: &str, is_payment: bool) -> String;
    fn no_escrow(&self) -> &'static str;
    fn penalty_late(&self, penalty: &str) -> String;
    fn penalty_not_done(&self, penalty: &str) -> String;
    fn no_penalty(&self) -> &'static str;
    /// The question in one sentence.
    fn needs_answer(&self, name: &str) -> String;
    fn agent_address(&self, name: &str, uri: &str) -> String;
    fn trust_score(&self, score: &str) -> String;
    fn verification(&self, action: &str, method: &str) -> String;
    fn release_condition(&self, condition: &str) -> String;
    fn overall_deadline(&self, deadline: &str) -> String;
    fn escalation(&self, peer: &str, subject: &str, reason: &str) -> String;
    fn escalation_summary(&self, name: &str) -> String;

    /// Begins a question about a complaint of the person's agent.
    fn dispute(&self, peer: &str, subject: &str) -> String;
    fn dispute_reason(&self, reason: DisputeReason, name: &str) -> String;
    /// What the other side promised in an agreement that is disputed.
    fn promised(&self, name: &str, action: &str, deadline: &str) -> String;
    fn dispute_statement(&self, statement: &str) -> String;
    fn dispute_question(&self) -> &'static str;
    /// The answers: justified, and not justified.
    fn dispute_choices(&self) -> [&'static str; 2];
    fn dispute_consequence(&self, name: &str) -> String;
    fn dispute_summary(&self, name: &str) -> String;
    fn dispute_upheld(&self) -> &'static str;
    fn dispute_closed(&self) -> &'static str;
    fn dispute_open(&self) -> &'static str;

    fn sending(&self, name: &str) -> String;
    fn accepting(&self, name: &str) -> String;
    fn call_failed(&self, name: &str) -> String;

    /// The title of a session with the other side.
    fn session_title(&self, peer: &str, subject: &str) -> String;
    fn invited_peer(&self, peer: &str, subject: &str) -> String;
    fn invited_us(&self, peer: &str, subject: &str) -> String;
    fn accepted_invitation(&self, who: Option<&str>) -> String;
    fn identified(&self, name: &str) -> String;
    fn proposed(&self, who: Option<&str>, offer: &str) -> String;
    fn countered(&self, who: Option<&str>, offer: &str) -> String;
    /// An offer with its price, as a part of a sentence.
    fn offer(&self, subject: &str, price: &str) -> String;
    fn accepted_proposal(&self, who: Option<&str>) -> String;
    fn rejected(&self, who: Option<&str>, reason: &str) -> String;
    fn committed(&self, who: Option<&str>, name: &str) -> String;
    fn agreed(&self, name: &str) -> String;
    fn progress(&self, who: Option<&str>, percent: u8) -> String;
    fn result(&self, who: Option<&str>) -> String;
    fn problem(&self, who: Option<&str>) -> String;
    fn resolved(&self, who: Option<&str>) -> String;
    fn escalated(&self, who: Option<&str>, reason: &str) -> String;
    fn closing(&self, who: Option<&str>) -> String;
    fn refused_by_peer(&self, name: &str, reason: &str) -> String;
    fn undeliverable(&self, name: &str) -> String;
    fn response_overdue(&self, name: &str) -> String;
    fn some_events_not_reported(&self) -> &'static str;

    fn ended_completed(&self, name: &str) -> String;
    fn ended_closed(&self, who: Option<&str>, name: &str) -> String;
    fn ended_withdrawn(&self, who: Option<&str>, name: &str) -> String;
    fn ended_rejected(&self, who: Option<&str>) -> String;
    fn ended_timeout(&self, name: &str) -> String;
    fn ended_failed(&self, name: &str) -> String;
    /// Precedes the reason that an agent gave.
    fn reason(&self, reason: &str) -> String;
    fn broke_agreement(&self, who: Option<&str>) -> String;
    fn obligation_open(&self) -> &'static str;
    fn own_money_back(&self, amount: &str) -> String;
    fn money_to_us(&self, amount: &str) -> String;
    fn money_to_peer(&self, name: &str, amount: &str) -> String;
}

/// A text in all languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalizedText([String; LANGUAGES.len()]);

impl LocalizedText {
    /// Writes a text in each language.
    pub(crate) fn new(text: impl Fn(&dyn Phrases) -> String) -> Self {
        Self(LANGUAGES.map(|(_, phrases)| text(phrases)))
    }

    /// Returns the languages: the suffix of a member's name, and the phrases.
    pub(crate) fn languages() -> [(&'static str, &'static dyn Phrases); LANGUAGES.len()] {
        LANGUAGES
    }

    /// Writes the text as the member `name` and its translations.
    pub(crate) fn write(&self, writer: &mut JsonWriter, name: &str) {
        for ((suffix, _), text) in LANGUAGES.iter().zip(&self.0) {
            writer.key(&format!("{name}{suffix}")).text(text);
        }
    }

    /// Returns the text in the primary language.
    pub(crate) fn primary(&self) -> &str {
        &self.0[0]
    }

    /// Returns the length of the longest translation, in characters.
    pub(crate) fn max_chars(&self) -> usize {
        self.0.iter().map(|text| text.chars().count()).max().unwrap_or(0)
    }
}

/// The parts of a point in time that are spoken, in UTC, because the person's time zone is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpokenDate {
    /// The year, unless it is the current one.
    pub(crate) year: Option<i64>,
    /// The month, from 0.
    pub(crate) month: usize,
    pub(crate) day: u8,
    /// The day of the week, from 0 for Sunday.
    pub(crate) weekday: usize,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
}

const DAY_MS: i64 = 86_400_000;

impl SpokenDate {
    /// Returns the parts of a time. `None` if it cannot be written as a date.
    pub(crate) fn new(at: UnixMillis, now: UnixMillis) -> Option<Self> {
        let text = Timestamp::from_unix_millis(at)?.to_string();
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
        let this_year =
            Timestamp::from_unix_millis(now).and_then(|now| now.to_string().get(..4)?.parse::<i64>().ok());
        let small = |range| u8::try_from(number(range)?).ok();
        // 1 January 1970 was a Thursday.
        let weekday = usize::try_from((at.get().div_euclid(DAY_MS) + 4).rem_euclid(7)).ok()?;
        Some(Self {
            year: number(0..4).filter(|year| Some(*year) != this_year),
            month: usize::from(small(5..7)?.checked_sub(1)?),
            day: small(8..10)?,
            weekday,
            hour: small(11..13)?,
            minute: small(14..16)?,
        })
    }

    /// The time of day in 24-hour format.
    fn clock(&self) -> String {
        format!("{:02}:{:02}", self.hour, self.minute)
    }

    /// The name of the month and of the day of the week.
    fn names<'n>(&self, months: &[&'n str; 12], weekdays: &[&'n str; 7]) -> (&'n str, &'n str) {
        let month = months.get(self.month).copied().unwrap_or_default();
        (month, weekdays.get(self.weekday).copied().unwrap_or_default())
    }
}

/// Writes a time as it is spoken in a language.
pub(crate) fn spoken_time(phrases: &dyn Phrases, at: &Timestamp, now: UnixMillis) -> String {
    SpokenDate::new(at.unix_millis(), now).map_or_else(|| at.to_string(), |date| phrases.date(&date))
}

/// Writes an amount of money as it is spoken in a language: `100 euros` for `100.00` and `EUR`.
pub(crate) fn spoken_amount(phrases: &dyn Phrases, amount: &Amount, currency: &Currency) -> String {
    phrases.amount(without_zero_cents(amount.as_str()), currency.as_str())
}

pub(super) fn without_zero_cents(number: &str) -> &str {
    match number.split_once('.') {
        Some((whole, cents)) if cents.bytes().all(|digit| digit == b'0') => whole,
        _ => number,
    }
}

/// Removes surrounding spaces and final punctuation from another agent's text, so that it fits into a sentence.
fn trimmed(text: &str) -> &str {
    text.trim().trim_end_matches(['.', ' ', ';', ','])
}

/// Writes the name of a currency, if the list has it, or else its code.
fn currency_name<'n>(names: &[(&str, &'n str)], code: &'n str) -> &'n str {
    names.iter().find(|(known, _)| *known == code).map_or(code, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_a_weekday_and_a_year_only_if_it_is_not_the_current_one() {
        let now = Timestamp::parse("2026-11-18T09:00:00Z").map(|now| now.unix_millis());
        let now = now.unwrap_or(UnixMillis::MIN);
        for (at, expected) in [
            (
                "2026-11-20T14:00:00Z",
                ["Friday, 20 November, 14:00 UTC", "viernes 20 de noviembre a las 14:00 UTC"],
            ),
            (
                "2027-01-01T00:05:00+01:00",
                ["Thursday, 31 December, 23:05 UTC", "jueves 31 de diciembre a las 23:05 UTC"],
            ),
            (
                "2028-02-29T06:30:00Z",
                ["Tuesday, 29 February 2028, 06:30 UTC", "martes 29 de febrero de 2028 a las 06:30 UTC"],
            ),
        ] {
            let Ok(at) = Timestamp::parse_rfc3339(at) else { panic!("{at}") };
            assert_eq!([spoken_time(&en::English, &at, now), spoken_time(&es::Spanish, &at, now)], expected);
        }
    }

    #[test]
    fn amounts_are_spoken_with_the_name_of_the_currency() {
        let say = |phrases: &dyn Phrases, number, code| {
            let amount = Amount::parse(number).unwrap_or_else(|error| panic!("{error}"));
            let currency = Currency::parse(code).unwrap_or_else(|error| panic!("{error}"));
            spoken_amount(phrases, &amount, &currency)
        };
        assert_eq!(say(&en::English, "100.00", "EUR"), "100 euros");
        assert_eq!(say(&en::English, "0.50", "USD"), "0.50 US dollars");
        assert_eq!(say(&es::Spanish, "7", "NGN"), "7 nairas");
        assert_eq!(say(&yo::Yoruba, "7", "XAU"), "7 XAU");
    }
}
