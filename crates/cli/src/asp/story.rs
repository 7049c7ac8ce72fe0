//! Messages and outcomes in plain sentences.

use std::fmt::Write;

use asp::machine::{Role, State};
use asp::message::{Body, Clarify, Commit, Inform, InformType};
use asp::session::{Ending, Fate, Outcome, Payee, Session};
use asp::{AgentUri, Status};
use seal::json::{Kind, Raw, Tape};
use seal::{Timestamp, UnixMillis};

use crate::print::capitalize;

/// What a message says in that state, for a sentence that begins with its sender; `other` is the name of the other side,
/// and `name` gives the names of agents.
pub(super) fn act(body: &Body, state: State, other: &str, name: impl Fn(&AgentUri) -> String) -> String {
    let thing = |reference: &str| if state == State::Invited { "the invitation" } else { thing(reference) };
    match body {
        Body::Propose(body) if body.is_invitation() => format!("invites {other} to talk: {}", body.subject),
        Body::Propose(body) => format!("proposes {}{}", body.subject, terms(&body.terms)),
        Body::Accept(body) => {
            let note = body.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("accepts {}{note}", thing(body.reference.as_str()))
        }
        Body::Reject(body) => {
            let what = body.reference.as_ref().map_or("it", |reference| thing(reference.as_str()));
            format!("rejects {what}: {}", body.reason)
        }
        Body::Counter(body) => {
            let instead = thing(body.counters.as_str());
            format!("declines {instead} and offers {} instead{}", body.subject, terms(&body.terms))
        }
        Body::Inform(body) => inform(body),
        Body::Query(body) => format!("asks for information: {}", body.subject),
        Body::Clarify(Clarify { question: Some(question), .. }) => format!("asks: {question}"),
        Body::Clarify(body) => format!("answers: {}", body.answer.as_deref().unwrap_or("")),
        Body::Commit(body) => commit(body, name),
        Body::Delegate(body) => {
            let (target, authority) = (name(&body.target), body.authority.word());
            format!("hands a part to {target} ({authority} authority): {}", body.scope)
        }
        Body::Observe(body) => format!("remarks on {}", body.subject),
        Body::Escalate(body) => {
            let handler = body.handler.as_deref().unwrap_or("somebody with the authority");
            format!("asks {handler} to decide, urgency {}: {}", body.urgency.word(), body.reason)
        }
        Body::Withdraw(body) => format!("withdraws: {}", body.reason),
        Body::Close(body) => match &body.summary {
            Some(summary) => format!("closes ({}): {summary}", body.reason),
            None => format!("closes: {}", body.reason),
        },
    }
}

fn inform(body: &Inform) -> String {
    let told = body.data.as_ref().map(terms).unwrap_or_default();
    match body.kind {
        InformType::Identity => "says who it is and shows its card".to_owned(),
        InformType::Progress => {
            let percent =
                body.percent.map(|percent| format!(" {} percent", percent.get())).unwrap_or_default();
            format!("reports progress{percent}{told}")
        }
        InformType::Result => format!("reports that its part is done{told}"),
        InformType::Error if body.is_fatal() => format!("reports an error that cannot be recovered{told}"),
        InformType::Error => format!("reports an error{told}"),
        InformType::Resolution => {
            let by = body.resolved_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("tells what was decided{by}{told}")
        }
        InformType::Answer => format!("answers{told}"),
    }
}

fn commit(body: &Commit, name: impl Fn(&AgentUri) -> String) -> String {
    let obligations: Vec<_> = body
        .terms
        .obligations
        .iter()
        .map(|one| format!("{} is to {} by {}", name(&one.party), one.action, minute(&one.deadline)))
        .collect();
    let mut text = format!("commits: {}", obligations.join("; "));
    if let Some(escrow) = &body.escrow {
        let _ = write!(text, "; {} {} goes into escrow", escrow.amount, escrow.currency);
    }
    for (when, penalty) in body.terms.penalties.iter().flat_map(|penalties| {
        [("if late", &penalties.late_fulfillment), ("if not done", &penalties.non_delivery)]
    }) {
        if let Some(penalty) = penalty {
            let _ = write!(text, "; {when}, {penalty}");
        }
    }
    text
}

