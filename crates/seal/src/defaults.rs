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
        $(#[$doc:meta])* $visible:vis struct $name:ident {
            $($(#[$about:meta])* $shown:vis $field:ident: $type:ty = $default:expr,)*
        }
    ) => {
        $(#[$doc])*
        $visible struct $name {
            $($(#[$about])* $shown $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}
