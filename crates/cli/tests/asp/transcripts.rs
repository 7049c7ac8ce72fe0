//! Transcripts for the tests: those of the demo, and those of two agents whose private keys the tests have.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use asp::message::{Body, PinnedCards, TrustScore};
use asp::session::{ReceiverChecks, SessionRules};
use asp::state_machine::Role;
use asp::{
    AgentCard, AgentEndpoints, AgentProfile, AgentUri, AspLimits, ConformanceLevel, Participant,
    ParticipantConfig, Performative, ReceiveOutcome,
};
use seal::{AgentKeys, Digest, Random, UnixMillis, ed25519, es256};

use testing::cli::{CommandOutput, run_sayso};

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

/// A transcript and its cards.
#[derive(Clone, Debug)]
pub(crate) struct TestTranscript {
    pub(crate) name: String,
    pub(crate) messages: Vec<String>,
    pub(crate) cards: String,
}

impl TestTranscript {
    pub(crate) fn text(&self) -> String {
        self.messages.join("\n") + "\n"
    }

    /// Runs `sayso asp verify` on other bytes, with this transcript's cards.
    pub(crate) fn verify_bytes(&self, transcript: &[u8], options: &[&str]) -> CommandOutput {
        let folder = tempfile::tempdir().unwrap();
        let cards = folder.path().join("cards.json");
        std::fs::write(&cards, &self.cards).unwrap();
        let arguments = ["asp", "verify", "-", "--cards", cards.to_str().unwrap()];
        run_sayso(&[&arguments, options].concat(), transcript)
    }

    pub(crate) fn verify(&self) -> CommandOutput {
        self.verify_bytes(self.text().as_bytes(), &[])
    }

    /// Runs `sayso asp verify` on these messages, with this transcript's cards.
    pub(crate) fn verify_messages(&self, messages: &[&str]) -> CommandOutput {
        self.verify_bytes((messages.join("\n") + "\n").as_bytes(), &[])
    }

    pub(crate) fn with_cards(&self, cards: &str) -> Self {
        Self { cards: cards.to_owned(), ..self.clone() }
    }

    /// Returns the cards one by one.
    pub(crate) fn each_card(&self) -> Vec<String> {
        let cards: Vec<serde_json::Value> = serde_json::from_str(&self.cards).unwrap();
        cards.iter().map(ToString::to_string).collect()
    }
}

/// Runs `sayso asp trace` on these bytes.
pub(crate) fn trace(bytes: impl AsRef<[u8]> + Sync) -> CommandOutput {
    run_sayso(&["asp", "trace", "-"], bytes)
}

/// A run of the demo and the files that it wrote.
pub(crate) struct AspDemoRun {
    pub(crate) run: CommandOutput,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) transcript_path: PathBuf,
}

impl AspDemoRun {
    pub(crate) fn new(scenario: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let transcript_path = folder.path().join("talk.jsonl");
        let arguments =
            ["asp", "demo", "--scenario", scenario, "--transcript", transcript_path.to_str().unwrap()];
        let run = run_sayso(&[&arguments, options].concat(), "");
        Self { run, folder, transcript_path }
    }

    pub(crate) fn read_transcript(&self, name: &str) -> TestTranscript {
        let cards = std::fs::read_to_string(self.transcript_path.with_extension("cards.json")).unwrap();
        TestTranscript { name: name.to_owned(), messages: read_messages(&self.transcript_path), cards }
    }
}

fn read_messages(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn run_demos(seed: &str) -> Vec<TestTranscript> {
    let mut transcripts = Vec::new();
    for scenario in SCENARIOS {
        let demo = AspDemoRun::new(scenario, &["--seed", seed]);
        assert_eq!(demo.run.exit_code, 0, "{}", demo.run.stderr);
        let transcript = demo.read_transcript(scenario);
        if scenario == "delegated" {
            let messages = read_messages(&demo.transcript_path.with_extension("delegate.jsonl"));
            transcripts.push(TestTranscript { name: "delegate".to_owned(), messages, ..transcript.clone() });
        }
        transcripts.push(transcript);
    }
    transcripts
}

/// The transcripts of every scenario, including the delegate's own, from one seed. All have the same agents and keys.
/// All except the delegate's belong to the same session.
pub(crate) static DEMOS: LazyLock<Vec<TestTranscript>> = LazyLock::new(|| run_demos("7"));
/// The same transcripts from another seed.
pub(crate) static OTHER_DEMOS: LazyLock<Vec<TestTranscript>> = LazyLock::new(|| run_demos("8"));

pub(crate) fn demo_transcript(name: &str) -> &'static TestTranscript {
    DEMOS.iter().find(|transcript| transcript.name == name).unwrap()
}

/// An agent whose private keys the tests have.
pub(crate) struct TestAgent {
    pub(crate) card: AgentCard,
    pub(crate) keys: AgentKeys,
}

