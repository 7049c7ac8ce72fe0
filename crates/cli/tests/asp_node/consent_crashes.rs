//! No commitment without a recorded yes: nodes that ask a person through a hub crash, or are killed together with the hub, while
//! the person accepts some offers and refuses others.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use testing::cli::{binary, run_sayso};
use testing::http::{TIMEOUT, TestClient};
use testing::hub::{HubProcess, reserved_address};
use testing::messages::{REPLY_CAPABILITIES, short_type, subscription_request};
use testing::random::SplitMix64;

use crate::crashes::CRASH_POINTS;
use crate::random_kills::{random_kill_count, random_seed};
use crate::script::{BUYER, PRESS};
use crate::test_node::{
    NodeBuilder, POLL_INTERVAL, Storage, TestNode, View, poll, start_builders, timestamp_in,
};

const CONCURRENT_SESSIONS: usize = 6;
const DEFAULT_KILLS: usize = 9;

/// What the people on both sides say to the commitment of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    BothAgree,
    BuyerRefuses,
    PressRefuses,
}

const PLANS: [Plan; 3] = [Plan::BothAgree, Plan::BuyerRefuses, Plan::PressRefuses];

impl Plan {
    /// The subject of the session, by which the person decides.
    fn subject(self) -> &'static str {
        match self {
            Self::BothAgree => "menus that both sides want",
            Self::BuyerRefuses => "menus that the buyer refuses",
            Self::PressRefuses => "menus that the press refuses",
        }
    }

    /// What a person answers to a question.
    fn decision(action: &str) -> &'static str {
        let is_refused = if action.starts_with("Make a binding offer") {
            action.contains(Self::BuyerRefuses.subject())
        } else {
            assert!(action.starts_with("Accept the binding offer"), "{action}");
            action.contains(Self::PressRefuses.subject())
        };
        if is_refused { "reject" } else { "accept" }
    }
}

/// A hub that keeps its data when it is killed, and a person who listens to it again and again.
struct ListenedHub {
    address: String,
    folder: tempfile::TempDir,
    process: Mutex<HubProcess>,
    /// The reply tokens of the questions to which the person said yes.
    accepted: Mutex<HashSet<String>>,
    refused: Mutex<HashSet<String>>,
    is_stopping: AtomicBool,
}

impl ListenedHub {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = reserved_address();
        Self {
            process: Mutex::new(Self::start_process(&address, &folder)),
            address,
            folder,
            accepted: Mutex::default(),
            refused: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    fn start_process(address: &str, folder: &tempfile::TempDir) -> HubProcess {
        let data = folder.path().join("data");
        let mut command = Command::new(binary());
        // A hub refuses variables with its prefix that it does not know.
        for variable in ["SAYSO_RANDOM_KILLS", "SAYSO_RANDOM_SEED", "SAYSO_CRASH_MATRIX"] {
            command.env_remove(variable);
        }
        command.args(["serve", "--open", "--listen", address, "--data", data.to_str().unwrap()]);
        HubProcess::start_command(&mut command)
    }

    /// Kills the hub, and starts it again.
    fn restart(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill();
        *process = Self::start_process(&self.address, &self.folder);
    }

    /// Ends the hub, so that [`Self::listen`] returns.
    fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.process.lock().unwrap().kill();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("data/manifest.jwk")
    }

