//! Randomness is brought, never taken.

/// A source of random bytes. There is none of our own: a program brings the system's, a test its own.
pub trait Random {
    /// Fills `bytes` with random bytes; for keys and tokens they must be unguessable.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Random for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}
