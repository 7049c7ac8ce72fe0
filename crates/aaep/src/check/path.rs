//! Where in a document we are, spelled out only when something is wrong there.

use std::fmt::Write;

/// A place: steps from the outermost value inwards, each on its caller's stack.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Member(&'p Path<'p>, &'p str),
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
                out.push('/');
                out.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Path::Item(parent, index) => {
                parent.write(out);
                let _ = write!(out, "/{index}");
            }
        }
    }
}
