//! Random numbers that are the same in every run, so that a failure can be repeated.

/// The generator `SplitMix64`.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap();
        usize::try_from(self.next() % end).unwrap()
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn pick<'l, T>(&mut self, from: &'l [T]) -> &'l T {
        self.choose(from).expect("something to pick from")
    }

    /// One of these, if there are any.
    pub fn choose<'l, T>(&mut self, from: &'l [T]) -> Option<&'l T> {
        from.get(self.below(from.len()))
    }
}

/// A source of bytes, as the hub takes one.
pub fn bytes(seed: u64) -> impl FnMut(&mut [u8]) + Send + 'static {
    let mut state = seed;
    move |bytes| {
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = u8::try_from((state >> 33) & 0xff).unwrap();
        }
    }
}
