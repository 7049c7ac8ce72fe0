//! The envelope: versions, performatives, and every member that is missing, wrong or more than was asked for.

use asp::machine::State;
use asp::{Code, Misbehaviour};
use seal::dpop::DpopError;

use crate::support::bodies::{observe, query};
use crate::support::cast::{BUYER, SELLER};
use crate::support::forge::forge;
use crate::support::scene::{A, B, Heard, Scene};

use Code::SchemaUnsupported as Schema;

#[test]
fn another_version_is_not_understood() {
    let mut scene = Scene::at(State::Conversing);
    for version in
        ["\"asp/0.2\"", "\"asp/2.0\"", "\"asp/0.1 \"", "\"ASP/0.1\"", "\"\"", "0.1", "1", "null", "[]", "{}"]
    {
        let envelope = scene.next(A, &query("qry_1")).with("version", version);
        scene.refuses(A, &envelope, Schema);
    }
    let envelope = scene.next(A, &query("qry_1")).without("version");
    scene.refuses(A, &envelope, Schema);
    let envelope = scene.next(A, &query("qry_1")).with_text("version", "asp/1.0");
    scene.takes(A, &envelope);
}

#[test]
fn an_unknown_performative_is_not_understood() {
    let mut scene = Scene::at(State::Conversing);
    for word in ["ASK", "query", "Query", "QUERY ", "PROPOSE2"] {
        let envelope =
            scene.envelope(A, word, r#"{"queryId":"qry_1","queryType":"price","subject":"menus"}"#);
        scene.refuses(A, &envelope, Schema);
    }
}

/// Members without which nobody can say who sent a message: it is dropped. All others: it is refused.
#[test]
fn every_member_of_the_envelope_must_be_what_it_should() {
    let dropped_for = |what: &'static str| Heard::Dropped(Misbehaviour::Member(what));
    let proof = |claim: &'static str| Heard::Dropped(Misbehaviour::Proof(DpopError::Claim(claim)));
    let refused = || Heard::Refused(Schema);
    let text = ["null", "1", "true", "[]", "{}", "\"\""].as_slice();
    let cases: [(&str, bool, &[&str], Heard); 20] = [
        (
            "messageId",
            true,
            &[&["\"x\"", "\"7d444840-9dc0-41d1-b245-5ffdce74fad2\""], text].concat(),
            refused(),
        ),
        ("sequenceNumber", true, &["null", "\"5\"", "-1", "1.5", "true", "[]", "{}"], refused()),
        ("sender/orgId", true, text, refused()),
        ("sender/trustScore", true, &["null", "\"50\"", "-1", "100.5", "1e300", "true", "[]"], refused()),
        ("recipient", false, &[&["\"https://b.example\"", "{\"id\":1}"], text].concat(), refused()),
        ("content", true, text, refused()),
        ("content/body", true, text, refused()),
        (
            "content/mimeType",
            false,
            &[&["\"text/plain\"", "\"application/ld+json\""], text].concat(),
            refused(),
        ),
        ("constraints", false, &["null", "1", "true", "[]", "\"\""], refused()),
        (
            "constraints/maxResponseTimeMs",
            false,
            &["null", "0", "-1", "1.5", "\"9\"", "31622400001"],
            refused(),
        ),
        ("constraints/maxTokenBudget", false, &["null", "-1", "1.5", "\"9\"", "[]"], refused()),
        ("constraints/requiredTrustScore", false, &["null", "-1", "101", "\"9\"", "[]"], refused()),
        (
            "constraints/allowedPerformatives",
            false,
            &["null", "1", "\"QUERY\"", "[1]", "[\"ASK\"]"],
            refused(),
        ),
        ("integrity/previousHash", true, &[&["\"sha256:00\""], text].concat(), refused()),
        ("sender", true, text, dropped_for("sender.agentId")),
        ("sender/agentId", true, &["null", "1", "true", "[]", "{}"], dropped_for("sender.agentId")),
        ("integrity", true, text, dropped_for("integrity.hash")),
        ("performative", true, &["null", "1", "true", "[]", "{}"], proof("htm")),
        ("sessionId", true, &["null", "1", "true", "[]", "{}"], proof("htu")),
        (
            "timestamp",
            true,
            &[&["\"tomorrow\"", "\"2026-01-02\"", "\"2026-02-30T00:00:00Z\""], text].concat(),
            proof("iat"),
        ),
    ];
    let mut scene = Scene::at(State::Conversing);
    for (path, required, wrong, expected) in cases {
        let mut base = scene.next(A, &query("qry_1"));
        if path.starts_with("constraints") {
            base = base.with("constraints", "{}");
            base = crate::support::json::Json::parse(&base.write());
        }
        for value in wrong {
            let forged = forge(&base.clone().with(path, value), &BUYER.keys);
            // A claim of the proof may not be empty or missing: then the token has none of that name.
            assert_eq!(scene.hear(&forged.text), expected, "{path} = {value}");
        }
        if required {
            let forged = forge(&base.clone().without(path), &BUYER.keys);
            assert_eq!(scene.hear(&forged.text), expected, "without {path}");
        }
    }
    assert_eq!(scene.hear(""), scene.hear(""));
    scene.say(A, &query("qry_1"));
}

#[test]
fn the_members_of_the_proof_must_be_there() {
    let mut scene = Scene::at(State::Conversing);
    let forged = scene.forge(A, &query("qry_1"));
    let json = crate::support::json::Json::parse(&forged.text);
    for (path, name) in [("integrity/hash", "integrity.hash"), ("integrity/signature", "integrity.signature")]
    {
        let text = json.clone().without(path).write();
        assert_eq!(scene.hear(&text), Heard::Dropped(Misbehaviour::Member(name)));
        for wrong in ["null", "1", "true", "[]", "{}"] {
            let text = json.clone().with(path, wrong).write();
            assert_eq!(scene.hear(&text), Heard::Dropped(Misbehaviour::Member(name)), "{wrong}");
        }
    }
    // The hash covers the proof, so that without it even an honest signature must be made anew.
    let bare = scene.next(A, &query("qry_1")).without("sender/dpopProof");
    let forged = forge(&bare, &BUYER.keys);
    assert_eq!(scene.hear(&forged.text), Heard::Dropped(Misbehaviour::Member("sender.dpopProof")));
    assert_eq!(scene.hear(&json.write()), Heard::Taken);
}

#[test]
fn what_is_not_named_is_kept_and_signed() {
    let mut scene = Scene::at(State::Conversing);
    let mut envelope = scene.envelope(A, "OBSERVE", r#"{"subject":"x","mood":["glad",{"a":1.50}]}"#);
    for path in ["extra", "sender/extra", "content/extra", "integrity/extra"] {
        envelope = envelope.with(path, r#"{"b":2,  "a":"\u00e9"}"#);
    }
    let forged = forge(&envelope, &BUYER.keys);
    // One of them changed, and the hash no longer holds.
    for path in ["extra", "sender/extra", "content/extra", "integrity/extra", "content/body/mood"] {
        let json = crate::support::json::Json::parse(&forged.text);
        for changed in [json.clone().with(path, "1"), json.without(path)] {
            assert_eq!(scene.hear(&changed.write()), Heard::Dropped(Misbehaviour::Hash), "{path}");
        }
    }
    assert_eq!(scene.hear(&forged.text), Heard::Taken);
    assert_eq!(scene.record.transcript().messages().last(), Some(&*forged.text), "the bytes stay");
    let sealed = scene.open(&forged.text).unwrap();
    let asp::message::Body::Observe(body) = &sealed.envelope.body else { panic!("OBSERVE") };
    assert_eq!(body.other.get("mood").unwrap().as_str(), r#"["glad",{"a":1.50}]"#);
    assert_eq!(sealed.envelope.other.get("extra").unwrap().as_str(), r#"{"b":2,  "a":"\u00e9"}"#);
    assert!(sealed.envelope.sender.other.get("extra").is_some());
    assert!(sealed.envelope.content.other.get("extra").is_some());
    assert!(sealed.envelope.integrity.other.get("extra").is_some());
}

#[test]
fn ids_are_of_version_7() {
    let mut scene = Scene::at(State::Conversing);
    let not7 = [
        "7d444840-9dc0-41d1-b245-5ffdce74fad2",
        "01890a5d-ac96-674b-bcce-b302099a8057",
        "01890a5d-ac96-874b-bcce-b302099a8057",
        "01890a5d-ac96-774b-ccce-b302099a8057",
        "01890a5dac96774bbcceb302099a8057",
        "{01890a5d-ac96-774b-bcce-b302099a8057}",
        "00000000-0000-0000-0000-000000000000",
    ];
    for id in not7 {
        for member in ["messageId", "sessionId"] {
            let envelope = scene.next(A, &query("qry_1")).with_text(member, id);
            scene.refuses(A, &envelope, Schema);
        }
    }
}

#[test]
fn the_recipient_is_the_other_side() {
    let mut scene = Scene::at(State::Conversing);
    for wrong in ["agent://c.example/third", "agent://x.example/stranger", BUYER.agent().as_str()] {
        let envelope = scene.next(A, &observe("x")).with_text("recipient", wrong);
        scene.refuses(A, &envelope, Code::Unauthorized);
        let envelope = scene.next(A, &observe("x")).with("recipient", &format!(r#"{{"agentId":"{wrong}"}}"#));
        scene.refuses(A, &envelope, Code::Unauthorized);
    }
    // D18: as an object too; and nobody named is everybody in the session.
    let envelope =
        scene.next(A, &observe("x")).with("recipient", &format!(r#"{{"agentId":"{}"}}"#, SELLER.agent()));
    scene.takes(A, &envelope);
    let envelope = scene.next(B, &observe("x")).without("recipient");
    scene.takes(B, &envelope);
}

/// D20: what a sender says of its own trust decides nothing.
#[test]
fn a_trust_score_of_nothing_is_taken() {
    let mut scene = Scene::at(State::Conversing);
    let envelope = scene.next(A, &observe("x")).with("sender/trustScore", "0");
    scene.takes(A, &envelope);
}
