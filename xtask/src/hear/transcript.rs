//! What was heard and done in a scene, and what is demanded of it.

use std::fmt::Write;

use super::scene::Demand;

/// In the order in which Orca said it.
#[derive(Clone, Debug, Default)]
pub(super) struct Transcript(Vec<Entry>);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum How {
    /// It has not begun.
    Waiting,
    /// To its end.
    Heard,
    /// It had begun.
    Cut,
    /// It had not.
    Dropped,
    /// The person pressed a key.
    Pressed,
}

/// What was heard in one browser.
pub(super) struct Heard {
    pub(super) browser: &'static str,
    pub(super) versions: String,
    pub(super) scenes: Vec<Transcript>,
}

impl Transcript {
    /// Adds an entry; returns its place.
    pub(super) fn write(&mut self, entry: Entry) -> usize {
        self.0.push(entry);
        self.0.len() - 1
    }

    pub(super) fn becomes(&mut self, place: usize, how: How) {
        if let Some(entry) = self.0.get_mut(place) {
            entry.how = how;
        }
    }

    /// Whether this was heard to its end.
    pub(super) fn heard(&self, text: &str) -> bool {
        self.0.iter().any(|entry| entry.how == How::Heard && entry.text.contains(text))
    }

    /// Demands that each of these was heard to its end, in this order, and as often as it says.
    pub(super) fn demand(&self, wanted: &[Demand]) -> Result<(), String> {
        let said = self.said(|how| how != How::Pressed);
        let heard = self.said(|how| how == How::Heard);
        let mut after = 0;
        for demand in wanted {
            let (Demand::Once(text) | Demand::AtLeastOnce(text)) = demand;
            let count = said.matches(text).count();
            if count > 1 && matches!(demand, Demand::Once(_)) {
                return Err(format!("`{text}` was said {count} times"));
            }
            let later = heard.get(after..).and_then(|heard| heard.find(text));
            match later {
                Some(at) => after += at,
                None if count == 0 => return Err(format!("`{text}` was lost")),
                None if heard.contains(text) => return Err(format!("`{text}` came too early")),
                None => return Err(format!("`{text}` was cut off")),
            }
        }
        Ok(())
    }

    /// A line for each entry, with a word in front.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Entry { text, how }| match how {
            How::Heard => format!("{ORCA}{text}"),
            How::Pressed => format!("{KEY}{text}"),
            How::Cut => format!("{ORCA}{text}{CUT}"),
            How::Dropped | How::Waiting => format!("{ORCA}{text}{DROPPED}"),
        })
    }

    fn said(&self, which: impl Fn(How) -> bool) -> String {
        let texts: Vec<&str> =
            self.0.iter().filter(|entry| which(entry.how)).map(|entry| entry.text.as_str()).collect();
        texts.join(" ")
    }
}

const ORCA: &str = "Orca: ";
const KEY: &str = "Key: ";
const CUT: &str = " [cut off]";
const DROPPED: &str = " [not begun]";

/// The whole page of documentation.
pub(super) fn document(heard: &[Heard]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for Heard { browser, versions, scenes } in heard {
        let _ = write!(text, "\n## {browser}\n\n{versions}\n");
        for (transcript, scene) in scenes.iter().zip(&super::SCENES) {
            let asked = scene
                .request
                .map_or(String::new(), |request| format!("The assistant is asked: \"{request}\".\n\n"));
            let lines: Vec<String> = transcript.lines().collect();
            let _ = write!(text, "\n### {}\n\n{asked}```\n{}\n```\n", scene.title, lines.join("\n"));
        }
    }
    text
}

const INTRODUCTION: &str = "# What a screen reader says of the listening page

Written by `cargo xtask hear`; do not edit. Debian's Orca listens to the page at `/` of a real `sayso serve --demo-agent`, in two real
browsers on a screen that nobody sees. The person uses the keyboard alone, and presses a key when they have heard what they waited for.
Orca and the browsers are unchanged. Only the sound is not made: in the place of speech-dispatcher, each thing is given the time that
espeak-ng needs for it at 175 words a minute, and is written down.

`cargo xtask test` listens again, with the newest packages that the machine's sources offer, and fails if the start, the tool, a sentence, the
question with its consequence or the outcome is lost, cut off, said twice or out of order. The title of a dialog and the name of a control
may be said again when the focus enters them: newer versions of Firefox make Orca do that.

