/// Declares a struct with a default beside each field, and implements `Default` with them.
///
/// ```
/// seal::defaults! {
///     /// How much is kept.
///     #[derive(Debug, PartialEq)]
///     pub struct Limits {
///         /// Open sessions.
///         pub sessions: usize = 100,
///     }
/// }
/// assert_eq!(Limits::default(), Limits { sessions: 100 });
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
