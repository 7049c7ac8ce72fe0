//! The manifests of agents: who may publish one, what it proves, and what a restart keeps.

use aaep::manifest::{self, ManifestDocument, TrustedKeys};
use hub::command::{HubCommand, HubReply, LimitReached, MalformedRequest};
use hub::{AgentNaming, HubLimits, Principal};
use seal::es256::SigningKey;
use seal::{Jwk, SystemRandom};

use crate::support::{
    FaultyJournal, HubHarness, REPLY_CAPABILITIES, START, agent, listener, observer, reply_json, text_member,
};

const ORIGIN: &str = "https://hub.example";
const URI: &str = "https://hub.example/.well-known/aaep-manifests/bank.json";

/// Returns a manifest of this agent with this name and a state.
fn manifest_of(agent: &str, name: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"{agent}","agent_name":"{name}","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"],"contact":"help@bank.example","extensions":{{"sayso":{{"states":[{{"state":"auditing","words":{{"en":"checking the books"}}}}]}}}}}}"#
    )
}

fn publish(document: &str) -> HubCommand {
    HubCommand::PublishManifest { document: document.to_owned() }
}

fn published(agent_id: &str, manifest_uri: Option<&str>, is_verified: bool) -> HubReply {
    HubReply::ManifestPublished {
        agent_id: agent_id.into(),
        manifest_uri: manifest_uri.map(str::to_owned),
        is_verified,
    }
}

fn trust(key: &SigningKey) -> TrustedKeys {
    TrustedKeys::from_key(Jwk::P256(key.verifying_key().clone()))
}

fn configured(document: &str) -> Vec<ManifestDocument> {
    vec![ManifestDocument::parse(document).unwrap()]
}

