//! Macros for builder setters and for `Debug` implementations that show one field.

/// Defines methods that set one field of a builder and return the builder: `name(argument: Type) => field = value;`.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) => $($field:ident).+ = $value:expr;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(mut self $(, $argument: $type)*) -> Self {
                self.$($field).+ = $value;
                self
            }
        )*
    };
}

/// Implements `Debug` for a type that shows one field only.
macro_rules! debug_tuple {
    ($type:ident$(<$lifetime:lifetime>)?, $field:ident) => {
        impl std::fmt::Debug for $type$(<$lifetime>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($type)).field(&self.$field).finish()
            }
        }
    };
}
