//! Who a hub is: its manifest, its signature, and what is not answered to a stranger.

use std::path::Path;

use seal::es256::SigningKey;
use seal::{Jwk, SystemRandom};

use crate::listen::fake::{Fake, Script, accepted};
use testing::hub::{Hub, reserved_address};
use testing::terminal::{Agent, Person};

const BANK: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"]}"#;
const QUESTION: &str = r#""urgency":"critical","action":"Send it.","consequence":"It is gone.","reply_token":"rpl_1","timeout_seconds":300,"default_decision":"reject""#;
const PROVEN: &str = "The hub is sayso-hub: its manifest is signed with a key that you trust.";
const NOT_SENT: &str =
    "error: Question 1: The hub is not who it should be, so nothing but a no is sent to it.";

/// A key, and a file with its public half.
fn key(folder: &Path) -> (SigningKey, String) {
    let key = SigningKey::generate(&mut SystemRandom);
    let file = folder.join("known.jwk");
    std::fs::write(&file, Jwk::P256(key.verifying_key().clone()).to_json()).unwrap();
    (key, file.to_str().unwrap().to_owned())
}

/// A hub with a key of its own, which it keeps in this folder.
fn hub_in(folder: &Path, address: &str) -> Hub {
    Hub::start(&["--open", "--listen", address, "--data", folder.to_str().unwrap()])
}

fn jwk_of(folder: &Path) -> String {
    folder.join("manifest.jwk").to_str().unwrap().to_owned()
}

