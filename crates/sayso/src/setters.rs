//! Setters of builders.

/// Writes methods that set one field of a builder and return the builder: `name(argument: Type) => field = value;`.
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
