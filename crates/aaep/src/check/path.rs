//! Where in a document we are, spelled out only when something is wrong there.

use std::fmt::Write;

use crate::json::Value;

/// A place: steps from the outermost value inwards, each on its caller's stack.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Member(&'p Path<'p>, &'p str),
    /// A member by its key as it stands in the document.
    Key(&'p Path<'p>, Value<'p>),
    Item(&'p Path<'p>, usize),
}

impl Path<'_> {
    /// The place as a JSON pointer (RFC 6901).
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

/// Names that are longer are cut off: no event of ours has such, and a stranger's must not fill the disk by standing in
/// a thousand findings.
const LONGEST_NAME: usize = 256;

fn push_name(name: &str, out: &mut String) {
    let cut = name.floor_char_boundary(LONGEST_NAME);
    out.push('/');
    out.push_str(&name[..cut].replace('~', "~0").replace('/', "~1"));
    if cut < name.len() {
        out.push('…');
    }
}
