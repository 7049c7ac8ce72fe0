//! The agents of the demo, their keys and cards, and the random source.

use asp::message::{PinnedCards, TrustScore};
use asp::session::SessionRules;
use asp::{
    AgentCard, AgentEndpoints, AgentProfile, AgentUri, AspLimits, ConformanceLevel, LocalError, Participant,
    ParticipantConfig,
};
use seal::{AgentKeys, Digest, Random, SystemRandom, ed25519, es256};

use super::simulation::ScenarioError;

/// Random bytes, from the system or derived from a seed.
pub(super) enum RandomSource {
    System,
    Seeded { seed: u64, blocks_used: u64 },
}

impl RandomSource {
    pub(super) fn seeded(seed: u64) -> Self {
        Self::Seeded { seed, blocks_used: 0 }
    }

    /// Generates keys. With a seed, the keys and their signatures are reproducible.
    fn generate_keys(&mut self) -> AgentKeys {
        if let Self::System = self {
            return AgentKeys::generate(&mut SystemRandom);
        }
        let mut seed = [0; 32];
        self.fill(&mut seed);
        let signing = ed25519::SigningKey::from_seed(&seed);
        loop {
            self.fill(&mut seed);
            if let Some(dpop) = es256::SigningKey::deterministic(&seed) {
                return AgentKeys { signing, dpop };
            }
        }
    }
}

impl Random for RandomSource {
    fn fill(&mut self, bytes: &mut [u8]) {
        match self {
            Self::System => SystemRandom.fill(bytes),
            Self::Seeded { seed, blocks_used } => {
                for chunk in bytes.chunks_mut(32) {
                    let block = Digest::of(format!("sayso asp demo {seed} {blocks_used}").as_bytes());
                    *blocks_used += 1;
                    chunk.copy_from_slice(&block.as_bytes()[..chunk.len()]);
                }
            }
        }
    }
}

pub(super) struct Actor {
    /// The name that the narration uses.
    pub(super) name: &'static str,
    card: AgentCard,
    keys: AgentKeys,
    org_id: &'static str,
    trust_score: TrustScore,
}

impl Actor {
    pub(super) fn card(&self) -> &AgentCard {
        &self.card
    }

    pub(super) fn agent(&self) -> &AgentUri {
        self.card.agent_id()
    }
}

/// The three agents. Most scenarios use two.
pub(super) struct Actors {
    pub(super) buyer: Actor,
    pub(super) press: Actor,
    pub(super) proofreader: Actor,
}

impl Actors {
    pub(super) fn new(random_source: &mut RandomSource) -> Result<Self, ScenarioError> {
        Ok(Self {
            buyer: create_actor(
                random_source,
                "Marisol's buyer",
                "agent://marisol.example/bistro/buyer",
                "Buys what Marisol's bistro needs",
                ("org_marisol", 74.5),
                "negotiate.printing",
            )?,
            press: create_actor(
                random_source,
                "the Braille Press",
                "agent://braillepress.example/orders/desk",
                "Takes orders for braille printing",
                ("org_braillepress", 81.0),
                "provide.printing",
            )?,
            proofreader: create_actor(
                random_source,
                "the proofreader",
                "agent://lighthouse.example/proof/reader",
                "Proofreads braille",
                ("org_lighthouse", 88.0),
                "verify.braille",
            )?,
        })
    }

    pub(super) fn name(&self, agent: &AgentUri) -> String {
        let actor =
            [&self.buyer, &self.press, &self.proofreader].into_iter().find(|actor| actor.agent() == agent);
        actor.map_or_else(|| agent.to_string(), |actor| actor.name.to_owned())
    }

    /// Creates a participant that has pinned the other agent's card.
    pub(super) fn create_participant(actor: &Actor, peer: &Actor) -> Result<Participant, LocalError> {
        Participant::new(ParticipantConfig {
            card: actor.card.clone(),
            keys: actor.keys.clone(),
            org_id: actor.org_id.to_owned(),
            trust_score: actor.trust_score,
            pinned_cards: PinnedCards::new([peer.card.clone()]),
            rules: SessionRules::default(),
            limits: AspLimits::default(),
        })
    }

    pub(super) fn cards_json(&self, with_proofreader: bool) -> String {
        let mut cards = vec![self.buyer.card.as_str(), self.press.card.as_str()];
        if with_proofreader {
            cards.push(self.proofreader.card.as_str());
        }
        format!("[\n{}\n]\n", cards.join(",\n"))
    }
}

fn create_actor(
    random_source: &mut RandomSource,
    name: &'static str,
    agent: &str,
    description: &str,
    (org_id, trust_score): (&'static str, f64),
    capability: &str,
) -> Result<Actor, ScenarioError> {
    let keys = random_source.generate_keys();
    let profile = AgentProfile {
        agent_id: AgentUri::parse(agent).map_err(|error| error.to_string())?,
        name: name.to_owned(),
        description: description.to_owned(),
        organization: org_id.replace("org_", "org:"),
        capabilities: vec![capability.to_owned()],
        level: ConformanceLevel::Standard,
        endpoints: AgentEndpoints::default(),
        max_transaction_value: None,
        currency: None,
    };
    let card = AgentCard::sign(&profile, &keys).map_err(|error| error.to_string())?;
    let trust_score =
        TrustScore::new(trust_score).ok_or_else(|| format!("{trust_score} is not a trust score"))?;
    Ok(Actor { name, card, keys, org_id, trust_score })
}
