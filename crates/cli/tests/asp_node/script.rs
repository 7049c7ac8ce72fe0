//! The messages of a session, and an agent's program that sends them even if nodes crash.

use serde_json::{Value, json};
use testing::cli::run_sayso;

use crate::test_node::{TestNode, View, poll, timestamp_in};

/// The inviting and the invited side, as indexes of a pair of nodes.
pub(crate) const BUYER: usize = 0;
pub(crate) const PRESS: usize = 1;

/// One message of a script.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    sender: usize,
    performative: &'static str,
    /// The body, or `None` if the node sends the message by itself.
    body: Option<Value>,
}

/// A session: its messages and how it ends.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    subject: String,
    /// How long the invitation is valid, in seconds.
    valid_seconds: i64,
    /// The messages after the invitation.
    steps: Vec<Step>,
    /// The state and the reason with which both sides end.
    ending: (&'static str, &'static str),
    /// A part of the output of `sayso asp verify`.
    expected_verify_output: &'static str,
}

const BOTH_CLOSED: &str = "The session ended in state CLOSED: both sides closed it";

impl Script {
    fn new(
        subject: &str,
        ending: (&'static str, &'static str),
        expected_verify_output: &'static str,
    ) -> Self {
        Self {
            subject: subject.to_owned(),
            valid_seconds: 600,
            steps: Vec::new(),
            ending,
            expected_verify_output,
        }
    }

    /// Gives the session a subject of its own, by which the agent's program finds the session after a crash.
    pub(crate) fn with_subject(mut self, subject: &str) -> Self {
        subject.clone_into(&mut self.subject);
        self
    }

    /// Returns the number of messages, including the invitation.
    pub(crate) fn message_count(&self) -> usize {
        self.steps.len() + 1
    }

    /// Returns the position of the DELEGATE, counted from 1.
    pub(crate) fn delegation_position(&self) -> usize {
        2 + self.steps.iter().position(|step| step.performative == "DELEGATE").unwrap()
    }

    fn say(mut self, sender: usize, performative: &'static str, body: Value) -> Self {
        self.steps.push(Step { sender, performative, body: Some(body) });
        self
    }

    /// The invitation is accepted, and the nodes introduce themselves.
    fn introduced(mut self) -> Self {
        self = self.say(PRESS, "ACCEPT", json!({"referenceId": "INVITATION"}));
        for sender in [BUYER, PRESS] {
            self.steps.push(Step { sender, performative: "INFORM", body: None });
        }
        self
    }

    fn proposed(self, price: &str) -> Self {
        self.introduced().say(
            BUYER,
            "PROPOSE",
            json!({"proposalId": "prop_1", "type": "service-agreement", "subject": "40 menus in braille",
                   "terms": {"price": price, "delivery": "in 10 days"}, "validUntil": timestamp_in(1200)}),
        )
    }

    fn countered(self, sender: usize, id: &str, counters: &str, price: &str) -> Self {
        let body = json!({"proposalId": id, "counters": counters, "subject": "40 menus in braille",
                          "terms": {"price": price}, "validUntil": timestamp_in(1200)});
        self.say(sender, "COUNTER", body)
    }

    fn accepted(self, sender: usize, reference: &str) -> Self {
        self.say(sender, "ACCEPT", json!({"referenceId": reference}))
    }

    fn committed(self, pair: &[TestNode; 2], id: &str, proposal: &str, price: &str) -> Self {
        let day = 24 * 3600;
        let body = json!({
            "commitmentId": id,
            "terms": {
                "obligations": [
                    {"party": pair[PRESS].agent, "action": "print and deliver 40 menus", "deadline": timestamp_in(7 * day)},
                    {"party": pair[BUYER].agent, "action": "send the text and accept the delivery", "deadline": timestamp_in(8 * day)},
                ],
                "penalties": {"lateFulfillment": "5 percent of the escrow for each day"},
            },
            "deadline": timestamp_in(8 * day),
            "escrow": {"amount": price, "currency": "EUR", "releaseCondition": "fulfillment-verified"},
            "proposalId": proposal,
        });
        self.say(BUYER, "COMMIT", body)
    }

    fn escalated(self, timeout_seconds: u32) -> Self {
        let body = json!({"reason": "480.00 EUR is below the price list; may I agree?", "urgency": "high",
                          "timeout": timeout_seconds, "handler": "Jonas"});
        self.say(PRESS, "ESCALATE", body)
    }

    fn pending_commit(self, pair: &[TestNode; 2]) -> Self {
        self.proposed("480.00 EUR").accepted(PRESS, "prop_1").committed(pair, "cmt_1", "prop_1", "480.00")
    }

    fn informed(self, sender: usize, kind: &str, note: &str) -> Self {
        self.say(sender, "INFORM", json!({"informType": kind, "data": {"note": note}}))
    }

    fn worked_and_closed(self) -> Self {
        self.say(PRESS, "INFORM", json!({"informType": "progress", "percent": 50}))
            .informed(PRESS, "result", "40 menus, bound, in one parcel")
            .informed(BUYER, "result", "40 menus, and they read well")
            .say(PRESS, "CLOSE", json!({"reason": "fulfilled", "summary": "40 menus in braille"}))
            .say(BUYER, "CLOSE", json!({"reason": "fulfilled"}))
    }

