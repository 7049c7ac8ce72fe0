//! Deterministic random numbers, so that a failure can be reproduced.

/// The `SplitMix64` generator.
#[derive(Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap();
        usize::try_from(self.next_u64() % end).unwrap()
    }

    /// Returns true with a probability of 1 in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the items.
    pub fn choose_one<'l, T>(&mut self, items: &'l [T]) -> &'l T {
        self.choose(items).expect("at least one item")
    }

    /// Returns one of the items, or `None` if there are none.
    pub fn choose<'l, T>(&mut self, items: &'l [T]) -> Option<&'l T> {
        items.get(self.below(items.len()))
    }
}

/// Returns a source of pseudorandom bytes, in the form that the hub's core requires.
pub fn seeded_byte_source(seed: u64) -> impl FnMut(&mut [u8]) + Send + 'static {
    let mut state = seed;
    move |bytes| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = u8::try_from((state >> 33) & 0xff).unwrap();
        }
    }
}
