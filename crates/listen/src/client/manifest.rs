//! Fetches and checks a hub's manifest (§5.10.2).

use ::http::header::ACCEPT;
use aaep::message::SubscriptionAccepted;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::address::HubTransport;
use super::{Address, ConnectionError, ConnectionEvent, ConnectionLoss, http};
use crate::{ManifestFault, ManifestPolicy, ManifestStatus};

pub(super) const MANIFEST_PATH: &str = "/.well-known/aaep-manifest.json";

/// Checks the hub's manifest before each stream, and remembers what was reported.
#[derive(Debug)]
pub(super) struct ManifestMonitor {
    /// `None` if the hub's identity is known.
    policy: Option<ManifestPolicy>,
    /// The status that was reported last.
    status: Option<ManifestStatus>,
    /// Whether the hub's identity was verified earlier. If so, a hub without a valid signature counts as an impostor.
    was_verified: bool,
}

impl ManifestMonitor {
    pub(super) fn new(policy: Option<ManifestPolicy>) -> Self {
        Self { policy, status: None, was_verified: false }
    }

    /// Checks the hub's manifest and reports a change. If the policy requires a verified manifest, any other status is refused.
    pub(super) async fn check(
        &mut self,
        address: &Address,
        offer: Option<&SubscriptionAccepted>,
        events: &mpsc::Sender<ConnectionEvent>,
    ) -> Result<(), ConnectionLoss> {
        let Some(policy) = &self.policy else { return Ok(()) };
        let checked = check(address, offer, policy).await;
        if checked == Ok(None) {
            return Ok(());
        }
        let status = match (checked.map(|status| status.unwrap_or(ManifestStatus::Missing)), &self.status) {
            (Ok(status), _) => status,
            (Err(error), _) if policy.signed_only => return Err(ConnectionLoss::Unreachable(error)),
            (Err(error), None) => ManifestStatus::Unavailable(error),
            // This hub's manifest could not be read earlier either.
            (
                Err(_),
                Some(
                    ManifestStatus::Unavailable(_)
                    | ManifestStatus::Missing
                    | ManifestStatus::Redirected
                    | ManifestStatus::Malformed,
                ),
            ) => return Ok(()),
            // This hub's manifest was read earlier, so it must be readable again.
            (Err(error), Some(_)) => return Err(ConnectionLoss::Unreachable(error)),
        };
        self.was_verified |= matches!(status, ManifestStatus::Verified(_));
        let status = match status {
            ManifestStatus::Verified(_) | ManifestStatus::Invalid(_) => status,
            _ if self.was_verified => ManifestStatus::Invalid(ManifestFault::SignatureRemoved),
            _ => status,
        };
        if policy.signed_only && !matches!(status, ManifestStatus::Verified(_)) {
            return Err(ConnectionLoss::Refused(ConnectionError::ManifestNotVerified(Box::new(status))));
        }
        if self.status.as_ref() == Some(&status) {
            return Ok(());
        }
        self.status = Some(status.clone());
        events
            .send(ConnectionEvent::ManifestChecked(status))
            .await
            .map_err(|_| ConnectionLoss::Unreachable(ConnectionError::ReceiverClosed))
    }
}

/// Checks a hub's manifest against the hub's offer, which is `None` without a handshake. Fetches the manifest, unless the offer
/// contains a signed one and there are keys to check it. Returns `None` if the transport cannot fetch it and the policy does not require it. An
/// error means that the network failed.
async fn check(
    address: &Address,
    offer: Option<&SubscriptionAccepted>,
    policy: &ManifestPolicy,
) -> Result<Option<ManifestStatus>, ConnectionError> {
    let verify = |text: &str| Some(policy.verify(text, offer, address.transport.name()));
    let signed_manifest =
        offer.and_then(|offer| offer.signed_manifest.as_deref()).filter(|_| policy.trusted_keys.is_some());
    if let Some(manifest) = signed_manifest {
        return Ok(verify(manifest));
    }
    match address.transport {
        HubTransport::Sse | HubTransport::WebSocket => {}
        // Only the handshake can carry it.
        _ => {
            return Ok(policy.signed_only.then_some(ManifestStatus::Missing));
        }
    }
    let fetching = timeout(policy.limits.manifest_timeout, fetch(address, policy));
    match fetching.await.unwrap_or(Err(ConnectionError::TimedOut))? {
        Ok(text) => Ok(verify(text.trim())),
        Err(status) => Ok(Some(status)),
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
