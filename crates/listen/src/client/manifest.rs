//! A hub's manifest, fetched (§5.10.2).

use ::http::header::ACCEPT;
use aaep::message::SubscriptionAccepted;
use tokio::time::timeout;

use super::{Address, Why, http};
use crate::{Checks, Standing};

const PATH: &str = "/.well-known/aaep-manifest.json";

/// Looks at the manifest of a hub that made this offer; of one without a handshake there is none. An error is the
/// network's.
pub(super) async fn look(
    to: &Address,
    offer: Option<&SubscriptionAccepted>,
    checks: &Checks,
) -> Result<Standing, Why> {
    let given = offer.and_then(|offer| offer.signed_manifest.as_deref()).filter(|_| checks.trusted.is_some());
    if let Some(signed) = given {
        return Ok(checks.judge(signed, offer));
    }
    let fetching = timeout(checks.limits.manifest_time, fetch(to, checks));
    match fetching.await.unwrap_or(Err(Why::Silent))? {
        Ok(text) => Ok(checks.judge(text.trim(), offer)),
        Err(standing) => Ok(standing),
    }
}

/// Gets the manifest from the hub's own address; the inner error is the standing of a hub that gives none. Another address that
/// the hub names is not asked.
async fn fetch(to: &Address, checks: &Checks) -> Result<Result<String, Standing>, Why> {
    let wanted = if checks.trusted.is_some() {
        "application/jose, application/json;q=0.5"
    } else {
        "application/json"
    };
    let answer = http::get(to, PATH, &[(ACCEPT, wanted)]).await?;
    match answer.status {
        200 => {}
        404 | 405 | 410 => return Ok(Err(Standing::Absent)),
        300..=399 => return Ok(Err(Standing::Elsewhere)),
        other => return Ok(Err(Standing::Unread(Why::Answered(other)))),
    }
    match answer.text(checks.limits.manifest_bytes, http::PATIENCE).await.map_err(Why::from) {
        Ok(text) => Ok(Ok(text)),
        Err(why @ (Why::TooLong | Why::NotText)) => Ok(Err(Standing::Unread(why))),
        Err(why) => Err(why),
    }
}
