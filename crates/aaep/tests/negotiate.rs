//! Negotiation (chapter 5): whatever is asked, of whomever, the answer is lawful and never wider than the wish.

mod languages;
mod wishes;

use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, BuildHasherDefault};

use aaep::SubscriptionId;
use aaep::check::Validator;
use aaep::json::Tape;
use aaep::message::{
    Message, ReasonCode, SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use aaep::negotiate::{Offer, Terms, answer, renegotiate};
use aaep::recording::{Limits, Place, Recording, Sequence};
use aaep::rule::{Face, Findings};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::choices::Choices;
use crate::support::{decisions, odd};
use testing::property::cases;
use wishes::{EVENT_TYPES, offer, wish};

type Answer = Result<(SubscriptionAccepted, Terms), SubscriptionRejected>;

const KEYS: [&str; 12] = [
    "max_events_per_second",
    "preferred_verbosity",
    "languages",
    "supports_confirmation_reply",
    "supports_clarification_reply",
    "coalesce_boundaries",
    "event_filters",
    "supported_conformance_levels",
    "supported_extensions",
    "cognitive_load",
    "pace_wpm",
    "accept_signed_manifests_only",
];

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn every_request_gets_an_answer_that_sayso_itself_finds_nothing_wrong_with(bytes in decisions(120)) {
        let mut choices = Choices::new(&bytes);
        let (offer, wish) = (offer(&mut choices), wish(&mut choices));
        let request = request(version(&mut choices), &wish);
        let mut talk = vec![Message::SubscriptionRequest(request.clone())];
        match ask(&request, &offer) {
            Ok((accepted, terms)) => {
                prop_assert_eq!(&accepted.honored_capabilities, &terms.capabilities());
                talk.push(Message::SubscriptionAccepted(accepted));
            }
            Err(rejected) => talk.push(Message::SubscriptionRejected(rejected)),
        }
        lawful(talk.last().expect("two"))?;
        recorded(&talk)?;
    }

    #[test]
    fn what_is_honored_is_never_wider_in_any_capability(bytes in decisions(120)) {
        let mut choices = Choices::new(&bytes);
        let (offer, wish) = (offer(&mut choices), wish(&mut choices));
        if let Ok((accepted, terms)) = ask(&request("1.0.0", &wish), &offer) {
            not_wider(&wish, &honored(accepted), &terms)?;
        }
    }

    #[test]
    fn what_is_honored_is_said_in_full_and_can_be_restored(bytes in decisions(120)) {
        let mut choices = Choices::new(&bytes);
        let (offer, wish) = (offer(&mut choices), wish(&mut choices));
        let Ok((accepted, terms)) = ask(&request("1.0.0", &wish), &offer) else { return Ok(()) };
        let stored = Message::parse(&Message::SubscriptionAccepted(accepted.clone()).to_json());
        let Some(Message::SubscriptionAccepted(stored)) = stored else { panic!("{stored:?}") };
        let said = honored(accepted);
        for key in KEYS {
            let unsayable = match key {
                "max_events_per_second" => terms.max_events_per_second.is_none(),
                "languages" => terms.languages.is_empty(),
                "supported_conformance_levels" => terms.levels.is_empty(),
                "pace_wpm" => terms.pace_wpm.is_none(),
                _ => false,
            };
            prop_assert_eq!(said.contains_key(key), !unsayable, "{}", key);
        }
        let again = Terms::from_capabilities(&terms.version, &stored.honored_capabilities, &offer.extensions);
        prop_assert_eq!(again.as_ref(), Some(&terms));
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        prop_assert_eq!(hasher.hash_one(&again), hasher.hash_one(Some(terms)));
    }

    #[test]
    fn a_renegotiation_is_a_fresh_request_for_the_merged_wish(bytes in decisions(200)) {
        let mut choices = Choices::new(&bytes);
        let offer = offer(&mut choices);
        let (first, second) = (wish(&mut choices), wish(&mut choices));
        let Ok((accepted, terms)) = ask(&request("1.0.0", &first), &offer) else { return Ok(()) };
        let change = SubscriptionRenegotiate::new(id(), request("1.0.0", &second).capabilities);
        let changed = renegotiate(&terms, &change, &offer);

        let mut merged = honored(accepted.clone());
        // What nobody could say is asked for again as it was.
        for key in ["languages", "supported_conformance_levels"] {
            if let (false, Some(asked)) = (merged.contains_key(key), first.get(key)) {
                merged.insert(key.to_owned(), asked.clone());
            }
        }
        // What was asked of an extension goes with it.
        if let Some(Value::Array(uris)) = second.get("supported_extensions") {
            for dropped in terms.extensions.iter().filter(|extension| !uris.contains(&json!(extension.uri()))) {
                merged.remove(dropped.prefix());
            }
        }
        merged.extend(readable(&second));
        let fresh = ask(&request("1.0.0", &merged), &offer);
        match (&changed, &fresh) {
            (Ok((_, changed)), Ok((_, fresh))) => prop_assert_eq!(changed, fresh),
            (Err(changed), Err(fresh)) => prop_assert_eq!(changed, fresh),
            _ => prop_assert!(false, "{:?}\n{:?}", changed, fresh),
        }

        let mut talk = vec![
            Message::SubscriptionRequest(request("1.0.0", &first)),
            Message::SubscriptionAccepted(accepted),
            Message::SubscriptionRenegotiate(change),
        ];
        talk.push(match changed {
            Ok((accepted, _)) => Message::SubscriptionAccepted(accepted),
            Err(rejected) => Message::SubscriptionRejected(rejected),
        });
        lawful(&talk[3])?;
        recorded(&talk)?;
    }

    #[test]
    fn names_that_nobody_knows_change_nothing(bytes in decisions(120), strange in decisions(60)) {
        let mut choices = Choices::new(&bytes);
        let (offer, wish) = (offer(&mut choices), wish(&mut choices));
        let plain = ask(&request("1.0.0", &wish), &offer);
        let mut choices = Choices::new(&strange);
        let mut members: Vec<_> = wish.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        for number in 0..=choices.below(4) {
            let name = choices.of(&["haptic", "azlearn.tones", "@id", "aaep", "", "languages_", "x\\u0301"]);
            let place = choices.below(members.len() + 1);
            members.insert(place, format!("\"{name}{number}\":{}", odd::json(&mut choices, 3)));
        }
        let text = format!("{{{}}}", members.join(","));
        // Nested too deep it is no JSON that we read.
        let Some(strange) = maybe_parsed("1.0.0", &text) else { return Ok(()) };
        let strange = ask(&strange, &offer);
        prop_assert_eq!(plain.map(|(_, terms)| terms), strange.map(|(_, terms)| terms), "{}", text);
    }

    #[test]
    fn the_same_request_gets_the_same_answer(bytes in decisions(120)) {
        let mut choices = Choices::new(&bytes);
        let (offer, wish) = (offer(&mut choices), wish(&mut choices));
        let request = request(version(&mut choices), &wish);
        prop_assert_eq!(ask(&request, &offer), ask(&request.clone(), &offer.clone()));
    }

    #[test]
    fn no_odd_wish_goes_unanswered(bytes in decisions(60), strange in decisions(120)) {
        let offer = offer(&mut Choices::new(&bytes));
        let mut choices = Choices::new(&strange);
        let members: Vec<_> =
            (0..8).map(|_| format!("\"{}\":{}", choices.of(&KEYS), odd::json(&mut choices, 2))).collect();
        let Some(request) = maybe_parsed("1.0.0", &format!("{{{}}}", members.join(","))) else { return Ok(()) };
        let answer = match ask(&request, &offer) {
            Ok((accepted, _)) => Message::SubscriptionAccepted(accepted),
            Err(rejected) => Message::SubscriptionRejected(rejected),
        };
        lawful(&answer)?;
        recorded(&[Message::SubscriptionRequest(request), answer])?;
    }
}

