//! Exhaustive: every member of a message replaced by its namesake in every other message of the same transcript (proofs,
//! signatures and hashes among them), and these three together; whole messages of other sessions put in the place of, or
//! before, every message.
//!
//! Two transcripts of one seed are of one session until they part: what both sides signed at the fork is lawful on
//! either branch, and only what follows on the wrong branch is not. That is no mutation, but another history; it is shown
//! to be detected where a later message is left.

use asp::Limits;
use asp::message::{Authenticator, Sealed};
use serde_json::Value;

use super::{CHAINS, Chain};
use crate::asp::talk::{OTHER_DEMOS, own_talk};

const SEALS: [&str; 4] =
    ["/sender/dpopProof", "/integrity/hash", "/integrity/signature", "/integrity/previousHash"];

/// The places below the root, but not inside `content`, whose parts are covered by being changed (`fields`).
const PLACES: [&str; 18] = [
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
    SEALS[0],
    SEALS[1],
    SEALS[2],
    SEALS[3],
];

#[test]
fn no_part_of_one_message_passes_in_another() {
    let mut authenticator = Authenticator::default();
    let (mut single, mut together) = (0, 0);
    for chain in CHAINS.iter() {
        let values: Vec<Value> =
            chain.talk.messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        for (at, ours) in values.iter().enumerate() {
            for theirs in values.iter().filter(|theirs| *theirs != ours) {
                let graft = |places: &[&str]| {
                    let mut grafted = ours.clone();
                    for place in places {
                        if let Some(new) = theirs.pointer(place) {
                            *grafted.pointer_mut(place).unwrap() = new.clone();
                        }
                    }
                    (grafted != *ours).then(|| grafted.to_string())
                };
                for place in PLACES {
                    let Some(mutant) = graft(&[place]) else { continue };
                    let taken = chain.takes(&mut authenticator, at, mutant.as_bytes());
                    assert!(!taken, "{} line {}: {place} of another", chain.talk.name, at + 1);
                    single += 1;
                }
                for places in [&SEALS[..2], &SEALS[1..3], &SEALS[..3], &SEALS[..]] {
                    let Some(mutant) = graft(places) else { continue };
                    let taken = chain.takes(&mut authenticator, at, mutant.as_bytes());
                    assert!(!taken, "{} line {}: {places:?} of another", chain.talk.name, at + 1);
                    together += 1;
                }
            }
        }
    }
    println!("{single} members and {together} sets of seals taken from another message");
}

/// Puts the stranger in the place of each message, and before it.
fn splice_everywhere(chain: &Chain, stranger: &Sealed) -> usize {
    let good: Vec<&Sealed> = chain.messages.iter().collect();
    for at in 0..good.len() {
        for replaces in [false, true] {
            let mut messages = good.clone();
            if replaces {
                messages[at] = stranger;
            } else {
                messages.insert(at, stranger);
            }
            let bad = chain.first_bad(messages.iter().copied());
            // A whole other session may begin; that session then is the one that it is judged by.
            let begins = at == 0 && stranger.envelope.integrity.previous_hash == seal::Digest::ZERO;
            match bad {
                Some(bad) => assert!(bad == at || (begins && bad == 1), "{} {at}: {bad}", chain.talk.name),
                None => assert!(replaces && begins && good.len() == 1, "{} {at}", chain.talk.name),
            }
        }
    }
    2 * good.len()
}

#[test]
fn messages_of_other_sessions_of_the_same_agents_are_detected_wherever_they_are_put() {
    let ours = Chain::of(&own_talk(&[], 1));
    let theirs = Chain::of(&own_talk(&[], 2));
    let mut count = 0;
    for stranger in &theirs.messages {
        count += splice_everywhere(&ours, stranger);
    }
    // The demo's press has two sessions, and the same keys in both.
    let by_name = |name| CHAINS.iter().find(|chain| chain.talk.name == name).unwrap();
    let (first, second) = (by_name("delegated"), by_name("delegate"));
    for (chain, other) in [(first, second), (second, first)] {
        for stranger in &other.messages {
            count += splice_everywhere(chain, stranger);
        }
    }
    println!("{count} messages of other sessions put in");
}

#[test]
fn messages_of_another_seed_are_detected_wherever_they_are_put() {
    let mut authenticator = Authenticator::default();
    let mut count = 0;
    for chain in CHAINS.iter() {
        for text in OTHER_DEMOS.iter().flat_map(|talk| &talk.messages) {
            // Other keys under the same names: not authentic, whatever stands around it.
            assert!(authenticator.open(text, &chain.cards, &Limits::default()).is_err());
            count += 1;
        }
    }
    println!("{count} messages of another seed tried, each for every place");
}

#[test]
fn another_branch_of_the_same_session_is_detected_by_what_follows() {
    let (mut count, mut forks) = (0, 0);
    for chain in CHAINS.iter() {
        let good: Vec<&Sealed> = chain.messages.iter().collect();
        let session = chain.messages[0].envelope.session_id;
        let is_branch = |other: &&Chain| {
            other.talk.name != chain.talk.name && other.messages[0].envelope.session_id == session
        };
        for other in CHAINS.iter().filter(is_branch) {
            for stranger in other.messages.iter().filter(|one| good.iter().all(|own| own.text != one.text)) {
                for at in 0..good.len() {
                    let mut messages = good.clone();
                    messages[at] = stranger;
                    let fork = stranger.envelope.integrity.previous_hash
                        == good[at].envelope.integrity.previous_hash;
                    let expected = if !fork {
                        Some(at)
                    } else if at + 1 < good.len() {
                        Some(at + 1)
                    } else {
                        None
                    };
                    forks += usize::from(fork);
                    assert_eq!(
                        chain.first_bad(messages.iter().copied()),
                        expected,
                        "{} {at} by a message of {}",
                        chain.talk.name,
                        other.talk.name
                    );
                    count += 1;
                }
            }
        }
    }
    println!("{count} messages replaced by those of another branch, {forks} of them at a fork");
}
