//! The envelope: versions, performatives, and missing, invalid and additional members.

use asp::state_machine::State;
use asp::{AuthenticationError, RejectCode};
use seal::dpop::DpopError;

use crate::support::bodies::{observe, query};
use crate::support::record_harness::{A, B, HarnessOutcome, RecordHarness};
use crate::support::test_agents::{BUYER, SELLER};
use crate::support::test_signer::sign_envelope;

use RejectCode::SchemaUnsupported as Schema;

#[test]
fn an_unsupported_version_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for version in
        ["\"asp/0.2\"", "\"asp/2.0\"", "\"asp/0.1 \"", "\"ASP/0.1\"", "\"\"", "0.1", "1", "null", "[]", "{}"]
    {
        let envelope = harness.next(A, &query("qry_1")).with("version", version);
        harness.assert_refused(A, &envelope, Schema);
    }
    let envelope = harness.next(A, &query("qry_1")).without("version");
    harness.assert_refused(A, &envelope, Schema);
    let envelope = harness.next(A, &query("qry_1")).with_text("version", "asp/1.0");
    harness.assert_accepted(A, &envelope);
}

#[test]
fn an_unknown_performative_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for performative in ["ASK", "query", "Query", "QUERY ", "PROPOSE2"] {
        let envelope =
            harness.envelope(A, performative, r#"{"queryId":"qry_1","queryType":"price","subject":"menus"}"#);
        harness.assert_refused(A, &envelope, Schema);
    }
}

/// A message is dropped if a member that authentication needs is invalid. If another member is invalid, the message is
/// refused.
#[test]
fn every_member_of_the_envelope_is_validated() {
    let invalid_member =
        |name: &'static str| HarnessOutcome::Dropped(AuthenticationError::InvalidMember(name));
    let invalid_claim = |claim: &'static str| {
        HarnessOutcome::Dropped(AuthenticationError::InvalidProof(DpopError::InvalidClaim(claim)))
    };
    let malformed = || HarnessOutcome::Refused(Schema);
    let not_a_nonempty_string = ["null", "1", "true", "[]", "{}", "\"\""].as_slice();
    let cases: [(&str, bool, &[&str], HarnessOutcome); 20] = [
        (
            "messageId",
            true,
            &[&["\"x\"", "\"7d444840-9dc0-41d1-b245-5ffdce74fad2\""], not_a_nonempty_string].concat(),
            malformed(),
        ),
        ("sequenceNumber", true, &["null", "\"5\"", "-1", "1.5", "true", "[]", "{}"], malformed()),
        ("sender/orgId", true, not_a_nonempty_string, malformed()),
        ("sender/trustScore", true, &["null", "\"50\"", "-1", "100.5", "1e300", "true", "[]"], malformed()),
        (
            "recipient",
            false,
            &[&["\"https://b.example\"", "{\"id\":1}"], not_a_nonempty_string].concat(),
            malformed(),
        ),
        ("content", true, not_a_nonempty_string, malformed()),
        ("content/body", true, not_a_nonempty_string, malformed()),
        (
            "content/mimeType",
            false,
            &[&["\"text/plain\"", "\"application/ld+json\""], not_a_nonempty_string].concat(),
            malformed(),
        ),
        ("constraints", false, &["null", "1", "true", "[]", "\"\""], malformed()),
        (
            "constraints/maxResponseTimeMs",
            false,
            &["null", "0", "-1", "1.5", "\"9\"", "31622400001"],
            malformed(),
        ),
        ("constraints/maxTokenBudget", false, &["null", "-1", "1.5", "\"9\"", "[]"], malformed()),
        ("constraints/requiredTrustScore", false, &["null", "-1", "101", "\"9\"", "[]"], malformed()),
        (
            "constraints/allowedPerformatives",
            false,
            &["null", "1", "\"QUERY\"", "[1]", "[\"ASK\"]"],
            malformed(),
        ),
        ("integrity/previousHash", true, &[&["\"sha256:00\""], not_a_nonempty_string].concat(), malformed()),
        ("sender", true, not_a_nonempty_string, invalid_member("sender.agentId")),
        ("sender/agentId", true, &["null", "1", "true", "[]", "{}"], invalid_member("sender.agentId")),
        ("integrity", true, not_a_nonempty_string, invalid_member("integrity.hash")),
        ("performative", true, &["null", "1", "true", "[]", "{}"], invalid_claim("htm")),
        ("sessionId", true, &["null", "1", "true", "[]", "{}"], invalid_claim("htu")),
        (
            "timestamp",
            true,
            &[&["\"tomorrow\"", "\"2026-01-02\"", "\"2026-02-30T00:00:00Z\""], not_a_nonempty_string]
                .concat(),
            invalid_claim("iat"),
        ),
    ];
    let mut harness = RecordHarness::at(State::Conversing);
    for (path, is_required, invalid, expected) in cases {
        let mut base = harness.next(A, &query("qry_1"));
        if path.starts_with("constraints") {
            base = base.with("constraints", "{}");
            base = crate::support::editable_json::EditableJson::parse(&base.write());
        }
        for value in invalid {
            let signed = sign_envelope(&base.clone().with(path, value), &BUYER.keys);
            assert_eq!(harness.receive(&signed.text), expected, "{path} = {value}");
        }
        if is_required {
            let signed = sign_envelope(&base.clone().without(path), &BUYER.keys);
            assert_eq!(harness.receive(&signed.text), expected, "without {path}");
        }
    }
    harness.send(A, &query("qry_1"));
}

