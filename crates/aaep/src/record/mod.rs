//! How a record is described: once, as a table that is the Rust type, the validator's check and the JSON Schema.

mod part;
mod shape;

pub use part::ToolName;
pub use part::{Member, Members};
pub(crate) use part::{Part, members_of};
pub(crate) use shape::{Field, Shape};

/// Declares records: for each a Rust struct, how it is read and written, and the table of its fields.
///
/// Each line reads `name: Type, shape, rule broken by a wrong value`; required fields also name the rule that is
/// broken by their absence. `spoken` marks what people hear: text (language, direction, secrets are checked there), and what can stand in
/// other languages beside it (§11.5.1).
/// Members that the table does not know, and values that the type cannot hold, are kept in `other`.
///
/// `optional with summaries` adds the three summaries (§3.3.1); `optional with other summaries` adds the two beside a
/// `summary_normal` that is required. Both also write `summaries`, which returns the three.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident $fields:tt $($others:tt)+) => {
        $crate::record::record! { $(#[$doc])* $name $fields }
        $crate::record::record! { $($others)+ }
    };
    ($(#[$doc:meta])* $name:ident { required $required:tt optional with summaries $optional:tt }) => {
        $crate::record::record! { @summaries $(#[$doc])* $name $required $optional
            /// The summary.
            summary_normal: String, $crate::record::Shape::LONG, $crate::rule::SUMMARIES, spoken;
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
                    /// The summary in few words.
                    summary_terse: String, $crate::record::Shape::SHORT, $crate::rule::SUMMARIES, spoken;
                    $($normal)*
                    /// The summary in many words.
                    summary_detailed: String, $crate::record::Shape::LONG, $crate::rule::SUMMARIES, spoken;
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
            required { $($(#[$rdoc:meta])* $rname:ident: $rtype:ty, $rshape:expr, $rrule:expr, $rmissing:expr $(, $rspoken:ident)?;)* }
            optional { $($(#[$odoc:meta])* $oname:ident: $otype:ty, $oshape:expr, $orule:expr $(, $ospoken:ident)?;)* }
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$rdoc])* pub $rname: $rtype,)*
            $($(#[$odoc])* pub $oname: Option<$otype>,)*
            /// Members that this version does not know, or whose value has another form, as they were received.
            pub other: $crate::record::Members,
        }

        impl $name {
            pub(crate) const FIELDS: &'static [$crate::record::Field] = &[
                $($crate::record::Field {
                    name: stringify!($rname),
                    shape: $rshape,
                    rule: $rrule,
                    missing: Some($rmissing),
                    spoken: $crate::record::record!(@spoken $($rspoken)?),
                },)*
                $($crate::record::Field {
                    name: stringify!($oname),
                    shape: $oshape,
                    rule: $orule,
                    missing: None,
                    spoken: $crate::record::record!(@spoken $($ospoken)?),
                },)*
            ];

            /// Makes one of what is required; the rest is empty.
            #[allow(clippy::new_without_default, clippy::too_many_arguments, reason = "a record may require much")]
            pub fn new($($rname: impl Into<$rtype>),*) -> Self {
                Self {
                    $($rname: $rname.into(),)*
                    $($oname: None,)*
                    other: $crate::record::Members::default(),
                }
            }

            /// Reads members; nothing if a required one is missing or cannot be held.
            #[allow(unused_mut, reason = "a record may have no field of one kind")]
            pub(crate) fn read_members<'d>(
                members: impl Iterator<Item = (std::borrow::Cow<'d, str>, $crate::json::Value<'d>)>,
            ) -> Option<Self> {
                $(let mut $rname: Option<$rtype> = None;)*
                $(let mut $oname: Option<$otype> = None;)*
                let mut other = $crate::record::Members::default();
                for (name, value) in members {
                    match &*name {
                        $(stringify!($rname) => match $crate::record::Part::read(value) {
                            Some(read) => $rname = Some(read),
                            None => other.keep(&name, value),
                        },)*
                        $(stringify!($oname) => match $crate::record::Part::read(value) {
                            Some(read) => $oname = Some(read),
                            None => other.keep(&name, value),
                        },)*
                        _ => other.keep(&name, value),
                    }
                }
                Some(Self { $($rname: $rname?,)* $($oname,)* other })
            }

            pub(crate) fn write_members(&self, writer: &mut $crate::json::Writer) {
                $($crate::record::Part::write_member(&self.$rname, stringify!($rname), writer);)*
                $(if let Some(value) = &self.$oname {
                    $crate::record::Part::write_member(value, stringify!($oname), writer);
                })*
                self.other.write(writer);
            }
        }

        impl $crate::record::Part for $name {
            fn read(value: $crate::json::Value<'_>) -> Option<Self> {
                (value.kind() == $crate::json::Kind::Object)
                    .then(|| Self::read_members($crate::record::members_of(value)))
                    .flatten()
            }

            fn write(&self, writer: &mut $crate::json::Writer) {
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

/// Declares sets of words that may grow: one that is not listed survives as `Unknown`, or as the variant after `or`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident $variants:tt $(#[$odoc:meta])* or $other:ident $($others:tt)+) => {
        $crate::record::words! { $(#[$doc])* $name $variants $(#[$odoc])* or $other }
        $crate::record::words! { $($others)+ }
    };
    ($(#[$doc:meta])* $name:ident { $($variants:tt)* }) => {
        $crate::record::words! {
            $(#[$doc])*
            $name { $($variants)* }
            /// A word that this version does not know: survived on receipt (§12.2.1), never emitted (C-J2).
            or Unknown
        }
    };
    (
        $(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }
        $(#[$odoc:meta])* or $other:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* #[doc = concat!("`", $word, "`")] $variant,)*
            $(#[$odoc])*
            $other(Box<str>),
        }

        impl $name {
            #[allow(dead_code, reason = "a set with lawful words beyond the list is not checked against it")]
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),*];

            /// Reads a word; every text is one, known or not.
            pub fn of(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::$other(other.into()),
                }
            }

            /// The word.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::$other(word) => word,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::record::Part for $name {
            fn read(value: $crate::json::Value<'_>) -> Option<Self> {
                (!value.has_lone_surrogate()).then(|| value.text()).flatten().map(|word| Self::of(&word))
            }

            fn write(&self, writer: &mut $crate::json::Writer) {
                writer.text(self.as_str());
            }
        }
    };
    ($(#[$doc:meta])* $name:ident $variants:tt $($others:tt)+) => {
        $crate::record::words! { $(#[$doc])* $name $variants }
        $crate::record::words! { $($others)+ }
    };
}
pub(crate) use words;
