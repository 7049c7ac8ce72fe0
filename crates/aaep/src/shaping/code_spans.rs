//! Detection of code in text, fenced or between backticks. Code is never split (CommonMark 0.31,
//! 4.5 and 6.1).

/// Whether a position in a text is inside code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodePosition {
    /// Outside code.
    OutsideCode,
    /// Inside code that is closed later in the text.
    InsideCode,
    /// After the start of code whose end has not arrived yet. Backticks that are never closed do not
    /// mark code.
    Unknown {
        /// Whether the code is fenced. A fence is also closed by the end of the text.
        is_fence: bool,
    },
}

/// Whether a text starts inside a fence or in the middle of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CodeContext {
    pub(super) fence: Option<Fence>,
    /// Whether the text starts in the middle of a line.
    pub(super) starts_mid_line: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    length: usize,
}

impl Fence {
    /// Returns the fence that a complete line opens.
    fn opened_by(line: &str) -> Option<Self> {
        let (fence, rest) = Self::parse_start(line)?;
        (fence.mark == b'~' || !rest.contains('`')).then_some(fence)
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::parse_start(line).is_some_and(|(other, rest)| {
            other.mark == self.mark && other.length >= self.length && rest.trim().is_empty()
        })
    }

    /// Parses the start of a fence line. Returns the fence and the rest of the line.
    fn parse_start(line: &str) -> Option<(Self, &str)> {
        let inner = line.trim_start_matches(' ');
        let mark = *inner.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let length = inner.bytes().take_while(|byte| *byte == mark).count();
        (line.len() - inner.len() <= 3 && length >= 3).then(|| (Self { mark, length }, &inner[length..]))
    }
}

/// Returns whether position `at` of `text` is inside code.
pub(super) fn locate(text: &str, at: usize, context: CodeContext) -> CodePosition {
    if context.fence.is_none() && !text.as_bytes()[..at].iter().any(|byte| matches!(byte, b'`' | b'~')) {
        return CodePosition::OutsideCode;
    }
    walk(text, at, context).0
}

/// Returns the context of the text that follows `text`.
pub(super) fn context_after(text: &str, context: CodeContext) -> CodeContext {
    let may_have_code = context.fence.is_some() || text.contains(['`', '~']);
    let fence = if may_have_code { walk(text, text.len(), context).1 } else { None };
    let line = text.trim_end_matches([' ', '\t']);
    let starts_mid_line =
        if line.is_empty() { context.starts_mid_line } else { !line.ends_with(['\n', '\r']) };
    CodeContext { fence, starts_mid_line }
}

/// Reads the text up to position `at`. Returns whether that position is inside code, and the fence
/// that is open there.
fn walk(text: &str, at: usize, context: CodeContext) -> (CodePosition, Option<Fence>) {
    let mut fence = context.fence;
    let mut is_line_start = !context.starts_mid_line;
    let mut from = 0;
    while from < at {
        let rest = &text[from..];
        let end = rest.find('\n').map(|end| from + end + 1);
        let line = end.map(|end| &text[from..end]);
        if let Some(open) = fence {
            let Some((line, end)) = line.zip(end) else {
                return (CodePosition::Unknown { is_fence: true }, fence);
            };
            if open.is_closed_by(line) {
                if at < end {
                    return (CodePosition::InsideCode, fence);
                }
                fence = None;
            }
            (from, is_line_start) = (end, true);
            continue;
        }
        let content_start = from + rest.len() - rest.trim_start_matches(' ').len();
        if is_line_start
            && let Some((line, end)) = line.zip(end)
            && let Some(open) = Fence::opened_by(line)
        {
            if at <= content_start {
                return (CodePosition::OutsideCode, None);
            }
            fence = Some(open);
            if at < end {
                // The line that opens the fence is not complete at this position, so the fence is
                // not open yet.
                return (CodePosition::InsideCode, None);
            }
            (from, is_line_start) = (end, true);
            continue;
        }
        if is_line_start
            && at > content_start
            && line.is_none()
            && Fence::parse_start(rest).is_some_and(|(open, _)| open.mark == b'~')
        {
            return (CodePosition::Unknown { is_fence: true }, None);
        }
        is_line_start = false;
        let Some(run) = rest.find(['`', '\n']).map(|run| from + run) else {
            return (CodePosition::OutsideCode, None);
        };
        if run >= at {
            return (CodePosition::OutsideCode, None);
        }
        if text.as_bytes()[run] == b'\n' {
            (from, is_line_start) = (run + 1, true);
            continue;
        }
        let length = text[run..].bytes().take_while(|byte| *byte == b'`').count();
        match find_span_end(&text[run + length..], length) {
            CodeSpanEnd::At(end) => {
                let end = run + length + end;
                if at < end {
                    return (CodePosition::InsideCode, None);
                }
                from = end;
            }
            CodeSpanEnd::Never => from = run + length,
            CodeSpanEnd::Unknown => return (CodePosition::Unknown { is_fence: false }, None),
        }
    }
    let position =
        if fence.is_some() { classify_in_fence(text, at, fence) } else { CodePosition::OutsideCode };
    (position, fence)
}

/// Classifies a position at the start of a line inside an open fence.
fn classify_in_fence(text: &str, at: usize, fence: Option<Fence>) -> CodePosition {
    let is_closed = fence.is_some_and(|open| {
        text[at..].split_inclusive('\n').any(|line| line.ends_with('\n') && open.is_closed_by(line))
    });
    if is_closed { CodePosition::InsideCode } else { CodePosition::Unknown { is_fence: true } }
}

enum CodeSpanEnd {
    At(usize),
    Never,
    Unknown,
}

/// Finds the run of `length` backticks that closes a code span. If a blank line comes first, the
/// text was not code.
fn find_span_end(text: &str, length: usize) -> CodeSpanEnd {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut is_line_blank = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'`' => {
                let run = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
                if at + run == bytes.len() {
                    // The run may continue.
                    return CodeSpanEnd::Unknown;
                }
                if run == length {
                    return CodeSpanEnd::At(at + run);
                }
                at += run;
                is_line_blank = false;
                continue;
            }
            b'\n' if is_line_blank => return CodeSpanEnd::Never,
            b'\n' => is_line_blank = true,
            b' ' | b'\t' | b'\r' => {}
            _ => is_line_blank = false,
        }
        at += 1;
    }
    CodeSpanEnd::Unknown
}
