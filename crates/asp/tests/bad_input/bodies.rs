//! The thirteen bodies: every member missing, and every member of another type.

use asp::machine::State;
use asp::{Code, Performative};

use crate::support::bodies::{full, members};
use crate::support::json::Json;
use crate::support::scene::{A, B, Scene};

use Code::SchemaUnsupported as Schema;

#[test]
fn every_member_of_every_body_must_be_what_it_should() {
    let mut scene = Scene::at(State::Conversing);
    let mut tried = 0;
    for performative in Performative::ALL {
        for (path, required, form) in members(performative) {
            let place = format!("content/body/{path}");
            for value in form.wrong() {
                let base = scene.envelope(B, performative.word(), full(performative));
                scene.refuses(B, &base.with(&place, value), Schema);
                tried += 1;
            }
            if *required {
                let base = scene.envelope(B, performative.word(), full(performative));
                scene.refuses(B, &base.without(&place), Schema);
                tried += 1;
            }
        }
    }
    assert!(tried > 400, "{tried}");
}

/// What is not required may be absent: the table above is not right by refusing everything.
#[test]
fn what_is_optional_may_be_absent() {
    for performative in Performative::ALL {
        let mut scene = Scene::at(State::Conversing);
        let mut envelope =
            scene.envelope(B, performative.word(), &full(performative).replace("prop_0", "prop_a"));
        for (path, required, _) in members(performative) {
            let place = format!("content/body/{path}");
            if !required && envelope.get(&place).is_some() {
                // The reference of a REJECT says what it rejects, and only that.
                if performative != Performative::Reject {
                    envelope = envelope.without(&place);
                }
            }
        }
        scene.takes(B, &envelope);
    }
}

/// Every table of members names all that the lawful body has: none is left untried.
#[test]
fn no_member_is_forgotten() {
    fn paths(json: &Json, at: &str, out: &mut Vec<String>) {
        let under = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
        match json {
            Json::Object(members) => {
                for (key, value) in members {
                    out.push(under(key));
                    paths(value, &under(key), out);
                }
            }
            Json::Array(items) => {
                if let Some(first) = items.first() {
                    paths(first, &under("0"), out);
                }
            }
            Json::Leaf(_) => {}
        }
    }
    for performative in Performative::ALL {
        let mut all = Vec::new();
        paths(&Json::parse(full(performative)), "", &mut all);
        let free = ["terms/pages", "data/a", "parameters/n", "data/rain"];
        for path in all.iter().filter(|path| !free.contains(&path.as_str())) {
            assert!(
                members(performative).iter().any(|(known, ..)| known == path),
                "{performative} has {path}, which is not tried"
            );
        }
    }
}

#[test]
fn a_body_is_an_object() {
    let mut scene = Scene::at(State::Conversing);
    for performative in Performative::ALL {
        for body in ["null", "1", "\"x\"", "[]", "{}", "[{}]"] {
            let envelope = scene.envelope(B, performative.word(), body);
            scene.refuses(B, &envelope, Schema);
        }
    }
}

#[test]
fn clarify_asks_or_answers_and_not_both() {
    let mut scene = Scene::at(State::Conversing);
    for body in [r#"{"inReplyTo":"x"}"#, r#"{"inReplyTo":"x","question":"a","answer":"b"}"#] {
        let envelope = scene.envelope(A, "CLARIFY", body);
        scene.refuses(A, &envelope, Schema);
    }
}

#[test]
fn an_invitation_lasts_a_time_that_can_be() {
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
        let mut scene = Scene::new();
        let body =
            format!(r#"{{"proposalId":"prop_1","type":"session-invitation","subject":"x","terms":{terms}}}"#);
        let envelope = scene.envelope(A, "PROPOSE", &body);
        scene.refuses(A, &envelope, Schema);
    }
}

#[test]
fn at_most_256_obligations() {
    let one = r#"{"party":"agent://b.example/seller","action":"print","deadline":"2026-01-05T00:00:00Z"}"#;
    let commit = |count: usize| {
        let list = vec![one; count].join(",");
        format!(r#"{{"commitmentId":"cmt_9","terms":{{"obligations":[{list}]}}}}"#)
    };
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.envelope(A, "COMMIT", &commit(257));
    scene.refuses(A, &envelope, Schema);
    let envelope = scene.envelope(A, "COMMIT", &commit(256));
    scene.takes(A, &envelope);
}
