//! Sets of 64-bit fingerprints: [`FingerprintSet`] for the ids of many sessions, and [`SeenNames`]
//! for the names in one session.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const SHARDS: usize = 256;
const MIN_SHARD_SLOTS: usize = 16;

/// A set of 64-bit fingerprints. With a million different entries, the probability of any false
/// positive is 1 in 37 million.
///
/// A hash table that doubles its size would need up to 20 bytes per entry, and would hold the old
/// and the new table while it grows. This set has 256 shards, and each shard grows by a quarter when
/// it is 85 percent full. So the set needs 9.4 to 11.8 bytes per entry, and a growing shard copies
/// only 1/256 of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FingerprintSet {
    shards: Vec<Shard>,
    has_zero: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shard {
    /// 0 marks an empty slot.
    slots: Vec<u64>,
    used: usize,
}

impl FingerprintSet {
    /// Adds a fingerprint. Returns whether it is new.
    pub fn insert(&mut self, fingerprint: u64) -> bool {
        if fingerprint == 0 {
            return !std::mem::replace(&mut self.has_zero, true);
        }
        if self.shards.is_empty() {
            self.shards = vec![Shard::default(); SHARDS];
        }
        self.shards[shard_of(fingerprint)].insert(fingerprint)
    }

    /// Returns whether a fingerprint was added.
    pub fn contains(&self, fingerprint: u64) -> bool {
        match fingerprint {
            0 => self.has_zero,
            _ => self.shards.get(shard_of(fingerprint)).is_some_and(|shard| shard.contains(fingerprint)),
        }
    }

    /// Returns the number of fingerprints.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.used).sum::<usize>() + usize::from(self.has_zero)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the tables in bytes.
    pub fn allocated_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.slots.capacity() * size_of::<u64>()).sum()
    }
}

fn shard_of(fingerprint: u64) -> usize {
    (fingerprint >> 56) as usize
}

impl Shard {
    /// Returns the slot of a fingerprint, or the free slot for it.
    fn find_slot(slots: &[u64], fingerprint: u64) -> usize {
        let spread = u128::from(fingerprint << 8) * slots.len() as u128;
        let mut index = usize::try_from(spread >> 64).unwrap_or(0);
        while slots[index] != 0 && slots[index] != fingerprint {
            index = if index + 1 == slots.len() { 0 } else { index + 1 };
        }
        index
    }

    fn insert(&mut self, fingerprint: u64) -> bool {
        if self.used * 100 >= self.slots.len() * 85 {
            self.grow();
        }
        let index = Self::find_slot(&self.slots, fingerprint);
        let is_new = self.slots[index] == 0;
        if is_new {
            self.slots[index] = fingerprint;
            self.used += 1;
        }
        is_new
    }

    fn contains(&self, fingerprint: u64) -> bool {
        !self.slots.is_empty() && self.slots[Self::find_slot(&self.slots, fingerprint)] == fingerprint
    }

    fn grow(&mut self) {
        let size = (self.slots.len() + self.slots.len() / 4).max(MIN_SHARD_SLOTS);
        let mut slots = vec![0; size];
        for fingerprint in self.slots.iter().copied().filter(|slot| *slot != 0) {
            let index = Self::find_slot(&slots, fingerprint);
            slots[index] = fingerprint;
        }
        self.slots = slots;
    }
}

/// Names that must be unique in one session. An empty set costs almost nothing. Clones share their
/// content, so it is cheap to try an event on a copy of a long session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenNames {
    shared: Option<Arc<HashSet<u64, BuildHasherDefault<IdentityHasher>>>>,
    /// Names that were added while a clone uses `shared` as well.
    recent: Vec<u64>,
}

impl SeenNames {
    /// Adds a name. Returns whether it is new.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        let fingerprint = fingerprint(name);
        if self.contains_fingerprint(fingerprint) {
            return false;
        }
        self.recent.push(fingerprint);
        self.merge_recent();
        true
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.contains_fingerprint(fingerprint(name))
    }

    /// Moves the recent names into `shared`, unless a clone still uses it.
    pub(crate) fn merge_recent(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        if let Some(shared) = Arc::get_mut(self.shared.get_or_insert_default()) {
            shared.extend(self.recent.drain(..));
        }
    }

    fn contains_fingerprint(&self, fingerprint: u64) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.contains(&fingerprint))
            || self.recent.contains(&fingerprint)
    }
}

/// Hashes a name with fixed keys. A producer that crafts colliding names harms only its own
/// session.
fn fingerprint(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// A hasher for values that are already hashes.
#[derive(Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
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

    fn pseudo_random(n: u64) -> u64 {
        let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    }

    #[test]
    fn only_inserted_fingerprints_are_contained() {
        let mut set = FingerprintSet::default();
        for n in 0..100_000 {
            assert!(!set.contains(pseudo_random(n)));
            assert!(set.insert(pseudo_random(n)));
            assert!(!set.insert(pseudo_random(n)));
        }
        assert_eq!(set.len(), 100_000);
        assert!((0..100_000).all(|n| set.contains(pseudo_random(n))));
        assert!((100_000..200_000).all(|n| !set.contains(pseudo_random(n))));
        assert!(set.insert(0) || set.contains(0));
    }

    #[test]
    fn a_clone_shares_old_names_but_not_new_ones() {
        let mut seen = SeenNames::default();
        assert!((0..1000).all(|n| seen.insert(&format!("call_{n}"))));
        let mut copy = seen.clone();
        assert!(copy.insert("call_new") && !copy.insert("call_new") && !copy.insert("call_7"));
        assert!(copy.contains("call_new") && !seen.contains("call_new"));
        assert_eq!(copy.recent.len(), 1, "the rest is shared, not copied");
        drop(seen);
        copy.merge_recent();
        assert!(copy.recent.is_empty() && copy.contains("call_new") && copy.contains("call_999"));
    }

    #[test]
    fn an_entry_takes_at_most_16_bytes() {
        let mut set = FingerprintSet::default();
        for n in 0..1_000_000 {
            set.insert(pseudo_random(n));
            if n > 10_000 && n % 1000 == 0 {
                assert!(
                    set.allocated_bytes() <= set.len() * 16,
                    "{} bytes for {}",
                    set.allocated_bytes(),
                    set.len()
                );
            }
        }
    }
}
