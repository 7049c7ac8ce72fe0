//! HTTP/1.1, as much of it as the hub speaks, and strictly: what two readers could understand differently is refused.
//!
//! - [`Head`]: a request's line and headers out of bytes, and how its body is framed.
//! - [`Chunks`]: a chunked body, piece by piece.
//! - [`Query`]: the parameters of a target, each once.
//! - [`Response`]: a status, headers and a body into bytes.
//! - `reader`: the requests of a connection, within [`RequestLimits`]. It alone knows connections; the rest is bytes in, values
//!   out.

mod chunks;
mod head;
mod query;
mod reader;
mod response;

pub use chunks::{BadChunk, Chunks};
pub use head::{BadHead, Framing, Head, Method};
pub use query::{BadQuery, Query};
pub use reader::RequestLimits;
pub(crate) use reader::{RequestReader, Unread};
pub use response::{Response, Status};
