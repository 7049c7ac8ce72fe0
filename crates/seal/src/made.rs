//! Tables of things by names that we made ourselves.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by names that nobody else chooses: ids with random digits, numbers that are counted. Whoever asks for a name of
/// his own finds nothing; only who could put names in could make them collide, so the hash may be a quick one.
pub type ByMade<K, V> = HashMap<K, V, BuildHasherDefault<MadeHasher>>;

/// The hash of [`ByMade`]: a multiplication for every eight bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct MadeHasher(u64);

/// Odd, and with as many ones as noughts; no more is needed.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl MadeHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    }
}

impl Hasher for MadeHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.add(last);
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn finish(&self) -> u64 {
        // The table looks at the lowest bits, and a multiplication leaves most of it in the highest.
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn counted_numbers_and_drawn_names_fall_apart() {
        let hash = BuildHasherDefault::<MadeHasher>::default();
        let low = |hash: u64| hash & 0xffff;
        let numbers: HashSet<u64> = (0..10_000_u64).map(|number| low(hash.hash_one(number))).collect();
        let name = |number: u64| {
            format!("evt_0193{:08x}{:016x}", number / 100, number.wrapping_mul(0xd134_2543_de82_ef95))
        };
        let names: HashSet<u64> = (0..10_000).map(|number| low(hash.hash_one(name(number)))).collect();
        // Of ten thousand draws out of 65,536 a fair hash hits some 9,300 different.
        assert!(numbers.len() > 8_500 && names.len() > 8_500, "{} {}", numbers.len(), names.len());
    }

    #[test]
    fn names_that_differ_in_their_length_are_told_apart() {
        let hash = BuildHasherDefault::<MadeHasher>::default();
        let all: HashSet<u64> = (0..64).map(|length| hash.hash_one("a".repeat(length))).collect();
        assert_eq!(all.len(), 64);
    }
}
