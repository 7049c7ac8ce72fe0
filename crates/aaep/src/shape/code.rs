//! Code in text, fenced or between backticks, is never cut (CommonMark 0.31, 4.5 and 6.1).

/// Where a place in a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In plain text.
    Plain,
    /// In code that is closed further on.
    Code,
    /// In what is code if it gets closed.
    Unknown {
        /// A fence is open, which the end of the text closes too.
        fence: bool,
    },
}

/// What a text comes after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) fence: Option<Fence>,
    /// The text does not begin a line.
    pub(super) mid_line: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    length: usize,
}

impl Fence {
    /// The fence that a line opens; `line` is whole.
    fn opened_by(line: &str) -> Option<Self> {
        let (fence, rest) = Self::beginning(line)?;
        (fence.mark == b'~' || !rest.contains('`')).then_some(fence)
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::beginning(line).is_some_and(|(other, rest)| {
            other.mark == self.mark && other.length >= self.length && rest.trim().is_empty()
        })
    }

    fn beginning(line: &str) -> Option<(Self, &str)> {
        let inner = line.trim_start_matches(' ');
        let mark = *inner.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let length = inner.bytes().take_while(|byte| *byte == mark).count();
        (line.len() - inner.len() <= 3 && length >= 3).then(|| (Self { mark, length }, &inner[length..]))
    }
}

/// Where the place `at` of `text` lies.
pub(super) fn place(text: &str, at: usize, context: Context) -> Place {
    if context.fence.is_none() && !text.as_bytes()[..at].iter().any(|byte| matches!(byte, b'`' | b'~')) {
        return Place::Plain;
    }
    walk(text, at, context).0
}

/// The context of what comes after a text, whatever that is.
pub(super) fn context_after(text: &str, context: Context) -> Context {
    let any = context.fence.is_some() || text.contains(['`', '~']);
    let fence = if any { walk(text, text.len(), context).1 } else { None };
    let line = text.trim_end_matches([' ', '\t']);
    let mid_line = if line.is_empty() { context.mid_line } else { !line.ends_with(['\n', '\r']) };
    Context { fence, mid_line }
}

fn walk(text: &str, at: usize, context: Context) -> (Place, Option<Fence>) {
    let mut fence = context.fence;
    let mut begins_line = !context.mid_line;
    let mut from = 0;
    while from < at {
        let rest = &text[from..];
        let end = rest.find('\n').map(|end| from + end + 1);
        let line = end.map(|end| &text[from..end]);
        if let Some(open) = fence {
            let Some((line, end)) = line.zip(end) else { return (Place::Unknown { fence: true }, fence) };
            if open.is_closed_by(line) {
                if at < end {
                    return (Place::Code, fence);
                }
                fence = None;
            }
            (from, begins_line) = (end, true);
            continue;
        }
        let marks = from + rest.len() - rest.trim_start_matches(' ').len();
        if begins_line
            && let Some((line, end)) = line.zip(end)
            && let Some(open) = Fence::opened_by(line)
        {
            if at <= marks {
                return (Place::Plain, None);
            }
            fence = Some(open);
            if at < end {
                // Nothing of the fence has been released: it is not open before its line.
                return (Place::Code, None);
            }
            (from, begins_line) = (end, true);
            continue;
        }
        if begins_line
            && at > marks
            && line.is_none()
            && Fence::beginning(rest).is_some_and(|(open, _)| open.mark == b'~')
        {
            return (Place::Unknown { fence: true }, None);
        }
        begins_line = false;
        let Some(run) = rest.find(['`', '\n']).map(|run| from + run) else { return (Place::Plain, None) };
        if run >= at {
            return (Place::Plain, None);
        }
        if text.as_bytes()[run] == b'\n' {
            (from, begins_line) = (run + 1, true);
            continue;
        }
        let length = text[run..].bytes().take_while(|byte| *byte == b'`').count();
        match closing(&text[run + length..], length) {
            Closing::At(end) => {
                let end = run + length + end;
                if at < end {
                    return (Place::Code, None);
                }
                from = end;
            }
            Closing::Never => from = run + length,
            Closing::Unknown => return (Place::Unknown { fence: false }, None),
        }
    }
    let place = if fence.is_some() { open_fence(text, at, fence) } else { Place::Plain };
    (place, fence)
}

/// A place at the beginning of a line inside an open fence.
fn open_fence(text: &str, at: usize, fence: Option<Fence>) -> Place {
    let closed = fence.is_some_and(|open| {
        text[at..].split_inclusive('\n').any(|line| line.ends_with('\n') && open.is_closed_by(line))
    });
    if closed { Place::Code } else { Place::Unknown { fence: true } }
}

enum Closing {
    At(usize),
    Never,
    Unknown,
}

/// Where a run of so many backticks ends the code that one has begun; a blank line says that it was none.
fn closing(text: &str, length: usize) -> Closing {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut blank = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'`' => {
                let run = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
                if at + run == bytes.len() {
                    // It may grow.
                    return Closing::Unknown;
                }
                if run == length {
                    return Closing::At(at + run);
                }
                at += run;
                blank = false;
                continue;
            }
            b'\n' if blank => return Closing::Never,
            b'\n' => blank = true,
            b' ' | b'\t' | b'\r' => {}
            _ => blank = false,
        }
        at += 1;
    }
    Closing::Unknown
}
