//! The difference between two texts, as edits that can be undone, and as a diff for people.

use similar::{DiffOp, TextDiff};

/// One edit: at this offset of the new text, `inserted` bytes replaced the text `removed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    pub(crate) offset: usize,
    pub(crate) inserted: usize,
    pub(crate) removed: String,
}

/// Returns the edits that lead from the old text to the new one, in order. They contain only lines that differ, because
/// other lines can contain secrets that should not be stored twice.
pub(crate) fn compute_edits(old: &str, new: &str) -> Vec<TextEdit> {
    let diff = TextDiff::from_lines(old, new);
    let old_offsets = line_offsets((0..diff.old_len()).map_while(|line| diff.old_slice(line)));
    let new_offsets = line_offsets((0..diff.new_len()).map_while(|line| diff.new_slice(line)));
    let mut edits = Vec::new();
    for op in diff.ops() {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (old_lines, new_lines) = (op.old_range(), op.new_range());
        let bounds = |offsets: &[usize], line: usize| offsets.get(line).copied();
        let (Some(old_start), Some(old_end), Some(new_start), Some(new_end)) = (
            bounds(&old_offsets, old_lines.start),
            bounds(&old_offsets, old_lines.end),
            bounds(&new_offsets, new_lines.start),
            bounds(&new_offsets, new_lines.end),
        ) else {
            // The offsets have one entry per line and one for the end, so this cannot happen. The whole text is correct too.
            return vec![TextEdit { offset: 0, inserted: new.len(), removed: old.to_owned() }];
        };
        let removed = old.get(old_start..old_end).unwrap_or_default().to_owned();
        edits.push(TextEdit { offset: new_start, inserted: new_end - new_start, removed });
    }
    edits
}

/// Undoes edits. Returns `None` if they do not fit the text.
pub(crate) fn undo_edits(new: &str, edits: &[TextEdit]) -> Option<String> {
    let mut text = String::with_capacity(new.len());
    let mut end = 0;
    for edit in edits {
        text.push_str(new.get(end..edit.offset)?);
        text.push_str(&edit.removed);
        end = edit.offset.checked_add(edit.inserted)?;
    }
    text.push_str(new.get(end..)?);
    Some(text)
}

/// Returns a unified diff, or an empty text if nothing changes. A file that does not exist is `/dev/null`.
pub(crate) fn unified_diff(name: &str, old: Option<&str>, new: Option<&str>) -> String {
    let name_of = |text: Option<&str>| if text.is_some() { name } else { "/dev/null" };
    let diff = TextDiff::from_lines(old.unwrap_or_default(), new.unwrap_or_default());
    let text = diff.unified_diff().context_radius(3).header(name_of(old), name_of(new)).to_string();
    if text.is_empty() && old.is_some() != new.is_some() {
        return format!("--- {}\n+++ {}\n", name_of(old), name_of(new));
    }
    text
}

/// Returns where each line starts, and where the last one ends.
fn line_offsets<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<usize> {
    let mut end = 0;
    let starts = lines.map(|line| {
        end += line.len();
        end
    });
    std::iter::once(0).chain(starts).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["a\n", "b\n", "c\r\n", "\n", "é", "d"]), 0..12)
            .prop_map(|lines| lines.concat())
    }

    proptest! {
        #![proptest_config(testing::property::cases(500))]
        #[test]
        fn undone_edits_give_the_old_text(old in text(), new in text()) {
            prop_assert_eq!(undo_edits(&new, &compute_edits(&old, &new)), Some(old));
        }
    }

    #[test]
    fn edits_that_do_not_fit_are_refused() {
        for (offset, inserted) in [(9, 0), (0, 9), (usize::MAX, 1), (1, 1)] {
            let edit = TextEdit { offset, inserted, removed: String::new() };
            assert_eq!(undo_edits("é", &[edit]), None, "{offset} {inserted}");
        }
    }

    #[test]
    fn a_diff_names_a_file_that_does_not_exist() {
        assert_eq!(unified_diff("a", None, Some("x\n")), "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(unified_diff("a", Some("x\n"), Some("x\n")), "");
        assert_eq!(unified_diff("a", Some(""), None), "--- a\n+++ /dev/null\n");
    }
}
