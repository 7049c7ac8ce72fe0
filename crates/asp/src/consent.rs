//! Proof that a person agreed to a commitment (D24).
//!
//! A node asks the person through a hub before it sends a COMMIT or the ACCEPT of one. To the hub, the message is a tool call:
//! [`tool`] with [`arguments`]. The hub signs a receipt of the answer. The receipt contains the digest of the tool call and
//! travels in the message as `consent`. [`verify`] checks it with the hub's public key, so that a transcript proves that a
//! person said yes to exactly these terms.

use std::borrow::Cow;

use seal::json::{JsonValue, SyntaxError, Tape, write_object};
use seal::jws::{self, JwsError};
use seal::{ActionError, CanonicalError, Digest, Jwk, Timestamp, UnixMillis, es256};
use thiserror::Error;

use crate::id::{CommitmentId, SessionId};
use crate::message::{Body, Commit, Consent, Envelope};
use crate::transcript::max_clock_skew_ms;

/// The tool of the question before a COMMIT is sent.
pub const COMMIT_TOOL: &str = "asp.commit";
/// The tool of the question before a COMMIT is accepted.
pub const ACCEPT_TOOL: &str = "asp.accept";

/// A consent with a valid signature that covers the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedConsent {
    /// The commitment that the person agreed to send or accept.
    pub commitment: CommitmentId,
    /// The agent that asked, as the hub knows it.
    pub agent_id: String,
    /// When the person's answer was recorded, by the hub's clock.
    pub resolved_at: Timestamp,
    /// When the consent expires, if the receipt says so.
    pub expires_at: Option<Timestamp>,
    /// The person who decided, according to the answer.
    pub decided_by: Option<String>,
    /// The identity of the person's connection, as the hub authenticated it.
    pub principal: Option<String>,
}

