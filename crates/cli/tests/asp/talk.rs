//! Transcripts to examine: those of the demo, and others of two agents whose keys the tests have.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use asp::machine::Role;
use asp::message::{Body, Cards, TrustScore};
use asp::session::{Judgement, Rules};
use asp::{AgentUri, Card, Level, Limits, Participant, Performative, Profile, Received, Setup};
use seal::{Digest, Keys, Random, UnixMillis, ed25519, es256};

use testing::cli::{Finished, sayso};

pub(crate) const SCENARIOS: [&str; 8] = [
    "agreed",
    "rejected",
    "countered",
    "invitation-timeout",
    "escalation-timeout",
    "withdrawn",
    "unilateral-close",
    "delegated",
];

/// A transcript and the cards that go with it.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    pub(crate) name: String,
    pub(crate) messages: Vec<String>,
    pub(crate) cards: String,
}

impl Talk {
    pub(crate) fn text(&self) -> String {
        self.messages.join("\n") + "\n"
    }

    /// `sayso asp verify` of other bytes than its own, with its cards.
    pub(crate) fn verify_bytes(&self, transcript: &[u8], options: &[&str]) -> Finished {
        let folder = tempfile::tempdir().unwrap();
        let cards = folder.path().join("cards.json");
        std::fs::write(&cards, &self.cards).unwrap();
        let arguments = ["asp", "verify", "-", "--cards", cards.to_str().unwrap()];
        sayso(&[&arguments, options].concat(), transcript)
    }

    pub(crate) fn verify(&self) -> Finished {
        self.verify_bytes(self.text().as_bytes(), &[])
    }

    /// `sayso asp verify` of these messages, with its cards.
    pub(crate) fn verify_messages(&self, messages: &[&str]) -> Finished {
        self.verify_bytes((messages.join("\n") + "\n").as_bytes(), &[])
    }

    pub(crate) fn with_cards(&self, cards: &str) -> Self {
        Self { cards: cards.to_owned(), ..self.clone() }
    }

    /// The cards, one by one.
    pub(crate) fn each_card(&self) -> Vec<String> {
        let cards: Vec<serde_json::Value> = serde_json::from_str(&self.cards).unwrap();
        cards.iter().map(ToString::to_string).collect()
    }
}

/// The trace of these bytes.
pub(crate) fn trace(bytes: impl AsRef<[u8]> + Sync) -> Finished {
    sayso(&["asp", "trace", "-"], bytes)
}

/// A run of the demo, and the files that it wrote.
pub(crate) struct Played {
    pub(crate) run: Finished,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) transcript: PathBuf,
}

impl Played {
    pub(crate) fn new(scenario: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let transcript = folder.path().join("talk.jsonl");
        let arguments = ["asp", "demo", "--scenario", scenario, "--transcript", transcript.to_str().unwrap()];
        let run = sayso(&[&arguments, options].concat(), "");
        Self { run, folder, transcript }
    }

    pub(crate) fn talk(&self, name: &str) -> Talk {
        let cards = std::fs::read_to_string(self.transcript.with_extension("cards.json")).unwrap();
        Talk { name: name.to_owned(), messages: messages(&self.transcript), cards }
    }
}

fn messages(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn seeded(seed: &str) -> Vec<Talk> {
    let mut talks = Vec::new();
    for scenario in SCENARIOS {
        let played = Played::new(scenario, &["--seed", seed]);
        assert_eq!(played.run.code, 0, "{}", played.run.err);
        let talk = played.talk(scenario);
        if scenario == "delegated" {
            let messages = messages(&played.transcript.with_extension("delegate.jsonl"));
            talks.push(Talk { name: "delegate".to_owned(), messages, ..talk.clone() });
        }
        talks.push(talk);
    }
    talks
}

/// Every scenario's transcript, the delegate's own among them, from one seed: all the same agents, keys and, but for
/// the delegate's, the same session.
pub(crate) static DEMOS: LazyLock<Vec<Talk>> = LazyLock::new(|| seeded("7"));
/// The same from another seed.
pub(crate) static OTHER_DEMOS: LazyLock<Vec<Talk>> = LazyLock::new(|| seeded("8"));

pub(crate) fn demo(name: &str) -> &'static Talk {
    DEMOS.iter().find(|talk| talk.name == name).unwrap()
}

