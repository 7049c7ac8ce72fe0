//! What was given less than asked, in plain sentences (`negotiation_notes`, §5.4).

/// As many characters as `negotiation_notes` may have.
const MOST: usize = 4096;
/// So many names are said before the rest is only counted.
const NAMED: usize = 5;

/// Sentences, gathered in the order of the capabilities.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    pub(super) fn say(&mut self, sentence: impl Into<String>) {
        self.0.push(sentence.into());
    }

    /// All sentences, or as many as fit; nothing if there is nothing to say.
    pub(super) fn finish(self) -> Option<String> {
        let mut text = String::new();
        for sentence in self.0 {
            if text.chars().count() + sentence.chars().count() < MOST {
                text += if text.is_empty() { "" } else { " " };
                text += &sentence;
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

/// `a, b and 3 more`; names that a stranger chose are long or many only so far.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let said: Vec<_> =
        names.by_ref().take(NAMED).map(|name| name.chars().take(80).collect::<String>()).collect();
    let more = names.count();
    let said = said.join(", ");
    if more == 0 { said } else { format!("{said} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_fit_and_end_with_a_whole_sentence() {
        assert_eq!(Notes::default().finish(), None);
        let mut notes = Notes::default();
        for number in 0..1000 {
            notes.say(format!("Sentence {number} stands here, é."));
        }
        let text = notes.finish().unwrap_or_default();
        assert!((4000..=MOST).contains(&text.chars().count()));
        assert!(text.starts_with("Sentence 0 ") && text.ends_with("here, é."));
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(listed(["a", "b"]), "a, b");
        assert_eq!(listed(["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
        assert_eq!(listed([&*"x".repeat(500)]).len(), 80);
    }
}
