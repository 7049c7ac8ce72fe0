//! Decisions, one byte each.

/// Hands out decisions until the bytes are used up; from then on every decision is the first and simplest.
pub(crate) struct Choices<'c> {
    bytes: std::slice::Iter<'c, u8>,
}

impl<'c> Choices<'c> {
    pub(crate) fn new(bytes: &'c [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// A number below `limit`, which is at most 256.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.bytes.next().map_or(0, |byte| usize::from(*byte) % limit)
    }

    /// A number below `limit`, which may be large.
    pub(crate) fn place(&mut self, limit: usize) -> usize {
        (self.below(256) << 16 | self.below(256) << 8 | self.below(256)) % limit.max(1)
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// True once in so many times.
    pub(crate) fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub(crate) fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
