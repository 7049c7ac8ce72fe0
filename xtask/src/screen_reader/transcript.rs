//! Transcripts of scenarios, and their comparison with the expectations.

use std::fmt::Write;

use super::scenario::SpeechExpectation;

/// The entries of a scenario, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Transcript(Vec<TranscriptEntry>);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TranscriptEntry {
    pub(super) text: String,
    pub(super) status: EntryStatus,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EntryStatus {
    /// The text is still in the queue.
    Waiting,
    /// The text was heard to its end.
    Heard,
    /// The text was interrupted.
    CutOff,
    /// The text was dropped before it started.
    Dropped,
    /// Not a text, but a key that the person pressed.
    KeyPress,
    /// Not a text, but something that happened elsewhere.
    Event,
}

/// The transcripts of one browser.
pub(super) struct BrowserTranscript {
    pub(super) browser: &'static str,
    pub(super) versions: String,
    pub(super) scenarios: Vec<Transcript>,
}

impl Transcript {
    /// Adds an entry and returns its index.
    pub(super) fn add_entry(&mut self, entry: TranscriptEntry) -> usize {
        self.0.push(entry);
        self.0.len() - 1
    }

    pub(super) fn set_status(&mut self, index: usize, status: EntryStatus) {
        if let Some(entry) = self.0.get_mut(index) {
            entry.status = status;
        }
    }

    /// Returns whether this text was heard to its end.
    pub(super) fn was_heard(&self, text: &str) -> bool {
        self.0.iter().any(|entry| entry.status == EntryStatus::Heard && entry.text.contains(text))
    }

    /// Checks that the expected texts were heard to their end and in this order, and that no `Once` text was repeated.
    pub(super) fn check(&self, expectations: &[SpeechExpectation]) -> Result<(), String> {
        let sent = self.joined_text(|status| !matches!(status, EntryStatus::KeyPress | EntryStatus::Event));
        let heard = self.joined_text(|status| status == EntryStatus::Heard);
        let mut offset = 0;
        for expectation in expectations {
            let (SpeechExpectation::Once(text) | SpeechExpectation::AtLeastOnce(text)) = expectation;
            let count = sent.matches(text).count();
            if count > 1 && matches!(expectation, SpeechExpectation::Once(_)) {
                return Err(format!("`{text}` was said {count} times"));
            }
            let found = heard.get(offset..).and_then(|heard| heard.find(text));
            match found {
                Some(distance) => offset += distance,
                None if count == 0 => return Err(format!("`{text}` was lost")),
                None if heard.contains(text) => return Err(format!("`{text}` came too early")),
                None => return Err(format!("`{text}` was not heard to its end")),
            }
        }
        Ok(())
    }

    /// Returns a line for each entry, which starts with `Orca:`, `Key:` or `Meanwhile:`.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|TranscriptEntry { text, status }| match status {
            EntryStatus::Heard => format!("{ORCA}{text}"),
            EntryStatus::KeyPress => format!("{KEY}{text}"),
            EntryStatus::Event => format!("{EVENT}{text}"),
            EntryStatus::CutOff => format!("{ORCA}{text}{CUT}"),
            EntryStatus::Dropped | EntryStatus::Waiting => format!("{ORCA}{text}{DROPPED}"),
        })
    }

    fn joined_text(&self, filter: impl Fn(EntryStatus) -> bool) -> String {
        let texts: Vec<&str> =
            self.0.iter().filter(|entry| filter(entry.status)).map(|entry| entry.text.as_str()).collect();
        texts.join(" ")
    }
}

const ORCA: &str = "Orca: ";
const KEY: &str = "Key: ";
const EVENT: &str = "Meanwhile: ";
const CUT: &str = " [cut off]";
const DROPPED: &str = " [dropped]";

/// Returns the complete documentation page.
pub(super) fn to_markdown(transcripts: &[BrowserTranscript]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for BrowserTranscript { browser, versions, scenarios } in transcripts {
        let _ = write!(text, "\n## {browser}\n\n{versions}\n");
        for (transcript, scenario) in scenarios.iter().zip(&super::SCENARIOS) {
            let start = scenario.start.describe();
            let lines: Vec<String> = transcript.lines().collect();
            let _ = write!(text, "\n### {}\n\n{start}```\n{}\n```\n", scenario.title, lines.join("\n"));
        }
    }
    text
}

const INTRODUCTION: &str = "# What a screen reader says about the listening page

`cargo xtask hear` generates this page; do not edit it. Debian's Orca reads the page at `/` of a real `sayso serve --demo-agent`, in two
real browsers on a virtual screen. The simulated person uses only the keyboard, and presses a key after hearing the expected text. Orca
and the browsers are unchanged. Only the sound is simulated: a replacement for speech-dispatcher gives each text the time that espeak-ng
needs for it at 175 words per minute, and records it.

`cargo xtask test` records again with the newest packages that the machine's sources offer. Each scenario lists the texts that must be
heard. The test fails if one of these is lost, cut off or out of order, or if one that must be heard once is repeated. The name of a
control may be repeated when it gets the focus.

\"[cut off]\" marks text that a key or newer text interrupted. \"[dropped]\" marks text that was dropped before it was heard. Orca stops
speaking whenever a key is pressed, so that people can skip ahead.

