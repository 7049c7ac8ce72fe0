//! The agents of the tests.

use std::sync::LazyLock;

use asp::message::{Cards, TrustScore};
use asp::session::Rules;
use asp::{AgentUri, Card, Level, Limits, Participant, Profile, Setup};
use seal::{Digest, Keys, Random, ed25519, es256};

pub(crate) struct Actor {
    pub(crate) keys: Keys,
    pub(crate) card: Card,
}

impl Actor {
    pub(crate) fn agent(&self) -> &AgentUri {
        self.card.agent_id()
    }
}

/// Invites.
pub(crate) static BUYER: LazyLock<Actor> = LazyLock::new(|| actor("agent://a.example/buyer", 1));
/// Is invited.
pub(crate) static SELLER: LazyLock<Actor> = LazyLock::new(|| actor("agent://b.example/seller", 2));
/// Is known, and in no session.
pub(crate) static THIRD: LazyLock<Actor> = LazyLock::new(|| actor("agent://c.example/third", 3));
/// Is unknown.
pub(crate) static STRANGER: LazyLock<Actor> = LazyLock::new(|| actor("agent://x.example/stranger", 4));

/// The cards of all but the stranger.
pub(crate) fn cards() -> Cards {
    Cards::new([&BUYER, &SELLER, &THIRD].map(|actor| actor.card.clone()))
}

pub(crate) fn actor(agent: &str, seed: u8) -> Actor {
    let keys = keys(seed);
    Actor { card: Card::issue(&profile(agent), &keys).unwrap(), keys }
}

pub(crate) fn keys(seed: u8) -> Keys {
    let mut secret = [7; 32];
    secret[31] = seed;
    Keys {
        signing: ed25519::SigningKey::from_seed(&secret),
        dpop: es256::SigningKey::from_secret(&secret).unwrap(),
    }
}

pub(crate) fn profile(agent: &str) -> Profile {
    Profile {
        agent_id: AgentUri::parse(agent).unwrap(),
        name: "An agent".to_owned(),
        description: "Does what tests want".to_owned(),
        organization: "org:test".to_owned(),
        capabilities: vec!["test.anything".to_owned()],
        level: Level::Standard,
    }
}

pub(crate) fn setup(actor: &Actor, known: &[&Actor]) -> Setup {
    Setup {
        card: actor.card.clone(),
        keys: actor.keys.clone(),
        org_id: "org_test".to_owned(),
        trust_score: TrustScore::new(50.0).unwrap(),
        known: Cards::new(known.iter().map(|actor| actor.card.clone())),
        rules: Rules::default(),
        limits: Limits::default(),
    }
}

pub(crate) fn participant(actor: &Actor, known: &[&Actor]) -> Participant {
    Participant::new(setup(actor, known)).unwrap()
}

/// Randomness that is the same in every run.
#[derive(Clone, Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Random for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            self.0 += 1;
            chunk.copy_from_slice(&Digest::of(&self.0.to_le_bytes()).as_bytes()[..chunk.len()]);
        }
    }
}
