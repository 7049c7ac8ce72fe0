//! A client's HTTP/2 connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tonic::body::Body;
use tower_service::Service;

use crate::AaepServiceClient;

/// Interval between HTTP/2 pings, and the time in which the server must answer one.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A client, and the connection that it uses.
#[derive(Debug)]
pub struct ClientConnection {
    /// The client.
    pub client: AaepServiceClient<Http2Client>,
    /// The task that drives the connection. It must be kept, because dropping it ends the connection.
    pub task: ConnectionTask,
}

/// The task that drives a connection. It is aborted when it is dropped.
#[derive(Debug)]
pub struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts HTTP/2 on a connection. `origin` is the scheme and the authority of the server.
pub async fn connect(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    origin: Uri,
) -> Result<ClientConnection, hyper::Error> {
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .handshake(TokioIo::new(stream))
        .await?;
    let task = ConnectionTask(tokio::spawn(async move { drop(connection.await) }));
    Ok(ClientConnection { client: AaepServiceClient::with_origin(Http2Client(sender), origin), task })
}

/// Sends requests on one HTTP/2 connection.
#[derive(Clone, Debug)]
pub struct Http2Client(SendRequest<Body>);

impl Service<Request<Body>> for Http2Client {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
