//! Requests to a node.

use std::path::Path;
use std::time::Duration;

use client::{HttpClient, TrustRoots, Url, send_request};
use http::Method;
use http::header::CONTENT_TYPE;
use tokio::time::timeout;

use super::error::NodeError;
use crate::error::SharedError;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for the head of a response, in addition to the time that the node is asked to wait.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum size of a response. A transcript is the largest one.
const MAX_RESPONSE_BYTES: usize = 1 << 30;

/// The address of a node, with the credentials.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    client: HttpClient,
}

impl Connection {
    pub(super) fn new(url: &str, token: Option<&str>, ca_file: Option<&Path>) -> Result<Self, NodeError> {
        let parsed = Url::parse_http(url).map_err(|error| {
            NodeError::InvalidSetup(format!("{url:?} is not the address of a node: {error}"))
        })?;
        let mut client = HttpClient::new(parsed);
        if let Some(token) = token {
            client = client.with_token(token).map_err(|error| NodeError::InvalidSetup(error.to_string()))?;
        }
        if let Some(file) = ca_file {
            let invalid =
                |reason: String| NodeError::InvalidSetup(format!("cannot use {}: {reason}", file.display()));
            let pem = std::fs::read(file).map_err(|error| invalid(seal::describe_io_error(&error)))?;
            let roots = TrustRoots::system_and_pem(&pem).map_err(|error| invalid(error.to_string()))?;
            client = client.with_trust_roots(roots);
        }
        Ok(Self { client })
    }

    /// Sends a request and returns the body of a successful response. `wait` is how long the node is asked to wait.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        wait: Option<Duration>,
    ) -> Result<String, NodeError> {
        let (_, body) = self.request_with_status(method, path, body, wait).await?;
        Ok(body)
    }

    /// Like [`Self::request`], with the status.
    pub(super) async fn request_with_status(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        wait: Option<Duration>,
    ) -> Result<(u16, String), NodeError> {
        let mut request = self.client.request(method, path);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(body.unwrap_or_default())
            .map_err(|error| NodeError::InvalidSetup(error.to_string()))?;
        let too_slow = |_| NodeError::Unreachable(SharedError::new("it did not answer in time"));
        let connection = timeout(CONNECT_TIMEOUT, self.client.connect()).await.map_err(too_slow)?;
        let connection = connection.map_err(NodeError::from_client)?;
        let limit = RESPONSE_TIMEOUT + wait.unwrap_or_default();
        let response = timeout(limit, send_request(connection, request)).await.map_err(too_slow)?;
        let response = response.map_err(NodeError::from_client)?;
        let (status, retry_after) = (response.status, response.retry_after());
        let body =
            response.text(MAX_RESPONSE_BYTES, RESPONSE_TIMEOUT).await.map_err(NodeError::from_client)?;
        if (200..300).contains(&status) {
            Ok((status, body))
        } else {
            Err(NodeError::from_response(status, retry_after, &body))
        }
    }
}
