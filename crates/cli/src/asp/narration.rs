//! Describes messages and outcomes in English sentences.

use std::fmt::Write;

use asp::message::{Body, Clarify, Commit, Inform, InformType};
use asp::session::{AspSession, ObligationOutcome, Payee, SessionEnding, SessionOutcome};
use asp::state_machine::{Role, State};
use asp::{AgentUri, CommitmentStatus, MessageId};
use seal::json::{JsonKind, RawJson, Tape};
use seal::{Timestamp, UnixMillis};

use crate::output::capitalize;

/// Describes a message that is sent in the given state. The caller puts the sender's name in front of the description.
/// `receiver` is the receiver's name, and `name` returns the name of any agent.
pub(super) fn describe_message(
    body: &Body,
    state: State,
    receiver: &str,
    name: impl Fn(&AgentUri) -> String,
) -> String {
    let noun =
        |reference: &str| if state == State::Invited { "the invitation" } else { reference_noun(reference) };
    match body {
        Body::Propose(body) if body.is_invitation() => {
            format!("invites {receiver} to talk: {}", body.subject)
        }
        Body::Propose(body) => format!("proposes {}{}", body.subject, describe_members(&body.terms)),
        Body::Accept(body) => {
            let note = body.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("accepts {}{note}", noun(body.reference.as_str()))
        }
        Body::Reject(body) => {
            let what = body.reference.as_ref().map_or("it", |reference| noun(reference.as_str()));
            format!("rejects {what}: {}", body.reason)
        }
        Body::Counter(body) => {
            let declined = noun(body.counters.as_str());
            format!(
                "declines {declined} and offers {} instead{}",
                body.subject,
                describe_members(&body.terms)
            )
        }
        Body::Inform(body) => describe_inform(body),
        Body::Query(body) => format!("asks for information: {}", body.subject),
        Body::Clarify(Clarify { question: Some(question), .. }) => format!("asks: {question}"),
        Body::Clarify(body) => format!("answers: {}", body.answer.as_deref().unwrap_or("")),
        Body::Commit(body) => describe_commit(body, name),
        Body::Delegate(body) => {
            let (target, authority) = (name(&body.target), body.authority.as_str());
            format!("delegates part of the work to {target} ({authority} authority): {}", body.scope)
        }
        Body::Observe(body) => format!("comments on {}", body.subject),
        Body::Escalate(body) => {
            let handler = body.handler.as_deref().unwrap_or("someone with the authority to decide");
            format!("asks {handler} for a decision, urgency {}: {}", body.urgency.as_str(), body.reason)
        }
        Body::Withdraw(body) => format!("withdraws: {}", body.reason),
        Body::Close(body) => match &body.summary {
            Some(summary) => format!("closes the session ({}): {summary}", body.reason),
            None => format!("closes the session: {}", body.reason),
        },
    }
}

fn describe_inform(body: &Inform) -> String {
    let data = body.data.as_ref().map(describe_members).unwrap_or_default();
    match body.kind {
        InformType::Identity => "introduces itself and shows its card".to_owned(),
        InformType::Progress => {
            let percent =
                body.percent.map(|percent| format!(" {} percent", percent.get())).unwrap_or_default();
            format!("reports progress{percent}{data}")
        }
        InformType::Result => format!("reports that its part is done{data}"),
        InformType::Error if replies_to_message(body) => format!("reports a problem with the result{data}"),
        InformType::Answer if replies_to_message(body) => format!("accepts the result{data}"),
        InformType::Error if body.is_fatal() => format!("reports an unrecoverable error{data}"),
        InformType::Error => format!("reports an error{data}"),
        InformType::Resolution => {
            let by = body.resolved_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("reports the decision{by}{data}")
        }
        InformType::Answer => format!("answers{data}"),
    }
}

/// Returns whether an INFORM replies to a message. In that case, an error or an answer is about a result (D22).
fn replies_to_message(body: &Inform) -> bool {
    body.in_reply_to.as_ref().is_some_and(|reference| MessageId::parse(reference.as_str()).is_ok())
}

