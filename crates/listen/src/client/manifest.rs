//! A hub's manifest, fetched (§5.10.2).

use std::io;

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
) -> io::Result<Standing> {
    let given = offer.and_then(|offer| offer.signed_manifest.as_deref()).filter(|_| checks.trusted.is_some());
    if let Some(signed) = given {
        return Ok(checks.judge(signed, offer));
    }
    let fetching = timeout(checks.limits.manifest_time, fetch(to, checks));
    match fetching.await.unwrap_or_else(|_| Err(Why::Silent.error()))? {
        Fetched::Text(text) => Ok(checks.judge(text.trim(), offer)),
        Fetched::Not(standing) => Ok(standing),
    }
}

enum Fetched {
    Text(String),
    Not(Standing),
}

/// Gets the manifest from the hub's own address; whoever is named instead is not asked.
async fn fetch(to: &Address, checks: &Checks) -> io::Result<Fetched> {
    let wanted = if checks.trusted.is_some() {
        "application/jose, application/json;q=0.5"
    } else {
        "application/json"
    };
    let answer = http::request(to, "GET", PATH, &[("Accept", wanted)], "").await?;
    match answer.head.status {
        200 => {}
        404 | 405 | 410 => return Ok(Fetched::Not(Standing::Absent)),
        300..=399 => return Ok(Fetched::Not(Standing::Elsewhere)),
        other => return Ok(Fetched::Not(Standing::Unread(Why::Answered(other)))),
    }
    match answer.body_within(checks.limits.manifest_bytes).await {
        Ok(text) => Ok(Fetched::Text(text)),
        Err(error) => match Why::of(&error) {
            why @ (Why::TooLong | Why::NotText) => Ok(Fetched::Not(Standing::Unread(why))),
            _ => Err(error),
        },
    }
}
