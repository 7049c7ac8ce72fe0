//! Two agents to measure with: their keys and cards, and conversations of any length.

use asp::message::{Accept, Body, Cards, Inform, InformType, Others, Propose, TrustScore};
use asp::session::{Judgement, Rules};
use asp::{AgentUri, Card, Level, Limits, Participant, Profile, ProposalId, Reference, Setup};
use seal::json::Raw;
use seal::{Keys, SystemRandom, UnixMillis};

/// Two agents.
#[derive(Debug)]
pub struct Pair {
    /// Their keys.
    pub keys: [Keys; 2],
    cards: [Card; 2],
}

/// When conversations begin.
pub const START: UnixMillis = UnixMillis::new(1_767_603_600_000);

#[allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    reason = "for benchmarks"
)]
impl Pair {
    /// Two agents with new keys.
    pub fn new() -> Self {
        let keys = [(); 2].map(|()| Keys::generate(&mut SystemRandom));
        let card = |at: usize| {
            let profile = Profile {
                agent_id: AgentUri::parse(&format!("agent://bench.example/agents/{at}")).unwrap(),
                name: format!("agent {at}"),
                description: "talks to be measured".to_owned(),
                organization: "org:bench".to_owned(),
                capabilities: Vec::new(),
                level: Level::Full,
            };
            Card::issue(&profile, &keys[at]).unwrap()
        };
        let cards = [card(0), card(1)];
        Self { keys, cards }
    }

    /// Their cards, pinned.
    pub fn cards(&self) -> Cards {
        Cards::new(self.cards.iter().cloned())
    }

    /// Their cards as a file.
    pub fn cards_json(&self) -> String {
        format!("[{},{}]\n", self.cards[0].as_str(), self.cards[1].as_str())
    }

    fn participant(&self, at: usize) -> Participant {
        Participant::new(Setup {
            card: self.cards[at].clone(),
            keys: self.keys[at].clone(),
            org_id: "org_bench".to_owned(),
            trust_score: TrustScore::new(50.0).unwrap(),
            known: Cards::new([self.cards[1 - at].clone()]),
            rules: Rules::default(),
            limits: Limits::default(),
        })
        .unwrap()
    }

    /// Two participants that know each other, and the messages it took.
    pub fn introduced(&self) -> ([Participant; 2], Vec<String>) {
        let mut sides = [self.participant(0), self.participant(1)];
        sides[0].invite(&self.cards[1], UnixMillis::new(START.get()), &mut SystemRandom).unwrap();
        let invitation = ProposalId::parse("prop_inv_1").unwrap();
        let talk: [(usize, Body); 4] = [
            (
                0,
                Propose {
                    proposal_id: invitation.clone(),
                    kind: Propose::INVITATION.to_owned(),
                    subject: "to be measured".to_owned(),
                    terms: Raw::parse("{}").unwrap(),
                    valid_until: None,
                    other: Others::default(),
                }
                .into(),
            ),
            (
                1,
                Accept { reference: Reference::from(&invitation), note: None, other: Others::default() }
                    .into(),
            ),
            (0, inform(InformType::Identity, None).into()),
            (1, inform(InformType::Identity, None).into()),
        ];
        let mut lines = Vec::new();
        for (at, body) in talk {
            let sent = sides[at].send(body, UnixMillis::new(START.get()), &mut SystemRandom).unwrap();
            sides[1 - at]
                .receive(&sent.text, Judgement::default(), UnixMillis::new(START.get()), &mut SystemRandom)
                .unwrap();
            lines.push(sent.text.to_string());
        }
        (sides, lines)
    }

    /// A lawful conversation of at least five messages, most of them 1 KiB of telling; and their average length.
    pub fn conversation(&self, messages: usize) -> (Vec<String>, usize) {
        let (mut sides, mut lines) = self.introduced();
        let body = told();
        while lines.len() < messages {
            lines.push(
                sides[0]
                    .send(body.clone(), UnixMillis::new(START.get()), &mut SystemRandom)
                    .unwrap()
                    .text
                    .to_string(),
            );
        }
        let bytes = lines.iter().map(String::len).sum::<usize>() / lines.len();
        (lines, bytes)
    }
}

/// A body of 1 KiB.
#[allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "for benchmarks")]
pub fn told() -> Body {
    let data = Raw::parse(&format!(r#"{{"note":"{}","part":"menu","pages":6}}"#, filler(900))).unwrap();
    inform(InformType::Answer, Some(data)).into()
}

fn inform(kind: InformType, data: Option<Raw>) -> Inform {
    Inform {
        kind,
        in_reply_to: None,
        data,
        recoverable: None,
        percent: None,
        card: None,
        resolved_by: None,
        other: Others::default(),
    }
}

/// Plain text of that length.
pub fn filler(length: usize) -> String {
    "The quick brown fox jumps over the lazy dog. ".chars().cycle().take(length).collect()
}