pub(crate) fn test_agent(agent_id: &str, seed: u8) -> TestAgent {
    let mut secret = [9; 32];
    secret[31] = seed;
    let keys = AgentKeys {
        signing: ed25519::SigningKey::from_seed(&secret),
        dpop: es256::SigningKey::from_secret(&secret).unwrap(),
    };
    let profile = AgentProfile {
        agent_id: AgentUri::parse(agent_id).unwrap(),
        name: "An agent".to_owned(),
        description: "Does what the tests need".to_owned(),
        organization: "org:test".to_owned(),
        capabilities: vec!["test.anything".to_owned()],
        level: ConformanceLevel::Standard,
        endpoints: AgentEndpoints::default(),
        max_transaction_value: None,
        currency: None,
    };
    TestAgent { card: AgentCard::sign(&profile, &keys).unwrap(), keys }
}

pub(crate) static BUYER: LazyLock<TestAgent> = LazyLock::new(|| test_agent("agent://a.example/buyer", 1));
pub(crate) static SELLER: LazyLock<TestAgent> = LazyLock::new(|| test_agent("agent://b.example/seller", 2));

/// When the scripted sessions begin.
pub(crate) const START: UnixMillis = UnixMillis::new(1_767_603_600_000);

/// Deterministic randomness.
pub(crate) struct SeededRandom(pub(crate) u64);

impl Random for SeededRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            self.0 += 1;
            chunk.copy_from_slice(&Digest::of(&self.0.to_le_bytes()).as_bytes()[..chunk.len()]);
        }
    }
}

/// One scripted message: the sender's role, the performative and the body as JSON.
pub(crate) type ScriptLine<'l> = (Role, Performative, &'l str);

/// The messages that bring a session to CONVERSING.
pub(crate) const OPENING_LINES: [ScriptLine<'static>; 4] = [
    (
        Role::Inviter,
        Performative::Propose,
        r#"{"proposalId":"prop_inv","type":"session-invitation","subject":"a talk","terms":{}}"#,
    ),
    (Role::Invited, Performative::Accept, r#"{"referenceId":"prop_inv"}"#),
    (Role::Inviter, Performative::Inform, r#"{"informType":"identity"}"#),
    (Role::Invited, Performative::Inform, r#"{"informType":"identity"}"#),
];

/// Returns the transcript of a session between the test agents: the opening, then these lines. A different seed gives different ids.
pub(crate) fn scripted_transcript(lines: &[ScriptLine<'_>], seed: u64) -> TestTranscript {
    changed_transcript(lines, seed, |_, body| body)
}

/// Like [`scripted_transcript`], but each body is changed before it is sent, for example to add a consent.
pub(crate) fn changed_transcript(
    lines: &[ScriptLine<'_>],
    seed: u64,
    change: impl Fn(&asp::SessionRecord, Body) -> Body,
) -> TestTranscript {
    let participant = |own: &TestAgent, peer: &TestAgent| {
        Participant::new(ParticipantConfig {
            card: own.card.clone(),
            keys: own.keys.clone(),
            org_id: "org_test".to_owned(),
            trust_score: TrustScore::new(50.0).unwrap(),
            pinned_cards: PinnedCards::new([peer.card.clone()]),
            rules: SessionRules::default(),
            limits: AspLimits { max_message_bytes: 1 << 24, ..AspLimits::default() },
        })
        .unwrap()
    };
    let mut random = SeededRandom(seed * 1_000_000);
    let mut participants = [participant(&BUYER, &SELLER), participant(&SELLER, &BUYER)];
    participants[0].invite(&SELLER.card, START, &mut random).unwrap();
    let mut messages = Vec::new();
    for ((role, performative, body), now) in
        OPENING_LINES.iter().chain(lines).zip((START.get()..).map(UnixMillis::new))
    {
        let body = Body::parse(*performative, body).unwrap_or_else(|error| panic!("{error}: {body}"));
        let (sender, receiver) = if *role == Role::Inviter { (0, 1) } else { (1, 0) };
        let body = match participants[sender].record() {
            Some(record) => change(record, body),
            None => body,
        };
        let sent = participants[sender].send(body, now, &mut random).unwrap();
        let outcome =
            participants[receiver].receive(&sent.text, ReceiverChecks::PASSED, now, &mut random).unwrap();
        assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
        messages.push(sent.text.to_string());
    }
    let cards = format!("[{},{}]", BUYER.card.as_str(), SELLER.card.as_str());
    TestTranscript { name: "scripted".to_owned(), messages, cards }
}

/// Returns the transcript of a scripted session with one QUERY that has this subject.
pub(crate) fn transcript_with_subject(subject: &str) -> TestTranscript {
    let subject = serde_json::to_string(subject).unwrap();
    let body = format!(r#"{{"queryId":"qry_1","queryType":"test","subject":{subject}}}"#);
    scripted_transcript(&[(Role::Inviter, Performative::Query, &body)], 1)
}