/// An agent whose keys the tests have.
pub(crate) struct Actor {
    pub(crate) card: Card,
    pub(crate) keys: Keys,
}

pub(crate) fn actor(agent: &str, seed: u8) -> Actor {
    let mut secret = [9; 32];
    secret[31] = seed;
    let keys = Keys {
        signing: ed25519::SigningKey::from_seed(&secret),
        dpop: es256::SigningKey::from_secret(&secret).unwrap(),
    };
    let profile = Profile {
        agent_id: AgentUri::parse(agent).unwrap(),
        name: "An agent".to_owned(),
        description: "Does what tests want".to_owned(),
        organization: "org:test".to_owned(),
        capabilities: vec!["test.anything".to_owned()],
        level: Level::Standard,
    };
    Actor { card: Card::issue(&profile, &keys).unwrap(), keys }
}

pub(crate) static BUYER: LazyLock<Actor> = LazyLock::new(|| actor("agent://a.example/buyer", 1));
pub(crate) static SELLER: LazyLock<Actor> = LazyLock::new(|| actor("agent://b.example/seller", 2));

/// When the tests' own sessions begin.
pub(crate) const START: UnixMillis = UnixMillis::new(1_767_603_600_000);

/// Randomness that is the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Random for Dice {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            self.0 += 1;
            chunk.copy_from_slice(&Digest::of(&self.0.to_le_bytes()).as_bytes()[..chunk.len()]);
        }
    }
}

/// Something that is said: by whom, which performative, and the body as JSON.
pub(crate) type Line<'l> = (Role, Performative, &'l str);

/// What brings a session to CONVERSING.
pub(crate) const OPENING: [Line<'static>; 4] = [
    (
        Role::Inviter,
        Performative::Propose,
        r#"{"proposalId":"prop_inv","type":"session-invitation","subject":"a talk","terms":{}}"#,
    ),
    (Role::Invited, Performative::Accept, r#"{"referenceId":"prop_inv"}"#),
    (Role::Inviter, Performative::Inform, r#"{"informType":"identity"}"#),
    (Role::Invited, Performative::Inform, r#"{"informType":"identity"}"#),
];

/// A session of the tests' own agents: the opening, and then these lines. Sessions of other dice have other ids.
pub(crate) fn own_talk(lines: &[Line<'_>], dice: u64) -> Talk {
    let side = |one: &Actor, other: &Actor| {
        Participant::new(Setup {
            card: one.card.clone(),
            keys: one.keys.clone(),
            org_id: "org_test".to_owned(),
            trust_score: TrustScore::new(50.0).unwrap(),
            known: Cards::new([other.card.clone()]),
            rules: Rules::default(),
            limits: Limits { message_bytes: 1 << 24, ..Limits::default() },
        })
        .unwrap()
    };
    let mut dice = Dice(dice * 1_000_000);
    let mut sides = [side(&BUYER, &SELLER), side(&SELLER, &BUYER)];
    sides[0].invite(&SELLER.card, START, &mut dice).unwrap();
    let mut messages = Vec::new();
    for ((role, performative, body), now) in
        OPENING.iter().chain(lines).zip((START.get()..).map(UnixMillis::new))
    {
        let body = Body::parse(*performative, body).unwrap_or_else(|wrong| panic!("{wrong}: {body}"));
        let (speaker, hearer) = if *role == Role::Inviter { (0, 1) } else { (1, 0) };
        let sent = sides[speaker].send(body, now, &mut dice).unwrap();
        let heard = sides[hearer].receive(&sent.text, Judgement::default(), now, &mut dice).unwrap();
        assert!(matches!(heard, Received::Taken { .. }), "{heard:?}");
        messages.push(sent.text.to_string());
    }
    let cards = format!("[{},{}]", BUYER.card.as_str(), SELLER.card.as_str());
    Talk { name: "own".to_owned(), messages, cards }
}

/// That, with one QUERY whose subject is this text.
pub(crate) fn talk_about(subject: &str) -> Talk {
    let subject = serde_json::to_string(subject).unwrap();
    let body = format!(r#"{{"queryId":"qry_1","queryType":"test","subject":{subject}}}"#);
    own_talk(&[(Role::Inviter, Performative::Query, &body)], 1)
}
