//! Each row of the capability table (digest, section 5), and each decision that negotiation follows.

use super::*;
use crate::event::{CoalesceHint, Verbosity};
use crate::json::Raw;
use crate::message::{Capabilities, CognitiveLoad, Message};

fn offer() -> Offer {
    let mut offer = Offer::new(crate::event::Producer::new("bank"));
    offer.extensions.extend(Extension::new("https://example.org/medai/v1", "medai"));
    offer.extensions.extend(Extension::new("https://example.net/medai/v1", "medai"));
    offer
}

fn wish(capabilities: &str) -> Capabilities {
    let text = format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"reader","capabilities":{capabilities}}}"#
    );
    match Message::parse(&text) {
        Some(Message::SubscriptionRequest(request)) => request.capabilities,
        other => unreachable!("{other:?}"),
    }
}

fn ask(capabilities: &str, offer: &Offer) -> Result<(SubscriptionAccepted, Terms), SubscriptionRejected> {
    let request = SubscriptionRequest::new("1.0.0", "reader", wish(capabilities));
    answer(&request, offer, SubscriptionId::parse("sub_1").unwrap())
}

fn terms(capabilities: &str, offer: &Offer) -> Terms {
    ask(capabilities, offer).unwrap().1
}

fn notes(capabilities: &str, offer: &Offer) -> String {
    ask(capabilities, offer).unwrap().0.negotiation_notes.unwrap_or_default()
}

fn refusal(capabilities: &str, offer: &Offer) -> SubscriptionRejected {
    ask(capabilities, offer).unwrap_err()
}

