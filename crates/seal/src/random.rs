//! Sources of random bytes.

use ring::rand::SecureRandom as _;

/// A source of random bytes. Programs use [`SystemRandom`], and tests use their own source.
pub trait Random {
    /// Fills `bytes` with random bytes. For keys and tokens they must be unpredictable.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Random for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}

/// The operating system's random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        if ring::rand::SystemRandom::new().fill(bytes).is_err() {
            // Without randomness, no trustworthy key or token can be created.
            std::process::abort();
        }
    }
}
