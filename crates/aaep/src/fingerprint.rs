//! Remembering what has been seen by 64 bits of its hash: for a whole recording, and for one session.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const SHARDS: usize = 256;
const SMALLEST: usize = 16;

/// Remembers what has been seen by 64 bits of its hash. Among a million different things the odds that any two share a
/// fingerprint, and one is wrongly called seen, are 1 in 37 million.
///
/// A hash table that doubles would cost up to 20 bytes an entry and both copies while it grows. This one is cut into
/// 256 tables that grow by a quarter, each on its own, and are between 68 and 85 per cent full: 9.4 to 11.8 bytes an
/// entry, and the copy that is being left is a 256th of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprints {
    shards: Vec<Shard>,
    zero: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shard {
    /// 0 is an empty slot.
    slots: Vec<u64>,
    used: usize,
}

impl Fingerprints {
    /// Adds one; says whether it is new.
    pub fn insert(&mut self, fingerprint: u64) -> bool {
        if fingerprint == 0 {
            return !std::mem::replace(&mut self.zero, true);
        }
        if self.shards.is_empty() {
            self.shards = vec![Shard::default(); SHARDS];
        }
        self.shards[shard_of(fingerprint)].insert(fingerprint)
    }

    /// Whether it has been added.
    pub fn contains(&self, fingerprint: u64) -> bool {
        match fingerprint {
            0 => self.zero,
            _ => self.shards.get(shard_of(fingerprint)).is_some_and(|shard| shard.contains(fingerprint)),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.used).sum::<usize>() + usize::from(self.zero)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes its tables take.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.capacity() * size_of::<u64>()).sum()
    }
}

fn shard_of(fingerprint: u64) -> usize {
    (fingerprint >> 56) as usize
}

impl Shard {
    /// The slot of a fingerprint: where it is, or where it would go.
    fn slot(slots: &[u64], fingerprint: u64) -> usize {
        let spread = u128::from(fingerprint << 8) * slots.len() as u128;
        let mut at = usize::try_from(spread >> 64).unwrap_or(0);
        while slots[at] != 0 && slots[at] != fingerprint {
            at = if at + 1 == slots.len() { 0 } else { at + 1 };
        }
        at
    }

    fn insert(&mut self, fingerprint: u64) -> bool {
        if self.used * 100 >= self.slots.len() * 85 {
            self.grow();
        }
        let at = Self::slot(&self.slots, fingerprint);
        let new = self.slots[at] == 0;
        if new {
            self.slots[at] = fingerprint;
            self.used += 1;
        }
        new
    }

    fn contains(&self, fingerprint: u64) -> bool {
        !self.slots.is_empty() && self.slots[Self::slot(&self.slots, fingerprint)] == fingerprint
    }

    fn grow(&mut self) {
        let size = (self.slots.len() + self.slots.len() / 4).max(SMALLEST);
        let mut slots = vec![0; size];
        for fingerprint in self.slots.iter().copied().filter(|slot| *slot != 0) {
            let at = Self::slot(&slots, fingerprint);
            slots[at] = fingerprint;
        }
        self.slots = slots;
    }
}

/// What one session has seen: names that must not come twice. Empty it costs next to nothing, and a clone shares what
/// is there, so that trying an event on a copy of a long session is cheap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    settled: Option<Arc<HashSet<u64, BuildHasherDefault<Identity>>>>,
    /// What came while a copy shared the rest.
    recent: Vec<u64>,
}

impl Seen {
    /// Adds a name; says whether it is new.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        let fingerprint = fingerprint(name);
        if self.has(fingerprint) {
            return false;
        }
        self.recent.push(fingerprint);
        self.settle();
        true
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.has(fingerprint(name))
    }

    /// Takes in what is recent, unless a copy shares the rest.
    pub(crate) fn settle(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        if let Some(settled) = Arc::get_mut(self.settled.get_or_insert_default()) {
            settled.extend(self.recent.drain(..));
        }
    }

    fn has(&self, fingerprint: u64) -> bool {
        self.settled.as_ref().is_some_and(|settled| settled.contains(&fingerprint))
            || self.recent.contains(&fingerprint)
    }
}

/// The keys of this hash are known: whoever makes two names collide hurts only their own session.
fn fingerprint(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Hashes what is a hash already.
#[derive(Debug, Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(n: u64) -> u64 {
        let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    }

    #[test]
    fn what_was_added_is_known_and_nothing_else() {
        let mut set = Fingerprints::default();
        for n in 0..100_000 {
            assert!(!set.contains(mixed(n)));
            assert!(set.insert(mixed(n)));
            assert!(!set.insert(mixed(n)));
        }
        assert_eq!(set.len(), 100_000);
        assert!((0..100_000).all(|n| set.contains(mixed(n))));
        assert!((100_000..200_000).all(|n| !set.contains(mixed(n))));
        assert!(set.insert(0) || set.contains(0));
    }

    #[test]
    fn a_copy_shares_what_was_seen_and_not_what_comes() {
        let mut seen = Seen::default();
        assert!((0..1000).all(|n| seen.insert(&format!("call_{n}"))));
        let mut copy = seen.clone();
        assert!(copy.insert("call_new") && !copy.insert("call_new") && !copy.insert("call_7"));
        assert!(copy.contains("call_new") && !seen.contains("call_new"));
        assert_eq!(copy.recent.len(), 1, "the rest is shared, not copied");
        drop(seen);
        copy.settle();
        assert!(copy.recent.is_empty() && copy.contains("call_new") && copy.contains("call_999"));
    }

    #[test]
    fn an_entry_never_takes_more_than_16_bytes() {
        let mut set = Fingerprints::default();
        for n in 0..1_000_000 {
            set.insert(mixed(n));
            if n > 10_000 && n % 1000 == 0 {
                assert!(set.bytes() <= set.len() * 16, "{} bytes for {}", set.bytes(), set.len());
            }
        }
    }
}
