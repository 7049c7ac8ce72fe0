/// Declares a struct with a default value next to each field, and implements `Default` from them.
///
/// ```
/// seal::defaults! {
///     /// Limits of a store.
///     #[derive(Debug, PartialEq)]
///     pub struct StoreLimits {
///         /// Maximum number of open sessions.
///         pub sessions: usize = 100,
///     }
/// }
/// assert_eq!(StoreLimits::default(), StoreLimits { sessions: 100 });
/// ```
#[macro_export]
macro_rules! defaults {
    (
        $(#[$doc:meta])* $struct_vis:vis struct $name:ident {
            $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$doc])*
        $struct_vis struct $name {
            $($(#[$field_doc])* $field_vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}
