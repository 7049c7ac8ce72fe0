/// Implements `as_str`, `AsRef<str>`, `Display` and `Debug` for a newtype of text. All of them give the text alone, without
/// quotes or the name of the type.
///
/// ```
/// struct Name(Box<str>);
/// seal::text_newtype!(Name);
/// assert_eq!(format!("{0} {0:?} {1}", Name("Ada".into()), Name("Bo".into()).as_str()), "Ada Ada Bo");
/// ```
#[macro_export]
macro_rules! text_newtype {
    ($name:ident) => {
        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
