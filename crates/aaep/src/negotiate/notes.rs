//! Notes about capabilities that were narrowed (`negotiation_notes`, §5.4).

/// The maximum length of `negotiation_notes` in characters.
const MAX_CHARS: usize = 4096;
/// The maximum number of names that are listed. Further names are only counted.
const MAX_LISTED_NAMES: usize = 5;

/// The notes as sentences, in the order of the capabilities.
#[derive(Debug, Default)]
pub(super) struct NegotiationNotes(Vec<String>);

impl NegotiationNotes {
    pub(super) fn push(&mut self, sentence: impl Into<String>) {
        self.0.push(sentence.into());
    }

    /// Joins the sentences that fit. Returns `None` if there are no notes.
    pub(super) fn finish(self) -> Option<String> {
        let mut text = String::new();
        for sentence in self.0 {
            if text.chars().count() + sentence.chars().count() < MAX_CHARS {
                text += if text.is_empty() { "" } else { " " };
                text += &sentence;
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

/// Formats names as `a, b and 3 more`. Names come from an untrusted party, so their number and
/// length are limited.
pub(super) fn join_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let listed: Vec<_> =
        names.by_ref().take(MAX_LISTED_NAMES).map(|name| name.chars().take(80).collect::<String>()).collect();
    let more = names.count();
    let listed = listed.join(", ");
    if more == 0 { listed } else { format!("{listed} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_limited_and_end_with_a_complete_sentence() {
        assert_eq!(NegotiationNotes::default().finish(), None);
        let mut notes = NegotiationNotes::default();
        for number in 0..1000 {
            notes.push(format!("Sentence {number} stands here, é."));
        }
        let text = notes.finish().unwrap_or_default();
        assert!((4000..=MAX_CHARS).contains(&text.chars().count()));
        assert!(text.starts_with("Sentence 0 ") && text.ends_with("here, é."));
    }

    #[test]
    fn only_the_first_names_are_listed() {
        assert_eq!(join_names(["a", "b"]), "a, b");
        assert_eq!(join_names(["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
        assert_eq!(join_names([&*"x".repeat(500)]).len(), 80);
    }
}
