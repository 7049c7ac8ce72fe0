//! Randomness is brought, never taken.

use ring::rand::SecureRandom as _;

/// A source of random bytes. The machines have none of their own: a program brings the system's, a test its own.
pub trait Random {
    /// Fills `bytes` with random bytes; for keys and tokens they must be unguessable.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Random for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}

/// The system's source, for programs to bring.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        if ring::rand::SystemRandom::new().fill(bytes).is_err() {
            // A system without randomness cannot make a key or a token that anybody should rely on.
            std::process::abort();
        }
    }
}
