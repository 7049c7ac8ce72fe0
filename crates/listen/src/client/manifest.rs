//! Fetches and checks a hub's manifest (§5.10.2).

use ::http::header::ACCEPT;
use aaep::message::SubscriptionAccepted;
use tokio::time::timeout;

use super::{Address, ConnectionError, http};
use crate::{ManifestPolicy, ManifestStatus};

const MANIFEST_PATH: &str = "/.well-known/aaep-manifest.json";

/// Checks a hub's manifest against the hub's offer, which is `None` without a handshake. Fetches the manifest, unless the offer
/// contains a signed one and there are keys to check it. An error means that the network failed.
pub(super) async fn check(
    address: &Address,
    offer: Option<&SubscriptionAccepted>,
    policy: &ManifestPolicy,
) -> Result<ManifestStatus, ConnectionError> {
    let signed_manifest =
        offer.and_then(|offer| offer.signed_manifest.as_deref()).filter(|_| policy.trusted_keys.is_some());
    if let Some(manifest) = signed_manifest {
        return Ok(policy.verify(manifest, offer));
    }
    let fetching = timeout(policy.limits.manifest_timeout, fetch(address, policy));
    match fetching.await.unwrap_or(Err(ConnectionError::TimedOut))? {
        Ok(text) => Ok(policy.verify(text.trim(), offer)),
        Err(status) => Ok(status),
    }
}

/// Fetches the manifest from the hub's own address. The inner error is the status of a hub without a manifest. A redirect to another
/// address is not followed.
async fn fetch(
    address: &Address,
    policy: &ManifestPolicy,
) -> Result<Result<String, ManifestStatus>, ConnectionError> {
    let media_types = if policy.trusted_keys.is_some() {
        "application/jose, application/json;q=0.5"
    } else {
        "application/json"
    };
    let response = http::get(address, MANIFEST_PATH, &[(ACCEPT, media_types)]).await?;
    match response.status {
        200 => {}
        404 | 405 | 410 => return Ok(Err(ManifestStatus::Missing)),
        300..=399 => return Ok(Err(ManifestStatus::Redirected)),
        other => return Ok(Err(ManifestStatus::Unavailable(ConnectionError::UnexpectedStatus(other)))),
    }
    match response
        .text(policy.limits.manifest_bytes, http::REQUEST_TIMEOUT)
        .await
        .map_err(ConnectionError::from)
    {
        Ok(text) => Ok(Ok(text)),
        Err(error @ (ConnectionError::ResponseTooLong | ConnectionError::NotUtf8)) => {
            Ok(Err(ManifestStatus::Unavailable(error)))
        }
        Err(error) => Err(error),
    }
}
