//! Names that grow with time, which journals like, and cannot be guessed.

use std::sync::Arc;

use super::{Core, TurnContext};

impl Core {
    /// A name for something that is made now: six bytes of the time, and ten that were drawn.
    pub(super) fn new_id(&mut self, prefix: &str, context: &TurnContext) -> Arc<str> {
        let mut drawn = [0; 16];
        if let Some(drawn) = drawn.get_mut(6..) {
            self.fill(drawn);
        }
        let time = u128::from(context.now.get().cast_unsigned()) << 80;
        let digits = hex(time | u128::from_be_bytes(drawn));
        let mut id = std::mem::take(&mut self.room.id);
        id.clear();
        id.push_str(prefix);
        id.push_str(str::from_utf8(&digits).unwrap_or_default());
        let made = Arc::from(id.as_str());
        self.room.id = id;
        made
    }
}

/// The 32 digits of a number, eight at a time.
fn hex(number: u128) -> [u8; 32] {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let mut digits = [0; 32];
    let (eights, _) = digits.as_chunks_mut::<8>();
    for (eight, shift) in eights.iter_mut().zip([96, 64, 32, 0]) {
        // Four bits into each byte.
        let mut bits = u64::try_from(number >> shift & 0xffff_ffff).unwrap_or_default();
        bits = (bits << 16 | bits) & 0x0000_ffff_0000_ffff;
        bits = (bits << 8 | bits) & 0x00ff_00ff_00ff_00ff;
        bits = (bits << 4 | bits) & 0x0f0f_0f0f_0f0f_0f0f;
        let letters = (bits + ONES * 6) >> 4 & ONES;
        *eight = (bits + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes();
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_those_of_the_number(number: u128) {
            let digits = hex(number);
            prop_assert_eq!(str::from_utf8(&digits).unwrap(), format!("{number:032x}"));
        }
    }
}
