//! One request to a hub, and its response.

use std::time::Duration;

use ::http::Method;
use ::http::header::{CONTENT_TYPE, HeaderName};
use client::{HttpResponse, send_request};
use tokio::time::timeout;

use super::{Address, ConnectionError};

/// Maximum time to connect and receive the head of a response. The body may take as long again.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of a response body, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

pub(super) async fn get(
    address: &Address,
    path: &str,
    headers: &[(HeaderName, &str)],
) -> Result<HttpResponse, ConnectionError> {
    request(address, Method::GET, path, headers, String::new()).await
}

pub(super) async fn post(address: &Address, path: &str, body: &str) -> Result<HttpResponse, ConnectionError> {
    request(address, Method::POST, path, &[(CONTENT_TYPE, "application/json")], body.to_owned()).await
}

async fn request(
    address: &Address,
    method: Method,
    path: &str,
    headers: &[(HeaderName, &str)],
    body: String,
) -> Result<HttpResponse, ConnectionError> {
    let mut request = address.client.request(method, path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request =
        request.body(body).map_err(|error| ConnectionError::from(client::ClientError::from(error)))?;
    let exchange = async { send_request(address.client.connect().await?, request).await };
    Ok(timeout(REQUEST_TIMEOUT, exchange).await.map_err(|_| ConnectionError::TimedOut)??)
}

pub(super) async fn read_body(response: HttpResponse) -> Result<String, ConnectionError> {
    Ok(response.text(MAX_BODY_BYTES, REQUEST_TIMEOUT).await?)
}