\"[cut off]\" marks what a key or something newer interrupted, \"[not begun]\" what was dropped before it was heard. Orca cuts off what it
says whenever a key is pressed; that is how people hurry it.
";

/// The transcripts in a page of documentation.
#[cfg(test)]
pub(super) fn read(document: &str) -> Vec<Transcript> {
    let blocks = document.split("\n```\n").skip(1).step_by(2);
    blocks.map(|block| Transcript(block.lines().filter_map(entry).collect())).collect()
}

#[cfg(test)]
impl Transcript {
    /// The same, in which words were never said.
    pub(super) fn without(&self, text: &str) -> Self {
        Self(self.0.iter().map(|entry| Entry { text: entry.text.replace(text, ""), ..*entry }).collect())
    }

    /// The same, with words said again at its end.
    pub(super) fn followed_by(&self, text: &str) -> Self {
        let mut longer = self.clone();
        longer.write(Entry { text: text.to_owned(), how: How::Heard });
        longer
    }
}

#[cfg(test)]
fn entry(line: &str) -> Option<Entry> {
    let of = |text: &str, how| Some(Entry { text: text.to_owned(), how });
    if let Some(text) = line.strip_prefix(KEY) {
        return of(text, How::Pressed);
    }
    let text = line.strip_prefix(ORCA)?;
    match (text.strip_suffix(CUT), text.strip_suffix(DROPPED)) {
        (Some(text), _) => of(text, How::Cut),
        (_, Some(text)) => of(text, How::Dropped),
        _ => of(text, How::Heard),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Demand::{AtLeastOnce, Once};

    const WANTED: [Demand; 4] = [
        Once("It starts."),
        AtLeastOnce("Question"),
        Once("May I? It cannot be undone."),
        Once("It is done."),
    ];

    fn transcript(lines: &[&str]) -> Transcript {
        Transcript(lines.iter().filter_map(|line| entry(line)).collect())
    }

    #[test]
    fn each_once_in_order_is_good_whatever_else_is_said() {
        let good = [
            "Orca: It starts.",
            "Orca: Question dialog May I?",
            "Orca: It cannot be undone.",
            "Key: Tab",
            "Orca: tab [cut off]",
        ];
        let good = transcript(&[&good[..], &["Orca: It is done."]].concat());
        assert_eq!(good.demand(&WANTED), Ok(()));
    }

    #[test]
    fn the_title_of_a_dialog_may_be_said_again_when_the_focus_enters_it() {
        let again = transcript(&[
            "Orca: It starts.",
            "Orca: Question May I? It cannot be undone.",
            "Key: Tab",
            "Orca: Question dialog. [cut off]",
            "Orca: It is done.",
        ]);
        assert_eq!(again.demand(&WANTED), Ok(()));
    }

    #[test]
    fn what_is_lost_cut_doubled_or_out_of_order_is_named() {
        let wrong = |lines: &[&str], why: &str| {
            assert_eq!(transcript(lines).demand(&WANTED), Err(why.to_owned()), "{lines:?}");
        };
        let asked = "Orca: Question May I? It cannot be undone.";
        wrong(
            &["Orca: It starts.", "Orca: Question", "Orca: It is done."],
            "`May I? It cannot be undone.` was lost",
        );
        wrong(&["Orca: It starts.", "Orca: May I? It cannot be undone."], "`Question` was lost");
        wrong(&["Orca: It starts. [cut off]", asked], "`It starts.` was cut off");
        let dropped = ["Orca: It starts.", "Orca: Question", "Orca: May I? It cannot be undone. [not begun]"];
        wrong(&dropped, "`May I? It cannot be undone.` was cut off");
        wrong(&["Orca: It starts.", "Orca: It starts."], "`It starts.` was said 2 times");
        wrong(&["Orca: It starts. [cut off]", "Orca: It starts."], "`It starts.` was said 2 times");
        let asked_again = ["Orca: It starts.", asked, "Key: Tab", asked, "Orca: It is done."];
        wrong(&asked_again, "`May I? It cannot be undone.` was said 2 times");
        wrong(&[asked, "Orca: It starts."], "`Question` came too early");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let lines = ["Orca: It starts.", "Key: Tab", "Orca: It is [cut off]", "Orca: done. [not begun]"];
        assert!(transcript(&lines).lines().eq(lines));
    }
}
