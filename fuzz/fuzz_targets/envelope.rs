//! Whatever text comes, reading an ASP message does not panic; what was read is written again as it means; what has a
//! canonical form has one.

#![no_main]

use std::sync::OnceLock;

use asp::message::{Authenticator, Body, Cards};
use asp::{AgentUri, Card, Level, Limits, Performative, Profile};
use libfuzzer_sys::fuzz_target;
use seal::json::Tape;
use seal::{Keys, ed25519, es256};

fuzz_target!(|text: &str| {
    let mut authenticator = Authenticator::default();
    // Nobody signed it, so nobody said it.
    assert!(authenticator.open(text, cards(), &Limits::default()).is_err());
    if let Ok(envelope) = authenticator.read_unproven(text) {
        same(&envelope.body);
    }
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(text) else { return };
    let _ = Card::parse(text);
    for performative in Performative::ALL {
        if let Ok(body) = Body::parse(performative, text) {
            same(&body);
        }
    }
    if let Ok(form) = seal::canonical(&doc.root()) {
        let mut tape = Tape::default();
        let again = tape.read(&form).expect("a canonical form is JSON");
        assert_eq!(seal::canonical(&again.root()).as_deref(), Ok(form.as_str()));
    }
});

fn same(body: &Body) {
    let again = Body::parse(body.performative(), &body.to_json()).expect("what was written can be read");
    assert_eq!(&again, body);
}

fn cards() -> &'static Cards {
    static CARDS: OnceLock<Cards> = OnceLock::new();
    CARDS.get_or_init(|| {
        Cards::new(["marisol.example/bistro/buyer", "braillepress.example/orders/desk"].map(|name| {
            let keys = Keys {
                signing: ed25519::SigningKey::from_seed(&[7; 32]),
                dpop: es256::SigningKey::from_secret(&[7; 32]).expect("a key"),
            };
            let profile = Profile {
                agent_id: AgentUri::parse(&format!("agent://{name}")).expect("a name"),
                name: name.to_owned(),
                description: String::new(),
                organization: String::new(),
                capabilities: Vec::new(),
                level: Level::Standard,
            };
            Card::issue(&profile, &keys).expect("a card")
        }))
    })
}
