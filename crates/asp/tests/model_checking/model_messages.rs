//! The messages of the model: every performative from both sides, each in a few variants.

use asp::MessageId;
use asp::Performative::{self, *};
use asp::message::Body;
use asp::session::{IncomingMessage, ReceiverChecks};
use asp::state_machine::Role;
use seal::UnixMillis;

use super::model_state::ModelBounds;

/// A message that its sender may attempt at any moment.
#[derive(Debug)]
pub(crate) struct ModelMessage {
    pub(crate) sender: Role,
    pub(crate) body: Body,
    /// The results of each side's checks, by role.
    checks: [ReceiverChecks; 2],
    response_timeout_ms: Option<i64>,
}

impl ModelMessage {
    /// Returns the message as one side's session receives it. All messages have the same time, because only
    /// timers let time pass.
    pub(crate) fn seen_by(&self, role: Role) -> IncomingMessage<'_> {
        IncomingMessage {
            message_id: message_id_of(self.sender),
            sender: self.sender,
            body: &self.body,
            sent_at: UnixMillis::new(0),
            response_timeout_ms: self.response_timeout_ms,
            constraints: None,
            tokens_used: None,
            checks: self.checks[role as usize],
        }
    }

    pub(crate) fn performative(&self) -> Performative {
        self.body.performative()
    }

    /// Returns a description for traces.
    pub(crate) fn description(&self) -> String {
        let failed_checks = self.checks.iter().filter(|checks| **checks != ReceiverChecks::PASSED).count();
        let suffix = if failed_checks > 0 { ", with failed checks" } else { "" };
        format!("{} {} {}{suffix}", self.sender, self.performative(), self.body.to_json())
    }
}

/// The id of every message from one side. The session uses ids only to tell which result a message names.
fn message_id_of(sender: Role) -> MessageId {
    let text = format!("01890a5d-ac96-774b-bcce-b302099a805{}", sender as usize);
    MessageId::parse(&text).expect("a valid message id")
}

/// Returns all messages within the bounds.
pub(crate) fn all_messages(bounds: &ModelBounds) -> Vec<ModelMessage> {
    Role::ALL.into_iter().flat_map(|sender| messages_from(sender, bounds)).collect()
}

const PROPOSAL_IDS: [&str; 2] = ["prop_1", "prop_2"];
const COMMITMENT_IDS: [&str; 2] = ["cmt_1", "cmt_2"];
/// The ids that answers refer to, whether or not the item is open: the invitation, proposals and commitments.
const ANSWERABLE_IDS: [&str; 5] = ["prop_0", "prop_1", "prop_2", "cmt_1", "cmt_2"];

pub(crate) const INVITER: &str = "agent://inviter.example";
pub(crate) const INVITED: &str = "agent://invited.example";