#[test]
fn the_generator_reaches_both_answers_and_every_reason() {
    let (mut accepted, mut reasons) = (0, Vec::new());
    for seed in 0..4000_u32 {
        let bytes: Vec<_> = (0..120_u32)
            .map(|at| (seed.wrapping_add(at * 977).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let mut choices = Choices::new(&bytes);
        let (offer, wish) = (offer(&mut choices), wish(&mut choices));
        match ask(&request(version(&mut choices), &wish), &offer) {
            Ok(_) => accepted += 1,
            Err(rejected) => reasons.push(rejected.reason_code),
        }
    }
    assert!(accepted > 1000, "{accepted}");
    for reason in [
        ReasonCode::VersionUnsupported,
        ReasonCode::CapabilitiesIncompatible,
        ReasonCode::ManifestSignatureRequired,
    ] {
        assert!(reasons.iter().filter(|it| **it == reason).count() > 20, "{reason}");
    }
}

/// What §5.4.4 says, read a second time.
fn not_wider(
    wish: &Map<String, Value>,
    honored: &Map<String, Value>,
    terms: &Terms,
) -> Result<(), TestCaseError> {
    let subset = |key: &str, default: Value| {
        let asked = match wish.get(key) {
            Some(Value::Array(asked)) => asked.clone(),
            _ => default.as_array().cloned().unwrap_or_default(),
        };
        honored.get(key).and_then(Value::as_array).into_iter().flatten().all(|item| asked.contains(item))
    };
    if let Some(asked) = wish.get("max_events_per_second").and_then(Value::as_u64) {
        let given = honored.get("max_events_per_second").and_then(Value::as_u64);
        prop_assert!(given.is_some_and(|given| given <= asked), "{:?} of {}", given, asked);
    }
    prop_assert!(subset("languages", json!(["en-US"])));
    prop_assert!(subset("coalesce_boundaries", json!(["sentence", "completion"])));
    prop_assert!(subset("supported_conformance_levels", json!([1])));
    prop_assert!(subset("supported_extensions", json!([])));
    for flag in ["supports_confirmation_reply", "supports_clarification_reply"] {
        prop_assert!(honored[flag] == json!(false) || wish.get(flag) == Some(&json!(true)), "{}", flag);
    }
    if wish.get("accept_signed_manifests_only") == Some(&json!(true)) {
        prop_assert_eq!(&honored["accept_signed_manifests_only"], &json!(true));
    }
    let filters = wish.get("event_filters");
    let list = |name: &str| filters.and_then(|filters| filters.get(name)).and_then(Value::as_array);
    for event_type in EVENT_TYPES {
        let listed = terms
            .extensions
            .iter()
            .any(|extension| event_type.starts_with(&format!("{}:", extension.prefix())));
        let included = match list("include") {
            Some(include) => include.iter().any(|pattern| matches(pattern, event_type)),
            None => event_type.starts_with("aaep:agent."),
        };
        let excluded = list("exclude").into_iter().flatten().any(|pattern| matches(pattern, event_type));
        prop_assert_eq!(terms.wants(event_type), (included || listed) && !excluded, "{}", event_type);
    }
    for (name, value) in honored {
        prop_assert!(KEYS.contains(&&**name) || wish.get(name) == Some(value), "{}", name);
    }
    Ok(())
}

fn matches(pattern: &Value, event_type: &str) -> bool {
    let pattern = pattern.as_str().expect("a string").replace("https://aaep-protocol.org/types/", "aaep:");
    match pattern.strip_suffix('*') {
        Some(beginning) => event_type.starts_with(beginning),
        None => pattern == event_type,
    }
}

/// What of a wish can be read; the rest is not said, and so keeps what was.
fn readable(wish: &Map<String, Value>) -> Map<String, Value> {
    let unreadable = |key: &str, value: &Value| match key {
        "preferred_verbosity" => {
            !["terse", "normal", "detailed"].contains(&value.as_str().unwrap_or_default())
        }
        "cognitive_load" => !["low", "medium", "high"].contains(&value.as_str().unwrap_or_default()),
        _ => value.is_object() && value.to_string().len() > 4096,
    };
    wish.iter()
        .filter(|(key, value)| !unreadable(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// No finding, not even a warning, in the strict face.
fn lawful(message: &Message) -> Result<(), TestCaseError> {
    let text = message.to_json();
    let mut tape = Tape::default();
    let doc = tape.read(&text).expect("JSON");
    let mut findings = Findings::new(Face::Strict);
    Validator::new().check(&doc, &mut findings);
    prop_assert!(findings.list().is_empty(), "{:?}\n{}", findings.list(), text);
    Ok(())
}

/// No finding about the order and the terms of what was said, and nothing left open.
fn recorded(talk: &[Message]) -> Result<(), TestCaseError> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut recording = Recording::new(Sequence::Always, Limits::default(), hasher);
    let mut findings = Findings::new(Face::Strict);
    for message in talk {
        recording.message(message, Place::default(), &mut findings);
    }
    prop_assert!(findings.list().is_empty(), "{:?}\n{:?}", findings.list(), talk);
    prop_assert!(recording.finish().is_empty());
    Ok(())
}

fn ask(request: &SubscriptionRequest, offer: &Offer) -> Answer {
    answer(request, offer, id())
}

fn id() -> SubscriptionId {
    SubscriptionId::parse("sub_8a4f2c9d").expect("an id")
}

fn version(choices: &mut Choices<'_>) -> &'static str {
    choices.of(&["1.0.0", "1.0.0", "1.0.0", "1.2.3", "0.1.0-draft", "2.0.0", "99.99.99", "01.0.0", "one"])
}

fn request(version: &str, wish: &Map<String, Value>) -> SubscriptionRequest {
    parsed(version, &Value::Object(wish.clone()).to_string())
}

fn parsed(version: &str, capabilities: &str) -> SubscriptionRequest {
    maybe_parsed(version, capabilities).expect("a request")
}

fn maybe_parsed(version: &str, capabilities: &str) -> Option<SubscriptionRequest> {
    let text = format!(
        r#"{{"type":"subscription.request","aaep_version":"{version}","subscriber_id":"reader","capabilities":{capabilities}}}"#
    );
    match Message::parse(&text)? {
        Message::SubscriptionRequest(request) => Some(request),
        other => panic!("{other:?}"),
    }
}

fn honored(accepted: SubscriptionAccepted) -> Map<String, Value> {
    let text = Message::SubscriptionAccepted(accepted).to_json();
    match serde_json::from_str::<Value>(&text).expect("JSON")["honored_capabilities"].take() {
        Value::Object(honored) => honored,
        other => panic!("{other}"),
    }
}