    /// A complete session: counter-offers, a question, a commitment, a decision by a person, work and an orderly close.
    pub(crate) fn agreed(pair: &[TestNode; 2]) -> Self {
        let resolution = json!({"informType": "resolution", "resolvedBy": "Jonas",
                                "data": {"decision": "agree to 480.00 EUR this once"}});
        Self::new("agreed", ("CLOSED", "fulfilled"), BOTH_CLOSED)
            .proposed("400.00 EUR")
            .countered(PRESS, "prop_2", "prop_1", "520.00 EUR")
            .countered(BUYER, "prop_3", "prop_2", "480.00 EUR")
            .say(PRESS, "CLARIFY", json!({"inReplyTo": "prop_3", "question": "Contracted or uncontracted?"}))
            .say(BUYER, "CLARIFY", json!({"inReplyTo": "prop_3", "answer": "Uncontracted."}))
            .accepted(PRESS, "prop_3")
            .committed(pair, "cmt_1", "prop_3", "480.00")
            .escalated(900)
            .say(PRESS, "INFORM", resolution)
            .accepted(PRESS, "cmt_1")
            .worked_and_closed()
    }

    /// The invitation is rejected.
    pub(crate) fn rejected(_: &[TestNode; 2]) -> Self {
        let body = json!({"code": "capacity_unavailable", "reason": "booked until March", "referenceId": "INVITATION"});
        let verdict = "rejected the invitation";
        Self::new("rejected", ("FAILED", "booked until March"), verdict).say(PRESS, "REJECT", body)
    }

    /// The commitment is countered, and both sides agree on different terms.
    pub(crate) fn countered_commitment(pair: &[TestNode; 2]) -> Self {
        Self::new("countered", ("CLOSED", "fulfilled"), BOTH_CLOSED)
            .pending_commit(pair)
            .countered(PRESS, "prop_2", "cmt_1", "500.00 EUR")
            .accepted(BUYER, "prop_2")
            .committed(pair, "cmt_2", "prop_2", "500.00")
            .accepted(PRESS, "cmt_2")
            .worked_and_closed()
    }

    /// Nobody answers the invitation.
    pub(crate) fn invitation_timeout(_: &[TestNode; 2]) -> Self {
        let verdict = "warning: the session is still open (INVITED)";
        let ending = ("FAILED", "timeout: the invitation timer expired");
        Self { valid_seconds: 2, ..Self::new("invitation-timeout", ending, verdict) }
    }

    /// The person who is asked for a decision does not answer.
    pub(crate) fn escalation_timeout(pair: &[TestNode; 2]) -> Self {
        let verdict = "warning: the session is still open (ESCALATED)";
        Self::new("escalation-timeout", ("FAILED", "timeout: the escalation timer expired"), verdict)
            .pending_commit(pair)
            .escalated(1)
    }

    /// The commitment is withdrawn before it is accepted.
    pub(crate) fn withdrawn(pair: &[TestNode; 2]) -> Self {
        let body = json!({"reason": "the bistro wants to change its menu first", "referenceId": "cmt_1"});
        Self::new("withdrawn", ("CLOSED", "the bistro wants to change its menu first"), "withdrew")
            .pending_commit(pair)
            .say(BUYER, "WITHDRAW", body)
    }

    /// One side leaves without doing its work.
    pub(crate) fn unilateral_close(pair: &[TestNode; 2]) -> Self {
        Self::new("unilateral-close", ("CLOSED", "unilateral"), "closed it without")
            .pending_commit(pair)
            .accepted(PRESS, "cmt_1")
            .say(PRESS, "INFORM", json!({"informType": "progress", "percent": 20}))
            .say(PRESS, "CLOSE", json!({"reason": "unilateral", "summary": "the press has been sold"}))
    }

    /// Part of the work is delegated to a third agent, in a session of its own.
    pub(crate) fn delegated(pair: &[TestNode; 2], delegate: &str) -> Self {
        let delegation = json!({"delegationId": "del_1", "targetAgent": delegate, "authority": "advisory",
                                "scope": "proofread the braille of the menu", "protocol": "asp"});
        let finding = json!({"informType": "answer", "inReplyTo": "del_1",
                             "data": {"finding": "correct once two prices are moved"}});
        Self::new("delegated", ("CLOSED", "fulfilled"), BOTH_CLOSED)
            .proposed("560.00 EUR")
            .say(PRESS, "DELEGATE", delegation)
            .say(PRESS, "INFORM", finding)
            .accepted(PRESS, "prop_1")
            .committed(pair, "cmt_1", "prop_1", "560.00")
            .accepted(PRESS, "cmt_1")
            .worked_and_closed()
    }

