//! A macro for enums whose values have fixed string forms.

/// Declares enums in which each value has a string form. Generates the type, `ALL`, `as_str`, `parse` and `Display`.
/// An enum is public unless it is declared with a visibility and the keyword `enum`.
///
/// ```
/// seal::string_enum! {
///     /// A side.
///     Side {
///         /// The left side.
///         Left "left",
///         /// The right side.
///         Right "right",
///     }
/// }
/// assert_eq!(Side::parse("left"), Some(Side::Left));
/// assert_eq!(Side::ALL.map(Side::as_str), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! string_enum {
    ($($(#[$doc:meta])* $name:ident { $($values:tt)* })*) => {$(
        $crate::string_enum! { $(#[$doc])* pub enum $name { $($values)* } }
    )*};
    (
        $(#[$doc:meta])*
        $visibility:vis enum $name:ident { $($(#[$value_doc:meta])* $value:ident $string:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[$value_doc])* $value,)*
        }

        #[allow(dead_code, reason = "a private enum may use only some of these")]
        impl $name {
            /// All values, in declaration order.
            $visibility const ALL: [Self; [$($string),*].len()] = [$(Self::$value),*];

            /// Returns the string form of this value.
            $visibility fn as_str(self) -> &'static str {
                match self { $(Self::$value => $string,)* }
            }

            /// Returns the value with this string form.
            $visibility fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