/// Starts a session and returns its first event.
fn first_event(harness: &mut HubHarness, principal: &Principal) -> String {
    let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let _ = harness.take_events(connection);
    harness.start(principal);
    let mut events = harness.take_events(connection);
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

/// Returns the name and the address in the manifest that the hub serves for an agent.
fn served(harness: &HubHarness, agent: &str) -> Option<String> {
    let manifest = harness.core.published_manifests().get(&format!("{agent}.json"))?;
    manifest.document.manifest.agent_name.clone()
}

#[test]
fn an_unsigned_manifest_is_published_but_its_name_proves_nothing() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    assert_eq!(harness.ask_hub(&bank, publish(&manifest_of("bank", "B"))), published("bank", None, false));
    assert!(!first_event(&mut harness, &bank).contains("manifest_uri"), "the hub does not know its address");
    harness.core.set_manifests(Some(ORIGIN.to_owned()), None, Vec::new()).unwrap();
    let reply = harness.ask_hub(&bank, publish(&manifest_of("bank", "Ada's Bank")));
    assert_eq!(reply, published("bank", Some(URI), false));
    assert_eq!(served(&harness, "bank").as_deref(), Some("Ada's Bank"));
    let started = first_event(&mut harness, &bank);
    assert!(started.contains(&format!(r#""manifest_uri":"{URI}""#)), "{started}");
    assert!(!started.contains("Ada's Bank") && !started.contains("verified"), "{started}");
    assert!(started.contains("checking the books"), "the manifest documents its states: {started}");
}

#[test]
fn a_trusted_signature_verifies_the_name_for_sessions_of_that_agents_token_only() {
    let (key, other) = (SigningKey::generate(&mut SystemRandom), SigningKey::generate(&mut SystemRandom));
    let mut harness = HubHarness::new();
    harness.core.set_manifests(Some(ORIGIN.to_owned()), Some(trust(&key)), Vec::new()).unwrap();
    let (bank, text) = (agent("bank"), manifest_of("bank", "Ada's Bank"));
    let foreign = harness.ask_hub(&bank, publish(&manifest::sign(&text, &other).unwrap()));
    assert!(matches!(foreign, HubReply::Malformed(MalformedRequest::InvalidManifest(_))), "{foreign:?}");
    assert_eq!(served(&harness, "bank"), None);
    let signed = manifest::sign(&text, &key).unwrap();
    assert_eq!(harness.ask_hub(&bank, publish(&signed)), published("bank", Some(URI), true));
    let started = first_event(&mut harness, &bank);
    assert!(started.contains(r#""agent_name":"Ada's Bank""#), "{started}");
    assert!(started.contains(r#""verified_name":true"#), "{started}");
    assert!(started.contains(r#""verified_by":"signature""#), "{started}");
    assert!(started.contains("help@bank.example"), "{started}");
    // Without a token of its own, a caller can use any agent id.
    let anybody = Principal { agent_id: None, ..bank.clone() };
    let started = first_event(&mut harness, &anybody);
    assert!(!started.contains("Ada's Bank") && !started.contains("verified"), "{started}");
    // A token's name takes precedence over a manifest's.
    let named = Principal { naming: AgentNaming::Token("City Bank".into()), ..bank };
    let started = first_event(&mut harness, &named);
    assert!(started.contains(r#""agent_name":"City Bank""#) && !started.contains("Ada's Bank"), "{started}");
    assert!(started.contains(r#""verified_name":true"#), "{started}");
}

#[test]
fn a_signature_counts_after_a_restart_only_if_its_key_is_still_trusted() {
    let key = SigningKey::generate(&mut SystemRandom);
    let mut harness = HubHarness::new();
    let origin = || Some(ORIGIN.to_owned());
    harness.core.set_manifests(origin(), Some(trust(&key)), Vec::new()).unwrap();
    let bank = agent("bank");
    let signed = manifest::sign(&manifest_of("bank", "Ada's Bank"), &key).unwrap();
    harness.ask_hub(&bank, publish(&signed));
    for (keys, is_verified) in [
        (Some(trust(&key)), true),
        (Some(trust(&SigningKey::generate(&mut SystemRandom))), false),
        (None, false),
    ] {
        harness.crash();
        harness.core.set_manifests(origin(), keys, Vec::new()).unwrap();
        assert_eq!(served(&harness, "bank").as_deref(), Some("Ada's Bank"), "it is still published");
        let started = first_event(&mut harness, &bank);
        assert_eq!(started.contains(r#""verified_by":"signature""#), is_verified, "{started}");
        assert_eq!(started.contains(r#""agent_name":"Ada's Bank""#), is_verified, "{started}");
    }
}

#[test]
fn a_configured_manifest_is_verified_and_no_agent_can_replace_it() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.ask_hub(&bank, publish(&manifest_of("bank", "Mine")));
    harness.ask_hub(&agent("post"), publish(&manifest_of("post", "Post")));
    let documents = configured(&manifest_of("bank", "Configured"));
    harness.core.set_manifests(Some(ORIGIN.to_owned()), None, documents).unwrap();
    assert_eq!(served(&harness, "bank").as_deref(), Some("Configured"));
    assert_eq!(served(&harness, "post").as_deref(), Some("Post"));
    let refused = harness.ask_hub(&bank, publish(&manifest_of("bank", "Mine")));
    assert_eq!(refused, HubReply::Malformed(MalformedRequest::ManifestConfigured));
    let started = first_event(&mut harness, &bank);
    assert!(started.contains(r#""agent_name":"Configured""#), "{started}");
    assert!(started.contains(r#""verified_by":"hub""#), "{started}");
    // Deleting the agent's own manifest does not touch the configured one.
    assert_eq!(harness.ask_hub(&bank, HubCommand::DeleteManifest), HubReply::Done);
    assert_eq!(served(&harness, "bank").as_deref(), Some("Configured"));
}

#[test]
fn only_the_token_of_an_agent_publishes_and_deletes_its_manifest() {
    let mut harness = HubHarness::new();
    let text = manifest_of("bank", "B");
    for principal in [listener("ada", &[]), observer("eve")] {
        assert_eq!(harness.ask_hub(&principal, publish(&text)), HubReply::Forbidden);
        assert_eq!(harness.ask_hub(&principal, HubCommand::DeleteManifest), HubReply::Forbidden);
    }
    let other = HubReply::Malformed(MalformedRequest::ManifestOfOtherAgent);
    assert_eq!(harness.ask_hub(&agent("evil"), publish(&text)), other);
    assert_eq!(harness.ask_hub(&agent("hub"), publish(&manifest_of("hub", "H"))), other);
    // Without tokens, a caller can publish for any agent but not delete.
    let anybody = Principal { agent_id: None, ..agent("anybody") };
    assert_eq!(harness.ask_hub(&anybody, publish(&text)), published("bank", None, false));
    assert_eq!(harness.ask_hub(&anybody, publish(&manifest_of("hub", "H"))), other);
    assert_eq!(harness.ask_hub(&anybody, HubCommand::DeleteManifest), HubReply::Forbidden);
    let listener_of_bank = Principal { agent_id: Some("bank".into()), ..listener("ada", &[]) };
    assert_eq!(harness.ask_hub(&listener_of_bank, HubCommand::DeleteManifest), HubReply::Forbidden);
    assert_eq!(served(&harness, "bank").as_deref(), Some("B"));
    assert_eq!(harness.ask_hub(&agent("evil"), HubCommand::DeleteManifest), HubReply::Done);
    assert_eq!(served(&harness, "bank").as_deref(), Some("B"), "it has no manifest of its own");
    assert_eq!(harness.ask_hub(&agent("bank"), HubCommand::DeleteManifest), HubReply::Done);
    assert_eq!(served(&harness, "bank"), None);
    harness.crash();
    assert_eq!(served(&harness, "bank"), None, "a restart does not bring it back");
}

#[test]
fn a_manifest_is_stored_once_and_before_it_is_published() {
    let mut harness = HubHarness::new();
    let (bank, text) = (agent("bank"), manifest_of("bank", "B"));
    harness.disk.fail_writes(true);
    assert!(matches!(harness.ask_hub(&bank, publish(&text)), HubReply::Unavailable(_)));
    assert_eq!(served(&harness, "bank"), None);
    harness.disk.fail_writes(false);
    harness.advance_time(2_000);
    assert_eq!(harness.ask_hub(&bank, publish(&text)), published("bank", None, false));
    harness.disk.take_calls();
    assert_eq!(harness.ask_hub(&bank, publish(&text)), published("bank", None, false));
    assert!(!harness.disk.take_calls().contains(&"commit"), "nothing has changed");
    assert_eq!(harness.ask_hub(&bank, publish(&manifest_of("bank", "C"))), published("bank", None, false));
    assert!(harness.disk.take_calls().contains(&"commit"));
    harness.disk.fail_writes(true);
    assert!(matches!(harness.ask_hub(&bank, HubCommand::DeleteManifest), HubReply::Unavailable(_)));
    harness.disk.fail_writes(false);
    harness.advance_time(2_000);
    assert_eq!(served(&harness, "bank").as_deref(), Some("C"), "it was not deleted");
    // A manifest that is published and deleted in one turn does not exist afterwards.
    let replies = harness.ask_both_in_one_turn(
        &agent("post"),
        publish(&manifest_of("post", "P")),
        &agent("post"),
        HubCommand::DeleteManifest,
    );
    assert_eq!(replies, [published("post", None, false), HubReply::Done]);
    assert_eq!(served(&harness, "post"), None);
    harness.crash();
    assert_eq!(served(&harness, "post"), None);
    assert_eq!(served(&harness, "bank").as_deref(), Some("C"));
}

#[test]
fn the_size_the_number_and_the_names_of_manifests_are_limited() {
    let base = HubLimits::default();
    let text = manifest_of("bank", "B");
    for (max, is_published) in [(text.len(), true), (text.len() - 1, false)] {
        let limits = HubLimits { manifest_bytes: max, ..base };
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let reply = harness.ask_hub(&agent("bank"), publish(&text));
        let refused = HubReply::Malformed(MalformedRequest::ManifestTooLarge { max });
        assert_eq!(reply, if is_published { published("bank", None, false) } else { refused });
    }
    let limits = HubLimits { manifests: 2, shared_member_chars: 20, ..base };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    for (name, is_accepted) in
        [("ä".repeat(20), true), ("ä".repeat(21), false), ("\u{200b}".to_owned(), false)]
    {
        let reply = harness.ask_hub(&agent("bank"), publish(&manifest_of("bank", &name)));
        let refused = HubReply::Malformed(MalformedRequest::ManifestName { max: 20 });
        assert_eq!(reply, if is_accepted { published("bank", None, false) } else { refused }, "{name}");
    }
    // The limit also counts the manifests of the same turn, but not the replacement of a known one.
    let replies = harness.ask_all_in_one_turn([
        (&agent("bank"), publish(&manifest_of("bank", "New"))),
        (&agent("post"), publish(&manifest_of("post", "P"))),
        (&agent("shop"), publish(&manifest_of("shop", "S"))),
        (&agent("bank"), publish(&manifest_of("bank", "Newer"))),
    ]);
    let full = HubReply::LimitReached(LimitReached::Manifests { max: 2 });
    let [bank, post] = ["bank", "post"].map(|agent| published(agent, None, false));
    assert_eq!(replies, [bank.clone(), post, full.clone(), bank]);
    assert_eq!(harness.ask_hub(&agent("shop"), publish(&manifest_of("shop", "S"))), full);
    assert_eq!(served(&harness, "bank").as_deref(), Some("Newer"));
}

#[test]
fn a_manifest_with_an_error_is_refused_with_its_rule() {
    let mut harness = HubHarness::new();
    let invalid = manifest_of("bank", "B").replace(r#""aaep_versions_supported":["1.0.0"],"#, "");
    let reply = harness.ask_hub(&agent("bank"), publish(&invalid));
    let HubReply::RuleViolations(findings) = &reply else { panic!("{reply:?}") };
    assert_eq!(findings[0].rule.id(), "AAEP-12.5.3-1");
    let other = r#"{"type":"subscription.close","subscription_id":"sub_1"}"#;
    let reply = harness.ask_hub(&agent("bank"), publish(other));
    assert!(matches!(reply, HubReply::Malformed(MalformedRequest::InvalidManifest(_))), "{reply:?}");
}

#[test]
fn the_bytes_of_manifests_count_for_the_rate_of_their_token() {
    let limits = HubLimits { bytes_per_minute: 100, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let bank = Principal { token_digest: Some(seal::Digest::of(b"bank")), ..agent("bank") };
    assert_eq!(harness.ask_hub(&bank, publish(&manifest_of("bank", "B"))), published("bank", None, false));
    let reply = harness.ask_hub(&bank, publish(&manifest_of("bank", "C")));
    assert_eq!(reply, HubReply::LimitReached(LimitReached::BytesPerMinute { max: 100 }));
}

#[test]
fn a_long_name_or_contact_of_a_configured_manifest_is_not_copied_into_events() {
    let limits = HubLimits { shared_member_chars: 17, ..HubLimits::default() };
    for (name, is_copied) in [("n".repeat(17), true), ("n".repeat(18), false)] {
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let text = manifest_of("bank", &name).replace("help@bank.example", &name);
        harness.core.set_manifests(None, None, configured(&text)).unwrap();
        let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
        let body = r#"{"summary_normal":"Hello."}"#;
        let start = HubCommand::Start { body: body.into(), idempotency_key: None };
        text_member(&reply_json(harness.ask_hub(&agent("bank"), start)), "session_id");
        let started = harness.take_events(connection).remove(0);
        assert_eq!(started.contains(&format!(r#""agent_name":"{name}""#)), is_copied, "{started}");
        assert_eq!(started.contains(&format!(r#""contact":"{name}""#)), is_copied, "{started}");
        assert_eq!(started.contains(r#""verified_name":true"#), is_copied, "{started}");
    }
}

#[test]
fn deleting_a_manifest_that_does_not_exist_writes_nothing() {
    let mut harness = HubHarness::new();
    harness.disk.take_calls();
    assert_eq!(harness.ask_hub(&agent("bank"), HubCommand::DeleteManifest), HubReply::Done);
    assert!(!harness.disk.take_calls().contains(&"commit"));
}