fn messages_from(sender: Role, bounds: &ModelBounds) -> Vec<ModelMessage> {
    let (own, other) = (sender as usize, sender.other() as usize);
    let message = |performative, json: &str| ModelMessage {
        sender,
        body: Body::parse(performative, json).unwrap_or_else(|error| panic!("{json}: {error}")),
        checks: [ReceiverChecks::PASSED; 2],
        response_timeout_ms: None,
    };
    let message_with_checks = |performative, json: &str, role: usize, checks| {
        let mut message = message(performative, json);
        message.checks[role] = checks;
        message
    };
    let untrusted = ReceiverChecks { is_trusted: false, ..ReceiverChecks::PASSED };
    let unfunded = ReceiverChecks { is_funded: false, ..ReceiverChecks::PASSED };
    let unpinned = ReceiverChecks { is_card_pinned: false, ..ReceiverChecks::PASSED };

    let invitation = r#"{"proposalId":"prop_0","type":"session-invitation","subject":"s","terms":{}}"#;
    let identity = r#"{"informType":"identity"}"#;
    let mut messages = vec![
        message(Propose, invitation),
        message_with_checks(Propose, invitation, other, untrusted),
        message_with_checks(Accept, r#"{"referenceId":"prop_0"}"#, other, untrusted),
        message_with_checks(Accept, r#"{"referenceId":"cmt_2"}"#, own, unfunded),
        message_with_checks(Accept, r#"{"referenceId":"cmt_2"}"#, other, unfunded),
        message(Reject, r#"{"code":"unspecified","reason":"r"}"#),
        message(Inform, identity),
        message_with_checks(Inform, identity, other, untrusted),
        message_with_checks(Inform, identity, other, unpinned),
        message(Inform, r#"{"informType":"error","recoverable":false}"#),
        message(Clarify, r#"{"inReplyTo":"prop_0","question":"q"}"#),
        message(
            Delegate,
            r#"{"delegationId":"d","targetAgent":"agent://c.example","scope":"s","authority":"full"}"#,
        ),
        message(Observe, r#"{"subject":"s"}"#),
        message(Withdraw, r#"{"reason":"r"}"#),
        message(Escalate, r#"{"reason":"r","urgency":"low"}"#),
        message(Close, r#"{"reason":"done"}"#),
        message(Close, r#"{"reason":"unilateral"}"#),
        message(Commit, &commit_json("cmt_9", "agent://stranger.example", "")),
    ];
    for kind in ["progress", "result", "error", "resolution", "answer"] {
        messages.push(message(Inform, &format!(r#"{{"informType":"{kind}"}}"#)));
    }
    // The other side's result is accepted, contested, or contested with an unrecoverable error (D22).
    let result = message_id_of(sender.other());
    for members in [r#""answer""#, r#""error""#, r#""error","recoverable":false"#] {
        messages.push(message(Inform, &format!(r#"{{"inReplyTo":"{result}","informType":{members}}}"#)));
    }
    for id in ANSWERABLE_IDS {
        messages.push(message(Accept, &format!(r#"{{"referenceId":"{id}"}}"#)));
        let reject = format!(r#"{{"code":"unspecified","reason":"r","referenceId":"{id}"}}"#);
        messages.push(message(Reject, &reject));
    }
    for id in &PROPOSAL_IDS[..bounds.proposals] {
        let offer = format!(r#"{{"proposalId":"{id}","type":"t","subject":"s","terms":{{}}}}"#);
        messages.push(message(Propose, &offer));
        for answered_id in ANSWERABLE_IDS.iter().filter(|answered_id| *answered_id != id) {
            let counter =
                format!(r#"{{"proposalId":"{id}","counters":"{answered_id}","subject":"s","terms":{{}}}}"#);
            messages.push(message(Counter, &counter));
        }
    }
    // The first commitment binds the inviter. The second one binds the invited side and has an escrow.
    let terms = [(INVITER, ""), (INVITED, r#","escrow":{"amount":"10.00","currency":"USD"}"#)];
    for (id, (party, escrow)) in COMMITMENT_IDS.iter().zip(terms).take(bounds.commits) {
        messages.push(message(Commit, &commit_json(id, party, escrow)));
    }
    messages.push(message(Query, r#"{"queryId":"qry_1","queryType":"t","subject":"s"}"#));
    // The inviter's invitation, identity and queries set a response time, so that the response timer runs.
    for message in messages.iter_mut().filter(|message| message.sender == Role::Inviter) {
        let text = message.body.to_json();
        if message.performative() == Query || text == invitation || text == identity {
            message.response_timeout_ms = Some(1000);
        }
    }
    messages
}

fn commit_json(id: &str, party: &str, escrow: &str) -> String {
    let obligation = format!(r#"{{"party":"{party}","action":"a","deadline":"2030-01-01T00:00:00Z"}}"#);
    format!(r#"{{"commitmentId":"{id}","terms":{{"obligations":[{obligation}]}}{escrow}}}"#)
}
