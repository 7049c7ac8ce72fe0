//! What can be said in the model: every performative from both sides, each in a few forms.

use asp::Performative::{self, *};
use asp::machine::Role;
use asp::message::Body;
use asp::session::{Incoming, Judgement};
use seal::UnixMillis;

use super::world::Bounds;

/// A message that either side may try to send at any moment.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) sender: Role,
    pub(crate) body: Body,
    /// What each side finds out about it, by role.
    judgements: [Judgement; 2],
    answer_within: Option<i64>,
}

impl Letter {
    /// The letter as that side's session is fed with it. It is always the same moment: only timers let time pass.
    pub(crate) fn seen_by(&self, role: Role) -> Incoming<'_> {
        Incoming {
            sender: self.sender,
            body: &self.body,
            at: UnixMillis::new(0),
            answer_within: self.answer_within,
            judgement: self.judgements[role as usize],
        }
    }

    pub(crate) fn performative(&self) -> Performative {
        self.body.performative()
    }

    /// For a trace.
    pub(crate) fn words(&self) -> String {
        let doubts = self.judgements.iter().filter(|one| **one != Judgement::default()).count();
        let doubted = if doubts > 0 { ", in doubt" } else { "" };
        format!("{} {} {}{doubted}", self.sender, self.performative(), self.body.to_json())
    }
}

/// All letters within the bounds.
pub(crate) fn letters(bounds: &Bounds) -> Vec<Letter> {
    Role::ALL.into_iter().flat_map(|sender| of_one_side(sender, bounds)).collect()
}

const PROPOSALS: [&str; 2] = ["prop_1", "prop_2"];
const COMMITMENTS: [&str; 2] = ["cmt_1", "cmt_2"];
/// What can be answered, rightly or wrongly: the invitation, proposals, commitments.
const NAMES: [&str; 5] = ["prop_0", "prop_1", "prop_2", "cmt_1", "cmt_2"];

pub(crate) const INVITER: &str = "agent://inviter.example";
pub(crate) const INVITED: &str = "agent://invited.example";

fn of_one_side(sender: Role, bounds: &Bounds) -> Vec<Letter> {
    let (mine, theirs) = (sender as usize, sender.other() as usize);
    let letter = |performative, json: &str| Letter {
        sender,
        body: Body::parse(performative, json).unwrap_or_else(|wrong| panic!("{json}: {wrong}")),
        judgements: [Judgement::default(); 2],
        answer_within: None,
    };
    let doubted = |performative, json: &str, role: usize, judgement| {
        let mut letter = letter(performative, json);
        letter.judgements[role] = judgement;
        letter
    };
    let untrusted = Judgement { trusted: false, ..Judgement::default() };
    let unfunded = Judgement { funded: false, ..Judgement::default() };
    let unpinned = Judgement { card_pinned: false, ..Judgement::default() };

    let invitation = r#"{"proposalId":"prop_0","type":"session-invitation","subject":"s","terms":{}}"#;
    let identity = r#"{"informType":"identity"}"#;
    let mut letters = vec![
        letter(Propose, invitation),
        doubted(Propose, invitation, theirs, untrusted),
        doubted(Accept, r#"{"referenceId":"prop_0"}"#, theirs, untrusted),
        doubted(Accept, r#"{"referenceId":"cmt_2"}"#, mine, unfunded),
        doubted(Accept, r#"{"referenceId":"cmt_2"}"#, theirs, unfunded),
        letter(Reject, r#"{"code":"unspecified","reason":"r"}"#),
        letter(Inform, identity),
        doubted(Inform, identity, theirs, untrusted),
        doubted(Inform, identity, theirs, unpinned),
        letter(Inform, r#"{"informType":"error","recoverable":false}"#),
        letter(Clarify, r#"{"inReplyTo":"prop_0","question":"q"}"#),
        letter(
            Delegate,
            r#"{"delegationId":"d","targetAgent":"agent://c.example","scope":"s","authority":"full"}"#,
        ),
        letter(Observe, r#"{"subject":"s"}"#),
        letter(Withdraw, r#"{"reason":"r"}"#),
        letter(Escalate, r#"{"reason":"r","urgency":"low"}"#),
        letter(Close, r#"{"reason":"done"}"#),
        letter(Close, r#"{"reason":"unilateral"}"#),
        letter(Commit, &commitment("cmt_9", "agent://stranger.example", "")),
    ];
    for kind in ["progress", "result", "error", "resolution", "answer"] {
        letters.push(letter(Inform, &format!(r#"{{"informType":"{kind}"}}"#)));
    }
    for name in NAMES {
        letters.push(letter(Accept, &format!(r#"{{"referenceId":"{name}"}}"#)));
        let no = format!(r#"{{"code":"unspecified","reason":"r","referenceId":"{name}"}}"#);
        letters.push(letter(Reject, &no));
    }
    for id in &PROPOSALS[..bounds.proposals] {
        let offer = format!(r#"{{"proposalId":"{id}","type":"t","subject":"s","terms":{{}}}}"#);
        letters.push(letter(Propose, &offer));
        for name in NAMES.iter().filter(|name| *name != id) {
            let other = format!(r#"{{"proposalId":"{id}","counters":"{name}","subject":"s","terms":{{}}}}"#);
            letters.push(letter(Counter, &other));
        }
    }
    // The first binds the inviter; the second binds the invited, and money is held for it.
    let terms = [(INVITER, ""), (INVITED, r#","escrow":{"amount":"10.00","currency":"USD"}"#)];
    for (id, (party, escrow)) in COMMITMENTS.iter().zip(terms).take(bounds.commits) {
        letters.push(letter(Commit, &commitment(id, party, escrow)));
    }
    letters.push(letter(Query, r#"{"queryId":"qry_1","queryType":"t","subject":"s"}"#));
    // What the inviter offers, tells of itself and asks for is to be answered in time: so the response timer runs.
    for letter in letters.iter_mut().filter(|letter| letter.sender == Role::Inviter) {
        let text = letter.body.to_json();
        if letter.performative() == Query || text == invitation || text == identity {
            letter.answer_within = Some(1000);
        }
    }
    letters
}

fn commitment(id: &str, party: &str, escrow: &str) -> String {
    let obligation = format!(r#"{{"party":"{party}","action":"a","deadline":"2030-01-01T00:00:00Z"}}"#);
    format!(r#"{{"commitmentId":"{id}","terms":{{"obligations":[{obligation}]}}{escrow}}}"#)
}
