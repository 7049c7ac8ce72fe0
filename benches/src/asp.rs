//! Two ASP agents for benchmarks: their keys and cards, and conversations of any length.

use asp::message::{Accept, Body, ExtraMembers, Inform, InformType, PinnedCards, Propose, TrustScore};
use asp::session::{ReceiverChecks, SessionRules};
use asp::{
    AgentCard, AgentEndpoints, AgentProfile, AgentUri, AspLimits, ConformanceLevel, Participant,
    ParticipantConfig, ProposalId, Reference,
};
use seal::json::RawJson;
use seal::{AgentKeys, SystemRandom, UnixMillis};

/// Two agents with their keys and cards.
#[derive(Debug)]
pub struct AgentPair {
    /// Their keys.
    pub keys: [AgentKeys; 2],
    cards: [AgentCard; 2],
}

/// The time of all messages.
pub const START: UnixMillis = UnixMillis::new(1_767_603_600_000);

#[allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    reason = "for benchmarks"
)]
impl AgentPair {
    /// Creates two agents with new keys.
    pub fn new() -> Self {
        let keys = [(); 2].map(|()| AgentKeys::generate(&mut SystemRandom));
        let card = |index: usize| {
            let profile = AgentProfile {
                agent_id: AgentUri::parse(&format!("agent://bench.example/agents/{index}")).unwrap(),
                name: format!("agent {index}"),
                description: "exchanges messages for benchmarks".to_owned(),
                organization: "org:bench".to_owned(),
                capabilities: Vec::new(),
                level: ConformanceLevel::Full,
                endpoints: AgentEndpoints::default(),
                max_transaction_value: None,
                currency: None,
            };
            AgentCard::sign(&profile, &keys[index]).unwrap()
        };
        let cards = [card(0), card(1)];
        Self { keys, cards }
    }

    /// Returns both cards, pinned.
    pub fn cards(&self) -> PinnedCards {
        PinnedCards::new(self.cards.iter().cloned())
    }

    /// Returns both cards as a JSON array.
    pub fn cards_json(&self) -> String {
        format!("[{},{}]\n", self.cards[0].as_str(), self.cards[1].as_str())
    }

    fn participant(&self, index: usize) -> Participant {
        Participant::new(ParticipantConfig {
            card: self.cards[index].clone(),
            keys: self.keys[index].clone(),
            org_id: "org_bench".to_owned(),
            trust_score: TrustScore::new(50.0).unwrap(),
            pinned_cards: PinnedCards::new([self.cards[1 - index].clone()]),
            rules: SessionRules::default(),
            limits: AspLimits::default(),
        })
        .unwrap()
    }

    /// Performs the handshake. Returns both participants and the messages.
    pub fn handshake(&self) -> ([Participant; 2], Vec<String>) {
        let mut participants = [self.participant(0), self.participant(1)];
        participants[0].invite(&self.cards[1], START, &mut SystemRandom).unwrap();
        let invitation = ProposalId::parse("prop_inv_1").unwrap();
        let messages_to_send: [(usize, Body); 4] = [
            (
                0,
                Propose {
                    proposal_id: invitation.clone(),
                    kind: Propose::INVITATION_TYPE.to_owned(),
                    subject: "benchmark".to_owned(),
                    terms: RawJson::parse("{}").unwrap(),
                    valid_until: None,
                    other: ExtraMembers::default(),
                }
                .into(),
            ),
            (1, Accept::new(Reference::from(&invitation)).into()),
            (0, inform(InformType::Identity, None).into()),
            (1, inform(InformType::Identity, None).into()),
        ];
        let mut lines = Vec::new();
        for (index, body) in messages_to_send {
            let sent = participants[index].send(body, START, &mut SystemRandom).unwrap();
            participants[1 - index]
                .receive(&sent.text, ReceiverChecks::PASSED, START, &mut SystemRandom)
                .unwrap();
            lines.push(sent.text.to_string());
        }
        (participants, lines)
    }

    /// Returns a valid conversation with this number of messages (at least the four of the handshake), and their average length
    /// in bytes. Messages after the handshake have bodies of 1 KiB.
    pub fn conversation(&self, messages: usize) -> (Vec<String>, usize) {
        let (mut participants, mut lines) = self.handshake();
        let body = inform_body();
        while lines.len() < messages {
            lines
                .push(participants[0].send(body.clone(), START, &mut SystemRandom).unwrap().text.to_string());
        }
        let bytes = lines.iter().map(String::len).sum::<usize>() / lines.len();
        (lines, bytes)
    }
}

/// Returns a message body of 1 KiB.
#[allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "for benchmarks")]
pub fn inform_body() -> Body {
    let data =
        RawJson::parse(&format!(r#"{{"note":"{}","part":"menu","pages":6}}"#, filler_text(900))).unwrap();
    inform(InformType::Answer, Some(data)).into()
}

fn inform(kind: InformType, data: Option<RawJson>) -> Inform {
    Inform {
        kind,
        in_reply_to: None,
        data,
        recoverable: None,
        percent: None,
        card: None,
        resolved_by: None,
        other: ExtraMembers::default(),
    }
}

/// Returns English text with this number of characters.
pub fn filler_text(length: usize) -> String {
    "The quick brown fox jumps over the lazy dog. ".chars().cycle().take(length).collect()
}
