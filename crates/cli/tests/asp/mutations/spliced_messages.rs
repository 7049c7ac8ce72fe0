//! Exhaustive: replaces each member of a message with the same member of every other message of the transcript. Replaces
//! proofs, signatures and hashes in combination as well. Puts messages of other sessions in place of, or before, every message.
//!
//! Two transcripts generated from the same seed are the same session up to the point where they diverge. At the fork, the first message of either branch is
//! valid, because its sender did sign it after the same messages. This is a different valid history, not a mutation.
//! The tests show that such a replacement is detected if a later message of the original branch remains.

use asp::AspLimits;
use asp::message::{AuthenticatedMessage, Authenticator};
use serde_json::Value;

use super::{CHAINS, TranscriptChain};
use crate::asp::transcripts::{OTHER_DEMOS, scripted_transcript};

/// The members that protect a message against changes.
const INTEGRITY_POINTERS: [&str; 4] =
    ["/sender/dpopProof", "/integrity/hash", "/integrity/signature", "/integrity/previousHash"];

/// The members to replace. `fields.rs` covers the parts of `content`.
const POINTERS: [&str; 18] = [
    "/version",
    "/messageId",
    "/sessionId",
    "/sequenceNumber",
    "/timestamp",
    "/sender",
    "/sender/agentId",
    "/sender/orgId",
    "/sender/trustScore",
    "/recipient",
    "/performative",
    "/content",
    "/content/body",
    "/integrity",
    INTEGRITY_POINTERS[0],
    INTEGRITY_POINTERS[1],
    INTEGRITY_POINTERS[2],
    INTEGRITY_POINTERS[3],
];

#[test]
fn no_member_of_one_message_is_accepted_in_another() {
    let mut authenticator = Authenticator::default();
    let (mut single, mut combined) = (0, 0);
    for chain in CHAINS.iter() {
        let values: Vec<Value> =
            chain.transcript.messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        for (at, own) in values.iter().enumerate() {
            for other in values.iter().filter(|other| *other != own) {
                let splice = |pointers: &[&str]| {
                    let mut spliced = own.clone();
                    for pointer in pointers {
                        if let Some(new) = other.pointer(pointer) {
                            *spliced.pointer_mut(pointer).unwrap() = new.clone();
                        }
                    }
                    (spliced != *own).then(|| spliced.to_string())
                };
                for pointer in POINTERS {
                    let Some(mutant) = splice(&[pointer]) else { continue };
                    let is_accepted = chain.accepts(&mut authenticator, at, mutant.as_bytes());
                    assert!(
                        !is_accepted,
                        "{} line {}: {pointer} of another message",
                        chain.transcript.name,
                        at + 1
                    );
                    single += 1;
                }
                for pointers in [
                    &INTEGRITY_POINTERS[..2],
                    &INTEGRITY_POINTERS[1..3],
                    &INTEGRITY_POINTERS[..3],
                    &INTEGRITY_POINTERS[..],
                ] {
                    let Some(mutant) = splice(pointers) else { continue };
                    let is_accepted = chain.accepts(&mut authenticator, at, mutant.as_bytes());
                    assert!(
                        !is_accepted,
                        "{} line {}: {pointers:?} of another message",
                        chain.transcript.name,
                        at + 1
                    );
                    combined += 1;
                }
            }
        }
    }
    println!("{single} members and {combined} sets of integrity members copied from another message");
}

/// Asserts that a foreign message is detected in place of each message, and before it. Returns the number of mutations.
fn assert_detected_everywhere(chain: &TranscriptChain, foreign: &AuthenticatedMessage) -> usize {
    let valid: Vec<&AuthenticatedMessage> = chain.messages.iter().collect();
    for at in 0..valid.len() {
        for replaces in [false, true] {
            let mut messages = valid.clone();
            if replaces {
                messages[at] = foreign;
            } else {
                messages.insert(at, foreign);
            }
            let rejected = chain.first_rejected(messages.iter().copied());
            // A foreign invitation at the first position starts another session, so the next message is rejected.
            let starts_session = at == 0 && foreign.envelope.integrity.previous_hash == seal::Digest::ZERO;
            match rejected {
                Some(rejected) => {
                    assert!(
                        rejected == at || (starts_session && rejected == 1),
                        "{} {at}: {rejected}",
                        chain.transcript.name
                    );
                }
                None => {
                    assert!(replaces && starts_session && valid.len() == 1, "{} {at}", chain.transcript.name);
                }
            }
        }
    }
    2 * valid.len()
}

#[test]
fn messages_from_other_sessions_of_the_same_agents_are_detected_at_every_position() {
    let own = TranscriptChain::new(&scripted_transcript(&[], 1));
    let other = TranscriptChain::new(&scripted_transcript(&[], 2));
    let mut count = 0;
    for foreign in &other.messages {
        count += assert_detected_everywhere(&own, foreign);
    }
    // In the demo, the Braille Press has two sessions with the same keys.
    let find_chain = |name| CHAINS.iter().find(|chain| chain.transcript.name == name).unwrap();
    let (first, second) = (find_chain("delegated"), find_chain("delegate"));
    for (chain, other) in [(first, second), (second, first)] {
        for foreign in &other.messages {
            count += assert_detected_everywhere(chain, foreign);
        }
    }
    println!("{count} foreign messages inserted");
}

#[test]
fn messages_from_another_seed_are_detected_at_every_position() {
    let mut authenticator = Authenticator::default();
    let mut count = 0;
    for chain in CHAINS.iter() {
        for text in OTHER_DEMOS.iter().flat_map(|transcript| &transcript.messages) {
            // The agents have the same names but different keys, so no message is authentic at any position.
            assert!(authenticator.authenticate(text, &chain.cards, &AspLimits::default()).is_err());
            count += 1;
        }
    }
    println!("{count} messages of another seed tried against every chain");
}

#[test]
fn another_branch_of_the_same_session_is_detected_by_later_messages() {
    let (mut count, mut forks) = (0, 0);
    for chain in CHAINS.iter() {
        let valid: Vec<&AuthenticatedMessage> = chain.messages.iter().collect();
        let session = chain.messages[0].envelope.session_id;
        let is_branch = |other: &&TranscriptChain| {
            other.transcript.name != chain.transcript.name && other.messages[0].envelope.session_id == session
        };
        for other in CHAINS.iter().filter(is_branch) {
            for foreign in other.messages.iter().filter(|one| valid.iter().all(|own| own.text != one.text)) {
                for at in 0..valid.len() {
                    let mut messages = valid.clone();
                    messages[at] = foreign;
                    let is_fork = foreign.envelope.integrity.previous_hash
                        == valid[at].envelope.integrity.previous_hash;
                    let expected = if !is_fork {
                        Some(at)
                    } else if at + 1 < valid.len() {
                        Some(at + 1)
                    } else {
                        None
                    };
                    forks += usize::from(is_fork);
                    assert_eq!(
                        chain.first_rejected(messages.iter().copied()),
                        expected,
                        "{}: message {at} replaced by one of {}",
                        chain.transcript.name,
                        other.transcript.name
                    );
                    count += 1;
                }
            }
        }
    }
    println!("{count} messages replaced by those of another branch, {forks} of them at a fork");
}
