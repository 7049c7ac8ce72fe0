//! Checks people's consents in a transcript (decision D24 in docs/asp.md) for `sayso asp verify`.

use std::path::{Path, PathBuf};

use asp::consent;
use asp::message::{Body, Commit, Envelope};
use asp::session::AspSession;
use asp::state_machine::State;
use seal::json::{JsonValue, Tape};
use seal::{Jwk, es256};

use super::transcript_file::{CommandError, display_name, read};
use crate::output::{pluralize, printable};

/// Maximum size of a file with a public key.
const MAX_KEY_FILE_BYTES: u64 = 64 * 1024;

/// Checks each consent and collects a sentence about it.
#[derive(Debug, Default)]
pub(super) struct ConsentCheck {
    hub_keys: Vec<es256::VerifyingKey>,
    is_consent_required: bool,
    sentences: Vec<String>,
    unchecked_count: u64,
}

impl ConsentCheck {
    /// Reads the public keys of the hubs.
    pub(super) fn new(key_files: &[PathBuf], is_consent_required: bool) -> Result<Self, CommandError> {
        let mut hub_keys = Vec::new();
        for path in key_files {
            hub_keys.extend(read_hub_keys(path)?);
        }
        Ok(Self { hub_keys, is_consent_required, ..Self::default() })
    }

    /// Returns the COMMIT that this message accepts. Call it before the session handles the message.
    pub(super) fn accepted_commit(session: &AspSession, message: &Envelope) -> Option<Commit> {
        let is_acceptance = matches!(message.body, Body::Accept(_)) && session.state() == State::Agreeing;
        let commitment = session.commitment().filter(|_| is_acceptance)?;
        Some(commitment.commit().clone())
    }

    /// Checks a message that the session has accepted. Returns the fault, if there is one.
    pub(super) fn check(&mut self, message: &Envelope, accepted: Option<&Commit>) -> Result<(), String> {
        let is_commitment = matches!(message.body, Body::Commit(_)) || accepted.is_some();
        let has_no_consent = consent::read(&message.body).is_none();
        if has_no_consent && (!is_commitment || !self.is_consent_required) {
            return Ok(());
        }
        if self.hub_keys.is_empty() {
            self.unchecked_count += 1;
            return Ok(());
        }
        let verified = consent::verify_message(message, accepted, &self.hub_keys)
            .map_err(|error| format!("consent: {error}"))?;
        let action = if accepted.is_some() { "accept" } else { "send" };
        let person = verified.decided_by.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        self.sentences.push(format!(
            "{}: a person{person} agreed to {action} the commitment {} at {}.",
            message.sender.agent_id, verified.commitment, verified.resolved_at
        ));
        Ok(())
    }

    /// Returns the sentences for the summary.
    pub(super) fn into_sentences(mut self) -> Vec<String> {
        if self.unchecked_count > 0 {
            let consents = pluralize(self.unchecked_count, "consent");
            let verb = if self.unchecked_count == 1 { "was" } else { "were" };
            self.sentences
                .push(format!("{consents} of a person {verb} not checked; use --hub-key FILE to check."));
        }
        self.sentences
    }
}

/// Reads a JWK or a JWK set. A hub signs receipts with a P-256 key.
fn read_hub_keys(path: &Path) -> Result<Vec<es256::VerifyingKey>, CommandError> {
    let bytes = read(path, MAX_KEY_FILE_BYTES, "")?;
    let unusable = |reason: &str| {
        let reason = printable(reason);
        CommandError::cannot_run(format!("cannot use {}: it {reason}", display_name(path)))
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| unusable("is not UTF-8"))?;
    let mut tape = Tape::default();
    let doc = tape.read(text).map_err(|_| unusable("is not a JWK or a JWK set"))?;
    let read_key = |value: &JsonValue<'_>| match Jwk::read(value) {
        Ok(Jwk::P256(key)) => Ok(key),
        Ok(_) => Err(unusable("contains a key of a type other than P-256")),
        Err(error) => Err(unusable(&error.to_string())),
    };
    let root = doc.root();
    let keys = match root.member("keys") {
        Some(keys) => keys.items().map(|key| read_key(&key)).collect::<Result<Vec<_>, _>>()?,
        None => vec![read_key(&root)?],
    };
    if keys.is_empty() { Err(unusable("contains no key")) } else { Ok(keys) }
}
