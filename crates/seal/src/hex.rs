//! Lower-case hexadecimal, and nothing else.

use std::fmt;

use data_encoding::HEXLOWER;

pub(crate) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    fmt::Display::fmt(&HEXLOWER.encode_display(bytes), f)
}

/// Reads exactly `N` bytes; capital letters are refused, so that a value has one text.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    HEXLOWER.decode_mut(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}

/// Implements for a newtype of `$length` bytes what reads and writes it: a prefix, then hexadecimal digits.
macro_rules! hex_newtype {
    ($name:ident, $length:literal, $prefix:literal) => {
        impl $name {
            /// Takes the bytes.
            pub fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// Reads the text form; anything else is `None`.
            pub fn parse(text: &str) -> Option<Self> {
                crate::hex::read(text.strip_prefix($prefix)?).map(Self)
            }

            /// The bytes.
            pub fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($prefix)?;
                crate::hex::write(f, &self.0)
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
    fn a_value_has_one_text() {
        assert_eq!(read("00ff"), Some([0, 255]));
        for wrong in ["00f", "00ff0", "00FF", "0 ff", "00fg", "00é", ""] {
            assert_eq!(read::<2>(wrong), None, "{wrong}");
        }
    }
}
