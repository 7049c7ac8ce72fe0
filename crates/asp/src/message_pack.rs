//! MessagePack as a transport encoding of messages (D34).
//!
//! A message is a JSON text, and its signature and hash cover that text's canonical form. MessagePack only carries it: [`encode`]
//! returns nothing if [`decode`] would not give back exactly the same text, and the sender then sends JSON instead.
//!
//! ```
//! let text = r#"{"performative":"CLOSE","sequenceNumber":7}"#;
//! let bytes = asp::message_pack::encode(text).unwrap();
//! assert!(bytes.len() < text.len());
//! assert_eq!(asp::message_pack::decode(&bytes, 1024).unwrap(), text);
//! ```

use std::collections::HashSet;

use rmp::Marker;
use rmp::{decode as read, encode as write};
use seal::json::{JsonKind, JsonValue, JsonWriter, MAX_DEPTH, Tape};
use thiserror::Error;

/// The largest integer that JSON can carry exactly (D15).
const MAX_INTEGER: i64 = 1 << 53;

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessagePackError {
    /// The bytes end too early.
    #[error("the MessagePack data ends too early")]
    TooShort,
    /// Bytes follow the value.
    #[error("bytes follow the MessagePack value")]
    TrailingBytes,
    /// The value is of a type that JSON does not have: binary data, an extension, or a single-precision number.
    #[error("the MessagePack data contains a type that JSON does not have")]
    UnsupportedType,
    /// A string is not UTF-8.
    #[error("a string in the MessagePack data is not UTF-8")]
    NotUtf8,
    /// A key is not a string, or occurs twice in one map.
    #[error("a key in the MessagePack data is not a string or occurs twice")]
    InvalidKey,
    /// A number is not finite, or an integer beyond 2^53.
    #[error("a number in the MessagePack data cannot be written exactly as JSON")]
    InvalidNumber,
    /// The value is nested too deep.
    #[error("the MessagePack data is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// The JSON text is too long.
    #[error("the message is too long")]
    TooLong,
}

/// Encodes a JSON text. Returns `None` if the encoding would lose how something is written, such as white space or the number
/// `1.50`.
pub fn encode(text: &str) -> Option<Vec<u8>> {
    let mut tape = Tape::default();
    let doc = tape.read(text).ok()?;
    let mut bytes = Vec::with_capacity(text.len());
    encode_value(&doc.root(), &mut bytes)?;
    (decode(&bytes, text.len()).ok()? == text).then_some(bytes)
}

/// Decodes a JSON text of at most `max_bytes`.
pub fn decode(bytes: &[u8], max_bytes: usize) -> Result<String, MessagePackError> {
    let mut decoder =
        Decoder { rest: bytes, writer: JsonWriter::with_capacity(bytes.len().min(max_bytes)), max_bytes };
    decoder.value(0)?;
    if !decoder.rest.is_empty() {
        return Err(MessagePackError::TrailingBytes);
    }
    Ok(decoder.writer.finish())
}

fn encode_value(value: &JsonValue<'_>, bytes: &mut Vec<u8>) -> Option<()> {
    match value.kind() {
        JsonKind::Null => write::write_nil(bytes).ok(),
        JsonKind::Bool => write::write_bool(bytes, value.as_bool()?).ok(),
        JsonKind::Number => {
            let number = value.as_number()?;
            match number.as_i64().filter(|_| number.is_integer()) {
                Some(integer) => write::write_sint(bytes, integer).ok().map(drop),
                None => write::write_f64(bytes, number.as_f64()).ok(),
            }
        }
        JsonKind::Text => write::write_str(bytes, &value.text()?).ok(),
        JsonKind::Array => {
            write::write_array_len(bytes, u32::try_from(value.items().count()).ok()?).ok()?;
            value.items().try_for_each(|item| encode_value(&item, bytes))
        }
        JsonKind::Object => {
            write::write_map_len(bytes, u32::try_from(value.members().count()).ok()?).ok()?;
            value.members().try_for_each(|(key, value)| {
                write::write_str(bytes, &key.text()?).ok()?;
                encode_value(&value, bytes)
            })
        }
    }
}

