//! Time-ordered ids, which keep journal inserts append-only, and which cannot be guessed.

use std::sync::Arc;

use aaep::ReplyToken;

use super::{Core, TurnContext};

impl Core {
    /// Creates an id from 6 bytes of time and 10 random bytes.
    pub(super) fn new_id(&mut self, prefix: &str, context: &TurnContext) -> Arc<str> {
        let mut random = [0; 16];
        if let Some(random) = random.get_mut(6..) {
            self.fill_random(random);
        }
        let time = u128::from(context.now.get().cast_unsigned()) << 80;
        let digits = hex(time | u128::from_be_bytes(random));
        let mut id = std::mem::take(&mut self.scratch.id_text);
        id.clear();
        id.push_str(prefix);
        id.push_str(str::from_utf8(&digits).unwrap_or_default());
        id.push_str(&self.id_suffix);
        let result = Arc::from(id.as_str());
        self.scratch.id_text = id;
        result
    }

    /// Creates a reply token from 16 random bytes.
    pub(super) fn new_reply_token(&mut self) -> ReplyToken {
        let mut random = [0; 16];
        self.fill_random(&mut random);
        let token =
            ReplyToken::generate(&mut |bytes: &mut [u8]| bytes.copy_from_slice(&random[..bytes.len()]));
        if self.id_suffix.is_empty() {
            return token;
        }
        ReplyToken::parse(&format!("{token}{}", self.id_suffix)).unwrap_or(token)
    }
}

/// Formats a number as 32 hexadecimal digits, eight at a time.
fn hex(number: u128) -> [u8; 32] {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let mut digits = [0; 32];
    let (groups, _) = digits.as_chunks_mut::<8>();
    for (group, shift) in groups.iter_mut().zip([96, 64, 32, 0]) {
        // Spreads 32 bits over 8 bytes, four bits in each.
        let mut bits = u64::try_from(number >> shift & 0xffff_ffff).unwrap_or_default();
        bits = (bits << 16 | bits) & 0x0000_ffff_0000_ffff;
        bits = (bits << 8 | bits) & 0x00ff_00ff_00ff_00ff;
        bits = (bits << 4 | bits) & 0x0f0f_0f0f_0f0f_0f0f;
        // 1 in each byte whose digit is a letter.
        let letters = (bits + ONES * 6) >> 4 & ONES;
        *group = (bits + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes();
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hex_matches_the_standard_formatter(number: u128) {
            let digits = hex(number);
            prop_assert_eq!(str::from_utf8(&digits).unwrap(), format!("{number:032x}"));
        }
    }
}