fn change(terms: &Terms, capabilities: &str, offer: &Offer) -> Result<Terms, SubscriptionRejected> {
    let id = SubscriptionId::parse("sub_1").unwrap();
    let wish = SubscriptionRenegotiate::new(id, wish(capabilities));
    renegotiate(terms, &wish, offer).map(|(_, terms)| terms)
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_wish_gets_the_defaults_and_hears_all_of_them() {
    // C-C6
    let (accepted, terms) = ask("{}", &offer()).unwrap();
    let expected = r#"{"preferred_verbosity":"normal","languages":["en-US"],"supports_confirmation_reply":false,"supports_clarification_reply":false,"coalesce_boundaries":["sentence","completion"],"event_filters":{"include":["aaep:agent.*"],"exclude":[]},"supported_conformance_levels":[1],"supported_extensions":[],"cognitive_load":"medium","accept_signed_manifests_only":false}"#;
    assert_eq!(accepted.honored_capabilities, wish(expected));
    assert_eq!((terms.max_events_per_second, terms.pace_wpm), (None, None));
    assert_eq!((accepted.negotiation_notes, accepted.signed_manifest), (None, None));
    assert_eq!((accepted.producer.agent_id.as_str(), accepted.aaep_version.as_str()), ("bank", "1.0.0"));
}

#[test]
fn the_rate_is_the_smaller_one() {
    let mut offer = offer();
    assert_eq!(terms(r#"{"max_events_per_second":7}"#, &offer).max_events_per_second, Some(7));
    // The schema's limit.
    assert_eq!(terms(r#"{"max_events_per_second":900000}"#, &offer).max_events_per_second, Some(100_000));
    offer.max_events_per_second = Some(20);
    assert_eq!(terms(r#"{"max_events_per_second":7}"#, &offer).max_events_per_second, Some(7));
    assert_eq!(terms(r#"{"max_events_per_second":50}"#, &offer).max_events_per_second, Some(20));
    assert_eq!(terms("{}", &offer).max_events_per_second, Some(20));
    assert_eq!(notes("{}", &offer), "At most 20 events a second are sent here.");
    offer.max_events_per_second = Some(0);
    assert_eq!(terms("{}", &offer).max_events_per_second, Some(1));
    // Nothing is at most 0 and at least 1.
    assert_eq!(
        refusal(r#"{"max_events_per_second":0}"#, &offer).reason_code,
        ReasonCode::CapabilitiesIncompatible
    );
}

#[test]
fn verbosity_and_load_are_as_asked_and_unknown_words_are_not_said() {
    // C-J2
    let asked = terms(r#"{"preferred_verbosity":"terse","cognitive_load":"low"}"#, &offer());
    assert_eq!((&asked.verbosity, &asked.cognitive_load), (&Verbosity::Terse, &CognitiveLoad::Low));
    let odd = r#"{"preferred_verbosity":"chatty","cognitive_load":"none"}"#;
    let given = terms(odd, &offer());
    assert_eq!((given.verbosity, given.cognitive_load), (Verbosity::Normal, CognitiveLoad::Medium));
    assert!(notes(odd, &offer()).contains("cognitive_load, preferred_verbosity"));
    let kept = change(&asked, odd, &offer()).unwrap();
    assert_eq!(kept, asked);
}

#[test]
fn languages_are_those_asked_for_that_can_be_had() {
    let mut offer = offer();
    assert_eq!(terms(r#"{"languages":["tlh","en"]}"#, &offer).languages, ["tlh", "en"]);
    offer.languages = strings(&["en-US", "yo"]);
    // C-C8: honored as asked, served as offered.
    assert_eq!(terms(r#"{"languages":["EN","yo-NG","fr"]}"#, &offer).languages, ["EN", "yo-NG"]);
    assert!(notes(r#"{"languages":["fr","en"]}"#, &offer).contains("cannot be had: fr."));
    assert_eq!(terms(r#"{"languages":["en","en","en_US","english"]}"#, &offer).languages, ["en"]);
}

#[test]
fn without_a_common_language_the_request_is_served_all_the_same() {
    // C-C9
    let mut offer = offer();
    offer.languages = strings(&["yo"]);
    for asked in [r#"{"languages":["de","fr"]}"#, "{}", r#"{"languages":[]}"#] {
        let (accepted, terms) = ask(asked, &offer).unwrap();
        assert_eq!((terms.languages, accepted.honored_capabilities.languages), (vec![], None), "{asked}");
        assert!(accepted.negotiation_notes.unwrap().contains("No language"), "{asked}");
    }
}

#[test]
fn at_most_so_many_languages_are_honored_as_the_schema_holds() {
    let many: Vec<_> = (b'a'..=b'z')
        .flat_map(|a| [format!("\"{}a\"", char::from(a)), format!("\"{}b\"", char::from(a))])
        .collect();
    let given = terms(&format!(r#"{{"languages":[{}]}}"#, many.join(",")), &offer()).languages;
    assert_eq!((given.len(), &*given[31]), (32, "pb"));
    let endless = format!("x{}", "-12345678".repeat(20));
    assert!(terms(&format!(r#"{{"languages":["{endless}"]}}"#), &offer()).languages.is_empty());
}

#[test]
fn replies_are_honored_where_asked_for_and_allowed() {
    let both = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true}"#;
    let mut observer = offer();
    assert!(terms(both, &observer).confirmation_reply && terms(both, &observer).clarification_reply);
    observer.confirmation_reply = false;
    let given = terms(both, &observer);
    assert!(!given.confirmation_reply && given.clarification_reply);
    assert!(notes(both, &observer).contains("Confirmations cannot be answered"));
    observer.clarification_reply = false;
    assert!(!terms(both, &observer).clarification_reply);
    assert!(!terms("{}", &offer()).confirmation_reply);
}

#[test]
fn boundaries_are_those_of_both_and_completion_always_is() {
    let mut offer = offer();
    let asked = r#"{"coalesce_boundaries":["completion","word","none"]}"#;
    assert_eq!(
        terms(asked, &offer).boundaries,
        [CoalesceHint::None, CoalesceHint::Word, CoalesceHint::Completion]
    );
    // C-B13, and the gap "empty honored boundary set" (digest, section 19).
    offer.boundaries = vec![CoalesceHint::Sentence];
    assert_eq!(terms(asked, &offer).boundaries, [CoalesceHint::Completion]);
    assert!(notes(asked, &offer).contains("none, word"));
    for nothing in [r#"["word"]"#, r#"["verse"]"#, "[]"] {
        let refused = refusal(&format!(r#"{{"coalesce_boundaries":{nothing}}}"#), &offer);
        assert_eq!(refused.reason_code, ReasonCode::CapabilitiesIncompatible, "{nothing}");
        assert!(refused.reason_message.contains("sentence, completion"), "{nothing}");
    }
}

#[test]
fn filters_are_as_strict_as_asked() {
    let given = terms(
        r#"{"event_filters":{"exclude":["aaep:agent.progress.updated","https://aaep-protocol.org/types/agent.state.*"]}}"#,
        &offer(),
    );
    assert_eq!(given.filters.include, ["aaep:agent.*"]);
    assert_eq!(given.filters.exclude, ["aaep:agent.progress.updated", "aaep:agent.state.*"]);
    assert!(given.wants("aaep:agent.tool.invoked"));
    assert!(!given.wants("aaep:agent.progress.updated") && !given.wants("aaep:agent.state.changed"));
    assert!(!given.wants("medai:patient.consulted"));
}

#[test]
fn a_filter_that_cannot_be_sent_back_lets_in_nothing_more() {
    let long = "x".repeat(300);
    let asked =
        format!(r#"{{"event_filters":{{"include":["{long}","a*b","","*"],"exclude":["{long}","c*d"]}}}}"#);
    let given = terms(&asked, &offer());
    assert_eq!(given.filters.include, ["*"]);
    assert_eq!(given.filters.exclude, [format!("{}*", "x".repeat(255))]);
    assert!(!given.wants(&long));
    assert!(notes(&asked, &offer()).contains("event_filters"));
    let many: Vec<_> = (0..257).map(|number| format!("\"x{number}\"")).collect();
    let refused = refusal(&format!(r#"{{"event_filters":{{"exclude":[{}]}}}}"#, many.join(",")), &offer());
    assert_eq!(refused.reason_code, ReasonCode::CapabilitiesIncompatible);
}

#[test]
fn the_highest_common_level_is_kept() {
    let mut offer = offer();
    offer.levels = vec![2, 1];
    let given = terms(r#"{"supported_conformance_levels":[3,2,1,9]}"#, &offer);
    assert_eq!((given.level(), given.levels), (2, vec![1, 2]));
    let (accepted, alone) = ask(r#"{"supported_conformance_levels":[3]}"#, &offer).unwrap();
    assert_eq!((alone.level(), accepted.honored_capabilities.supported_conformance_levels), (1, None));
    assert!(accepted.negotiation_notes.unwrap().contains("No conformance level in common"));
}

#[test]
fn extensions_are_those_that_both_know_and_their_types_are_wanted() {
    let asked = r#"{"supported_extensions":["https://example.org/medai/v1","urn:sayso:context:v1","urn:x:y"],
        "event_filters":{"exclude":["medai:alarm.*"]}}"#;
    let given = terms(asked, &offer());
    let uris: Vec<_> = given.extensions.iter().map(Extension::uri).collect();
    assert_eq!(uris, ["https://example.org/medai/v1", "urn:sayso:context:v1"]);
    // C-C4
    assert!(given.wants("medai:patient.consulted") && given.wants("aaep:agent.tool.invoked"));
    assert!(!given.wants("medai:alarm.raised") && !given.wants("other:thing"));
    assert!(notes(asked, &offer()).contains("not known here: urn:x:y."));
}

#[test]
fn two_extensions_with_one_prefix_are_refused_and_the_prefix_is_named() {
    // §7.3.1, C-G8
    let both = r#"{"supported_extensions":["https://example.org/medai/v1","https://example.net/medai/v1"]}"#;
    let refused = refusal(both, &offer());
    assert_eq!(refused.reason_code, ReasonCode::CapabilitiesIncompatible);
    assert!(refused.reason_message.contains("prefix medai"));
    // One that stands twice in the configuration is one.
    let mut twice = offer();
    twice.extensions.extend(Extension::new("https://example.org/medai/v1", "medai"));
    let once = terms(r#"{"supported_extensions":["https://example.org/medai/v1"]}"#, &twice);
    assert_eq!(once.extensions.len(), 1);
    // Of one that is not known here, the prefix is not known either.
    let one = r#"{"supported_extensions":["https://example.org/medai/v1","https://example.com/medai/v1"]}"#;
    assert_eq!(terms(one, &offer()).extensions.len(), 1);
}

#[test]
fn capabilities_of_known_extensions_are_kept_and_all_others_ignored() {
    // §5.3.2, §7.6, C-C10
    let asked = r#"{"supported_extensions":["https://example.org/medai/v1"],"medai":{"dose":[1,2.50]},
        "haptic":{"strength":3},"azlearn.tones":true,"sayso":{"inform":true}}"#;
    let (accepted, terms) = ask(asked, &offer()).unwrap();
    assert_eq!(terms.extension("medai").map(Raw::as_str), Some(r#"{"dose":[1,2.50]}"#));
    assert_eq!(accepted.honored_capabilities.other.iter().count(), 1);
    assert!(accepted.negotiation_notes.unwrap().contains("ignored here: haptic, azlearn.tones, sayso."));
    for odd in ["3", r#"{"a":1,"a":2}"#, r#"{"a":"\ud800"}"#, r#"{"a":9007199254740993}"#] {
        let asked = format!(r#"{{"supported_extensions":["https://example.org/medai/v1"],"medai":{odd}}}"#);
        assert!(self::terms(&asked, &offer()).extension_capabilities.is_empty(), "{odd}");
    }
}

#[test]
fn the_pace_is_kept_within_its_limits() {
    assert_eq!(terms(r#"{"pace_wpm":180}"#, &offer()).pace_wpm, Some(180));
    assert_eq!(terms(r#"{"pace_wpm":3000}"#, &offer()).pace_wpm, Some(1000));
    assert_eq!(terms(r#"{"pace_wpm":0}"#, &offer()).pace_wpm, Some(50));
}

#[test]
fn a_signed_manifest_is_given_on_demand_or_the_request_refused() {
    // §5.3.1.12, C-F1, C-F2
    let only = r#"{"accept_signed_manifests_only":true}"#;
    let mut offer = offer();
    assert_eq!(refusal(only, &offer).reason_code, ReasonCode::ManifestSignatureRequired);
    offer.signed_manifest = Some("not.signed".to_owned());
    assert_eq!(refusal(only, &offer).reason_code, ReasonCode::ManifestSignatureRequired);
    offer.signed_manifest = Some("a.b.c".to_owned());
    let (accepted, terms) = ask(only, &offer).unwrap();
    assert_eq!(accepted.signed_manifest.as_deref(), Some("a.b.c"));
    assert_eq!(accepted.honored_capabilities.accept_signed_manifests_only, Some(true));
    assert_eq!(ask("{}", &offer).unwrap().0.signed_manifest, None);
    offer.signed_manifest = None;
    assert_eq!(change(&terms, "{}", &offer).unwrap_err().reason_code, ReasonCode::ManifestSignatureRequired);
}

#[test]
fn a_value_of_another_form_is_taken_as_not_said() {
    let odd = r#"{"max_events_per_second":"fast","languages":["en",5],"supports_confirmation_reply":"true",
        "event_filters":{"include":"aaep:agent.tool.*","only":[]},"pace_wpm":null,"supported_extensions":{}}"#;
    let (accepted, given) = ask(odd, &offer()).unwrap();
    assert_eq!(given, terms("{}", &offer()));
    let notes = accepted.negotiation_notes.unwrap();
    assert_eq!(
        notes,
        "Not understood, and so taken as not said: languages, max_events_per_second, pace_wpm, \
         part of event_filters, supported_extensions, supports_confirmation_reply."
    );
}

#[test]
fn another_major_version_is_refused_and_an_older_minor_is_spoken() {
    // C-C13
    let id = || SubscriptionId::parse("sub_1").unwrap();
    let request = SubscriptionRequest::new("99.99.99", "reader", Capabilities::new());
    let refused = answer(&request, &offer(), id()).unwrap_err();
    assert_eq!(refused.reason_code, ReasonCode::VersionUnsupported);
    assert!(refused.reason_message.contains("1.0.0"));
    let request = SubscriptionRequest::new("1.4.0", "reader", Capabilities::new());
    let (accepted, terms) = answer(&request, &offer(), id()).unwrap();
    assert_eq!((accepted.aaep_version.as_str(), terms.version.as_str()), ("1.0.0", "1.0.0"));
    assert!(accepted.negotiation_notes.unwrap().contains("AAEP 1.0.0 is spoken"));
}

#[test]
fn a_change_keeps_what_it_leaves_out_and_may_widen_again() {
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
    let spoken = change(&first, r#"{"languages":["fr"],"max_events_per_second":null}"#, &offer).unwrap();
    let mut expected = first.clone();
    expected.languages = strings(&["fr"]);
    assert_eq!(spoken, expected);
    let without = change(&first, r#"{"supported_extensions":[]}"#, &offer).unwrap();
    assert!(without.extensions.is_empty() && without.extension_capabilities.is_empty());
    // Another extension with the same prefix was asked for nothing yet.
    let other =
        change(&first, r#"{"supported_extensions":["https://example.net/medai/v1"]}"#, &offer).unwrap();
    assert!(other.extensions.len() == 1 && other.extension_capabilities.is_empty());
}

#[test]
fn a_smaller_offer_takes_nothing_back_but_the_right_to_answer() {
    // §5.7.1
    let asked = r#"{"max_events_per_second":50,"languages":["en"],"coalesce_boundaries":["word"],
        "supports_confirmation_reply":true,"supports_clarification_reply":true}"#;
    let first = terms(asked, &offer());
    let mut less = offer();
    less.max_events_per_second = Some(1);
    less.languages = strings(&["yo"]);
    less.boundaries = Vec::new();
    less.levels = vec![3];
    assert_eq!(change(&first, r#"{"pace_wpm":90}"#, &less).unwrap().pace_wpm, Some(90));
    assert_eq!(change(&first, "{}", &less).unwrap(), first);
    less.confirmation_reply = false;
    let heard = change(&first, "{}", &less).unwrap();
    assert!(!heard.confirmation_reply && heard.clarification_reply);
    assert!(change(&first, r#"{"coalesce_boundaries":["word"]}"#, &less).is_err());
}

#[test]
fn terms_that_differ_only_in_the_order_of_sets_are_equal() {
    let one = r#"{"coalesce_boundaries":["word","none"],"event_filters":{"include":["b","a"],"exclude":["d","c"]},
        "supported_conformance_levels":[2,1],"supported_extensions":["urn:sayso:context:v1","https://example.org/medai/v1"]}"#;
    let two = r#"{"coalesce_boundaries":["none","word"],"event_filters":{"include":["a","b","a"],"exclude":["c","d"]},
        "supported_conformance_levels":[1,2],"supported_extensions":["https://example.org/medai/v1","urn:sayso:context:v1"]}"#;
    assert_eq!(terms(one, &offer()), terms(two, &offer()));
    let (one, two) = (r#"{"languages":["en","fr"]}"#, r#"{"languages":["fr","en"]}"#);
    assert_ne!(terms(one, &offer()), terms(two, &offer()), "of languages the order says which is dearer");
}
