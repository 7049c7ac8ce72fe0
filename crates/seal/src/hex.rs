//! Strict lower-case hexadecimal.

use std::fmt;

use data_encoding::HEXLOWER;

pub(crate) fn encode(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    fmt::Display::fmt(&HEXLOWER.encode_display(bytes), f)
}

/// Decodes exactly `N` bytes. Rejects capital letters, so that each value has only one text form.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    HEXLOWER.decode_mut(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}

/// Implements construction, parsing and formatting for a newtype of `$length` bytes. Its text form is the prefix and
/// hexadecimal digits.
macro_rules! hex_newtype {
    ($name:ident, $length:literal, $prefix:literal) => {
        impl $name {
            /// Creates a value from its bytes.
            pub fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// Parses the text form. Returns `None` for anything else.
            pub fn parse(text: &str) -> Option<Self> {
                crate::hex::decode(text.strip_prefix($prefix)?).map(Self)
            }

            /// Returns the bytes.
            pub fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($prefix)?;
                crate::hex::encode(f, &self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use hex_newtype;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_one_hex_text() {
        assert_eq!(decode("00ff"), Some([0, 255]));
        for wrong in ["00f", "00ff0", "00FF", "0 ff", "00fg", "00é", ""] {
            assert_eq!(decode::<2>(wrong), None, "{wrong}");
        }
    }
}
