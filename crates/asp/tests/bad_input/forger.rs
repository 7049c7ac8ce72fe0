//! The forger is a second implementation of D13 to D16: first it must agree with the crate's own.

use asp::Performative;
use asp::machine::State;
use asp::message::{Content, Draft, Others, TrustScore};
use asp::{AgentUri, MessageId, SessionId};
use seal::json::Raw;
use seal::{Digest, Keys, Random, base64url, es256};

use crate::support::bodies::{body, full};
use crate::support::cast::{BUYER, Dice, SELLER, keys};
use crate::support::forge::{Lie, forge, forge_with};
use crate::support::json::Json;
use crate::support::scene::{A, B, Heard, START, Scene, time};

#[test]
fn what_it_forges_is_taken() {
    let scene = Scene::at(State::Executing);
    assert_eq!(scene.record.transcript().len(), 8);
    for performative in Performative::ALL {
        let mut scene = Scene::at(State::Conversing);
        let body = full(performative).replace("prop_0", "prop_a");
        let envelope = scene.envelope(B, performative.word(), &body);
        scene.takes(B, &envelope);
    }
}

/// Both sign by RFC 6979, so that even the proofs are the same.
#[test]
fn it_and_the_crate_make_the_same_message() {
    let keys = Keys { dpop: es256::SigningKey::reproducible(&[9; 32]).unwrap(), ..keys(1) };
    for (number, performative) in Performative::ALL.into_iter().enumerate() {
        let mut other = Others::default();
        other.set("x-é", Raw::parse(r#"{"b":[1.50,1E2,-0],"a":"\u00e9\n\/"}"#).unwrap());
        let draft = Draft {
            message_id: MessageId::generate(START, &mut Dice(number as u64)),
            session_id: SessionId::generate(START, &mut Dice(99)),
            sequence_number: 7,
            timestamp: time(START + 1),
            sender: BUYER.agent().clone(),
            org_id: "org \"quoted\"".to_owned(),
            trust_score: TrustScore::new(12.5).unwrap(),
            recipient: AgentUri::parse(SELLER.agent().as_str()).unwrap(),
            body: body(performative, full(performative)),
            content: Content::default(),
            constraints: None,
            previous_hash: Digest::of(b"before"),
            other,
        };
        let mut dice = Dice(5);
        let sealed = draft.seal(&keys, &mut dice).unwrap();
        let mut jti = [0; 16];
        Dice(5).fill(&mut jti);
        let lie = Lie { jti: Some(base64url::encode(&jti)), ..Lie::default() };
        let bare = Json::parse(&sealed.text)
            .with_text("sender/dpopProof", "")
            .with_text("integrity/hash", "")
            .with_text("integrity/signature", "");
        let forged = forge_with(&bare, &keys, &lie);
        assert_eq!(forged.hash, sealed.hash, "{performative}");
        let whole = |text: &str| {
            let json = Json::parse(text);
            ["sender/dpopProof", "integrity/hash", "integrity/signature"].map(|path| json.string(path))
        };
        assert_eq!(whole(&forged.text), whole(&sealed.text), "{performative}");
        assert_eq!(forged.jti, sealed.jti);
    }
}

/// However a message is spelled, it is one message.
#[test]
fn spelling_changes_neither_hash_nor_proof() {
    let mut scene = Scene::at(State::Introduced);
    let forged = scene.forge(A, &crate::support::bodies::query("qry_1"));
    let json = Json::parse(&forged.text);
    let Json::Object(mut members) = json else { panic!("an object") };
    members.reverse();
    let text = Json::Object(members).write().replace(":{", " : \n{").replace("menus", "\\u006denus");
    assert_ne!(text, forged.text);
    assert_eq!(scene.hear(&text), Heard::Taken);
    assert_eq!(scene.record.transcript().head(), forged.hash);
    assert_eq!(scene.record.transcript().messages().last(), Some(&*text), "the received bytes stay");
}

#[test]
fn it_can_lie() {
    let mut scene = Scene::at(State::Introduced);
    let envelope = scene.next(A, &crate::support::bodies::query("qry_1"));
    let honest = forge(&envelope, &BUYER.keys);
    let lie = Lie { hash: Some(Digest::ZERO.to_string()), ..Lie::default() };
    let lying = forge_with(&envelope, &BUYER.keys, &lie);
    assert_ne!(honest.text, lying.text);
}
