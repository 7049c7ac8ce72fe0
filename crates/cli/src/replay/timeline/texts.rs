//! Reads the texts of a recorded event or message, and formats untrusted text.

use aaep::json::JsonValue;
use listen::sanitize;

use crate::svg_text::truncate;

/// The members of an event or message. The state machine drops most of them, but people want to read them.
#[derive(Clone, Copy)]
pub(super) struct DocumentTexts<'d>(pub(super) Option<JsonValue<'d>>);

impl DocumentTexts<'_> {
    /// Returns the object in this member. It has no members if there is no such object.
    pub(super) fn object(self, name: &str) -> Self {
        Self(self.0.and_then(|value| value.member(name)))
    }

    /// Returns what the hub adds to an event (`extensions.sayso`).
    pub(super) fn hub_notes(self) -> Self {
        self.object("extensions").object("sayso")
    }

    /// Returns the member unchanged, with line breaks and white space.
    pub(super) fn raw_text(self, name: &str) -> Option<String> {
        self.0?.member(name)?.text().map(std::borrow::Cow::into_owned)
    }

    /// Returns the member on one line, if it has visible text.
    pub(super) fn text(self, name: &str) -> Option<String> {
        let text = sanitize(&self.raw_text(name)?, true);
        (!text.is_empty()).then_some(text)
    }

    /// Returns the member in quotation marks.
    pub(super) fn quoted(self, name: &str) -> Option<String> {
        self.text(name).map(|text| format!("“{text}”"))
    }

    pub(super) fn number(self, name: &str) -> Option<i64> {
        self.0?.member(name)?.as_number()?.as_i64()
    }

    pub(super) fn items(self, name: &str) -> impl Iterator<Item = Self> {
        self.0
            .and_then(|value| value.member(name))
            .into_iter()
            .flat_map(|value| value.items())
            .map(Some)
            .map(Self)
    }

    /// Returns the items of this array that are strings, each as a short name.
    pub(super) fn names(self, name: &str) -> Vec<String> {
        self.items(name).filter_map(|item| Some(short_name(&item.0?.text()?))).collect()
    }

    /// Returns the event's own words in quotation marks: its normal summary, or else another one.
    pub(super) fn summary(self) -> Option<String> {
        ["summary_normal", "summary_detailed", "summary_terse"].into_iter().find_map(|name| self.quoted(name))
    }
}

/// Formats an untrusted name as one short line.
pub(in crate::replay) fn short_name(text: &str) -> String {
    truncate(&sanitize(text, true), 60)
}

/// Formats a duration with at most two units.
pub(in crate::replay) fn format_duration(millis: i64) -> String {
    let millis = millis.unsigned_abs();
    let (seconds, minutes, hours) = (millis / 1000, millis / 60_000, millis / 3_600_000);
    let with_rest = |whole: u64, unit: &str, rest: u64, rest_unit: &str| match rest {
        0 => format!("{whole} {unit}"),
        _ => format!("{whole} {unit} {rest} {rest_unit}"),
    };
    match (hours, minutes, seconds) {
        (24.., ..) => with_rest(hours / 24, "d", hours % 24, "h"),
        (1.., ..) => with_rest(hours, "h", minutes % 60, "min"),
        (_, 1.., _) => with_rest(minutes, "min", seconds % 60, "s"),
        (.., 10..) => format!("{seconds} s"),
        (.., 1..) if millis % 1000 >= 100 => format!("{seconds}.{} s", millis % 1000 / 100),
        (.., 1..) => format!("{seconds} s"),
        _ => format!("{millis} ms"),
    }
}

/// Formats the time since the start of the recording.
pub(in crate::replay) fn format_offset(offset_ms: Option<i64>) -> String {
    let Some(offset_ms) = offset_ms else { return "no timestamp".to_owned() };
    let (sign, millis) = (if offset_ms < 0 { "-" } else { "" }, offset_ms.unsigned_abs());
    let (seconds, millis) = (millis / 1000, millis % 1000);
    format!("{sign}{}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_at_most_two_units() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1 s"),
            (6400, "6.4 s"),
            (6049, "6 s"),
            (59_900, "59 s"),
            (60_000, "1 min"),
            (125_000, "2 min 5 s"),
            (3_600_000, "1 h"),
            (11_100_000, "3 h 5 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(format_duration(millis), text);
        }
    }
}
