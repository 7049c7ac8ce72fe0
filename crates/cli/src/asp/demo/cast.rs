//! The agents of the demo, their keys and cards, and where randomness comes from.

use asp::message::{Cards, TrustScore};
use asp::session::Rules;
use asp::{AgentUri, Card, CardError, Level, Limits, Misuse, Participant, Profile, Setup};
use seal::{Digest, Keys, Random, SystemRandom, ed25519, es256};

/// Random bytes: the system's, or such as follow from a number.
pub(super) enum Source {
    System,
    Seeded { seed: u64, used: u64 },
}

impl Source {
    pub(super) fn seeded(seed: u64) -> Self {
        Self::Seeded { seed, used: 0 }
    }

    /// Keys; with a seed, such as sign the same message the same way.
    fn keys(&mut self) -> Keys {
        if let Self::System = self {
            return Keys::generate(&mut SystemRandom);
        }
        let mut seed = [0; 32];
        self.fill(&mut seed);
        let signing = ed25519::SigningKey::from_seed(&seed);
        loop {
            self.fill(&mut seed);
            if let Some(dpop) = es256::SigningKey::reproducible(&seed) {
                return Keys { signing, dpop };
            }
        }
    }
}

impl Random for Source {
    fn fill(&mut self, bytes: &mut [u8]) {
        match self {
            Self::System => SystemRandom.fill(bytes),
            Self::Seeded { seed, used } => {
                for chunk in bytes.chunks_mut(32) {
                    let block = Digest::of(format!("sayso asp demo {seed} {used}").as_bytes());
                    *used += 1;
                    chunk.copy_from_slice(&block.as_bytes()[..chunk.len()]);
                }
            }
        }
    }
}

pub(super) struct Actor {
    /// How the narration calls it.
    pub(super) name: &'static str,
    card: Card,
    keys: Keys,
    org_id: &'static str,
    trust: f64,
}

impl Actor {
    pub(super) fn card(&self) -> &Card {
        &self.card
    }

    pub(super) fn agent(&self) -> &AgentUri {
        self.card.agent_id()
    }
}

/// The three agents; two in most scenarios.
pub(super) struct Cast {
    pub(super) buyer: Actor,
    pub(super) press: Actor,
    pub(super) reader: Actor,
}

impl Cast {
    pub(super) fn new(source: &mut Source) -> Result<Self, CardError> {
        Ok(Self {
            buyer: actor(
                source,
                "Marisol's buyer",
                "agent://marisol.example/bistro/buyer",
                "Buys what Marisol's bistro needs",
                ("org_marisol", 74.5),
                "negotiate.printing",
            )?,
            press: actor(
                source,
                "the Braille Press",
                "agent://braillepress.example/orders/desk",
                "Takes orders for braille printing",
                ("org_braillepress", 81.0),
                "provide.printing",
            )?,
            reader: actor(
                source,
                "the proofreader",
                "agent://lighthouse.example/proof/reader",
                "Proofreads braille",
                ("org_lighthouse", 88.0),
                "verify.braille",
            )?,
        })
    }

    pub(super) fn name(&self, agent: &AgentUri) -> String {
        let known = [&self.buyer, &self.press, &self.reader].into_iter().find(|actor| actor.agent() == agent);
        known.map_or_else(|| agent.to_string(), |actor| actor.name.to_owned())
    }

    /// A participant that has pinned the other's card.
    pub(super) fn participant(actor: &Actor, peer: &Actor) -> Result<Participant, Misuse> {
        Participant::new(Setup {
            card: actor.card.clone(),
            keys: actor.keys.clone(),
            org_id: actor.org_id.to_owned(),
            trust_score: TrustScore::new(actor.trust).ok_or(Misuse::Keys)?,
            known: Cards::new([peer.card.clone()]),
            rules: Rules::default(),
            limits: Limits::default(),
        })
    }

    pub(super) fn cards_json(&self, with_reader: bool) -> String {
        let mut cards = vec![self.buyer.card.as_str(), self.press.card.as_str()];
        if with_reader {
            cards.push(self.reader.card.as_str());
        }
        format!("[\n{}\n]\n", cards.join(",\n"))
    }
}

fn actor(
    source: &mut Source,
    name: &'static str,
    agent: &str,
    description: &str,
    (org_id, trust): (&'static str, f64),
    capability: &str,
) -> Result<Actor, CardError> {
    let keys = source.keys();
    let profile = Profile {
        agent_id: AgentUri::parse(agent).map_err(CardError::AgentId)?,
        name: name.to_owned(),
        description: description.to_owned(),
        organization: org_id.replace("org_", "org:"),
        capabilities: vec![capability.to_owned()],
        level: Level::Standard,
    };
    Ok(Actor { name, card: Card::issue(&profile, &keys)?, keys, org_id, trust })
}
