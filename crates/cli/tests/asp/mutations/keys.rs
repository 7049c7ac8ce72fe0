//! Exhaustive over the messages: each signed anew with keys that are not its sender's, in every combination.

use asp::Performative;
use asp::machine::Role;
use asp::message::{Authenticator, Draft, Sealed};
use seal::json::Tape;
use seal::{Digest, Keys};
use serde_json::Value;

use super::{CHAINS, Chain};
use crate::asp::talk::{BUYER, Dice, SELLER, actor, own_talk};

/// The same message, sealed by these keys.
fn signed_anew(message: &Sealed, keys: &Keys) -> String {
    draft_of(message).seal(keys, &mut Dice(77)).unwrap().text.to_string()
}

fn draft_of(message: &Sealed) -> Draft {
    let envelope = message.envelope.clone();
    Draft {
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
fn only_the_senders_own_two_keys_will_do() {
    let mut authenticator = Authenticator::default();
    let chain = Chain::of(&own_talk(&[], 1));
    let stranger = actor("agent://x.example/stranger", 3);
    let mut count = 0;
    for (message, at) in chain.messages.iter().zip(0..) {
        let [own, other] = if message.envelope.sender.agent_id == *BUYER.card.agent_id() {
            [&BUYER, &SELLER]
        } else {
            [&SELLER, &BUYER]
        };
        let every = [&own.keys, &other.keys, &stranger.keys];
        for signing in every {
            for dpop in every {
                let keys = Keys { signing: signing.signing.clone(), dpop: dpop.dpop.clone() };
                let taken = chain.takes(&mut authenticator, at, signed_anew(message, &keys).as_bytes());
                let right = std::ptr::eq(signing, every[0]) && std::ptr::eq(dpop, every[0]);
                assert_eq!(taken, right, "line {}", at + 1);
                count += 1;
            }
        }
    }
    println!("{count} pairs of keys");
}

/// A thief who has the signing key but not the other one cannot use a proof that he has seen: it is for one message.
#[test]
fn a_proof_of_another_message_does_not_pass_when_all_else_is_signed_anew() {
    let mut authenticator = Authenticator::default();
    let query = |id: &str| format!(r#"{{"queryId":"{id}","queryType":"test","subject":"the same"}}"#);
    let (one, two) = (query("qry_1"), query("qry_2"));
    let lines = [(Role::Inviter, Performative::Query, &*one), (Role::Inviter, Performative::Query, &*two)];
    let chain = Chain::of(&own_talk(&lines, 1));
    let [own, later] = [4, 5].map(|at: usize| chain.messages[at].envelope.sender.dpop_proof.as_str());
    for (proof, right) in [(own, true), (later, false)] {
        let mut value: Value = serde_json::from_str(&chain.talk.messages[4]).unwrap();
        value["sender"]["dpopProof"] = proof.into();
        let integrity = value["integrity"].as_object_mut().unwrap();
        integrity.remove("hash");
        integrity.remove("signature");
        let unsigned = value.to_string();
        let mut tape = Tape::default();
        let form = seal::canonical(&tape.read(&unsigned).unwrap().root()).unwrap();
        let hash = Digest::of(form.as_bytes()).to_string();
        value["integrity"]["signature"] = BUYER.keys.signing.sign(hash.as_bytes()).to_string().into();
        value["integrity"]["hash"] = hash.into();
        assert_eq!(chain.takes(&mut authenticator, 4, value.to_string().as_bytes()), right);
    }
}

/// Nor may the sender itself link a message of another session to this chain.
#[test]
fn a_message_of_another_session_is_refused_though_it_links_to_this_one() {
    let mut authenticator = Authenticator::default();
    let chain = Chain::of(&own_talk(&[], 1));
    let mut draft = draft_of(&chain.messages[3]);
    draft.session_id = Chain::of(&own_talk(&[], 2)).messages[0].envelope.session_id;
    let text = draft.seal(&SELLER.keys, &mut Dice(78)).unwrap().text;
    assert!(!chain.takes(&mut authenticator, 3, text.as_bytes()));
    let mut messages = chain.talk.messages.clone();
    messages[3] = text.to_string();
    let messages: Vec<_> = messages.iter().map(String::as_str).collect();
    let run = chain.talk.verify_messages(&messages);
    assert_eq!(run.code, 1);
    assert!(run.out.starts_with("stdin:4: error ") && run.out.contains("another session"), "{}", run.out);
}

/// Whoever sent it may sign another in its place, but not without breaking what follows; nobody else can at all.
#[test]
fn a_message_that_its_own_sender_signs_anew_breaks_the_chain_behind_it() {
    let mut authenticator = Authenticator::default();
    let chain = Chain::of(&own_talk(&[], 1));
    for at in 0..chain.messages.len() - 1 {
        let message = &chain.messages[at];
        let own = if message.envelope.sender.agent_id == *BUYER.card.agent_id() { &BUYER } else { &SELLER };
        let text = signed_anew(message, &own.keys);
        let again = authenticator.open(&text, &chain.cards, &asp::Limits::default()).unwrap();
        let mut messages: Vec<_> = chain.messages.iter().collect();
        messages[at] = &again;
        assert_eq!(chain.first_bad(messages), Some(at + 1));
    }
}

#[test]
fn no_message_of_the_demo_passes_with_a_strangers_seal() {
    let mut authenticator = Authenticator::default();
    let stranger = actor("agent://x.example/stranger", 3);
    let mut count = 0;
    for chain in CHAINS.iter() {
        for (message, at) in chain.messages.iter().zip(0..) {
            let forged = signed_anew(message, &stranger.keys);
            assert!(!chain.takes(&mut authenticator, at, forged.as_bytes()), "{} {at}", chain.talk.name);
            let hash = message.envelope.integrity.hash.to_string();
            let signature = stranger.keys.signing.sign(hash.as_bytes()).to_string();
            let own = message.envelope.integrity.signature.to_string();
            let text = message.text.replace(&own, &signature);
            assert_ne!(*text, *message.text);
            assert!(!chain.takes(&mut authenticator, at, text.as_bytes()), "{} {at}", chain.talk.name);
            count += 2;
        }
    }
    println!("{count} messages sealed or signed by a stranger");
}
