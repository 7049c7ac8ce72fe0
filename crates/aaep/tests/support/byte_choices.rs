//! A source of choices for generators. A choice consumes one byte, or three if there are many options.

/// Derives choices from bytes. When the bytes are used up, every choice is the first and simplest option.
pub(crate) struct RandomChoices<'c> {
    bytes: std::slice::Iter<'c, u8>,
}

impl<'c> RandomChoices<'c> {
    pub(crate) fn new(bytes: &'c [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// Returns a number below `limit`, which is at most 256.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.bytes.next().map_or(0, |byte| usize::from(*byte) % limit)
    }

    /// Returns a number below `limit`, which may be larger than 256.
    pub(crate) fn below_large(&mut self, limit: usize) -> usize {
        (self.below(256) << 16 | self.below(256) << 8 | self.below(256)) % limit.max(1)
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Returns true once in `times` calls on average.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }
}
