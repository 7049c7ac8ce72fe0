//! Enumerations of which each value has a word.

/// Declares enumerations whose values have a word each, public ones or one with the visibility that stands before `enum`: the type, `ALL` of its values, the word under the name that is given,
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
    ($($(#[$doc:meta])* $name:ident $method:ident { $($values:tt)* })*) => {$(
        $crate::word_enum! { $(#[$doc])* pub enum $name $method { $($values)* } }
    )*};
    (
        $(#[$doc:meta])*
        $visible:vis enum $name:ident $method:ident { $($(#[$about:meta])* $value:ident $word:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible enum $name {
            $($(#[$about])* $value,)*
        }

        #[allow(dead_code, reason = "what is not public need not use all of it")]
        impl $name {
            /// All of them, in their order.
            $visible const ALL: [Self; [$($word),*].len()] = [$(Self::$value),*];

            /// The word for it.
            $visible fn $method(self) -> &'static str {
                match self { $(Self::$value => $word,)* }
            }

            /// The one of that word.
            $visible fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.$method() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$method())
            }
        }
    };
}
