//! Negotiation (chapter 5). Every request gets a valid answer that never grants more than was requested.

mod language_lookup;
mod random_requests;

use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, BuildHasherDefault};

use aaep::SubscriptionId;
use aaep::check::Validator;
use aaep::json::Tape;
use aaep::message::{
    Message, ReasonCode, SubscriptionAccepted, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use aaep::negotiate::{Offer, Terms, answer_request, renegotiate};
use aaep::recording::{InputPosition, RecordingChecker, RecordingLimits, SequenceMode};
use aaep::rule::{Findings, ValidationMode};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::byte_choices::RandomChoices;
use crate::support::{malformed_json, random_bytes};
use random_requests::{EVENT_TYPES, random_capabilities, random_offer};
use testing::property::cases;

type NegotiationResult = Result<(SubscriptionAccepted, Terms), SubscriptionRejected>;

const CAPABILITY_NAMES: [&str; 12] = [
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
    fn every_request_gets_an_answer_without_findings(bytes in random_bytes(120)) {
        let mut choices = RandomChoices::new(&bytes);
        let (offer, requested) = (random_offer(&mut choices), random_capabilities(&mut choices));
        let request = request(random_version(&mut choices), &requested);
        let mut messages = vec![Message::SubscriptionRequest(request.clone())];
        match negotiate(&request, &offer) {
            Ok((accepted, terms)) => {
                prop_assert_eq!(&accepted.honored_capabilities, &terms.capabilities());
                messages.push(Message::SubscriptionAccepted(accepted));
            }
            Err(rejected) => messages.push(Message::SubscriptionRejected(rejected)),
        }
        check_valid(messages.last().expect("two messages"))?;
        check_conversation(&messages)?;
    }

    #[test]
    fn honored_capabilities_never_exceed_the_request(bytes in random_bytes(120)) {
        let mut choices = RandomChoices::new(&bytes);
        let (offer, requested) = (random_offer(&mut choices), random_capabilities(&mut choices));
        if let Ok((accepted, terms)) = negotiate(&request("1.0.0", &requested), &offer) {
            check_grants_at_most_what_was_requested(&requested, &honored(accepted), &terms)?;
        }
    }

    #[test]
    fn honored_capabilities_are_complete_and_can_be_restored(bytes in random_bytes(120)) {
        let mut choices = RandomChoices::new(&bytes);
        let (offer, requested) = (random_offer(&mut choices), random_capabilities(&mut choices));
        let Ok((accepted, terms)) = negotiate(&request("1.0.0", &requested), &offer) else { return Ok(()) };
        let stored = Message::parse(&Message::SubscriptionAccepted(accepted.clone()).to_json());
        let Some(Message::SubscriptionAccepted(stored)) = stored else { panic!("{stored:?}") };
        let capabilities = honored(accepted);
        for key in CAPABILITY_NAMES {
            let is_omitted = match key {
                "max_events_per_second" => terms.max_events_per_second.is_none(),
                "languages" => terms.languages.is_empty(),
                "supported_conformance_levels" => terms.levels.is_empty(),
                "pace_wpm" => terms.pace_wpm.is_none(),
                _ => false,
            };
            prop_assert_eq!(capabilities.contains_key(key), !is_omitted, "{}", key);
        }
        let restored = Terms::from_capabilities(&terms.version, &stored.honored_capabilities, &offer.extensions);
        prop_assert_eq!(restored.as_ref(), Some(&terms));
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        prop_assert_eq!(hasher.hash_one(&restored), hasher.hash_one(Some(terms)));
    }

    #[test]
    fn a_renegotiation_equals_a_new_request_for_the_merged_capabilities(bytes in random_bytes(200)) {
        let mut choices = RandomChoices::new(&bytes);
        let offer = random_offer(&mut choices);
        let (first, second) = (random_capabilities(&mut choices), random_capabilities(&mut choices));
        let Ok((accepted, terms)) = negotiate(&request("1.0.0", &first), &offer) else { return Ok(()) };
        let change = SubscriptionRenegotiate::new(id(), request("1.0.0", &second).capabilities);
        let changed = renegotiate(&terms, &change, &offer);

        let mut merged = honored(accepted.clone());
        // An answer omits empty lists. For such a member, a renegotiation keeps the value of the first request.
        for key in ["languages", "supported_conformance_levels"] {
            if let (false, Some(requested_value)) = (merged.contains_key(key), first.get(key)) {
                merged.insert(key.to_owned(), requested_value.clone());
            }
        }
        // Capabilities of a dropped extension are dropped too.
        if let Some(Value::Array(uris)) = second.get("supported_extensions") {
            for dropped in terms.extensions.iter().filter(|extension| !uris.contains(&json!(extension.uri()))) {
                merged.remove(dropped.prefix());
            }
        }
        merged.extend(readable_members(&second));
        let fresh = negotiate(&request("1.0.0", &merged), &offer);
        match (&changed, &fresh) {
            (Ok((_, changed)), Ok((_, fresh))) => prop_assert_eq!(changed, fresh),
            (Err(changed), Err(fresh)) => prop_assert_eq!(changed, fresh),
            _ => prop_assert!(false, "{:?}\n{:?}", changed, fresh),
        }

        let mut messages = vec![
            Message::SubscriptionRequest(request("1.0.0", &first)),
            Message::SubscriptionAccepted(accepted),
            Message::SubscriptionRenegotiate(change),
        ];
        messages.push(match changed {
            Ok((accepted, _)) => Message::SubscriptionAccepted(accepted),
            Err(rejected) => Message::SubscriptionRejected(rejected),
        });
        check_valid(&messages[3])?;
        check_conversation(&messages)?;
    }

    #[test]
    fn unknown_capability_names_change_nothing(bytes in random_bytes(120), extra_bytes in random_bytes(60)) {
        let mut choices = RandomChoices::new(&bytes);
        let (offer, requested) = (random_offer(&mut choices), random_capabilities(&mut choices));
        let expected = negotiate(&request("1.0.0", &requested), &offer);
        let mut choices = RandomChoices::new(&extra_bytes);
        let mut members: Vec<_> = requested.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        for number in 0..=choices.below(4) {
            let name = choices.pick(&["haptic", "azlearn.tones", "@id", "aaep", "", "languages_", "x\\u0301"]);
            let index = choices.below(members.len() + 1);
            members.insert(index, format!("\"{name}{number}\":{}", malformed_json::json(&mut choices, 3)));
        }
        let text = format!("{{{}}}", members.join(","));
        // JSON that is nested too deeply is not parsed.
        let Some(request_with_extras) = try_parse_request("1.0.0", &text) else { return Ok(()) };
        let actual = negotiate(&request_with_extras, &offer);
        prop_assert_eq!(expected.map(|(_, terms)| terms), actual.map(|(_, terms)| terms), "{}", text);
    }

    #[test]
    fn the_same_request_gets_the_same_answer(bytes in random_bytes(120)) {
        let mut choices = RandomChoices::new(&bytes);
        let (offer, requested) = (random_offer(&mut choices), random_capabilities(&mut choices));
        let request = request(random_version(&mut choices), &requested);
        prop_assert_eq!(negotiate(&request, &offer), negotiate(&request.clone(), &offer.clone()));
    }

    #[test]
    fn every_malformed_request_gets_a_valid_answer(bytes in random_bytes(60), member_bytes in random_bytes(120)) {
        let offer = random_offer(&mut RandomChoices::new(&bytes));
        let mut choices = RandomChoices::new(&member_bytes);
        let members: Vec<_> = (0..8)
            .map(|_| {
                let name = choices.pick(&CAPABILITY_NAMES);
                format!("\"{name}\":{}", malformed_json::json(&mut choices, 2))
            })
            .collect();
        let Some(request) = try_parse_request("1.0.0", &format!("{{{}}}", members.join(","))) else { return Ok(()) };
        let answer = match negotiate(&request, &offer) {
            Ok((accepted, _)) => Message::SubscriptionAccepted(accepted),
            Err(rejected) => Message::SubscriptionRejected(rejected),
        };
        check_valid(&answer)?;
        check_conversation(&[Message::SubscriptionRequest(request), answer])?;
    }
}

#[test]
fn the_generator_reaches_both_answers_and_every_reason() {
    let (mut accepted, mut reasons) = (0, Vec::new());
    for seed in 0..4000_u32 {
        let bytes: Vec<_> = (0..120_u32)
            .map(|at| (seed.wrapping_add(at * 977).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let mut choices = RandomChoices::new(&bytes);
        let (offer, requested) = (random_offer(&mut choices), random_capabilities(&mut choices));
        match negotiate(&request(random_version(&mut choices), &requested), &offer) {
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
        assert!(reasons.iter().filter(|code| **code == reason).count() > 20, "{reason}");
    }
}

/// Checks with a second implementation that nothing is granted beyond the request (§5.4.4).
fn check_grants_at_most_what_was_requested(
    requested: &Map<String, Value>,
    honored: &Map<String, Value>,
    terms: &Terms,
) -> Result<(), TestCaseError> {
    let is_subset = |key: &str, default: Value| {
        let requested_value = match requested.get(key) {
            Some(Value::Array(requested_value)) => requested_value.clone(),
            _ => default.as_array().cloned().unwrap_or_default(),
        };
        honored
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .all(|item| requested_value.contains(item))
    };
    if let Some(requested_value) = requested.get("max_events_per_second").and_then(Value::as_u64) {
        let granted = honored.get("max_events_per_second").and_then(Value::as_u64);
        prop_assert!(
            granted.is_some_and(|granted| granted <= requested_value),
            "{:?} of {}",
            granted,
            requested_value
        );
    }
    prop_assert!(is_subset("languages", json!(["en-US"])));
    prop_assert!(is_subset("coalesce_boundaries", json!(["sentence", "completion"])));
    prop_assert!(is_subset("supported_conformance_levels", json!([1])));
    prop_assert!(is_subset("supported_extensions", json!([])));
    for flag in ["supports_confirmation_reply", "supports_clarification_reply"] {
        prop_assert!(honored[flag] == json!(false) || requested.get(flag) == Some(&json!(true)), "{}", flag);
    }
    if requested.get("accept_signed_manifests_only") == Some(&json!(true)) {
        prop_assert_eq!(&honored["accept_signed_manifests_only"], &json!(true));
    }
    let filters = requested.get("event_filters");
    let filter_list = |name: &str| filters.and_then(|filters| filters.get(name)).and_then(Value::as_array);
    for event_type in EVENT_TYPES {
        let is_extension_type = terms
            .extensions
            .iter()
            .any(|extension| event_type.starts_with(&format!("{}:", extension.prefix())));
        let is_included = match filter_list("include") {
            Some(include) => include.iter().any(|pattern| matches(pattern, event_type)),
            None => event_type.starts_with("aaep:agent."),
        };
        let is_excluded =
            filter_list("exclude").into_iter().flatten().any(|pattern| matches(pattern, event_type));
        prop_assert_eq!(
            terms.includes_type(event_type),
            (is_included || is_extension_type) && !is_excluded,
            "{}",
            event_type
        );
    }
    for (name, value) in honored {
        prop_assert!(CAPABILITY_NAMES.contains(&&**name) || requested.get(name) == Some(value), "{}", name);
    }
    Ok(())
}

fn matches(pattern: &Value, event_type: &str) -> bool {
    let pattern = pattern.as_str().expect("a string").replace("https://aaep-protocol.org/types/", "aaep:");
    match pattern.strip_suffix('*') {
        Some(prefix) => event_type.starts_with(prefix),
        None => pattern == event_type,
    }
}

/// Returns the members that can be parsed. All other members count as absent, so their previous values remain.
fn readable_members(requested: &Map<String, Value>) -> Map<String, Value> {
    let is_unreadable = |key: &str, value: &Value| match key {
        "preferred_verbosity" => {
            !["terse", "normal", "detailed"].contains(&value.as_str().unwrap_or_default())
        }
        "cognitive_load" => !["low", "medium", "high"].contains(&value.as_str().unwrap_or_default()),
        _ => value.is_object() && value.to_string().len() > 4096,
    };
    requested
        .iter()
        .filter(|(key, value)| !is_unreadable(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Checks that strict mode has no finding for the message, not even a warning.
fn check_valid(message: &Message) -> Result<(), TestCaseError> {
    let text = message.to_json();
    let mut tape = Tape::default();
    let doc = tape.read(&text).expect("JSON");
    let mut findings = Findings::new(ValidationMode::Strict);
    Validator::new().check(&doc, &mut findings);
    prop_assert!(findings.list().is_empty(), "{:?}\n{}", findings.list(), text);
    Ok(())
}

/// Checks that the conversation has no finding about order or terms, and that nothing is left open.
fn check_conversation(messages: &[Message]) -> Result<(), TestCaseError> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut recording = RecordingChecker::new(SequenceMode::Always, RecordingLimits::default(), hasher);
    let mut findings = Findings::new(ValidationMode::Strict);
    for message in messages {
        recording.check_message(message, InputPosition::default(), &mut findings);
    }
    prop_assert!(findings.list().is_empty(), "{:?}\n{:?}", findings.list(), messages);
    prop_assert!(recording.finish(&findings).is_empty());
    Ok(())
}

fn negotiate(request: &SubscriptionRequest, offer: &Offer) -> NegotiationResult {
    answer_request(request, offer, id())
}

fn id() -> SubscriptionId {
    SubscriptionId::parse("sub_8a4f2c9d").expect("an id")
}

fn random_version(choices: &mut RandomChoices<'_>) -> &'static str {
    choices.pick(&["1.0.0", "1.0.0", "1.0.0", "1.2.3", "0.1.0-draft", "2.0.0", "99.99.99", "01.0.0", "one"])
}

fn request(version: &str, requested: &Map<String, Value>) -> SubscriptionRequest {
    parse_request(version, &Value::Object(requested.clone()).to_string())
}

fn parse_request(version: &str, capabilities: &str) -> SubscriptionRequest {
    try_parse_request(version, capabilities).expect("a request")
}

fn try_parse_request(version: &str, capabilities: &str) -> Option<SubscriptionRequest> {
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
