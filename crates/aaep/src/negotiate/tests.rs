//! Tests for the negotiation of each capability, and for each decision about negotiation.

use super::*;
use crate::event::{CoalesceHint, Verbosity};
use crate::json::RawJson;
use crate::message::{Capabilities, CognitiveLoad, Message};

fn offer() -> Offer {
    let mut offer = Offer::new(crate::event::Producer::new("bank"));
    offer.extensions.extend(Extension::new("https://example.org/medai/v1", "medai"));
    offer.extensions.extend(Extension::new("https://example.net/medai/v1", "medai"));
    offer
}

fn parse_capabilities(capabilities: &str) -> Capabilities {
    let text = format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"reader","capabilities":{capabilities}}}"#
    );
    match Message::parse(&text) {
        Some(Message::SubscriptionRequest(request)) => request.capabilities,
        other => unreachable!("{other:?}"),
    }
}

fn negotiate(
    capabilities: &str,
    offer: &Offer,
) -> Result<(SubscriptionAccepted, Terms), SubscriptionRejected> {
    let request = SubscriptionRequest::new("1.0.0", "reader", parse_capabilities(capabilities));
    answer_request(&request, offer, SubscriptionId::parse("sub_1").unwrap())
}

fn terms(capabilities: &str, offer: &Offer) -> Terms {
    negotiate(capabilities, offer).unwrap().1
}

fn notes(capabilities: &str, offer: &Offer) -> String {
    negotiate(capabilities, offer).unwrap().0.negotiation_notes.unwrap_or_default()
}

fn rejection(capabilities: &str, offer: &Offer) -> SubscriptionRejected {
    negotiate(capabilities, offer).unwrap_err()
}