fn describe_commit(body: &Commit, name: impl Fn(&AgentUri) -> String) -> String {
    let obligations: Vec<_> = body
        .terms
        .obligations
        .iter()
        .map(|obligation| {
            format!(
                "{} must {} by {}",
                name(&obligation.party),
                obligation.action,
                format_to_minute(&obligation.deadline)
            )
        })
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

/// Describes the texts, numbers and booleans in an object, in parentheses and with a leading space.
fn describe_members(object: &RawJson) -> String {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(object.as_str()) else { return String::new() };
    let members: Vec<_> = doc
        .root()
        .members()
        .filter_map(|(key, value)| {
            let value = match value.kind() {
                JsonKind::Text => value.text()?.into_owned(),
                JsonKind::Number | JsonKind::Bool => value.source().to_owned(),
                _ => return None,
            };
            Some(format!("{}: {value}", key.text()?.replace('_', " ")))
        })
        .collect();
    if members.is_empty() { String::new() } else { format!(" ({})", members.join(", ")) }
}

fn reference_noun(reference: &str) -> &'static str {
    match reference.split_once('_') {
        Some(("prop", _)) => "the proposal",
        Some(("cmt", _)) => "the commitment",
        _ => "it",
    }
}

fn format_to_minute(at: &Timestamp) -> String {
    let text = at.to_string();
    text.get(..16).map(|minute| minute.replace('T', " ")).unwrap_or(text)
}

/// Formats the time of day.
pub(super) fn format_clock(at: UnixMillis) -> String {
    format_time(at).get(11..19).unwrap_or("").to_owned()
}

pub(super) fn format_time(at: UnixMillis) -> String {
    Timestamp::from_unix_millis(at).map(|at| at.to_string()).unwrap_or_default()
}

/// Completes a sentence with a full stop and a capital letter. Agent URIs keep their case.
pub(super) fn to_sentence(text: &str) -> String {
    let stop = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    if text.starts_with("agent://") { format!("{text}{stop}") } else { capitalize(text) + stop }
}

/// Describes the outcome of a session, one sentence per line. `name` returns the name of an agent.
pub(super) fn describe_outcome(
    outcome: &SessionOutcome,
    session: &AspSession,
    name: impl Fn(&AgentUri) -> String,
) -> Vec<String> {
    let state = session.state();
    let agent = |role: Role| name(&session.party(role).agent);
    let how = match outcome.ending {
        SessionEnding::Completed => "both sides closed it".to_owned(),
        SessionEnding::Closed(by) => format!("{} closed it: {}", agent(by), outcome.reason),
        SessionEnding::Unilateral(by) => {
            format!("{} closed it without waiting for the other side", agent(by))
        }
        SessionEnding::Withdrawn(by) => format!("{} withdrew: {}", agent(by), outcome.reason),
        SessionEnding::Rejected(by) => format!("{} rejected the invitation: {}", agent(by), outcome.reason),
        SessionEnding::TimedOut(timer) => format!("the {timer} timeout expired"),
        SessionEnding::Fatal(by) => format!("{} reported an unrecoverable error", agent(by)),
        _ => outcome.reason.clone(),
    };
    let mut lines = vec![format!("the session ended in state {state}: {how}")];
    if let Some(commitment) = &outcome.commitment {
        let has_lapsed = commitment.status() == CommitmentStatus::Withdrawn
            && !matches!(outcome.ending, SessionEnding::Withdrawn(_));
        lines.push(if has_lapsed {
            "The commitment lapsed before it was accepted.".to_owned()
        } else {
            format!("The commitment is {}.", commitment.status().as_str())
        });
    }
    for (obligation, obligation_outcome) in &outcome.obligations {
        let note = if *obligation_outcome == ObligationOutcome::Open {
            " when the session ended, and neither side is known to be at fault"
        } else {
            ""
        };
        lines.push(format!(
            "{}: \"{}\" was {}{note}.",
            name(&obligation.party),
            obligation.action,
            obligation_outcome.as_str()
        ));
    }
    for role in &outcome.broken_by {
        lines.push(format!("{} broke the agreement.", agent(*role)));
    }
    if let (Some(payee), Some(commitment)) = (outcome.escrow_payee, &outcome.commitment)
        && let Some(escrow) = &commitment.commit().escrow
    {
        let recipient = match payee {
            Payee::Depositor => format!("back to {}", agent(commitment.sender())),
            Payee::Beneficiary => format!("to {}", agent(commitment.sender().other())),
        };
        lines.push(format!("The escrow of {} {} goes {recipient}.", escrow.amount, escrow.currency));
    }
    lines.iter().map(|line| to_sentence(line)).collect()
}
