//! Input without a canonical form, invalid JSON, and oversized JSON.

use asp::state_machine::State;
use asp::{AspLimits, AuthenticationError};
use seal::CanonicalError;
use seal::json::MAX_DEPTH;

use crate::support::bodies::query;
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, HarnessOutcome, RecordHarness};
use crate::support::test_agents::BUYER;
use crate::support::test_signer::sign_envelope;

/// Receives a message whose body has an additional member with this value.
fn receive_value(data: &str) -> HarnessOutcome {
    let mut harness = RecordHarness::at(State::Conversing);
    let mut envelope = harness.next(A, &query("qry_1"));
    envelope.set("content/body/extra", EditableJson::Leaf(data.to_owned()));
    let signed = sign_envelope(&envelope, &BUYER.keys);
    harness.receive(&signed.text)
}

fn canonical_error(outcome: HarnessOutcome) -> CanonicalError {
    match outcome {
        HarnessOutcome::Dropped(AuthenticationError::NotCanonical(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn integers_beyond_2_to_the_53_are_refused() {
    for number in ["9007199254740993", "-9007199254740993", "1e16", "123456789012345678901234567890"] {
        assert_eq!(
            canonical_error(receive_value(number)),
            CanonicalError::UnsafeInteger(number.to_owned()),
            "{number}"
        );
    }
    for number in ["9007199254740991", "-9007199254740991", "0.1", "1e21"] {
        assert_eq!(receive_value(number), HarnessOutcome::Accepted, "{number}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    assert_eq!(canonical_error(receive_value("1e400")), CanonicalError::NumberOutOfRange("1e400".to_owned()));
    assert_eq!(
        canonical_error(receive_value("-1e400")),
        CanonicalError::NumberOutOfRange("-1e400".to_owned())
    );
}

#[test]
fn a_duplicate_key_is_refused() {
    for data in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"a":1,"b":2,"a":3}}]"#] {
        assert_eq!(
            canonical_error(receive_value(data)),
            CanonicalError::DuplicateKey("a".to_owned()),
            "{data}"
        );
    }
}

/// If a member is duplicated, a reader that uses the first one and a reader that uses the last one see different messages.
#[test]
fn a_duplicate_member_of_the_envelope_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for member in ["version", "messageId", "sessionId", "performative", "content", "sender", "integrity"] {
        let signed = harness.sign_next(A, &query("qry_1"));
        let EditableJson::Object(mut members) = EditableJson::parse(&signed.text) else {
            panic!("the message is not an object")
        };
        let duplicate = members.iter().find(|(key, _)| key == member).unwrap().clone();
        members.insert(0, duplicate);
        let outcome = harness.receive(&EditableJson::Object(members).write());
        assert_eq!(canonical_error(outcome), CanonicalError::DuplicateKey(member.to_owned()));
    }
    for (outer, inner) in [("sender", "agentId"), ("sender", "dpopProof"), ("integrity", "hash")] {
        let signed = harness.sign_next(A, &query("qry_1"));
        let text =
            signed.text.replacen(&format!("\"{outer}\":{{"), &format!("\"{outer}\":{{\"{inner}\":\"x\","), 1);
        assert_eq!(canonical_error(harness.receive(&text)), CanonicalError::DuplicateKey(inner.to_owned()));
    }
}

#[test]
fn a_lone_surrogate_is_refused() {
    for data in [r#""\ud83d""#, r#""\ude00 x""#, r#"{"\ud83d":1}"#, r#""\ude00\ud83d""#] {
        assert!(matches!(canonical_error(receive_value(data)), CanonicalError::LoneSurrogate(_)), "{data}");
    }
    assert_eq!(receive_value(r#""\ud83d\ude00""#), HarnessOutcome::Accepted);
}

#[test]
fn invalid_json_is_dropped() {
    let mut harness = RecordHarness::at(State::Conversing);
    let valid = harness.sign_next(A, &query("qry_1")).text;
    let texts = [
        String::new(),
        " ".to_owned(),
        "NaN".to_owned(),
        valid.replace("\"sequenceNumber\":3", "\"sequenceNumber\":NaN"),
        valid.replace("\"sequenceNumber\":3", "\"sequenceNumber\":03"),
        valid.replace("\"sequenceNumber\":3", "\"sequenceNumber\":Infinity"),
        valid.replace("asp/0.1", "asp\u{1}/0.1"),
        valid.replace('"', "'"),
        format!("{valid}{valid}"),
        format!("{valid},"),
        format!("\u{feff}{valid}"),
        valid[..valid.len() - 1].to_owned(),
        format!("[{valid}"),
    ];
    for text in texts {
        assert_ne!(text, valid);
        let outcome = harness.receive(&text);
        assert!(
            matches!(outcome, HarnessOutcome::Dropped(AuthenticationError::NotJson(_))),
            "{outcome:?}: {text}"
        );
    }
    for text in ["[]", "{}", "null", "1", "\"x\"", &format!("[{valid}]")] {
        assert_eq!(
            harness.receive(text),
            HarnessOutcome::Dropped(AuthenticationError::InvalidMember("sender.agentId")),
            "{text}"
        );
    }
    assert_eq!(harness.receive(&valid), HarnessOutcome::Accepted);
}

#[test]
fn deeply_nested_json_is_dropped() {
    let nested_arrays = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let nested_objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let mut harness = RecordHarness::at(State::Conversing);
    for nested_value in [
        nested_arrays(200_000),
        nested_objects(40_000),
        "[".repeat(200_000),
        nested_arrays(MAX_DEPTH as usize + 2),
    ] {
        let valid = harness.sign_next(A, &query("qry_1")).text;
        harness.limits = AspLimits { max_message_bytes: 1 << 20, ..AspLimits::default() };
        let text = valid.replacen("\"version\"", &format!("\"deep\":{nested_value},\"version\""), 1);
        let outcome = harness.receive(&text);
        assert!(matches!(outcome, HarnessOutcome::Dropped(AuthenticationError::NotJson(_))), "{outcome:?}");
    }
    // The value is inside three objects, so its own depth must be less than the maximum.
    assert_eq!(receive_value(&nested_arrays(MAX_DEPTH as usize - 4)), HarnessOutcome::Accepted);
}

#[test]
fn a_body_of_ten_megabytes_is_dropped() {
    let long = format!("\"{}\"", "a".repeat(10_000_000));
    assert_eq!(receive_value(&long), HarnessOutcome::Dropped(AuthenticationError::TooLong(256 * 1024)));
    // The size limit is checked before anything is parsed, so invalid JSON gets the same error.
    let mut harness = RecordHarness::at(State::Conversing);
    let outcome = harness.receive(&"[".repeat(10_000_000));
    assert_eq!(outcome, HarnessOutcome::Dropped(AuthenticationError::TooLong(256 * 1024)));
}
