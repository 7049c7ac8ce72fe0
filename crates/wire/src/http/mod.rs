//! The parts of HTTP/1.1 that the servers need, implemented strictly: ambiguous requests are rejected.
//!
//! - [`RequestHead`]: parses the request line and headers, and determines how the body is framed.
//! - [`ChunkedDecoder`]: decodes a chunked body incrementally.
//! - [`QueryString`]: the query parameters of a request target, each at most once.
//! - [`HttpResponse`]: a status, headers and a body.
//! - `request_reader`: reads the requests of a connection, within [`RequestLimits`]. No other module here
//!   does I/O.

mod chunked;
mod head;
mod query;
mod request_reader;
mod response;

pub use chunked::{ChunkError, ChunkedDecoder};
pub use head::{BodyFraming, HeadError, Method, RequestHead};
pub use query::{QueryError, QueryString};
pub use request_reader::RequestLimits;
pub(crate) use request_reader::{ReadError, RequestReader};
pub use response::{HttpResponse, StatusCode};