#[test]
fn the_members_that_authentication_needs_are_required() {
    let mut harness = RecordHarness::at(State::Conversing);
    let signed = harness.sign_next(A, &query("qry_1"));
    let json = crate::support::editable_json::EditableJson::parse(&signed.text);
    for (path, name) in [("integrity/hash", "integrity.hash"), ("integrity/signature", "integrity.signature")]
    {
        let text = json.clone().without(path).write();
        assert_eq!(harness.receive(&text), HarnessOutcome::Dropped(AuthenticationError::InvalidMember(name)));
        for invalid in ["null", "1", "true", "[]", "{}"] {
            let text = json.clone().with(path, invalid).write();
            assert_eq!(
                harness.receive(&text),
                HarnessOutcome::Dropped(AuthenticationError::InvalidMember(name)),
                "{invalid}"
            );
        }
    }
    // The hash covers the proof, so a message without a proof must be signed again.
    let without_proof = harness.next(A, &query("qry_1")).without("sender/dpopProof");
    let signed = sign_envelope(&without_proof, &BUYER.keys);
    assert_eq!(
        harness.receive(&signed.text),
        HarnessOutcome::Dropped(AuthenticationError::InvalidMember("sender.dpopProof"))
    );
    assert_eq!(harness.receive(&json.write()), HarnessOutcome::Accepted);
}

#[test]
fn unknown_members_are_kept_and_signed() {
    let mut harness = RecordHarness::at(State::Conversing);
    let mut envelope = harness.envelope(A, "OBSERVE", r#"{"subject":"x","mood":["glad",{"a":1.50}]}"#);
    for path in ["extra", "sender/extra", "content/extra", "integrity/extra"] {
        envelope = envelope.with(path, r#"{"b":2,  "a":"\u00e9"}"#);
    }
    let signed = sign_envelope(&envelope, &BUYER.keys);
    // Changing one of them invalidates the hash.
    for path in ["extra", "sender/extra", "content/extra", "integrity/extra", "content/body/mood"] {
        let json = crate::support::editable_json::EditableJson::parse(&signed.text);
        for changed in [json.clone().with(path, "1"), json.without(path)] {
            assert_eq!(
                harness.receive(&changed.write()),
                HarnessOutcome::Dropped(AuthenticationError::HashMismatch),
                "{path}"
            );
        }
    }
    assert_eq!(harness.receive(&signed.text), HarnessOutcome::Accepted);
    assert_eq!(harness.record.transcript().messages().last(), Some(&*signed.text), "the bytes are unchanged");
    let message = harness.authenticate(&signed.text).unwrap();
    let asp::message::Body::Observe(body) = &message.envelope.body else {
        panic!("the body is not an OBSERVE")
    };
    assert_eq!(body.other.get("mood").unwrap().as_str(), r#"["glad",{"a":1.50}]"#);
    assert_eq!(message.envelope.other.get("extra").unwrap().as_str(), r#"{"b":2,  "a":"\u00e9"}"#);
    assert!(message.envelope.sender.other.get("extra").is_some());
    assert!(message.envelope.content.other.get("extra").is_some());
    assert!(message.envelope.integrity.other.get("extra").is_some());
}

#[test]
fn ids_must_be_uuids_of_version_7() {
    let mut harness = RecordHarness::at(State::Conversing);
    let invalid_ids = [
        "7d444840-9dc0-41d1-b245-5ffdce74fad2",
        "01890a5d-ac96-674b-bcce-b302099a8057",
        "01890a5d-ac96-874b-bcce-b302099a8057",
        "01890a5d-ac96-774b-ccce-b302099a8057",
        "01890a5dac96774bbcceb302099a8057",
        "{01890a5d-ac96-774b-bcce-b302099a8057}",
        "00000000-0000-0000-0000-000000000000",
    ];
    for id in invalid_ids {
        for member in ["messageId", "sessionId"] {
            let envelope = harness.next(A, &query("qry_1")).with_text(member, id);
            harness.assert_refused(A, &envelope, Schema);
        }
    }
}

#[test]
fn the_recipient_must_be_the_other_side() {
    let mut harness = RecordHarness::at(State::Conversing);
    for invalid in ["agent://c.example/third", "agent://x.example/stranger", BUYER.agent().as_str()] {
        let envelope = harness.next(A, &observe("x")).with_text("recipient", invalid);
        harness.assert_refused(A, &envelope, RejectCode::Unauthorized);
        let envelope =
            harness.next(A, &observe("x")).with("recipient", &format!(r#"{{"agentId":"{invalid}"}}"#));
        harness.assert_refused(A, &envelope, RejectCode::Unauthorized);
    }
    // D18: an object is accepted too, and no recipient means every participant.
    let envelope =
        harness.next(A, &observe("x")).with("recipient", &format!(r#"{{"agentId":"{}"}}"#, SELLER.agent()));
    harness.assert_accepted(A, &envelope);
    let envelope = harness.next(B, &observe("x")).without("recipient");
    harness.assert_accepted(B, &envelope);
}

/// D20: the trust score that a sender states about itself has no effect.
#[test]
fn a_trust_score_of_zero_is_accepted() {
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.next(A, &observe("x")).with("sender/trustScore", "0");
    harness.assert_accepted(A, &envelope);
}
