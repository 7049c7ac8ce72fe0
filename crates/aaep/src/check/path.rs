//! Locations in a document, which are formatted only for findings.

use std::fmt::Write;

use crate::json::JsonValue;

/// A location, as a linked list of steps back to the root. Each step lives on the stack of the
/// function that descended into it.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Member(&'p Path<'p>, &'p str),
    /// A member, by its key in the document.
    Key(&'p Path<'p>, JsonValue<'p>),
    Item(&'p Path<'p>, usize),
}

impl Path<'_> {
    /// Returns the location as a JSON pointer (RFC 6901).
    #[cold]
    pub(super) fn pointer(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Path::Root => {}
            Path::Member(parent, name) => {
                parent.write(out);
                push_name(name, out);
            }
            Path::Key(parent, key) => {
                parent.write(out);
                push_name(&key.text().unwrap_or_default(), out);
            }
            Path::Item(parent, index) => {
                parent.write(out);
                let _ = write!(out, "/{index}");
            }
        }
    }
}

/// Maximum length of a name in a pointer, in bytes. Longer names are truncated, because a hostile
/// name that is repeated in thousands of findings could fill the disk.
const MAX_NAME_BYTES: usize = 256;

fn push_name(name: &str, out: &mut String) {
    let cut = name.floor_char_boundary(MAX_NAME_BYTES);
    out.push('/');
    out.push_str(&name[..cut].replace('~', "~0").replace('/', "~1"));
    if cut < name.len() {
        out.push('…');
    }
}
