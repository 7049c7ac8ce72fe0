//! That a message is in a chain whose head is known.

use asp::machine::State;
use asp::{Proof, Transcript};
use seal::Digest;

use crate::support::json::Json;
use crate::support::scene::Scene;

fn texts(transcript: &Transcript) -> Vec<String> {
    transcript.messages().map(str::to_owned).collect()
}

#[test]
fn every_message_can_be_proven() {
    let scene = Scene::at(State::Executing);
    let transcript = scene.record.transcript();
    let all = texts(transcript);
    for (index, text) in all.iter().enumerate() {
        let proof = transcript.proof(index).unwrap();
        assert_eq!(proof.messages().count(), all.len() - index);
        assert_eq!(proof.verify(transcript.head()), Some(text.as_str()));
        // As somebody else would build it from what he was sent.
        let sent = Proof::new(all[index..].iter().map(String::as_str));
        assert_eq!(sent, proof);
    }
    assert_eq!(transcript.proof(all.len()), None);
    assert_eq!(transcript.proof(usize::MAX), None);
    assert_eq!(Transcript::default().proof(0), None);
}

#[test]
fn a_proof_of_something_else_proves_nothing() {
    let scene = Scene::at(State::Executing);
    let head = scene.record.transcript().head();
    let all = texts(scene.record.transcript());
    let fails = |messages: &[String], why: &str| {
        assert_eq!(Proof::new(messages.iter().map(String::as_str)).verify(head), None, "{why}");
    };
    fails(&[], "nothing");
    let heads: Vec<_> = all
        .iter()
        .map(|text| Digest::parse(&Json::parse(text).string("integrity/previousHash")).unwrap())
        .chain([Digest::of(b"x")])
        .collect();
    for index in 0..all.len() {
        let proof = scene.record.transcript().proof(index).unwrap();
        for other in &heads {
            assert_eq!(proof.verify(*other), None, "another head");
        }
        let part = &all[index..];
        for at in 0..part.len() {
            let mut dropped = part.to_vec();
            dropped.remove(at);
            // Without its first, it is a good proof of the second.
            if at > 0 || dropped.is_empty() {
                fails(&dropped, "dropped");
            } else {
                let proof = Proof::new(dropped.iter().map(String::as_str));
                assert_eq!(proof.verify(head), Some(part[1].as_str()));
            }
            let mut doubled = part.to_vec();
            doubled.insert(at, part[at].clone());
            fails(&doubled, "doubled");
            let mut added = part.to_vec();
            added.insert(at + 1, all[0].clone());
            fails(&added, "added");
            if at + 1 < part.len() {
                let mut swapped = part.to_vec();
                swapped.swap(at, at + 1);
                fails(&swapped, "swapped");
            }
            for changed in changes(&part[at]) {
                let mut messages = part.to_vec();
                messages[at] = changed;
                fails(&messages, "changed");
            }
        }
    }
}

/// The message with each member changed that the hash covers, and texts that are no message.
fn changes(text: &str) -> Vec<String> {
    let json = Json::parse(text);
    let mut changed: Vec<_> = [
        ("version", "\"asp/1.0\""),
        ("sequenceNumber", "77"),
        ("timestamp", "\"2026-01-02T03:00:00Z\""),
        ("sender/agentId", "\"agent://x.example\""),
        ("sender/trustScore", "100"),
        ("sender/dpopProof", "\"\""),
        ("recipient", "\"agent://x.example\""),
        ("performative", "\"CLOSE\""),
        ("content/body", "{}"),
        (
            "integrity/previousHash",
            "\"sha256:0000000000000000000000000000000000000000000000000000000000000001\"",
        ),
        ("extra", "1"),
    ]
    .into_iter()
    .map(|(path, value)| json.clone().with(path, value).write())
    .collect();
    changed.extend(
        ["", "{}", "null", "[]", "{\"integrity\":{}}", "{\"integrity\":{\"previousHash\":1}}"]
            .map(str::to_owned),
    );
    changed.push(json.without("integrity").write());
    changed
}

/// The claimed hash and the signature are not covered by the hash: who changes them changes no link. Whose message it is,
/// an authenticator says.
#[test]
fn a_proof_does_not_ask_who_signed() {
    let mut scene = Scene::at(State::Introduced);
    let all = texts(scene.record.transcript());
    let last = all.last().unwrap();
    let unsigned =
        Json::parse(last).with("integrity/signature", "\"\"").with("integrity/hash", "\"\"").write();
    let proof = Proof::new([unsigned.as_str()]);
    assert_eq!(proof.verify(scene.record.transcript().head()), Some(unsigned.as_str()));
    assert!(scene.open(&unsigned).is_err());
}

/// One that keeps no texts can prove nothing, and says so.
#[test]
fn a_forgetful_transcript_proves_nothing() {
    let mut scene = Scene::new();
    scene.record = scene.record.clone().forgetful();
    let mut kept = Scene::new();
    let forged = kept.forge(crate::support::scene::A, &crate::support::bodies::invitation());
    kept.hear(&forged.text);
    scene.hear(&forged.text);
    assert_eq!(scene.record.transcript().point(), kept.record.transcript().point());
    assert_eq!(scene.record.transcript().proof(0), None);
    assert!(kept.record.transcript().proof(0).is_some());
}
