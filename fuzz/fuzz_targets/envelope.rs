//! Fuzzes the parser of ASP messages. The parser must not panic, a parsed body must survive a round trip, and
//! canonicalization must be idempotent.

#![no_main]

use std::sync::OnceLock;

use asp::message::{Authenticator, Body, PinnedCards};
use asp::{AgentCard, AgentProfile, AgentUri, AspLimits, ConformanceLevel, Performative};
use libfuzzer_sys::fuzz_target;
use seal::json::Tape;
use seal::{AgentKeys, ed25519, es256};

fuzz_target!(|text: &str| {
    let mut authenticator = Authenticator::default();
    // The fuzzer cannot create a valid signature.
    assert!(authenticator.authenticate(text, cards(), &AspLimits::default()).is_err());
    if let Ok(envelope) = authenticator.parse_unauthenticated(text) {
        assert_round_trip(&envelope.body);
    }
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(text) else { return };
    let _ = AgentCard::parse(text);
    for performative in Performative::ALL {
        if let Ok(body) = Body::parse(performative, text) {
            assert_round_trip(&body);
        }
    }
    if let Ok(canonical) = seal::canonicalize(&doc.root()) {
        let mut tape = Tape::default();
        let reparsed = tape.read(&canonical).expect("canonical JSON is JSON");
        assert_eq!(seal::canonicalize(&reparsed.root()).as_deref(), Ok(canonical.as_str()));
    }
});

fn assert_round_trip(body: &Body) {
    let reparsed = Body::parse(body.performative(), &body.to_json()).expect("a written body can be parsed");
    assert_eq!(&reparsed, body);
}

fn cards() -> &'static PinnedCards {
    static CARDS: OnceLock<PinnedCards> = OnceLock::new();
    CARDS.get_or_init(|| {
        PinnedCards::new(["marisol.example/bistro/buyer", "braillepress.example/orders/desk"].map(|name| {
            let keys = AgentKeys {
                signing: ed25519::SigningKey::from_seed(&[7; 32]),
                dpop: es256::SigningKey::from_secret(&[7; 32]).expect("a valid secret key"),
            };
            let profile = AgentProfile {
                agent_id: AgentUri::parse(&format!("agent://{name}")).expect("a valid agent URI"),
                name: name.to_owned(),
                description: String::new(),
                organization: String::new(),
                capabilities: Vec::new(),
                level: ConformanceLevel::Standard,
                endpoints: asp::AgentEndpoints::default(),
                max_transaction_value: None,
                currency: None,
            };
            AgentCard::sign(&profile, &keys).expect("a valid card")
        }))
    })
}
