//! The thirteen bodies: each member missing, and each member with the wrong type.

use asp::state_machine::State;
use asp::{Performative, RejectCode};

use crate::support::bodies::{full_body, members};
use crate::support::editable_json::EditableJson;
use crate::support::record_harness::{A, B, RecordHarness};

use RejectCode::SchemaUnsupported as Schema;

#[test]
fn every_member_of_every_body_is_validated() {
    let mut harness = RecordHarness::at(State::Conversing);
    let mut case_count = 0;
    for performative in Performative::ALL {
        for (path, is_required, member_type) in members(performative) {
            let member_path = format!("content/body/{path}");
            for value in member_type.invalid_values() {
                let envelope = harness.envelope(B, performative.as_str(), full_body(performative));
                harness.assert_refused(B, &envelope.with(&member_path, value), Schema);
                case_count += 1;
            }
            if *is_required {
                let envelope = harness.envelope(B, performative.as_str(), full_body(performative));
                harness.assert_refused(B, &envelope.without(&member_path), Schema);
                case_count += 1;
            }
        }
    }
    assert!(case_count > 400, "{case_count}");
}

/// Shows that the test above does not pass merely because everything is refused.
#[test]
fn optional_members_may_be_absent() {
    for performative in Performative::ALL {
        let mut harness = RecordHarness::at(State::Conversing);
        let mut envelope =
            harness.envelope(B, performative.as_str(), &full_body(performative).replace("prop_0", "prop_a"));
        for (path, is_required, _) in members(performative) {
            let member_path = format!("content/body/{path}");
            if !is_required && envelope.get(&member_path).is_some() {
                // Without its reference, a REJECT would refer to no open item here.
                if performative != Performative::Reject {
                    envelope = envelope.without(&member_path);
                }
            }
        }
        harness.assert_accepted(B, &envelope);
    }
}

/// The tables of members contain every member of the valid bodies.
#[test]
fn the_member_tables_are_complete() {
    fn collect_paths(json: &EditableJson, parent: &str, out: &mut Vec<String>) {
        let join = |name: &str| if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        match json {
            EditableJson::Object(members) => {
                for (key, value) in members {
                    out.push(join(key));
                    collect_paths(value, &join(key), out);
                }
            }
            EditableJson::Array(items) => {
                if let Some(first) = items.first() {
                    collect_paths(first, &join("0"), out);
                }
            }
            EditableJson::Leaf(_) => {}
        }
    }
    for performative in Performative::ALL {
        let mut all = Vec::new();
        collect_paths(&EditableJson::parse(full_body(performative)), "", &mut all);
        let unconstrained = ["terms/pages", "data/a", "parameters/n", "data/rain"];
        for path in all.iter().filter(|path| !unconstrained.contains(&path.as_str())) {
            assert!(
                members(performative).iter().any(|(known, ..)| known == path),
                "{performative} has {path}, which is not in the table"
            );
        }
    }
}

#[test]
fn a_body_that_is_not_an_object_or_is_empty_is_refused() {
    let mut harness = RecordHarness::at(State::Conversing);
    for performative in Performative::ALL {
        for body in ["null", "1", "\"x\"", "[]", "{}", "[{}]"] {
            let envelope = harness.envelope(B, performative.as_str(), body);
            harness.assert_refused(B, &envelope, Schema);
        }
    }
}

#[test]
fn clarify_needs_either_a_question_or_an_answer() {
    let mut harness = RecordHarness::at(State::Conversing);
    for body in [r#"{"inReplyTo":"x"}"#, r#"{"inReplyTo":"x","question":"a","answer":"b"}"#] {
        let envelope = harness.envelope(A, "CLARIFY", body);
        harness.assert_refused(A, &envelope, Schema);
    }
}

#[test]
fn an_invitation_with_an_invalid_duration_is_refused() {
    for terms in [
        r#"{"proposed_duration":0}"#,
        r#"{"proposed_duration":-1}"#,
        r#"{"proposed_duration":"3600"}"#,
        r#"{"proposed_duration":31622401}"#,
        r#"{"proposed_duration":1.5}"#,
        r#"{"proposed_duration":null}"#,
        r#"{"proposed_duration":9007199254740992}"#,
        r#"{"proposedDuration":0}"#,
        r#"{"proposedDuration":31622400001}"#,
        r#"{"proposedDuration":{}}"#,
    ] {
        let mut harness = RecordHarness::new();
        let body =
            format!(r#"{{"proposalId":"prop_1","type":"session-invitation","subject":"x","terms":{terms}}}"#);
        let envelope = harness.envelope(A, "PROPOSE", &body);
        harness.assert_refused(A, &envelope, Schema);
    }
}

#[test]
fn a_commit_has_at_most_256_obligations() {
    let obligation =
        r#"{"party":"agent://b.example/seller","action":"print","deadline":"2026-01-05T00:00:00Z"}"#;
    let commit = |count: usize| {
        let list = vec![obligation; count].join(",");
        format!(r#"{{"commitmentId":"cmt_9","terms":{{"obligations":[{list}]}}}}"#)
    };
    let mut harness = RecordHarness::at(State::Conversing);
    let envelope = harness.envelope(A, "COMMIT", &commit(257));
    harness.assert_refused(A, &envelope, Schema);
    let envelope = harness.envelope(A, "COMMIT", &commit(256));
    harness.assert_accepted(A, &envelope);
}
