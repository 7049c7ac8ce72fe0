//! Enumerations of which each value has a word.

/// Declares enumerations whose values have a word each: the type, `ALL` of its values, the word under the name that is given,
/// `parse` for the way back, and `Display`.
///
/// ```
/// seal::word_enum! {
///     /// A side.
///     Side word {
///         /// That of the heart.
///         Left "left",
///         /// The other.
///         Right "right",
///     }
/// }
/// assert_eq!(Side::parse("left"), Some(Side::Left));
/// assert_eq!(Side::ALL.map(Side::word), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! word_enum {
    ($($(#[$doc:meta])* $name:ident $method:ident { $($(#[$about:meta])* $value:ident $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$about])* $value,)*
        }

        impl $name {
            /// All of them, in their order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$value),*];

            /// The word for it.
            pub fn $method(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }

            /// The one of that word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.$method() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$method())
            }
        }
    )*};
}