A question that is open when the page loads can be read twice: once when its dialog gets the focus, and again because Orca reads every page that has
loaded. In the recording of 19 November 2026 this happened in Firefox, and in the one of 20 November in Chromium. With Orca's option
sayAllOnLoad off, it is read once (tried in Firefox on 19 November).

A question that opens later is read once. On a busy machine, Firefox used to make Orca read its title again at the next Tab: Firefox reports the position
of its caret, which was elsewhere on the page, after the new focus, and Orca then believed that the person had left the dialog. Now the page moves the caret
to the title before it moves the focus (`question_dialog.js`). Orca also read nothing of an announcement that was replaced before Orca came to it, so
replaced announcements stay in the page for ten seconds (`announcer.js`). If a recording fails, the test repeats it once and reports that.
";

/// Reads the transcripts from a page of documentation.
#[cfg(test)]
pub(super) fn from_markdown(document: &str) -> Vec<Transcript> {
    let blocks = document.split("\n```\n").skip(1).step_by(2);
    blocks.map(|block| Transcript(block.lines().filter_map(parse_entry).collect())).collect()
}

#[cfg(test)]
impl Transcript {
    /// Returns a copy with `text` removed from every entry.
    pub(super) fn without(&self, text: &str) -> Self {
        Self(
            self.0
                .iter()
                .map(|entry| TranscriptEntry { text: entry.text.replace(text, ""), ..*entry })
                .collect(),
        )
    }

    /// Returns a copy in which `text` is heard again at the end.
    pub(super) fn followed_by(&self, text: &str) -> Self {
        let mut longer = self.clone();
        longer.add_entry(TranscriptEntry { text: text.to_owned(), status: EntryStatus::Heard });
        longer
    }
}

#[cfg(test)]
fn parse_entry(line: &str) -> Option<TranscriptEntry> {
    let entry = |text: &str, status| Some(TranscriptEntry { text: text.to_owned(), status });
    if let Some(text) = line.strip_prefix(KEY) {
        return entry(text, EntryStatus::KeyPress);
    }
    if let Some(text) = line.strip_prefix(EVENT) {
        return entry(text, EntryStatus::Event);
    }
    let text = line.strip_prefix(ORCA)?;
    match (text.strip_suffix(CUT), text.strip_suffix(DROPPED)) {
        (Some(text), _) => entry(text, EntryStatus::CutOff),
        (_, Some(text)) => entry(text, EntryStatus::Dropped),
        _ => entry(text, EntryStatus::Heard),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use SpeechExpectation::{AtLeastOnce, Once};

    const EXPECTED: [SpeechExpectation; 4] = [
        Once("It starts."),
        AtLeastOnce("Question"),
        Once("May I? It cannot be undone."),
        Once("It is done."),
    ];

    fn transcript(lines: &[&str]) -> Transcript {
        Transcript(lines.iter().filter_map(|line| parse_entry(line)).collect())
    }

    #[test]
    fn expected_texts_once_and_in_order_pass_with_other_speech_between() {
        let good = [
            "Orca: It starts.",
            "Orca: Question dialog May I?",
            "Orca: It cannot be undone.",
            "Key: Tab",
            "Orca: tab [cut off]",
        ];
        let good = transcript(&[&good[..], &["Orca: It is done."]].concat());
        assert_eq!(good.check(&EXPECTED), Ok(()));
    }

    #[test]
    fn a_dialog_title_may_be_repeated_when_it_gets_the_focus() {
        let repeated = transcript(&[
            "Orca: It starts.",
            "Orca: Question May I? It cannot be undone.",
            "Key: Tab",
            "Orca: Question dialog. [cut off]",
            "Orca: It is done.",
        ]);
        assert_eq!(repeated.check(&EXPECTED), Ok(()));
    }

    #[test]
    fn lost_cut_repeated_or_misordered_texts_are_reported() {
        let assert_error = |lines: &[&str], reason: &str| {
            assert_eq!(transcript(lines).check(&EXPECTED), Err(reason.to_owned()), "{lines:?}");
        };
        let question = "Orca: Question May I? It cannot be undone.";
        assert_error(
            &["Orca: It starts.", "Orca: Question", "Orca: It is done."],
            "`May I? It cannot be undone.` was lost",
        );
        assert_error(&["Orca: It starts.", "Orca: May I? It cannot be undone."], "`Question` was lost");
        assert_error(&["Orca: It starts. [cut off]", question], "`It starts.` was not heard to its end");
        let dropped = ["Orca: It starts.", "Orca: Question", "Orca: May I? It cannot be undone. [dropped]"];
        assert_error(&dropped, "`May I? It cannot be undone.` was not heard to its end");
        assert_error(&["Orca: It starts.", "Orca: It starts."], "`It starts.` was said 2 times");
        assert_error(&["Orca: It starts. [cut off]", "Orca: It starts."], "`It starts.` was said 2 times");
        let repeated_question = ["Orca: It starts.", question, "Key: Tab", question, "Orca: It is done."];
        assert_error(&repeated_question, "`May I? It cannot be undone.` was said 2 times");
        assert_error(&[question, "Orca: It starts."], "`Question` came too early");
    }

    #[test]
    fn written_transcripts_parse_back() {
        let lines = [
            "Orca: It starts.",
            "Key: Tab",
            "Meanwhile: It rains.",
            "Orca: It is [cut off]",
            "Orca: done. [dropped]",
        ];
        assert!(transcript(&lines).lines().eq(lines));
    }
}