/// Why a message has no valid consent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConsentError {
    /// The message is neither a COMMIT nor the ACCEPT of one.
    #[error("only a COMMIT and the ACCEPT of a COMMIT can have a consent")]
    NotApplicable,
    /// The message has no consent.
    #[error("there is no person's consent")]
    Missing,
    /// The message has no canonical form.
    #[error("the message cannot be written as canonical JSON: {0}")]
    InvalidAction(#[from] ActionError),
    /// The signature is malformed, or was not made with one of the keys.
    #[error("the consent's signature is invalid: the JWS {0}")]
    InvalidSignature(#[source] JwsError),
    /// The receipt is not JSON.
    #[error("the receipt is not JSON: {0}")]
    MalformedReceipt(#[source] SyntaxError),
    /// The receipt has no canonical form, so its signature cannot be verified.
    #[error("the receipt has no canonical form: {0}")]
    NonCanonicalReceipt(#[source] CanonicalError),
    /// This member of the receipt is missing or has the wrong value.
    #[error("the member {0} of the receipt is missing or wrong")]
    InvalidReceipt(&'static str),
    /// The person agreed to something else.
    #[error("the person agreed to something else: the receipt's action_digest does not match this message")]
    OtherAction,
    /// The message was sent before the person answered, or after the consent expired.
    #[error("the message was sent before the person answered, or after the consent expired")]
    NotInTime,
}

impl From<CanonicalError> for ConsentError {
    fn from(error: CanonicalError) -> Self {
        Self::InvalidAction(error.into())
    }
}

/// Returns the name of the tool call that a person agrees to; `None` if the message needs no consent.
pub fn tool(body: &Body) -> Option<&'static str> {
    match body {
        Body::Commit(_) => Some(COMMIT_TOOL),
        Body::Accept(accept) if CommitmentId::parse(accept.reference.as_str()).is_ok() => Some(ACCEPT_TOOL),
        _ => None,
    }
}

/// Returns the arguments of the tool call that a person agrees to, as canonical JSON: `sessionId`, `body` and, for an
/// ACCEPT, `commitment`. `commitment` is the accepted COMMIT. The consents of both messages are left out.
pub fn arguments(
    session_id: SessionId,
    body: &Body,
    commitment: Option<&Commit>,
) -> Result<String, ConsentError> {
    let commitment = match body {
        Body::Commit(_) => None,
        Body::Accept(accept) => {
            let matches = |commit: &&Commit| commit.commitment_id.as_str() == accept.reference.as_str();
            Some(commitment.filter(matches).ok_or(ConsentError::NotApplicable)?)
        }
        _ => return Err(ConsentError::NotApplicable),
    };
    let text = write_object(|writer| {
        writer.key("sessionId").text(&session_id.to_string());
        writer.key("body").raw(&without_consent(body.clone()).to_json());
        if let Some(commitment) = commitment {
            writer.key("commitment").raw(&without_consent(commitment.clone().into()).to_json());
        }
    });
    let mut tape = Tape::default();
    let doc = tape.read(&text).map_err(ActionError::from)?;
    Ok(seal::canonicalize_exact(&doc.root())?)
}

/// Returns the digest of the tool call that a person agrees to.
pub fn action_digest(
    session_id: SessionId,
    body: &Body,
    commitment: Option<&Commit>,
) -> Result<Digest, ConsentError> {
    let tool = tool(body).ok_or(ConsentError::NotApplicable)?;
    Ok(seal::action_digest(tool, &arguments(session_id, body, commitment)?)?)
}

/// Returns the consent of a message, without verifying it.
pub fn read(body: &Body) -> Option<&Consent> {
    match body {
        Body::Commit(body) => body.consent.as_deref(),
        Body::Accept(body) => body.consent.as_deref(),
        _ => None,
    }
}

/// Adds a consent to a COMMIT or ACCEPT, or replaces it. Other bodies stay unchanged.
#[must_use]
pub fn attach(mut body: Body, consent: Consent) -> Body {
    match &mut body {
        Body::Commit(body) => body.consent = Some(Box::new(consent)),
        Body::Accept(body) => body.consent = Some(Box::new(consent)),
        _ => {}
    }
    body
}

fn without_consent(mut body: Body) -> Body {
    match &mut body {
        Body::Commit(body) => body.consent = None,
        Body::Accept(body) => body.consent = None,
        _ => {}
    }
    body
}

/// Verifies the consent of a message with the hub's public key: the signature, that a person replied and accepted, and that
/// the person agreed to exactly this message. `commitment` is the accepted COMMIT, if the message is an ACCEPT. The times in
/// the receipt are not checked; [`verify_message`] checks them too.
pub fn verify(
    session_id: SessionId,
    body: &Body,
    commitment: Option<&Commit>,
    hub_key: &es256::VerifyingKey,
) -> Result<VerifiedConsent, ConsentError> {
    let digest = action_digest(session_id, body, commitment)?;
    let consent = read(body).ok_or(ConsentError::Missing)?;
    let mut tape = Tape::default();
    let doc = tape.read(consent.receipt.as_str()).map_err(ConsentError::MalformedReceipt)?;
    let receipt = doc.root();
    let canonical = seal::canonicalize(&receipt).map_err(ConsentError::NonCanonicalReceipt)?;
    jws::verify_detached(&consent.signature, canonical.as_bytes(), &Jwk::P256(hub_key.clone()))
        .map_err(ConsentError::InvalidSignature)?;
    // From here on, the receipt is what the hub wrote.
    for (name, expected) in [("type", "sayso:receipt"), ("by", "reply"), ("decision", "accept")] {
        if text(&receipt, name).as_deref() != Some(expected) {
            return Err(ConsentError::InvalidReceipt(name));
        }
    }
    if receipt.member("modified").is_some_and(|modified| modified.as_bool() != Some(false)) {
        return Err(ConsentError::InvalidReceipt("modified"));
    }
    let signed_digest = text(&receipt, "action_digest").and_then(|digest| Digest::parse(&digest));
    if signed_digest.ok_or(ConsentError::InvalidReceipt("action_digest"))? != digest {
        return Err(ConsentError::OtherAction);
    }
    let time = |name| text(&receipt, name).and_then(|at| Timestamp::parse_rfc3339(&at).ok());
    let expires_at = time("expires_at");
    if expires_at.is_none() && receipt.member("expires_at").is_some() {
        return Err(ConsentError::InvalidReceipt("expires_at"));
    }
    let owned = |name| text(&receipt, name).map(Cow::into_owned);
    Ok(VerifiedConsent {
        commitment: commitment_id(body).ok_or(ConsentError::NotApplicable)?,
        agent_id: owned("agent_id").ok_or(ConsentError::InvalidReceipt("agent_id"))?,
        resolved_at: time("resolved_at").ok_or(ConsentError::InvalidReceipt("resolved_at"))?,
        expires_at,
        decided_by: owned("decided_by"),
        principal: owned("principal"),
    })
}

/// Verifies the consent of a received message with the public keys of known hubs. Also checks that the message was sent after
/// the answer and before the consent expired, with a tolerance of
/// [`MAX_CLOCK_SKEW_SECONDS`](crate::MAX_CLOCK_SKEW_SECONDS).
pub fn verify_message(
    message: &Envelope,
    commitment: Option<&Commit>,
    hub_keys: &[es256::VerifyingKey],
) -> Result<VerifiedConsent, ConsentError> {
    let mut result = Err(ConsentError::InvalidSignature(JwsError::InvalidSignature));
    for key in hub_keys {
        result = verify(message.session_id, &message.body, commitment, key);
        if !matches!(result, Err(ConsentError::InvalidSignature(_))) {
            break;
        }
    }
    let verified = result?;
    if verified.is_in_time(message.timestamp.unix_millis()) {
        Ok(verified)
    } else {
        Err(ConsentError::NotInTime)
    }
}

impl VerifiedConsent {
    /// Returns whether a message that was sent at this time is covered, with a tolerance for different clocks.
    pub fn is_in_time(&self, sent_at: UnixMillis) -> bool {
        let tolerance = max_clock_skew_ms();
        sent_at.saturating_add(tolerance) >= self.resolved_at.unix_millis()
            && self.expires_at.is_none_or(|at| sent_at.saturating_sub(tolerance) <= at.unix_millis())
    }
}

fn commitment_id(body: &Body) -> Option<CommitmentId> {
    match body {
        Body::Commit(body) => Some(body.commitment_id.clone()),
        Body::Accept(body) => CommitmentId::parse(body.reference.as_str()).ok(),
        _ => None,
    }
}

fn text<'d>(receipt: &JsonValue<'d>, name: &str) -> Option<Cow<'d, str>> {
    receipt.member(name)?.text()
}
