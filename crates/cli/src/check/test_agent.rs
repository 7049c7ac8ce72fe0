//! The agent of `sayso check --agent`: it reports harmless events and asks three questions, so that there is something to check.

use std::path::PathBuf;
use std::time::Duration;

use sayso::{Action, Answer, Error, Hub, LocalizedText, OutputText, ProgressUpdate, Risk, Session};
use tokio::sync::mpsc;

/// The name of the tool that the agent pretends to call. It does nothing.
const TOOL: &str = "sayso_check";
/// The time to answer a question that will be answered.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);
/// The time to answer the question that nobody answers.
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

/// How the agent reaches the hub.
pub(super) struct AgentAccess {
    pub(super) url: String,
    pub(super) token: Option<String>,
    pub(super) ca: Option<PathBuf>,
    /// The certificate of the agent and its key.
    pub(super) client_certificate: Option<(PathBuf, PathBuf)>,
}

/// A request from the check to its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentCommand {
    /// Report progress with this number, which marks a point in the order of events.
    Mark(u32),
    /// Ask the next question, or end.
    Continue,
}

/// The outcomes of the questions, as the agent received them.
#[derive(Debug, Default)]
pub(super) struct AgentResult {
    /// Whether the question that the check refused was granted.
    pub(super) was_refusal_ignored: bool,
    /// Whether the question that the check accepted was refused.
    pub(super) was_consent_ignored: bool,
    /// Whether the question that nobody answered in time was granted.
    pub(super) was_silence_taken_as_consent: bool,
}

/// Connects to the hub.
pub(super) async fn connect(access: &AgentAccess) -> Result<Hub, Error> {
    let mut builder = Hub::connect(access.url.as_str());
    if let Some(token) = &access.token {
        builder = builder.token(token.as_str());
    }
    if let Some(ca) = &access.ca {
        builder = builder.ca_file(ca.as_path());
    }
    if let Some((certificate, key)) = &access.client_certificate {
        builder = builder.client_certificate(certificate, key);
    }
    builder.open().await
}

/// Starts the session. Its id tells its events apart from those of other agents.
pub(super) async fn start(hub: &Hub, access: &AgentAccess) -> Result<Session, Error> {
    let summary = text("A test of this hub. Nothing will happen.", "A test.");
    let mut builder = hub.session("").summary_instead_of_request(summary).language("en");
    // A token determines the agent.
    if access.token.is_none() {
        builder = builder.agent("sayso-check");
    }
    builder.start().await
}

/// The description of the progress update that marks a point in the order of events.
pub(super) fn mark(number: u32) -> String {
    format!("Mark {number}.")
}

/// Runs the session to its end.
pub(super) async fn run(
    session: Session,
    mut commands: mpsc::Receiver<AgentCommand>,
) -> Result<AgentResult, Error> {
    let mut result = AgentResult::default();
    session.think(text("Preparing the test.", "Preparing.")).await?;
    let tool = session.tool("sayso_check_read").says(text("Reading nothing.", "Reading.")).start().await?;
    tool.succeed(text("Nothing was read.", "Read.")).await?;
    session.output(OutputText::complete("This is a test. Nothing has happened.")).await?;
    for (number, timeout) in [ANSWER_TIMEOUT, ANSWER_TIMEOUT, SHORT_TIMEOUT].into_iter().enumerate() {
        let (answer, may_continue) = ask(&session, number, timeout, &mut commands).await?;
        match (number, answer) {
            (0, Answer::Granted(_)) => result.was_refusal_ignored = true,
            (0, Answer::Refused(_)) => {}
            (1, Answer::Granted(granted)) => {
                // The hub may refuse the call, although it is the one that was accepted.
                match session.start_call(granted).await {
                    Ok(call) => call.succeed(text("Nothing was done.", "Done.")).await?,
                    Err(_) => result.was_consent_ignored = true,
                }
            }
            (1, Answer::Refused(_)) => result.was_consent_ignored = true,
            (_, answer) => result.was_silence_taken_as_consent = matches!(answer, Answer::Granted(_)),
        }
        if !may_continue {
            handle_marks(&session, &mut commands).await?;
        }
    }
    session.finish(text("The test is over.", "Test over.")).await?;
    Ok(result)
}

/// Asks a question, and marks points while it is open. Also returns whether the check has already let the agent continue, because
/// the check can learn the answer first.
async fn ask(
    session: &Session,
    number: usize,
    timeout: Duration,
    commands: &mut mpsc::Receiver<AgentCommand>,
) -> Result<(Answer, bool), Error> {
    let mut may_continue = false;
    let action = Action::new(TOOL, format!(r#"{{"number":{number}}}"#))
        .says(format!("Do nothing, test question {}.", number + 1))
        .consequence("Nothing happens, because this is a test.")
        .risk(Risk::High)
        .irreversible()
        .summary(text("A test asks whether it may do nothing.", "A test question."))
        .invocation_summary(text("Doing nothing.", "Nothing."))
        .answer_timeout(timeout);
    let asking = session.ask(action);
    tokio::pin!(asking);
    loop {
        tokio::select! {
            answer = &mut asking => return Ok((answer?, may_continue)),
            Some(command) = commands.recv() => match command {
                AgentCommand::Mark(number) => report_mark(session, number).await?,
                AgentCommand::Continue => may_continue = true,
            },
        }
    }
}

/// Marks points until the check lets the agent continue.
async fn handle_marks(session: &Session, commands: &mut mpsc::Receiver<AgentCommand>) -> Result<(), Error> {
    while let Some(AgentCommand::Mark(number)) = commands.recv().await {
        report_mark(session, number).await?;
    }
    Ok(())
}

async fn report_mark(session: &Session, number: u32) -> Result<(), Error> {
    session.progress(ProgressUpdate::new(text("Testing.", "Test.")).description(mark(number))).await
}

/// Creates a text with a short form, as events should have it.
fn text(normal: &str, terse: &str) -> LocalizedText {
    LocalizedText::new(normal).terse(terse)
}