/// The plain members of an object, for the end of a sentence.
fn terms(terms: &Raw) -> String {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(terms.as_str()) else { return String::new() };
    let members: Vec<_> = doc
        .root()
        .members()
        .filter_map(|(key, value)| {
            let value = match value.kind() {
                Kind::Text => value.text()?.into_owned(),
                Kind::Number | Kind::Bool => value.source().to_owned(),
                _ => return None,
            };
            Some(format!("{}: {value}", key.text()?.replace('_', " ")))
        })
        .collect();
    if members.is_empty() { String::new() } else { format!(" ({})", members.join(", ")) }
}

fn thing(reference: &str) -> &'static str {
    match reference.split_once('_') {
        Some(("prop", _)) => "the proposal",
        Some(("cmt", _)) => "the commitment",
        _ => "it",
    }
}

fn minute(at: &Timestamp) -> String {
    let text = at.to_string();
    text.get(..16).map(|minute| minute.replace('T', " ")).unwrap_or(text)
}

/// The clock part of a time, for the front of a line.
pub(super) fn clock(at: UnixMillis) -> String {
    time(at).get(11..19).unwrap_or("").to_owned()
}

pub(super) fn time(at: UnixMillis) -> String {
    Timestamp::from_unix_millis(at).map(|at| at.to_string()).unwrap_or_default()
}

/// Ends a sentence that may have ended already, and gives it a capital; the name of an agent stays as it is.
pub(super) fn sentence(text: &str) -> String {
    let stop = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    if text.starts_with("agent://") { format!("{text}{stop}") } else { capitalize(text) + stop }
}

/// What came of a session, a sentence a line; `name` gives each side's name.
pub(super) fn outcome(
    outcome: &Outcome,
    session: &Session,
    name: impl Fn(&AgentUri) -> String,
) -> Vec<String> {
    let state = session.state();
    let agent = |role: Role| name(&session.party(role).agent);
    let how = match outcome.ending {
        Ending::Completed => "both sides closed it, and confirm that all is done".to_owned(),
        Ending::Closed(by) => format!("{} closed it: {}", agent(by), outcome.reason),
        Ending::Unilateral(by) => format!("{} closed it without waiting for the other side", agent(by)),
        Ending::Withdrawn(by) => format!("{} withdrew: {}", agent(by), outcome.reason),
        Ending::Rejected(by) => format!("{} rejected the invitation: {}", agent(by), outcome.reason),
        Ending::TimedOut(timer) => format!("the {timer} time ran out"),
        Ending::Fatal(by) => format!("{} told of an error that cannot be recovered", agent(by)),
        _ => outcome.reason.clone(),
    };
    let mut lines = vec![format!("the session ended {state}: {how}")];
    if let Some(commitment) = &outcome.commitment {
        let lapsed =
            commitment.status() == Status::Withdrawn && !matches!(outcome.ending, Ending::Withdrawn(_));
        lines.push(if lapsed {
            "The commitment lapsed before it was accepted.".to_owned()
        } else {
            format!("The commitment is {}.", commitment.status().word())
        });
    }
    for (obligation, fate) in &outcome.obligations {
        let mark = if *fate == Fate::Open { ", by nobody's fault that shows" } else { "" };
        lines.push(format!(
            "{}: \"{}\" was {}{mark}.",
            name(&obligation.party),
            obligation.action,
            fate.word()
        ));
    }
    for role in &outcome.broken_by {
        lines.push(format!("{} broke the agreement.", agent(*role)));
    }
    if let (Some(to), Some(commitment)) = (outcome.escrow_to, &outcome.commitment)
        && let Some(escrow) = &commitment.terms().escrow
    {
        let who = match to {
            Payee::Depositor => format!("back to {}", agent(commitment.by())),
            Payee::Beneficiary => format!("to {}", agent(commitment.by().other())),
        };
        lines.push(format!("The escrow of {} {} goes {who}.", escrow.amount, escrow.currency));
    }
    lines.iter().map(|line| sentence(line)).collect()
}
