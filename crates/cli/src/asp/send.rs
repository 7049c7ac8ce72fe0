//! `sayso asp invite` and `sayso asp send`: open a session, and send a message.

use std::time::Duration;

use asp::message::Constraints;
use asp::{MessageId, Performative, SessionId};
use sayso::asp::{AspSession, NewMessage, SendStatus, SessionInvitation, SessionView, State, WaitingFor};
use seal::Timestamp;

use super::node_client::{
    ClientFailure, NodeArgs, open_session, parse_performative, parse_session_id, read_json, report_refusal,
};
use crate::ExitStatus;
use crate::file::CommandError;
use crate::output::{print_stderr, print_stdout, printable};

#[derive(clap::Args)]
pub(crate) struct InviteArguments {
    /// The other agent: its URI, such as agent://HOST:PORT/NAME, or the address of its card.
    peer: String,
    /// What the session is about, in a few words.
    subject: String,
    /// Terms that the invitation proposes: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    terms: String,
    /// Seconds that the other side has to accept.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=2_592_000))]
    valid_for: u32,
    /// Wait until the invitation is accepted and both sides have introduced themselves. The exit code is 1 if it is not.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(clap::Args)]
pub(crate) struct SendArguments {
    /// The session.
    #[arg(value_parser = parse_session_id)]
    session: SessionId,
    /// The kind of message, such as PROPOSE, ACCEPT or COMMIT.
    #[arg(value_parser = parse_performative)]
    performative: Performative,
    /// The body: a JSON object, or @FILE. @- reads standard input.
    body: String,
    /// Constraints on the answer: a JSON object, or @FILE. For example {"maxResponseTimeMs":60000}.
    #[arg(long, value_name = "JSON")]
    constraints: Option<String>,
    /// How many tokens your agent used for this message. The other side may have set a limit.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=MAX_TOKENS_USED))]
    tokens_used: Option<u64>,
    /// Wait until the person who is asked has answered and the other side has stored the message.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// Maximum value of `--tokens-used`, up to which JSON numbers are exact everywhere.
const MAX_TOKENS_USED: u64 = (1 << 53) - 1;

/// How long `invite` without `--wait` waits for the delivery of the invitation.
const DELIVERY_GRACE: Duration = Duration::from_secs(2);

pub(crate) fn run_invite(arguments: &InviteArguments) -> Result<ExitStatus, CommandError> {
    let mut invitation = SessionInvitation::new(arguments.peer.as_str(), arguments.subject.as_str())
        .terms(read_json(&arguments.terms)?);
    let expiry = wire::unix_now().saturating_add(i64::from(arguments.valid_for) * 1000);
    if let Some(expiry) = Timestamp::from_unix_millis(expiry) {
        invitation = invitation.valid_until(expiry);
    }
    arguments.node.run(async |node| {
        let mut session = node.send_invitation(&invitation).await?;
        let printed = print_stdout(&format!("{}\n", session.id()));
        if !arguments.wait {
            // If the other side can be reached, it has the invitation when this command ends, or the refusal is reported.
            let delivery = tokio::time::timeout(DELIVERY_GRACE, session.wait_for_delivery()).await;
            let refusal = delivery.ok().and_then(Result::ok).and_then(|view| undeliverable(&view));
            return Ok(refusal.map_or(printed, |reason| report_refusal(&reason)));
        }
        print_stderr("The invitation is sent. Waiting for the answer.");
        loop {
            let view = session.next_change().await?;
            match view.state {
                State::Idle | State::Invited => {}
                State::Failed | State::Closed => return Ok(report_refusal(&ending(&view))),
                _ => return Ok(printed),
            }
            if let Some(reason) = undeliverable(&view) {
                return Ok(report_refusal(&reason));
            }
        }
    })
}

pub(crate) fn run_send(arguments: &SendArguments) -> Result<ExitStatus, CommandError> {
    let mut message = NewMessage::from_json(arguments.performative, read_json(&arguments.body)?);
    if let Some(constraints) = &arguments.constraints {
        let constraints = Constraints::parse(&read_json(constraints)?)
            .map_err(|error| CommandError::cannot_run(format!("the constraints are not valid: {error}")))?;
        message = message.constraints(constraints);
    }
    if let Some(tokens) = arguments.tokens_used {
        message = message.tokens_used(tokens);
    }
    arguments.node.run(async |node| {
        let session = open_session(&node, arguments.session)?;
        let count = session.view().await?.message_count;
        match session.send_message(&message).await? {
            SendStatus::Sent { message_id, state, .. } => {
                let printed = print_stdout(&format!("{message_id} {state}\n"));
                if arguments.wait {
                    wait_for_delivery(&session, message_id, count).await
                } else {
                    Ok(printed)
                }
            }
            SendStatus::AwaitingConsent { reply_token } => {
                print_stderr("A person is asked first. The message is sent only if they say yes.");
                if !arguments.wait {
                    return Ok(print_stdout(&format!("awaiting_consent {reply_token}\n")));
                }
                let consent = session.wait_for_consent(&reply_token).await?;
                if !consent.is_accepted() {
                    let reason = consent.refusal_reason().unwrap_or("the person refused");
                    print_stderr(&format!("sayso: the message was not sent: {}", printable(reason)));
                    return Ok(ExitStatus::Negative);
                }
                print_stderr("The person said yes.");
                let view = session.view_after(count).await?;
                let sent = view.messages.iter().find(|message| {
                    message.sender() != &view.peer && message.performative() == arguments.performative
                });
                let Some(sent) = sent else { return Ok(report_refusal(&last_refusal(&view))) };
                print_stdout(&format!("{} {}\n", sent.id(), view.state));
                wait_for_delivery(&session, sent.id(), count).await
            }
            _ => Err(CommandError::cannot_run(
                "the node sent a response that this version of sayso does not know",
            )
            .into()),
        }
    })
}

/// Waits until the other side has stored a message. `count` is the number of messages before it.
async fn wait_for_delivery(
    session: &AspSession,
    message: MessageId,
    count: usize,
) -> Result<ExitStatus, ClientFailure> {
    session.wait_for_delivery().await?;
    let view = session.view_after(count).await?;
    if let Some(reason) = undeliverable(&view) {
        return Ok(report_refusal(&reason));
    }
    // A message that the other side refused is rolled back.
    if !view.messages.iter().any(|stored| stored.id() == message) {
        return Ok(report_refusal(&last_refusal(&view)));
    }
    Ok(ExitStatus::Success)
}

/// Returns why the node has stopped delivering a message, if it has.
fn undeliverable(view: &SessionView) -> Option<String> {
    let is_abandoned = view.unacknowledged > 0
        && !matches!(view.waiting_for, WaitingFor::Delivery | WaitingFor::Person)
        && !view.refusals.is_empty();
    is_abandoned.then(|| last_refusal(view))
}

fn last_refusal(view: &SessionView) -> String {
    match view.refusals.last() {
        Some(refusal) => format!("{}: {}", refusal.code, refusal.reason),
        None => "the other side did not accept the message".to_owned(),
    }
}

fn ending(view: &SessionView) -> String {
    let reason = view.outcome.as_ref().map(|outcome| outcome.reason.clone()).unwrap_or_default();
    format!("the session ended in state {}: {reason}", view.state)
}