    /// Listens and answers until the hub is stopped. After a lost connection, continues where it stopped.
    fn listen(&self) {
        let client = TestClient::new(&self.address);
        let mut subscription = String::new();
        let mut last_event_id = String::new();
        while !self.is_stopping() {
            if subscription.is_empty() {
                let request = subscription_request(REPLY_CAPABILITIES);
                match client.try_send("POST", "/aaep/v1/subscriptions", &request) {
                    Some(response) if response.status == 201 => {
                        subscription = response.json_str("subscription_id");
                        last_event_id.clear();
                    }
                    _ => {
                        std::thread::sleep(POLL_INTERVAL);
                        continue;
                    }
                }
            }
            if self.follow(&client, &subscription, &mut last_event_id) == Some(false) {
                subscription.clear();
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Reads events until the connection ends. Returns whether the hub knew the subscription, if it answered.
    fn follow(&self, client: &TestClient, subscription: &str, last_event_id: &mut String) -> Option<bool> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let resume = if last_event_id.is_empty() {
            String::new()
        } else {
            format!("Last-Event-ID: {last_event_id}\r\n")
        };
        let request = format!(
            "GET /aaep/v1/events?subscription_id={subscription} HTTP/1.1\r\nHost: {}\r\n{resume}Accept: text/event-stream\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        if !lines.next()?.starts_with("HTTP/1.1 200") {
            return Some(false);
        }
        for line in lines {
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(last_event_id);
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            // The connection may end in the middle of a line.
            let Ok(event) = serde_json::from_str::<Value>(data) else { continue };
            if short_type(&event) == "awaiting.confirmation" {
                self.answer(client, subscription, &event);
            }
        }
        Some(true)
    }

    /// Answers a question, and repeats the answer until the hub has it.
    fn answer(&self, client: &TestClient, subscription: &str, question: &Value) {
        let token = question["reply_token"].as_str().unwrap();
        let decision = Plan::decision(question["action"].as_str().unwrap());
        let decided = if decision == "accept" { &self.accepted } else { &self.refused };
        decided.lock().unwrap().insert(token.to_owned());
        while client.try_reply(subscription, token, decision).is_none() && !self.is_stopping() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Stops the hub when the test ends, even if it fails.
struct StopWhenDropped<'h>(&'h ListenedHub);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Starts two durable nodes that ask through this hub.
fn start_asking_pair(
    hub: &ListenedHub,
    prepare: impl Fn(usize, NodeBuilder) -> NodeBuilder,
) -> [TestNode; 2] {
    let url = format!("http://{}", hub.address);
    let builders = [(BUYER, "buyer"), (PRESS, "press")].map(|(role, name)| {
        let builder = NodeBuilder::new(name).storage(Storage::Disk);
        prepare(role, builder.argument("--hub").argument(&url))
    });
    start_builders(builders)
}

/// The programs of both agents in one session.
struct Programs<'p> {
    pair: [&'p TestNode; 2],
    session: String,
    /// The number of messages so far.
    position: usize,
}

impl Programs<'_> {
    /// Waits until both sides have all messages so far.
    fn catch_up(&self, sender: usize) {
        let name = format!("message {}", self.position);
        self.pair[sender].wait_for(&self.session, &name, |view| view.message_count() >= self.position);
    }

    /// Sends a message again and again until it is sent or the person says no. Returns whether it was sent.
    fn try_say(&mut self, sender: usize, performative: &str, body: &Value) -> bool {
        self.catch_up(sender);
        let node = self.pair[sender];
        let is_sent = poll(performative, || {
            let view = node.view(&self.session, 0, 0)?;
            if view.message_count() > self.position {
                return Some(true);
            }
            assert!(!view.is_terminal(), "the session ended before {performative}: {view:#?}");
            let consent = &view.0["consent"];
            if consent["performative"] == performative {
                if consent["status"] == "awaiting_consent" {
                    return None;
                }
                if consent["reason"] == "the person said no" {
                    return Some(false);
                }
            }
            let response = node.try_post_message(&self.session, performative, body)?;
            match response.status {
                200 => Some(true),
                202 | 409 | 503 => None,
                // The hub is being restarted.
                422 if response.body.contains("the person cannot be asked") => None,
                _ => panic!("{performative}: {response:?}"),
            }
        });
        self.position += usize::from(is_sent);
        is_sent
    }

    fn say(&mut self, sender: usize, performative: &str, body: &Value) {
        assert!(self.try_say(sender, performative, body), "{performative} needs no yes, or got a no");
    }

    fn commitment(&self) -> Value {
        let day = 24 * 3600;
        json!({
            "commitmentId": "cmt_1",
            "terms": {"obligations": [
                {"party": self.pair[PRESS].agent, "action": "print 40 menus", "deadline": timestamp_in(7 * day)},
                {"party": self.pair[BUYER].agent, "action": "send the text", "deadline": timestamp_in(8 * day)},
            ]},
            "escrow": {"amount": "480.00", "currency": "EUR"},
        })
    }
}

/// Runs a session to its end. Returns its id.
fn run_plan(pair: [&TestNode; 2], plan: Plan, name: &str) -> String {
    let subject = format!("{}, {name}", plan.subject());
    let session =
        poll("the invitation", || match pair[BUYER].try_invite(&pair[PRESS].agent, &subject, 600) {
            Some(response) if response.status == 201 => Some(response.json_str("sessionId")),
            Some(response) if response.status == 503 => None,
            Some(response) => panic!("{response:?}"),
            None => pair[BUYER].find_session(&subject),
        });
    let mut programs = Programs { pair, session, position: 1 };
    let invitation = format!("prop_{}", programs.session);
    programs.say(PRESS, "ACCEPT", &json!({"referenceId": invitation}));
    // The nodes introduce the agents to each other.
    programs.position += 2;
    programs.say(
        BUYER,
        "PROPOSE",
        &json!({"proposalId": "prop_1", "type": "work", "subject": "menus", "terms": {"price": "480.00 EUR"}}),
    );
    programs.say(PRESS, "ACCEPT", &json!({"referenceId": "prop_1"}));
    let commitment = programs.commitment();
    if programs.try_say(BUYER, "COMMIT", &commitment) {
        assert_ne!(plan, Plan::BuyerRefuses);
        let accept = json!({"referenceId": "cmt_1"});
        if programs.try_say(PRESS, "ACCEPT", &accept) {
            assert_ne!(plan, Plan::PressRefuses);
            programs.say(PRESS, "INFORM", &json!({"informType": "result", "data": {"note": "shipped"}}));
            programs.say(PRESS, "CLOSE", &json!({"reason": "fulfilled"}));
        } else {
            assert_eq!(plan, Plan::PressRefuses);
            let reject = json!({"code": "policy_violation", "reason": "no", "referenceId": "cmt_1"});
            programs.say(PRESS, "REJECT", &reject);
        }
    } else {
        assert_eq!(plan, Plan::BuyerRefuses);
    }
    programs.say(BUYER, "CLOSE", &json!({"reason": "done"}));
    assert_recorded_consents(pair, plan, &programs);
    programs.session
}

/// Checks that both sides ended with the same transcript, that each binding message in it carries a person's yes, and that nothing
/// was sent after a no.
fn assert_recorded_consents(pair: [&TestNode; 2], plan: Plan, programs: &Programs<'_>) {
    let session = &programs.session;
    for node in pair {
        node.wait_for(session, "the end of the session", |view: &View| {
            view.state() == "CLOSED" && view.is_acknowledged() && view.message_count() == programs.position
        });
    }
    let transcripts = pair.map(|node| node.transcript(session));
    assert_eq!(transcripts[BUYER], transcripts[PRESS], "{plan:?}");
    let messages: Vec<Value> =
        transcripts[BUYER].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let binding = |performative: &str| {
        let is_binding = |message: &&Value| {
            let body = &message["content"]["body"];
            message["performative"] == performative
                && [&body["commitmentId"], &body["referenceId"]].contains(&&json!("cmt_1"))
        };
        messages.iter().filter(is_binding).count()
    };
    let expected = match plan {
        Plan::BothAgree => (1, 1),
        Plan::BuyerRefuses => (0, 0),
        Plan::PressRefuses => (1, 0),
    };
    assert_eq!((binding("COMMIT"), binding("ACCEPT")), expected, "{plan:?}");
}

/// Runs `sayso asp verify` on the transcripts of all sessions, and compares their receipts with what the person said.
fn assert_receipts(hub: &ListenedHub, pair: [&TestNode; 2], sessions: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let cards = folder.path().join("cards.jsonl");
    let mut tokens = HashSet::new();
    for session in sessions {
        let transcript = pair[BUYER].transcript(session);
        std::fs::write(&cards, pair[BUYER].cards(session)).unwrap();
        let arguments = ["asp", "verify", "-", "--require-consent", "--hub-key"];
        let files = [hub.key_file(), cards.clone()].map(|path| path.to_str().unwrap().to_owned());
        let arguments = [&arguments[..], &[&files[0], "--cards", &files[1]]].concat();
        let output = run_sayso(&arguments, &transcript);
        assert_eq!((output.exit_code, &*output.stderr), (0, ""), "{}\n{transcript}", output.stdout);
        for line in transcript.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let receipt = &message["content"]["body"]["consent"]["receipt"];
            if let Some(token) = receipt["reply_token"].as_str() {
                assert!(hub.accepted.lock().unwrap().contains(token), "nobody said yes: {receipt}");
                assert!(tokens.insert(token.to_owned()), "a yes was used twice: {receipt}");
            }
        }
    }
    assert!(hub.refused.lock().unwrap().is_disjoint(&tokens));
}

/// Runs all plans with a node that crashes whenever it has passed a point this many times since its start.
fn crash_everywhere(role: usize) {
    let hub = ListenedHub::start();
    std::thread::scope(|scope| {
        let _stop = StopWhenDropped(&hub);
        scope.spawn(|| hub.listen());
        std::thread::scope(|scope| {
            for (point, passes) in CRASH_POINTS {
                let hub = &hub;
                scope.spawn(move || {
                    let pair = start_asking_pair(hub, |node, builder| {
                        if node == role {
                            builder.crash_always_at(&format!("{point}:{passes}"))
                        } else {
                            builder
                        }
                    });
                    let pair = pair.each_ref();
                    let sessions = PLANS.map(|plan| run_plan(pair, plan, point));
                    assert_receipts(hub, pair, &sessions);
                    let crashes = pair[role].starts() - 1;
                    println!("{point}: {crashes} crashes");
                    assert!(crashes >= 3, "{point}: only {crashes} crashes");
                });
            }
        });
    });
}

#[test]
fn a_buyer_that_crashes_at_every_step_commits_to_nothing_without_a_yes() {
    crash_everywhere(BUYER);
}

#[test]
fn a_press_that_crashes_at_every_step_accepts_nothing_without_a_yes() {
    crash_everywhere(PRESS);
}

#[test]
fn nothing_binds_without_a_yes_after_random_kills_of_nodes_and_hub() {
    let (kills, seed) = (random_kill_count(DEFAULT_KILLS), random_seed());
    println!("seed {seed}, {kills} kills; SAYSO_RANDOM_SEED={seed} repeats them");
    let hub = ListenedHub::start();
    let pair = start_asking_pair(&hub, |_, builder| builder);
    let pair = pair.each_ref();
    let (killed, begun) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let sessions = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let _stop = StopWhenDropped(&hub);
        scope.spawn(|| hub.listen());
        std::thread::scope(|scope| {
            for thread in 0..CONCURRENT_SESSIONS {
                let (killed, begun, sessions) = (&killed, &begun, &sessions);
                scope.spawn(move || {
                    let mut random = SplitMix64::new(seed + u64::try_from(thread).unwrap());
                    for round in 0.. {
                        begun.fetch_add(1, Ordering::Relaxed);
                        let plan = *random.choose_one(&PLANS);
                        let session = run_plan(pair, plan, &format!("{thread}-{round}"));
                        sessions.lock().unwrap().push(session);
                        if killed.load(Ordering::Relaxed) >= kills {
                            break;
                        }
                    }
                });
            }
            let (hub, killed) = (&hub, &killed);
            scope.spawn(move || {
                let mut random = SplitMix64::new(seed);
                for number in 0..kills {
                    // Each answer of the person, and each kill, lets the next one come.
                    let until = number + random.below(CONCURRENT_SESSIONS) / 2;
                    poll("the next answers", || {
                        let answers = hub.accepted.lock().unwrap().len() + hub.refused.lock().unwrap().len();
                        (answers >= until).then_some(())
                    });
                    match random.below(3) {
                        2 => hub.restart(),
                        node => {
                            pair[node].wait_until_running();
                            pair[node].kill();
                        }
                    }
                    killed.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        let sessions = sessions.lock().unwrap();
        assert_receipts(&hub, pair, &sessions);
        println!("{} sessions ended, {} begun", sessions.len(), begun.load(Ordering::Relaxed));
    });
}
