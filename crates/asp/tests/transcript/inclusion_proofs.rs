//! Proofs that a message is in a chain with a known head.

use asp::state_machine::State;
use asp::{InclusionProof, Transcript};
use seal::Digest;

use crate::support::editable_json::EditableJson;
use crate::support::record_harness::RecordHarness;

fn texts(transcript: &Transcript) -> Vec<String> {
    transcript.messages().map(str::to_owned).collect()
}

#[test]
fn every_message_has_an_inclusion_proof() {
    let harness = RecordHarness::at(State::Executing);
    let transcript = harness.record.transcript();
    let all = texts(transcript);
    for (index, text) in all.iter().enumerate() {
        let proof = transcript.inclusion_proof(index).unwrap();
        assert_eq!(proof.messages().count(), all.len() - index);
        assert_eq!(proof.verify(transcript.head()), Some(text.as_str()));
        // A third party can build the same proof from the messages that it received.
        let rebuilt = InclusionProof::new(all[index..].iter().map(String::as_str));
        assert_eq!(rebuilt, proof);
    }
    assert_eq!(transcript.inclusion_proof(all.len()), None);
    assert_eq!(transcript.inclusion_proof(usize::MAX), None);
    assert_eq!(Transcript::default().inclusion_proof(0), None);
}

#[test]
fn a_changed_inclusion_proof_does_not_verify() {
    let harness = RecordHarness::at(State::Executing);
    let head = harness.record.transcript().head();
    let all = texts(harness.record.transcript());
    let assert_fails = |messages: &[String], case: &str| {
        assert_eq!(InclusionProof::new(messages.iter().map(String::as_str)).verify(head), None, "{case}");
    };
    assert_fails(&[], "nothing");
    let other_heads: Vec<_> = all
        .iter()
        .map(|text| Digest::parse(&EditableJson::parse(text).string("integrity/previousHash")).unwrap())
        .chain([Digest::of(b"x")])
        .collect();
    for index in 0..all.len() {
        let proof = harness.record.transcript().inclusion_proof(index).unwrap();
        for other_head in &other_heads {
            assert_eq!(proof.verify(*other_head), None, "another head");
        }
        let suffix = &all[index..];
        for position in 0..suffix.len() {
            let mut dropped = suffix.to_vec();
            dropped.remove(position);
            // Without its first message, the proof is a valid proof of the second message.
            if position > 0 || dropped.is_empty() {
                assert_fails(&dropped, "dropped");
            } else {
                let proof = InclusionProof::new(dropped.iter().map(String::as_str));
                assert_eq!(proof.verify(head), Some(suffix[1].as_str()));
            }
            let mut duplicated = suffix.to_vec();
            duplicated.insert(position, suffix[position].clone());
            assert_fails(&duplicated, "duplicated");
            let mut added = suffix.to_vec();
            added.insert(position + 1, all[0].clone());
            assert_fails(&added, "added");
            if position + 1 < suffix.len() {
                let mut swapped = suffix.to_vec();
                swapped.swap(position, position + 1);
                assert_fails(&swapped, "swapped");
            }
            for changed in changed_messages(&suffix[position]) {
                let mut messages = suffix.to_vec();
                messages[position] = changed;
                assert_fails(&messages, "changed");
            }
        }
    }
}

/// Returns copies of the message with one changed member each, and texts that are not messages.
fn changed_messages(text: &str) -> Vec<String> {
    let json = EditableJson::parse(text);
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

/// The hash covers neither `integrity.hash` nor `integrity.signature`, so changing these members breaks no link.
/// Authentication is a separate step.
#[test]
fn an_inclusion_proof_does_not_check_signatures() {
    let mut harness = RecordHarness::at(State::Introduced);
    let all = texts(harness.record.transcript());
    let last = all.last().unwrap();
    let unsigned =
        EditableJson::parse(last).with("integrity/signature", "\"\"").with("integrity/hash", "\"\"").write();
    let proof = InclusionProof::new([unsigned.as_str()]);
    assert_eq!(proof.verify(harness.record.transcript().head()), Some(unsigned.as_str()));
    assert!(harness.authenticate(&unsigned).is_err());
}

#[test]
fn a_transcript_without_texts_creates_no_proofs() {
    let mut harness = RecordHarness::new();
    harness.record = harness.record.clone().without_texts();
    let mut with_texts = RecordHarness::new();
    let signed =
        with_texts.sign_next(crate::support::record_harness::A, &crate::support::bodies::invitation());
    with_texts.receive(&signed.text);
    harness.receive(&signed.text);
    assert_eq!(harness.record.transcript().position(), with_texts.record.transcript().position());
    assert_eq!(harness.record.transcript().inclusion_proof(0), None);
    assert!(with_texts.record.transcript().inclusion_proof(0).is_some());
}
