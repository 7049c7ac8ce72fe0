//! Record definitions. One table generates the Rust type, the validation and the JSON Schema.

mod field_type;
mod field_value;

pub(crate) use field_type::{Field, FieldType};
pub use field_value::ToolName;
pub(crate) use field_value::{FieldValue, decoded_members};
pub use field_value::{Member, Members};

/// Declares records. Generates a Rust struct for each, its reader and writer, and the table of its
/// fields.
///
/// Each field has the form `name: Type, field type, rule for a wrong value`. Required fields also
/// name the rule for a missing value. `spoken` marks text for people, which is checked for language,
/// direction and secrets, and which may have translations (§11.5.1). Unknown members, and members
/// whose value does not fit the type, are kept in `other`.
///
/// `optional with summaries` adds the three summaries (§3.3.1); `optional with other summaries`
/// adds a terse and a detailed summary to a required `summary_normal`. Both also generate the
/// method `summaries`, which returns all three.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident $fields:tt $($others:tt)+) => {
        $crate::record::record! { $(#[$doc])* $name $fields }
        $crate::record::record! { $($others)+ }
    };
    ($(#[$doc:meta])* $name:ident { required $required:tt optional with summaries $optional:tt }) => {
        $crate::record::record! { @summaries $(#[$doc])* $name $required $optional
            /// The summary.
            summary_normal: String, $crate::record::FieldType::LONG_TEXT, $crate::rule::SUMMARIES, spoken;
        }
    };
    ($(#[$doc:meta])* $name:ident { required $required:tt optional with other summaries $optional:tt }) => {
        $crate::record::record! { @summaries $(#[$doc])* $name $required $optional }
    };
    (@summaries $(#[$doc:meta])* $name:ident $required:tt { $($optional:tt)* } $($normal:tt)*) => {
        $crate::record::record! {
            $(#[$doc])*
            $name {
                required $required
                optional {
                    /// A short summary.
                    summary_terse: String, $crate::record::FieldType::SHORT_TEXT, $crate::rule::SUMMARIES, spoken;
                    $($normal)*
                    /// A detailed summary.
                    summary_detailed: String, $crate::record::FieldType::LONG_TEXT, $crate::rule::SUMMARIES, spoken;
                    $($optional)*
                }
            }
        }

        impl $name {
            pub(crate) fn summaries(&self) -> [Option<&str>; 3] {
                let (terse, normal, detailed) = (&self.summary_terse, &self.summary_normal, &self.summary_detailed);
                [terse.into(), normal.into(), detailed.into()].map(|text: Option<&String>| text.map(String::as_str))
            }
        }
    };
    (
        $(#[$doc:meta])*
        $name:ident {
            required { $($(#[$rdoc:meta])* $rname:ident: $rtype:ty, $rfield_type:expr, $rrule:expr, $rmissing:expr $(, $rspoken:ident)?;)* }
            optional { $($(#[$odoc:meta])* $oname:ident: $otype:ty, $ofield_type:expr, $orule:expr $(, $ospoken:ident)?;)* }
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$rdoc])* pub $rname: $rtype,)*
            $($(#[$odoc])* pub $oname: Option<$otype>,)*
            /// Unknown members, and members with an unexpected value, as received.
            pub other: $crate::record::Members,
        }

        impl $name {
            pub(crate) const FIELDS: &'static [$crate::record::Field] = &[
                $($crate::record::Field {
                    name: stringify!($rname),
                    value_type: $rfield_type,
                    rule: $rrule,
                    missing_rule: Some($rmissing),
                    is_spoken: $crate::record::record!(@spoken $($rspoken)?),
                },)*
                $($crate::record::Field {
                    name: stringify!($oname),
                    value_type: $ofield_type,
                    rule: $orule,
                    missing_rule: None,
                    is_spoken: $crate::record::record!(@spoken $($ospoken)?),
                },)*
            ];

            /// Creates a record from its required members. The optional members are absent.
            #[allow(clippy::new_without_default, clippy::too_many_arguments, reason = "a record may have many required fields")]
            pub fn new($($rname: impl Into<$rtype>),*) -> Self {
                Self {
                    $($rname: $rname.into(),)*
                    $($oname: None,)*
                    other: $crate::record::Members::default(),
                }
            }

            /// Reads members. Returns `None` if a required member is missing or invalid.
            #[allow(unused_mut, reason = "a record may have no field of one kind")]
            pub(crate) fn read_members<'d>(
                members: impl Iterator<Item = (std::borrow::Cow<'d, str>, $crate::json::JsonValue<'d>)>,
            ) -> Option<Self> {
                $(let mut $rname: Option<$rtype> = None;)*
                $(let mut $oname: Option<$otype> = None;)*
                let mut other = $crate::record::Members::default();
                for (name, value) in members {
                    match &*name {
                        $(stringify!($rname) => match $crate::record::FieldValue::read(value) {
                            Some(read) => $rname = Some(read),
                            None => other.push_raw(&name, value),
                        },)*
                        $(stringify!($oname) => match $crate::record::FieldValue::read(value) {
                            Some(read) => $oname = Some(read),
                            None => other.push_raw(&name, value),
                        },)*
                        _ => other.push_raw(&name, value),
                    }
                }
                Some(Self { $($rname: $rname?,)* $($oname,)* other })
            }

            pub(crate) fn write_members(&self, writer: &mut $crate::json::JsonWriter) {
                $($crate::record::FieldValue::write_member(&self.$rname, stringify!($rname), writer);)*
                $(if let Some(value) = &self.$oname {
                    $crate::record::FieldValue::write_member(value, stringify!($oname), writer);
                })*
                self.other.write(writer);
            }
        }

        impl $crate::record::FieldValue for $name {
            fn read(value: $crate::json::JsonValue<'_>) -> Option<Self> {
                (value.kind() == $crate::json::JsonKind::Object)
                    .then(|| Self::read_members($crate::record::decoded_members(value)))
                    .flatten()
            }

            fn write(&self, writer: &mut $crate::json::JsonWriter) {
                writer.open_object();
                self.write_members(writer);
                writer.close_object();
            }
        }
    };
    (@spoken) => { false };
    (@spoken spoken) => { true };
}
pub(crate) use record;

/// Declares extensible enumerations. A value that is not listed becomes `Unknown`, or the variant
/// after `or`.
macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident $variants:tt $(#[$odoc:meta])* or $other:ident $($others:tt)+) => {
        $crate::record::open_enum! { $(#[$doc])* $name $variants $(#[$odoc])* or $other }
        $crate::record::open_enum! { $($others)+ }
    };
    ($(#[$doc:meta])* $name:ident { $($variants:tt)* }) => {
        $crate::record::open_enum! {
            $(#[$doc])*
            $name { $($variants)* }
            /// A value that this implementation does not know. It is accepted on receipt (§12.2.1),
            /// but never emitted (C-J2).
            or Unknown
        }
    };
    (
        $(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }
        $(#[$odoc:meta])* or $other:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* #[doc = concat!("`", $text, "`")] $variant,)*
            $(#[$odoc])*
            $other(Box<str>),
        }

        impl $name {
            #[allow(dead_code, reason = "not every enum is validated against its list")]
            pub(crate) const VALUES: &'static [&'static str] = &[$($text),*];

            /// Parses a value. Every text is valid. A text that is not listed is stored unchanged.
            pub fn parse(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::$other(other.into()),
                }
            }

            /// Returns the value as text.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::$other(text) => text,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::record::FieldValue for $name {
            fn read(value: $crate::json::JsonValue<'_>) -> Option<Self> {
                (!value.has_lone_surrogate()).then(|| value.text()).flatten().map(|text| Self::parse(&text))
            }

            fn write(&self, writer: &mut $crate::json::JsonWriter) {
                writer.text(self.as_str());
            }
        }
    };
    ($(#[$doc:meta])* $name:ident $variants:tt $($others:tt)+) => {
        $crate::record::open_enum! { $(#[$doc])* $name $variants }
        $crate::record::open_enum! { $($others)+ }
    };
}
pub(crate) use open_enum;
