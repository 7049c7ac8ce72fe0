//! How much is done.

/// The full form, or with `--quick` one that only shows that everything runs.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    quick: bool,
}

impl Scale {
    /// As the arguments say.
    pub fn of_arguments() -> Self {
        let quick = std::env::args().any(|argument| argument == "--quick");
        if quick {
            println!("the quick form: these figures mean nothing");
        }
        Self { quick }
    }

    /// The one or the other.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}
