//! Full or quick runs.

/// The size of a benchmark: full, or with `--quick` just enough to show that it runs.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    is_quick: bool,
}

impl Scale {
    /// Reads the scale from the arguments.
    pub fn from_args() -> Self {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        if is_quick {
            println!("quick run: the figures are not meaningful");
        }
        Self { is_quick }
    }

    /// Returns the value for this scale.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        if self.is_quick { quick } else { full }
    }
}