    /// The session with the delegate: a question and an answer.
    pub(crate) fn proofreading() -> Self {
        let query = json!({"queryId": "qry_1", "queryType": "review", "subject": "is the braille correct?"});
        let answer = json!({"informType": "answer", "inReplyTo": "qry_1", "data": {"finding": "two prices"}});
        Self::new("proofreading", ("CLOSED", "answered"), "closed it")
            .introduced()
            .say(BUYER, "QUERY", query)
            .say(PRESS, "INFORM", answer)
            .say(PRESS, "OBSERVE", json!({"subject": "the layout of page 3"}))
            .say(BUYER, "CLOSE", json!({"reason": "answered"}))
    }
}

/// Runs a script the way the programs of both agents would. If a request gets no response, the program reads the session and
/// repeats the request only if it had no effect. `after_step` is called after each message, with its position.
pub(crate) fn run_script(
    pair: [&TestNode; 2],
    script: &Script,
    mut after_step: impl FnMut(&str, usize, usize),
) -> String {
    let session = invite(pair, script);
    after_step(&session, BUYER, 1);
    for (step, position) in script.steps.iter().zip(1..) {
        let Some(body) = &step.body else { continue };
        let body = with_invitation(body, &session);
        let node = pair[step.sender];
        let mut view = node.wait_for(&session, &format!("message {position}"), |view| {
            view.message_count() >= position || view.is_terminal()
        });
        poll("the message", || {
            if view.message_count() > position {
                return Some(());
            }
            assert!(!view.is_terminal(), "the session ended before message {}: {view:#?}", position + 1);
            match node.try_post_message(&session, step.performative, &body) {
                Some(response) if response.status == 200 => return Some(()),
                Some(response) if response.status == 503 => {}
                Some(response) => panic!("{}: {}: {response:?}", script.subject, step.performative),
                None => {}
            }
            view = poll("the session", || node.view(&session, 0, 0));
            None
        });
        after_step(&session, step.sender, position + 1);
    }
    session
}

fn invite(pair: [&TestNode; 2], script: &Script) -> String {
    poll("the invitation", || {
        match pair[BUYER].try_invite(&pair[PRESS].agent, &script.subject, script.valid_seconds) {
            Some(response) if response.status == 201 => Some(response.json_str("sessionId")),
            Some(response) if response.status == 503 => None,
            Some(response) => panic!("{response:?}"),
            None => pair[BUYER].find_session(&script.subject),
        }
    })
}

/// Replaces the placeholder for the id of the invitation.
fn with_invitation(body: &Value, session: &str) -> Value {
    let text = body.to_string().replace("\"INVITATION\"", &format!("\"prop_{session}\""));
    serde_json::from_str(&text).unwrap()
}

/// Waits until both sides have ended the session, and checks that they have the same valid transcript with exactly the
/// messages of the script, and the same outcome.
pub(crate) fn assert_same_end(pair: [&TestNode; 2], script: &Script, session: &str) {
    let ends = pair.map(|node| {
        node.wait_for(session, "the end of the session", |view| {
            view.is_terminal() && view.is_acknowledged() && view.message_count() == script.message_count()
        })
    });
    for view in &ends {
        let reason = view.0["outcome"]["reason"].as_str().unwrap_or_else(|| panic!("{view:#?}"));
        assert_eq!(view.state(), script.ending.0, "{}: {view:#?}", script.subject);
        assert_eq!(reason, script.ending.1, "{}", script.subject);
        assert_eq!(view.0["refusals"], json!([]), "{}", script.subject);
    }
    let outcome = |view: &View| {
        let mut outcome = view.0["outcome"].clone();
        // Each side reads its own clock when a timer expires.
        outcome.as_object_mut().unwrap().remove("endedAt");
        outcome
    };
    assert_eq!(outcome(&ends[BUYER]), outcome(&ends[PRESS]), "{}", script.subject);
    let transcripts = pair.map(|node| node.transcript(session));
    assert_eq!(transcripts[BUYER], transcripts[PRESS], "{}", script.subject);
    assert_messages(&transcripts[BUYER], pair, script, session);
    let verified = verify(&transcripts[BUYER], &pair[BUYER].cards(session));
    assert!(verified.contains(script.expected_verify_output), "{}: {verified}", script.subject);
}

/// Checks that a transcript has exactly the messages of a script.
fn assert_messages(transcript: &str, pair: [&TestNode; 2], script: &Script, session: &str) {
    let messages: Vec<Value> = transcript.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(messages.len(), script.message_count(), "{}", script.subject);
    assert_eq!(messages[0]["content"]["body"]["subject"], script.subject.as_str());
    for (message, step) in messages[1..].iter().zip(&script.steps) {
        assert_eq!(message["sender"]["agentId"], pair[step.sender].agent.as_str());
        assert_eq!(message["performative"], step.performative);
        if let Some(body) = &step.body {
            assert_eq!(message["content"]["body"], with_invitation(body, session));
        }
    }
}

/// Runs `sayso asp verify`, which must accept the transcript. Returns its output.
pub(crate) fn verify(transcript: &str, cards: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cards.jsonl");
    std::fs::write(&path, cards).unwrap();
    let output = run_sayso(&["asp", "verify", "-", "--cards", path.to_str().unwrap()], transcript);
    assert_eq!((output.exit_code, &*output.stderr), (0, ""), "{}\n{transcript}", output.stdout);
    output.stdout
}