#[test]
fn a_hub_proves_who_it_is_and_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub_in(folder.path(), "127.0.0.1:0");
    let jwk = jwk_of(folder.path());
    for options in [&["--jwk", &jwk][..], &["--jwk", &jwk, "--signed-only"]] {
        let mut person = Person::listens(&hub.address, options);
        assert_eq!(person.next().unwrap(), format!("notice: {PROVEN}"));
        person.hears("notice: Listening to");
        person.types("status");
        person.hears(&format!("status: {PROVEN}"));
        let agent = Agent::starts(hub.client());
        let token = agent.asks();
        person.hears("ask: Type");
        person.types("yes");
        assert!(agent.waits(&token, 30).contains(r#""decision":"accept""#));
    }
    let mut person = Person::listens(&hub.address, &[]);
    assert_eq!(
        person.next().unwrap(),
        "notice: The hub calls itself sayso-hub; no key was given to check that."
    );
}

#[test]
fn to_a_hub_with_another_key_nothing_is_answered_but_no() {
    let folder = tempfile::tempdir().unwrap();
    let (_, jwk) = key(folder.path());
    let hub = Hub::open();
    let mut person = Person::listens(&hub.address, &["--jwk", &jwk]);
    let first = person.next().unwrap();
    assert!(
        first.starts_with(
            "error: The hub is not who it should be: its manifest is not signed with a key that you trust. Nothing but a no is sent to it."
        ),
        "{first}"
    );
    person.hears("notice: Listening to");
    let agent = Agent::starts(hub.client());
    let token = agent.asks();
    person.hears("ask: Type");
    person.types("yes");
    person.hears(NOT_SENT);
    assert_eq!(agent.waits(&token, 0), r#"{"status":"pending"}"#);
    person.types("status");
    person.hears("status: The hub is not who it should be");
    person.types("no");
    assert!(agent.waits(&token, 30).contains(r#""decision":"reject","by":"reply""#));
    let mut alone = Person::is_there(&hub.address, &["--jwk", &jwk, "--auto", "accept"]);
    let token = Agent::starts(hub.client()).asks();
    let told = alone.hears("answer: Question");
    assert!(told.last().unwrap().contains("cannot be answered without a person"), "{told:#?} {token}");
    drop(alone);
    let (said, code) = Person::listens(&hub.address, &["--jwk", &jwk, "--signed-only"]).ends();
    assert_eq!(code, 2, "{said:?}");
    assert!(
        said[0].starts_with("sayso: Only a hub that can prove who it is should be listened to. The hub is not who it should be: its manifest is not signed with a key that you trust."),
        "{said:?}"
    );
}

#[test]
fn who_takes_the_place_of_a_hub_is_found_out() {
    let [ours, theirs] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let address = reserved_address();
    let mut hub = hub_in(ours.path(), &address);
    let jwk = jwk_of(ours.path());
    let mut person = Person::is_there(&address, &["--jwk", &jwk]);
    let mut strict = Person::is_there(&address, &["--jwk", &jwk, "--signed-only"]);
    hub.kill();
    person.hears("is lost");
    strict.hears("is lost");
    let mut hub = hub_in(ours.path(), &address);
    let told = person.hears("notice: Connected again");
    assert!(!told.iter().any(|line| line.contains("manifest")), "it was said before: {told:#?}");
    strict.hears("notice: Connected again");
    hub.kill();
    person.hears("is lost");
    strict.hears("is lost");
    let _impostor = hub_in(theirs.path(), &address);
    person.hears("error: The hub is not who it should be");
    let (said, code) = strict.ends();
    assert_eq!(code, 2, "{said:?}");
    assert!(said.last().unwrap().contains("Only a hub that can prove who it is"), "{said:?}");
}

#[test]
fn who_leaves_out_the_proof_that_was_there_before_is_somebody_else() {
    let folder = tempfile::tempdir().unwrap();
    let address = reserved_address();
    let mut hub = hub_in(folder.path(), &address);
    let mut person = Person::is_there(&address, &["--jwk", &jwk_of(folder.path())]);
    hub.kill();
    person.hears("is lost");
    let impostor =
        Script { answers: [accepted("{}", "")].into(), manifest: Some(("404 Not Found", String::new())) };
    let impostor = Fake::starts_at(&address, impostor);
    person.hears("error: The hub is not who it should be: its manifest was signed before, and is not now.");
    impostor.stream().tells(1, "awaiting.confirmation", QUESTION);
    person.hears("ask: ");
    person.types("yes");
    person.hears(NOT_SENT);
}

#[test]
fn what_a_manifest_says_is_compared_with_who_answers_and_what_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let (key, jwk) = key(folder.path());
    let honored = r#"{"supported_conformance_levels":[1,2,3]}"#;
    for (manifest, part) in [
        (
            BANK.replace(r#""agent_id":"bank""#, r#""agent_id":"evil""#),
            "its manifest is that of evil, but bank is who answers",
        ),
        (BANK.replace("[1,2,3]", "[1]"), "does not claim level 3, which it offers"),
        (BANK.replace("sse", "websocket"), "does not claim sse, which it offers"),
    ] {
        let signed = aaep::manifest::sign(&manifest, &key).unwrap();
        for (text, options) in [(manifest, &[][..]), (signed, &["--jwk", &jwk])] {
            let script = Script { answers: [accepted(honored, "")].into(), manifest: Some(("200 OK", text)) };
            let fake = Fake::starts(script);
            let mut person = Person::listens(&fake.address, options);
            let said = person.next().unwrap();
            assert!(
                said.starts_with("error: The hub is not who it should be") && said.contains(part),
                "{said}"
            );
            fake.stream().tells(1, "awaiting.confirmation", QUESTION);
            person.hears("ask: ");
            person.types("yes");
            person.hears(NOT_SENT);
            person.types("no");
            assert_eq!(fake.is_asked("POST /aaep/v1/replies")["decision"], "reject");
        }
    }
}

#[test]
fn a_manifest_that_is_missing_odd_or_elsewhere_is_told_and_listening_goes_on() {
    let unread = "notice: Who the hub is, is not known: ";
    let long = format!(r#"{{"x":"{}"}}"#, "y".repeat(64 * 1024));
    for (manifest, said) in [
        (Some(("404 Not Found", String::new())), "notice: The hub has no manifest that would say who it is."),
        (
            Some(("302 Found\r\nLocation: /elsewhere", String::new())),
            "its manifest is said to be elsewhere, where it is not looked for.",
        ),
        (Some(("503 Busy", String::new())), "its manifest could not be had, because the hub answered 503."),
        (Some(("200 OK", long)), "its manifest could not be had, because its answer is too long."),
        (Some(("200 OK", "<!doctype html>".to_owned())), "its manifest could not be understood."),
        (
            Some(("200 OK", r#"{"name":"\u001b[2Jan agent"}"#.to_owned())),
            "its manifest could not be understood.",
        ),
        (None, "its manifest could not be had, because it does not answer."),
    ] {
        let fake = Fake::starts(Script { answers: [accepted("{}", "")].into(), manifest });
        let mut person = Person::listens(&fake.address, &[]);
        let first = person.next().unwrap();
        let said = if said.starts_with("notice") { said.to_owned() } else { format!("{unread}{said}") };
        assert!(first.starts_with(&said), "{first} is not {said}");
        person.hears("notice: Listening to");
        fake.stream().tells(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
        person.hears("tool: Heard.");
        assert!(!fake.was_asked().iter().any(|path| path.contains("elsewhere")));
    }
}

#[test]
fn signed_only_is_declared_and_what_is_not_signed_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (key, jwk) = key(folder.path());
    let options = ["--jwk", &jwk, "--signed-only"];
    let signed = aaep::manifest::sign(BANK, &key).unwrap();
    let inline = accepted("{}", &format!(r#","signed_manifest":"{signed}""#));
    let fake = Fake::answering(&[inline]);
    let mut person = Person::listens(&fake.address, &options);
    person.hears("notice: The hub is bank: its manifest is signed with a key that you trust.");
    let wish = fake.is_asked("POST /aaep/v1/subscriptions");
    assert_eq!(wish["capabilities"]["accept_signed_manifests_only"], true, "{wish}");
    fake.stream().tells(1, "tool.invoked", r#""tool":"t","summary_normal":"Heard.""#);
    person.hears("tool: Heard.");
    drop(person);
    for (manifest, part) in [
        (("404 Not Found", String::new()), "The hub has no manifest that would say who it is."),
        (("200 OK", BANK.to_owned()), "The hub calls itself bank, but its manifest is not signed."),
        (("200 OK", "<!doctype html>".to_owned()), "its manifest could not be understood."),
    ] {
        let fake = Fake::starts(Script { answers: [accepted("{}", "")].into(), manifest: Some(manifest) });
        let (said, code) = Person::listens(&fake.address, &options).ends();
        assert_eq!(code, 2, "{said:?}");
        assert!(said[0].contains(part), "{said:?}");
        let asked = fake.was_asked_until("POST /aaep/v1/replies");
        assert!(!asked.iter().any(|path| path.contains("/events")), "it listened all the same: {asked:?}");
    }
    let fake =
        Fake::answering(&[crate::listen::fake::rejected("manifest_signature_required", "There is none.")]);
    let (said, code) = Person::listens(&fake.address, &options).ends();
    assert_eq!(
        (said[0].as_str(), code),
        ("sayso: The hub has no signed manifest. It says: There is none.", 2)
    );
    let (said, code) = Person::listens(&fake.address, &["--signed-only"]).ends();
    assert!(code == 2 && said.iter().any(|line| line.contains("--jwk")), "{said:?}");
    let (said, code) = Person::listens(&fake.address, &["--jwk", "/no/such/file"]).ends();
    assert!(code == 2 && said[0].contains("there is no such file"), "{said:?}");
}