struct Decoder<'b> {
    rest: &'b [u8],
    writer: JsonWriter,
    max_bytes: usize,
}

impl<'b> Decoder<'b> {
    fn value(&mut self, depth: u32) -> Result<(), MessagePackError> {
        match Marker::from_u8(*self.rest.first().ok_or(MessagePackError::TooShort)?) {
            Marker::Null => {
                read::read_nil(&mut self.rest).map_err(|_| MessagePackError::TooShort)?;
                self.writer.raw("null");
            }
            Marker::True | Marker::False => {
                let value = read::read_bool(&mut self.rest).map_err(|_| MessagePackError::TooShort)?;
                self.writer.boolean(value);
            }
            Marker::F64 => {
                let number = read::read_f64(&mut self.rest).map_err(|_| MessagePackError::TooShort)?;
                if !number.is_finite() {
                    return Err(MessagePackError::InvalidNumber);
                }
                self.writer.number(number);
            }
            Marker::FixPos(_)
            | Marker::FixNeg(_)
            | Marker::U8
            | Marker::U16
            | Marker::U32
            | Marker::U64
            | Marker::I8
            | Marker::I16
            | Marker::I32
            | Marker::I64 => self.integer()?,
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                let text = self.text()?;
                self.writer.text(text);
            }
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => self.array(depth)?,
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => self.map(depth)?,
            _ => return Err(MessagePackError::UnsupportedType),
        }
        // Escapes and numbers can be longer than their encoding.
        if self.writer.len() > self.max_bytes { Err(MessagePackError::TooLong) } else { Ok(()) }
    }

    fn integer(&mut self) -> Result<(), MessagePackError> {
        use read::NumValueReadError::OutOfRange;
        let integer: i64 = read::read_int(&mut self.rest).map_err(|error| match error {
            OutOfRange => MessagePackError::InvalidNumber,
            _ => MessagePackError::TooShort,
        })?;
        if !(-MAX_INTEGER..=MAX_INTEGER).contains(&integer) {
            return Err(MessagePackError::InvalidNumber);
        }
        self.writer.integer(integer);
        Ok(())
    }

    fn text(&mut self) -> Result<&'b str, MessagePackError> {
        let length = read::read_str_len(&mut self.rest).map_err(|_| MessagePackError::TooShort)?;
        let length = usize::try_from(length).map_err(|_| MessagePackError::TooShort)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(MessagePackError::TooShort)?;
        self.rest = rest;
        std::str::from_utf8(text).map_err(|_| MessagePackError::NotUtf8)
    }

    fn array(&mut self, depth: u32) -> Result<(), MessagePackError> {
        let count = read::read_array_len(&mut self.rest).map_err(|_| MessagePackError::TooShort)?;
        let inner = enter(depth)?;
        self.writer.open_array();
        for _ in 0..count {
            self.value(inner)?;
        }
        self.writer.close_array();
        Ok(())
    }

    fn map(&mut self, depth: u32) -> Result<(), MessagePackError> {
        let count = read::read_map_len(&mut self.rest).map_err(|_| MessagePackError::TooShort)?;
        let inner = enter(depth)?;
        let mut keys = HashSet::new();
        self.writer.open_object();
        for _ in 0..count {
            let marker = Marker::from_u8(*self.rest.first().ok_or(MessagePackError::TooShort)?);
            if !matches!(marker, Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32) {
                return Err(MessagePackError::InvalidKey);
            }
            let key = self.text()?;
            if !keys.insert(key) {
                return Err(MessagePackError::InvalidKey);
            }
            self.writer.key(key);
            self.value(inner)?;
        }
        self.writer.close_object();
        Ok(())
    }
}

fn enter(depth: u32) -> Result<u32, MessagePackError> {
    if depth > MAX_DEPTH { Err(MessagePackError::TooDeep) } else { Ok(depth + 1) }
}
