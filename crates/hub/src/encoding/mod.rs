//! The form in which nodes of a cluster send requests and outputs to each other.
//!
//! The form is MessagePack with named fields, so that nodes of adjacent versions understand each other: a reader ignores fields
//! that it does not know, and a field that it misses has a default. A command or a reply of an unknown kind is an error, with
//! which the reader answers the request. Values of AAEP are in their own JSON form. Reasons of errors are in the form that people
//! read, because a client receives nothing else of them.
//!
//! ```
//! use hub::command::{HubCommand, Request, RequestId};
//! use hub::{Principal, encoding};
//! let request = Request { id: RequestId(7), principal: Principal::local(), command: HubCommand::DeleteManifest };
//! let bytes = encoding::encode_request(&request)?;
//! let decoded = encoding::decode_request(RequestId(7), &bytes)?;
//! assert!(matches!(decoded.command, HubCommand::DeleteManifest));
//! # Ok::<(), encoding::EncodingError>(())
//! ```

mod blob;
mod forms;
mod outputs;
mod text;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Principal;
use crate::command::{HubCommand, Request, RequestId};
pub use blob::Blob;
pub(crate) use forms::{error_as_text, findings};
pub use outputs::{decode_output, encode_output};
pub(crate) use text::{TextForm, millis, millis_option, text_form, text_option};

/// Why a value could not be encoded or decoded.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct EncodingError(String);

#[derive(Serialize)]
struct RequestRef<'r> {
    principal: &'r Principal,
    command: &'r HubCommand,
}

#[derive(Deserialize)]
struct RequestForm {
    principal: Principal,
    command: HubCommand,
}

/// Encodes a request without its id.
pub fn encode_request(request: &Request) -> Result<Vec<u8>, EncodingError> {
    encode(&RequestRef { principal: &request.principal, command: &request.command })
}

/// Decodes a request, to which the caller assigns this id.
pub fn decode_request(id: RequestId, bytes: &[u8]) -> Result<Request, EncodingError> {
    let RequestForm { principal, command } = decode(bytes)?;
    Ok(Request { id, principal, command })
}

/// Encodes any value with its field names.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodingError> {
    rmp_serde::to_vec_named(value).map_err(|error| EncodingError(error.to_string()))
}

/// Maximum depth of nested values. The deepest value that nodes send has about 10 levels.
const MAX_DEPTH: usize = 32;

/// Decodes a value. Bytes that remain after it are an error.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, EncodingError> {
    let mut rest = bytes;
    let mut deserializer = rmp_serde::Deserializer::new(&mut rest);
    deserializer.set_max_depth(MAX_DEPTH);
    let value = T::deserialize(&mut deserializer).map_err(|error| EncodingError(error.to_string()))?;
    if rest.is_empty() { Ok(value) } else { Err(EncodingError("bytes remain after the value".to_owned())) }
}
