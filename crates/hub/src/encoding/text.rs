//! Fields that are encoded as text, because their types belong to other crates.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use aaep::consent::{ConsentMessage, ResolvedBy};
use aaep::event::AgentState;
use aaep::message::{
    Message, SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate, SubscriptionRequest,
};
use aaep::{ReplyToken, SessionId, SubscriptionId, ToolCallId};
use seal::Digest;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Role;
use crate::command::HandoffResult;

/// A value with a text form.
pub(crate) trait TextForm: Sized {
    /// Returns the text.
    fn to_text(&self) -> Cow<'_, str>;

    /// Reads the text.
    fn from_text(text: &str) -> Option<Self>;
}

macro_rules! ids {
    ($($type:ty),*) => {$(
        impl TextForm for $type {
            fn to_text(&self) -> Cow<'_, str> {
                self.as_str().into()
            }

            fn from_text(text: &str) -> Option<Self> {
                Self::parse(text).ok()
            }
        }
    )*};
}
ids!(SessionId, SubscriptionId, ReplyToken, ToolCallId);

macro_rules! codes {
    ($($type:ty),*) => {$(
        impl TextForm for $type {
            fn to_text(&self) -> Cow<'_, str> {
                self.as_str().into()
            }

            fn from_text(text: &str) -> Option<Self> {
                Self::parse(text)
            }
        }
    )*};
}
codes!(Role, ResolvedBy, HandoffResult);

impl TextForm for AgentState {
    fn to_text(&self) -> Cow<'_, str> {
        self.as_str().into()
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self::parse(text))
    }
}

impl TextForm for Digest {
    fn to_text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

macro_rules! messages {
    ($($type:ident),*) => {$(
        impl TextForm for $type {
            fn to_text(&self) -> Cow<'_, str> {
                Message::$type(self.clone()).to_json().into()
            }

            fn from_text(text: &str) -> Option<Self> {
                match Message::parse(text)? {
                    Message::$type(message) => Some(message),
                    _ => None,
                }
            }
        }
    )*};
}
messages!(SubscriptionRequest, SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate);

impl TextForm for ConsentMessage {
    fn to_text(&self) -> Cow<'_, str> {
        self.to_json().into()
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl<T: TextForm> TextForm for Box<T> {
    fn to_text(&self) -> Cow<'_, str> {
        (**self).to_text()
    }

    fn from_text(text: &str) -> Option<Self> {
        T::from_text(text).map(Box::new)
    }
}

/// A value in its text form.
struct AsText<T>(T);

impl<T: TextForm> Serialize for AsText<&T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_text())
    }
}

impl<'de, T: TextForm> Deserialize<'de> for AsText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData)).map(Self)
    }
}

struct TextVisitor<T>(PhantomData<T>);

impl<T: TextForm> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value in its text form")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).ok_or_else(|| E::custom("a text does not fit its field"))
    }
}

/// For a field that is encoded as text.
pub(crate) mod text_form {
    use super::{AsText, TextForm};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: TextForm, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        AsText(value).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: TextForm, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        AsText::deserialize(deserializer).map(|value| value.0)
    }
}

/// For an optional field that is encoded as text. Such a field also needs `default`.
pub(crate) mod text_option {
    use super::{AsText, TextForm};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: TextForm, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(AsText).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: TextForm, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let value = Option::<AsText<T>>::deserialize(deserializer)?;
        Ok(value.map(|value| value.0))
    }
}

/// For a moment in milliseconds since 1970.
pub(crate) mod millis {
    use seal::UnixMillis;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(at: &UnixMillis, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.get())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UnixMillis, D::Error> {
        i64::deserialize(deserializer).map(UnixMillis::new)
    }
}

/// For an optional moment in milliseconds since 1970. Such a field also needs `default`.
pub(crate) mod millis_option {
    use seal::UnixMillis;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(
        at: &Option<UnixMillis>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(UnixMillis::get).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<UnixMillis>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(UnixMillis::new))
    }
}
