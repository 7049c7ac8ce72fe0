//! Agents for the tests.

use std::sync::LazyLock;

use asp::message::{PinnedCards, TrustScore};
use asp::session::SessionRules;
use asp::{
    AgentCard, AgentEndpoints, AgentProfile, AgentUri, AspLimits, ConformanceLevel, Participant,
    ParticipantConfig,
};
use seal::{AgentKeys, Digest, Random, ed25519, es256};

pub(crate) struct TestAgent {
    pub(crate) keys: AgentKeys,
    pub(crate) card: AgentCard,
}

impl TestAgent {
    pub(crate) fn agent(&self) -> &AgentUri {
        self.card.agent_id()
    }
}

/// The inviter.
pub(crate) static BUYER: LazyLock<TestAgent> = LazyLock::new(|| test_agent("agent://a.example/buyer", 1));
/// The invited agent.
pub(crate) static SELLER: LazyLock<TestAgent> = LazyLock::new(|| test_agent("agent://b.example/seller", 2));
/// An agent whose card is known, but which is usually not in the session.
pub(crate) static THIRD: LazyLock<TestAgent> = LazyLock::new(|| test_agent("agent://c.example/third", 3));
/// An agent whose card is unknown.
pub(crate) static STRANGER: LazyLock<TestAgent> =
    LazyLock::new(|| test_agent("agent://x.example/stranger", 4));

/// Returns the cards of all agents except the stranger.
pub(crate) fn cards() -> PinnedCards {
    PinnedCards::new([&BUYER, &SELLER, &THIRD].map(|agent| agent.card.clone()))
}

pub(crate) fn test_agent(agent: &str, seed: u8) -> TestAgent {
    let keys = keys(seed);
    TestAgent { card: AgentCard::sign(&profile(agent), &keys).unwrap(), keys }
}

pub(crate) fn keys(seed: u8) -> AgentKeys {
    let mut secret = [7; 32];
    secret[31] = seed;
    AgentKeys {
        signing: ed25519::SigningKey::from_seed(&secret),
        dpop: es256::SigningKey::from_secret(&secret).unwrap(),
    }
}

pub(crate) fn profile(agent: &str) -> AgentProfile {
    AgentProfile {
        agent_id: AgentUri::parse(agent).unwrap(),
        name: "An agent".to_owned(),
        description: "Does what tests need".to_owned(),
        organization: "org:test".to_owned(),
        capabilities: vec!["test.anything".to_owned()],
        level: ConformanceLevel::Standard,
        endpoints: AgentEndpoints::default(),
        max_transaction_value: None,
        currency: None,
    }
}

pub(crate) fn participant_config(agent: &TestAgent, peers: &[&TestAgent]) -> ParticipantConfig {
    ParticipantConfig {
        card: agent.card.clone(),
        keys: agent.keys.clone(),
        org_id: "org_test".to_owned(),
        trust_score: TrustScore::new(50.0).unwrap(),
        pinned_cards: PinnedCards::new(peers.iter().map(|agent| agent.card.clone())),
        rules: SessionRules::default(),
        limits: AspLimits::default(),
    }
}

pub(crate) fn participant(agent: &TestAgent, peers: &[&TestAgent]) -> Participant {
    Participant::new(participant_config(agent, peers)).unwrap()
}

/// A deterministic source of random bytes.
#[derive(Clone, Debug)]
pub(crate) struct CountingRandom(pub(crate) u64);

impl Random for CountingRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            self.0 += 1;
            chunk.copy_from_slice(&Digest::of(&self.0.to_le_bytes()).as_bytes()[..chunk.len()]);
        }
    }
}
