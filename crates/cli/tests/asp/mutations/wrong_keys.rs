//! Signs messages again: with each combination of the keys of three agents, with copied proofs, and with the sender's own
//! keys.

use asp::Performative;
use asp::message::{AuthenticatedMessage, Authenticator, MessageDraft};
use asp::state_machine::Role;
use seal::json::Tape;
use seal::{AgentKeys, Digest};
use serde_json::Value;

use super::{CHAINS, TranscriptChain};
use crate::asp::transcripts::{BUYER, SELLER, SeededRandom, scripted_transcript, test_agent};

/// Returns the same message, signed with these keys.
fn sign_again(message: &AuthenticatedMessage, keys: &AgentKeys) -> String {
    draft_of(message).sign(keys, &mut SeededRandom(77)).unwrap().text.to_string()
}

fn draft_of(message: &AuthenticatedMessage) -> MessageDraft {
    let envelope = message.envelope.clone();
    MessageDraft {
        message_id: envelope.message_id,
        session_id: envelope.session_id,
        sequence_number: envelope.sequence_number,
        timestamp: envelope.timestamp,
        sender: envelope.sender.agent_id,
        org_id: envelope.sender.org_id,
        trust_score: envelope.sender.trust_score,
        recipient: envelope.recipient.unwrap().0,
        body: envelope.body,
        content: envelope.content,
        constraints: envelope.constraints,
        previous_hash: envelope.integrity.previous_hash,
        other: envelope.other,
    }
}

#[test]
fn only_the_senders_two_keys_are_accepted() {
    let mut authenticator = Authenticator::default();
    let chain = TranscriptChain::new(&scripted_transcript(&[], 1));
    let stranger = test_agent("agent://x.example/stranger", 3);
    let mut count = 0;
    for (message, at) in chain.messages.iter().zip(0..) {
        let [own, other] = if message.envelope.sender.agent_id == *BUYER.card.agent_id() {
            [&BUYER, &SELLER]
        } else {
            [&SELLER, &BUYER]
        };
        let all_keys = [&own.keys, &other.keys, &stranger.keys];
        for signing in all_keys {
            for dpop in all_keys {
                let keys = AgentKeys { signing: signing.signing.clone(), dpop: dpop.dpop.clone() };
                let is_accepted =
                    chain.accepts(&mut authenticator, at, sign_again(message, &keys).as_bytes());
                let is_valid = std::ptr::eq(signing, all_keys[0]) && std::ptr::eq(dpop, all_keys[0]);
                assert_eq!(is_accepted, is_valid, "line {}", at + 1);
                count += 1;
            }
        }
    }
    println!("{count} pairs of keys");
}

/// An attacker who has the signing key but not the DPoP key cannot reuse an observed proof, because a proof is bound to one
/// message.
#[test]
fn a_proof_for_another_message_is_rejected_even_with_a_new_signature() {
    let mut authenticator = Authenticator::default();
    let query = |id: &str| format!(r#"{{"queryId":"{id}","queryType":"test","subject":"the same"}}"#);
    let (one, two) = (query("qry_1"), query("qry_2"));
    let lines = [(Role::Inviter, Performative::Query, &*one), (Role::Inviter, Performative::Query, &*two)];
    let chain = TranscriptChain::new(&scripted_transcript(&lines, 1));
    let [own, later] = [4, 5].map(|at: usize| chain.messages[at].envelope.sender.dpop_proof.as_str());
    for (proof, is_valid) in [(own, true), (later, false)] {
        let mut value: Value = serde_json::from_str(&chain.transcript.messages[4]).unwrap();
        value["sender"]["dpopProof"] = proof.into();
        let integrity = value["integrity"].as_object_mut().unwrap();
        integrity.remove("hash");
        integrity.remove("signature");
        let unsigned = value.to_string();
        let mut tape = Tape::default();
        let canonical = seal::canonicalize(&tape.read(&unsigned).unwrap().root()).unwrap();
        let hash = Digest::of(canonical.as_bytes()).to_string();
        value["integrity"]["signature"] = BUYER.keys.signing.sign(hash.as_bytes()).to_string().into();
        value["integrity"]["hash"] = hash.into();
        assert_eq!(chain.accepts(&mut authenticator, 4, value.to_string().as_bytes()), is_valid);
    }
}

/// Not even the sender can link a message from another session to this chain.
#[test]
fn a_message_from_another_session_is_rejected_even_if_it_links_to_this_chain() {
    let mut authenticator = Authenticator::default();
    let chain = TranscriptChain::new(&scripted_transcript(&[], 1));
    let mut draft = draft_of(&chain.messages[3]);
    draft.session_id = TranscriptChain::new(&scripted_transcript(&[], 2)).messages[0].envelope.session_id;
    let text = draft.sign(&SELLER.keys, &mut SeededRandom(78)).unwrap().text;
    assert!(!chain.accepts(&mut authenticator, 3, text.as_bytes()));
    let mut messages = chain.transcript.messages.clone();
    messages[3] = text.to_string();
    let messages: Vec<_> = messages.iter().map(String::as_str).collect();
    let run = chain.transcript.verify_messages(&messages);
    assert_eq!(run.exit_code, 1);
    assert!(
        run.stdout.starts_with("stdin:4: error: ") && run.stdout.contains("another session"),
        "{}",
        run.stdout
    );
}

/// The sender can replace its message with another signed one, but that breaks the chain at the next message.
#[test]
fn a_message_that_its_sender_signs_again_breaks_the_chain_after_it() {
    let mut authenticator = Authenticator::default();
    let chain = TranscriptChain::new(&scripted_transcript(&[], 1));
    for at in 0..chain.messages.len() - 1 {
        let message = &chain.messages[at];
        let own = if message.envelope.sender.agent_id == *BUYER.card.agent_id() { &BUYER } else { &SELLER };
        let text = sign_again(message, &own.keys);
        let signed_again =
            authenticator.authenticate(&text, &chain.cards, &asp::AspLimits::default()).unwrap();
        let mut messages: Vec<_> = chain.messages.iter().collect();
        messages[at] = &signed_again;
        assert_eq!(chain.first_rejected(messages), Some(at + 1));
    }
}

#[test]
fn no_demo_message_is_accepted_with_a_strangers_signature() {
    let mut authenticator = Authenticator::default();
    let stranger = test_agent("agent://x.example/stranger", 3);
    let mut count = 0;
    for chain in CHAINS.iter() {
        for (message, at) in chain.messages.iter().zip(0..) {
            let signed_again = sign_again(message, &stranger.keys);
            assert!(
                !chain.accepts(&mut authenticator, at, signed_again.as_bytes()),
                "{} {at}",
                chain.transcript.name
            );
            let hash = message.envelope.integrity.hash.to_string();
            let signature = stranger.keys.signing.sign(hash.as_bytes()).to_string();
            let own = message.envelope.integrity.signature.to_string();
            let text = message.text.replace(&own, &signature);
            assert_ne!(*text, *message.text);
            assert!(
                !chain.accepts(&mut authenticator, at, text.as_bytes()),
                "{} {at}",
                chain.transcript.name
            );
            count += 2;
        }
    }
    println!("{count} messages signed by a stranger");
}
