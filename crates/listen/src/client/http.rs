//! One request to a hub, and its response.

use std::time::Duration;

use ::http::Method;
use ::http::header::{CONTENT_TYPE, HeaderName};
use client::{Response, send};
use tokio::time::timeout;

use super::{Address, Why};

/// To connect, and to get the head of an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// No answer that is wanted whole is longer.
const LONGEST_BODY: usize = 1024 * 1024;

pub(super) async fn get(to: &Address, path: &str, headers: &[(HeaderName, &str)]) -> Result<Response, Why> {
    request(to, Method::GET, path, headers, String::new()).await
}

pub(super) async fn post(to: &Address, path: &str, body: &str) -> Result<Response, Why> {
    request(to, Method::POST, path, &[(CONTENT_TYPE, "application/json")], body.to_owned()).await
}

async fn request(
    to: &Address,
    method: Method,
    path: &str,
    headers: &[(HeaderName, &str)],
    body: String,
) -> Result<Response, Why> {
    let mut request = to.client.request(method, path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(body).map_err(|error| Why::from(client::Error::from(error)))?;
    let exchange = async { send(to.client.connect().await?, request).await };
    Ok(timeout(PATIENCE, exchange).await.map_err(|_| Why::Silent)??)
}

pub(super) async fn body(response: Response) -> Result<String, Why> {
    Ok(response.text(LONGEST_BODY, PATIENCE).await?)
}
