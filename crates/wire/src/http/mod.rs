//! HTTP/1.1, as much of it as the hub speaks, and strictly: what two readers could understand differently is refused.
//!
//! - [`Head`]: a request's line and headers out of bytes, and how its body is framed.
//! - [`Chunks`]: a chunked body, piece by piece.
//! - [`Query`]: the parameters of a target, each once.
//! - [`Response`]: a status, headers and a body into bytes.
//!
//! No sockets here: bytes in, values out.

mod chunks;
mod head;
mod query;
mod response;

pub use chunks::{BadChunk, Chunks};
pub use head::{BadHead, Framing, Head, Method};
pub use query::{BadQuery, Query};
pub use response::{Response, Status};
