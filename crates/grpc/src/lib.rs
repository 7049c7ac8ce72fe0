//! The gRPC service of AAEP (appendix B.5): its messages, its client and its server, generated from `proto/aaep.proto`.
//!
//! The generated code is checked in, so that a build needs no protoc. The test `generated_code` keeps it current. This crate opens no
//! sockets: `wire` accepts connections, `listen` opens them, and [`connect`] speaks HTTP/2 on one.

mod connection;
#[allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, clippy::pedantic, reason = "generated")]
#[rustfmt::skip]
mod generated;

pub use connection::{ClientConnection, ConnectionTask, Http2Client, connect};
pub use generated::aaep_service_client::AaepServiceClient;
pub use generated::aaep_service_server::{AaepService, AaepServiceServer};
pub use generated::{AaepMessage, GetManifestRequest, Manifest};
pub use tonic;