fn change(terms: &Terms, capabilities: &str, offer: &Offer) -> Result<Terms, SubscriptionRejected> {
    let id = SubscriptionId::parse("sub_1").unwrap();
    let request = SubscriptionRenegotiate::new(id, parse_capabilities(capabilities));
    renegotiate(terms, &request, offer).map(|(_, terms)| terms)
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_request_gets_explicit_defaults() {
    // C-C6
    let (accepted, terms) = negotiate("{}", &offer()).unwrap();
    let expected = r#"{"preferred_verbosity":"normal","languages":["en-US"],"supports_confirmation_reply":false,"supports_clarification_reply":false,"coalesce_boundaries":["sentence","completion"],"event_filters":{"include":["aaep:agent.*"],"exclude":[]},"supported_conformance_levels":[1],"supported_extensions":[],"cognitive_load":"medium","accept_signed_manifests_only":false}"#;
    assert_eq!(accepted.honored_capabilities, parse_capabilities(expected));
    assert_eq!((terms.max_events_per_second, terms.pace_wpm), (None, None));
    assert_eq!((accepted.negotiation_notes, accepted.signed_manifest), (None, None));
    assert_eq!((accepted.producer.agent_id.as_str(), accepted.aaep_version.as_str()), ("bank", "1.0.0"));
}

#[test]
fn the_lower_rate_is_honored() {
    let mut offer = offer();
    assert_eq!(terms(r#"{"max_events_per_second":7}"#, &offer).max_events_per_second, Some(7));
    // The schema's limit.
    assert_eq!(terms(r#"{"max_events_per_second":900000}"#, &offer).max_events_per_second, Some(100_000));
    offer.max_events_per_second = Some(20);
    assert_eq!(terms(r#"{"max_events_per_second":7}"#, &offer).max_events_per_second, Some(7));
    assert_eq!(terms(r#"{"max_events_per_second":50}"#, &offer).max_events_per_second, Some(20));
    assert_eq!(terms("{}", &offer).max_events_per_second, Some(20));
    assert_eq!(notes("{}", &offer), "At most 20 events per second are sent.");
    offer.max_events_per_second = Some(0);
    assert_eq!(terms("{}", &offer).max_events_per_second, Some(1));
    // A rate of 0 cannot be honored, because the minimum is 1.
    assert_eq!(
        rejection(r#"{"max_events_per_second":0}"#, &offer).reason_code,
        ReasonCode::CapabilitiesIncompatible
    );
}

#[test]
fn verbosity_and_load_are_honored_and_unknown_values_ignored() {
    // C-J2
    let requested = terms(r#"{"preferred_verbosity":"terse","cognitive_load":"low"}"#, &offer());
    assert_eq!((&requested.verbosity, &requested.cognitive_load), (&Verbosity::Terse, &CognitiveLoad::Low));
    let odd = r#"{"preferred_verbosity":"chatty","cognitive_load":"none"}"#;
    let honored = terms(odd, &offer());
    assert_eq!((honored.verbosity, honored.cognitive_load), (Verbosity::Normal, CognitiveLoad::Medium));
    assert!(notes(odd, &offer()).contains("cognitive_load, preferred_verbosity"));
    let unchanged = change(&requested, odd, &offer()).unwrap();
    assert_eq!(unchanged, requested);
}

#[test]
fn the_available_requested_languages_are_honored() {
    let mut offer = offer();
    assert_eq!(terms(r#"{"languages":["tlh","en"]}"#, &offer).languages, ["tlh", "en"]);
    offer.languages = strings(&["en-US", "yo"]);
    // C-C8: the honored tags are written as requested, not as offered.
    assert_eq!(terms(r#"{"languages":["EN","yo-NG","fr"]}"#, &offer).languages, ["EN", "yo-NG"]);
    assert!(notes(r#"{"languages":["fr","en"]}"#, &offer).contains("not available: fr."));
    assert_eq!(terms(r#"{"languages":["en","en","en_US","english"]}"#, &offer).languages, ["en"]);
}

#[test]
fn a_request_without_a_common_language_is_accepted() {
    // C-C9
    let mut offer = offer();
    offer.languages = strings(&["yo"]);
    for requested in [r#"{"languages":["de","fr"]}"#, "{}", r#"{"languages":[]}"#] {
        let (accepted, terms) = negotiate(requested, &offer).unwrap();
        assert_eq!((terms.languages, accepted.honored_capabilities.languages), (vec![], None), "{requested}");
        assert!(
            accepted.negotiation_notes.unwrap().contains("None of the requested languages"),
            "{requested}"
        );
    }
}

#[test]
fn at_most_32_languages_are_honored() {
    let many: Vec<_> = (b'a'..=b'z')
        .flat_map(|a| [format!("\"{}a\"", char::from(a)), format!("\"{}b\"", char::from(a))])
        .collect();
    let honored = terms(&format!(r#"{{"languages":[{}]}}"#, many.join(",")), &offer()).languages;
    assert_eq!((honored.len(), &*honored[31]), (32, "pb"));
    let long_tag = format!("x{}", "-12345678".repeat(20));
    assert!(terms(&format!(r#"{{"languages":["{long_tag}"]}}"#), &offer()).languages.is_empty());
}

#[test]
fn replies_are_honored_if_requested_and_permitted() {
    let both = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true}"#;
    let mut limited = offer();
    assert!(terms(both, &limited).answers_confirmations && terms(both, &limited).answers_clarifications);
    limited.answers_confirmations = false;
    let honored = terms(both, &limited);
    assert!(!honored.answers_confirmations && honored.answers_clarifications);
    assert!(notes(both, &limited).contains("Confirmations cannot be answered"));
    limited.answers_clarifications = false;
    assert!(!terms(both, &limited).answers_clarifications);
    assert!(!terms("{}", &offer()).answers_confirmations);
}

#[test]
fn common_boundaries_and_completion_are_honored() {
    let mut offer = offer();
    let requested = r#"{"coalesce_boundaries":["completion","word","none"]}"#;
    assert_eq!(
        terms(requested, &offer).boundaries,
        [CoalesceHint::None, CoalesceHint::Word, CoalesceHint::Completion]
    );
    // C-B13. The specification does not say what happens if no requested boundary is available.
    offer.boundaries = vec![CoalesceHint::Sentence];
    assert_eq!(terms(requested, &offer).boundaries, [CoalesceHint::Completion]);
    assert!(notes(requested, &offer).contains("none, word"));
    for unavailable in [r#"["word"]"#, r#"["verse"]"#, "[]"] {
        let rejected = rejection(&format!(r#"{{"coalesce_boundaries":{unavailable}}}"#), &offer);
        assert_eq!(rejected.reason_code, ReasonCode::CapabilitiesIncompatible, "{unavailable}");
        assert!(rejected.reason_message.contains("sentence, completion"), "{unavailable}");
    }
}

#[test]
fn filters_are_honored_as_requested() {
    let honored = terms(
        r#"{"event_filters":{"exclude":["aaep:agent.progress.updated","https://aaep-protocol.org/types/agent.state.*"]}}"#,
        &offer(),
    );
    assert_eq!(honored.filters.include, ["aaep:agent.*"]);
    assert_eq!(honored.filters.exclude, ["aaep:agent.progress.updated", "aaep:agent.state.*"]);
    assert!(honored.includes_type("aaep:agent.tool.invoked"));
    assert!(
        !honored.includes_type("aaep:agent.progress.updated")
            && !honored.includes_type("aaep:agent.state.changed")
    );
    assert!(!honored.includes_type("medai:patient.consulted"));
}

#[test]
fn truncating_a_long_filter_never_allows_additional_events() {
    let long = "x".repeat(300);
    let requested =
        format!(r#"{{"event_filters":{{"include":["{long}","a*b","","*"],"exclude":["{long}","c*d"]}}}}"#);
    let honored = terms(&requested, &offer());
    assert_eq!(honored.filters.include, ["*"]);
    assert_eq!(honored.filters.exclude, [format!("{}*", "x".repeat(255))]);
    assert!(!honored.includes_type(&long));
    assert!(notes(&requested, &offer()).contains("event_filters"));
    let many: Vec<_> = (0..257).map(|number| format!("\"x{number}\"")).collect();
    let rejected = rejection(&format!(r#"{{"event_filters":{{"exclude":[{}]}}}}"#, many.join(",")), &offer());
    assert_eq!(rejected.reason_code, ReasonCode::CapabilitiesIncompatible);
}

#[test]
fn the_highest_common_level_is_honored() {
    let mut offer = offer();
    offer.levels = vec![2, 1];
    let honored = terms(r#"{"supported_conformance_levels":[3,2,1,9]}"#, &offer);
    assert_eq!((honored.level(), honored.levels), (2, vec![1, 2]));
    let (accepted, terms) = negotiate(r#"{"supported_conformance_levels":[3]}"#, &offer).unwrap();
    assert_eq!((terms.level(), accepted.honored_capabilities.supported_conformance_levels), (1, None));
    assert!(accepted.negotiation_notes.unwrap().contains("no common conformance level"));
}

#[test]
fn common_extensions_are_honored_and_their_types_included() {
    let requested = r#"{"supported_extensions":["https://example.org/medai/v1","urn:sayso:context:v1","urn:x:y"],
        "event_filters":{"exclude":["medai:alarm.*"]}}"#;
    let honored = terms(requested, &offer());
    let uris: Vec<_> = honored.extensions.iter().map(Extension::uri).collect();
    assert_eq!(uris, ["https://example.org/medai/v1", "urn:sayso:context:v1"]);
    // C-C4
    assert!(
        honored.includes_type("medai:patient.consulted") && honored.includes_type("aaep:agent.tool.invoked")
    );
    assert!(!honored.includes_type("medai:alarm.raised") && !honored.includes_type("other:thing"));
    assert!(notes(requested, &offer()).contains("not supported: urn:x:y."));
}

#[test]
fn two_extensions_with_the_same_prefix_are_rejected() {
    // §7.3.1, C-G8
    let both = r#"{"supported_extensions":["https://example.org/medai/v1","https://example.net/medai/v1"]}"#;
    let rejected = rejection(both, &offer());
    assert_eq!(rejected.reason_code, ReasonCode::CapabilitiesIncompatible);
    assert!(rejected.reason_message.contains("prefix medai"));
    // A duplicate in the configuration counts once.
    let mut with_duplicate = offer();
    with_duplicate.extensions.extend(Extension::new("https://example.org/medai/v1", "medai"));
    let once = terms(r#"{"supported_extensions":["https://example.org/medai/v1"]}"#, &with_duplicate);
    assert_eq!(once.extensions.len(), 1);
    // An unknown extension is ignored, so its prefix cannot conflict.
    let one = r#"{"supported_extensions":["https://example.org/medai/v1","https://example.com/medai/v1"]}"#;
    assert_eq!(terms(one, &offer()).extensions.len(), 1);
}

#[test]
fn only_capabilities_of_common_extensions_are_honored() {
    // §5.3.2, §7.6, C-C10
    let requested = r#"{"supported_extensions":["https://example.org/medai/v1"],"medai":{"dose":[1,2.50]},
        "haptic":{"strength":3},"azlearn.tones":true,"sayso":{"inform":true}}"#;
    let (accepted, terms) = negotiate(requested, &offer()).unwrap();
    assert_eq!(terms.extension_capability("medai").map(RawJson::as_str), Some(r#"{"dose":[1,2.50]}"#));
    assert_eq!(accepted.honored_capabilities.other.iter().count(), 1);
    assert!(accepted.negotiation_notes.unwrap().contains("ignored: haptic, azlearn.tones, sayso."));
    for odd in ["3", r#"{"a":1,"a":2}"#, r#"{"a":"\ud800"}"#, r#"{"a":9007199254740993}"#] {
        let requested =
            format!(r#"{{"supported_extensions":["https://example.org/medai/v1"],"medai":{odd}}}"#);
        assert!(self::terms(&requested, &offer()).extension_capabilities.is_empty(), "{odd}");
    }
}

#[test]
fn the_pace_is_limited_to_its_range() {
    assert_eq!(terms(r#"{"pace_wpm":180}"#, &offer()).pace_wpm, Some(180));
    assert_eq!(terms(r#"{"pace_wpm":3000}"#, &offer()).pace_wpm, Some(1000));
    assert_eq!(terms(r#"{"pace_wpm":0}"#, &offer()).pace_wpm, Some(50));
}

#[test]
fn a_required_signed_manifest_is_sent_or_the_request_rejected() {
    // §5.3.1.12, C-F1, C-F2
    let signed_only = r#"{"accept_signed_manifests_only":true}"#;
    let mut offer = offer();
    assert_eq!(rejection(signed_only, &offer).reason_code, ReasonCode::ManifestSignatureRequired);
    offer.signed_manifest = Some("not.signed".to_owned());
    assert_eq!(rejection(signed_only, &offer).reason_code, ReasonCode::ManifestSignatureRequired);
    offer.signed_manifest = Some("a.b.c".to_owned());
    let (accepted, terms) = negotiate(signed_only, &offer).unwrap();
    assert_eq!(accepted.signed_manifest.as_deref(), Some("a.b.c"));
    assert_eq!(accepted.honored_capabilities.accept_signed_manifests_only, Some(true));
    assert_eq!(negotiate("{}", &offer).unwrap().0.signed_manifest, None);
    offer.signed_manifest = None;
    assert_eq!(change(&terms, "{}", &offer).unwrap_err().reason_code, ReasonCode::ManifestSignatureRequired);
}

#[test]
fn a_value_of_the_wrong_type_is_ignored() {
    let odd = r#"{"max_events_per_second":"fast","languages":["en",5],"supports_confirmation_reply":"true",
        "event_filters":{"include":"aaep:agent.tool.*","only":[]},"pace_wpm":null,"supported_extensions":{}}"#;
    let (accepted, honored) = negotiate(odd, &offer()).unwrap();
    assert_eq!(honored, terms("{}", &offer()));
    let notes = accepted.negotiation_notes.unwrap();
    assert_eq!(
        notes,
        "Ignored because they were not understood: languages, max_events_per_second, pace_wpm, \
         part of event_filters, supported_extensions, supports_confirmation_reply."
    );
}

#[test]
fn another_major_version_is_rejected_and_an_older_minor_used() {
    // C-C13
    let id = || SubscriptionId::parse("sub_1").unwrap();
    let request = SubscriptionRequest::new("99.99.99", "reader", Capabilities::new());
    let rejected = answer_request(&request, &offer(), id()).unwrap_err();
    assert_eq!(rejected.reason_code, ReasonCode::VersionUnsupported);
    assert!(rejected.reason_message.contains("1.0.0"));
    let request = SubscriptionRequest::new("1.4.0", "reader", Capabilities::new());
    let (accepted, terms) = answer_request(&request, &offer(), id()).unwrap();
    assert_eq!((accepted.aaep_version.as_str(), terms.version.as_str()), ("1.0.0", "1.0.0"));
    assert!(accepted.negotiation_notes.unwrap().contains("AAEP 1.0.0 is used"));
}

#[test]
fn a_renegotiation_keeps_absent_terms_and_may_widen_others() {
    let mut offer = offer();
    offer.max_events_per_second = Some(20);
    let first = terms(
        r#"{"max_events_per_second":5,"languages":["yo","en"],"coalesce_boundaries":["word"],"pace_wpm":90,
            "supported_extensions":["https://example.org/medai/v1"],"medai":{"a":1},"supports_confirmation_reply":true}"#,
        &offer,
    );
    let wider = change(&first, r#"{"max_events_per_second":50}"#, &offer).unwrap();
    let mut expected = first.clone();
    expected.max_events_per_second = Some(20);
    assert_eq!(wider, expected);
    // §11.2.2
    let changed = change(&first, r#"{"languages":["fr"],"max_events_per_second":null}"#, &offer).unwrap();
    let mut expected = first.clone();
    expected.languages = strings(&["fr"]);
    assert_eq!(changed, expected);
    let without = change(&first, r#"{"supported_extensions":[]}"#, &offer).unwrap();
    assert!(without.extensions.is_empty() && without.extension_capabilities.is_empty());
    // The other extension with the same prefix has no requested capabilities yet.
    let other =
        change(&first, r#"{"supported_extensions":["https://example.net/medai/v1"]}"#, &offer).unwrap();
    assert!(other.extensions.len() == 1 && other.extension_capabilities.is_empty());
}

#[test]
fn a_smaller_offer_withdraws_only_the_right_to_answer() {
    // §5.7.1
    let requested = r#"{"max_events_per_second":50,"languages":["en"],"coalesce_boundaries":["word"],
        "supports_confirmation_reply":true,"supports_clarification_reply":true}"#;
    let first = terms(requested, &offer());
    let mut smaller = offer();
    smaller.max_events_per_second = Some(1);
    smaller.languages = strings(&["yo"]);
    smaller.boundaries = Vec::new();
    smaller.levels = vec![3];
    assert_eq!(change(&first, r#"{"pace_wpm":90}"#, &smaller).unwrap().pace_wpm, Some(90));
    assert_eq!(change(&first, "{}", &smaller).unwrap(), first);
    smaller.answers_confirmations = false;
    let changed = change(&first, "{}", &smaller).unwrap();
    assert!(!changed.answers_confirmations && changed.answers_clarifications);
    assert!(change(&first, r#"{"coalesce_boundaries":["word"]}"#, &smaller).is_err());
}

#[test]
fn the_order_of_sets_does_not_matter() {
    let one = r#"{"coalesce_boundaries":["word","none"],"event_filters":{"include":["b","a"],"exclude":["d","c"]},
        "supported_conformance_levels":[2,1],"supported_extensions":["urn:sayso:context:v1","https://example.org/medai/v1"]}"#;
    let two = r#"{"coalesce_boundaries":["none","word"],"event_filters":{"include":["a","b","a"],"exclude":["c","d"]},
        "supported_conformance_levels":[1,2],"supported_extensions":["https://example.org/medai/v1","urn:sayso:context:v1"]}"#;
    assert_eq!(terms(one, &offer()), terms(two, &offer()));
    let (one, two) = (r#"{"languages":["en","fr"]}"#, r#"{"languages":["fr","en"]}"#);
    assert_ne!(terms(one, &offer()), terms(two, &offer()), "the order of languages is significant");
}
