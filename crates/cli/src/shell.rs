//! `sayso ask` and `sayso tell`, for shell scripts: ask a person, or tell them something, through a hub.

use std::io::Read;
use std::time::Duration;

use client::{HubLocation, HubSource};
use sayso::{
    Action, Answer, ClarificationAnswer, ClarificationRequest, ConsentRefusal, Error, Hub, LocalizedText,
    OutputText, Risk, Session,
};

use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{ClientCertificate, Credentials, build_runtime, complete_url, shutdown_signal};
use crate::output::{describe_io_error, print_stderr};
use crate::serve::personal;

/// Maximum size of a text from standard input, in bytes.
const MAX_TEXT_BYTES: u64 = 64 * 1024;

/// Which hub to use.
#[derive(clap::Args)]
struct ScriptHub {
    /// Address of the hub. Default: SAYSO_URL, else your personal hub.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    certificate: ClientCertificate,
    /// Name that people hear, if the token does not determine it.
    #[arg(long, value_name = "NAME", default_value = "shell")]
    agent: String,
    /// Language of the text, such as en or es.
    #[arg(long, value_name = "TAG", default_value = "en")]
    lang: String,
}

#[derive(clap::Args)]
pub(crate) struct AskArgs {
    /// Question to ask, such as "Delete the old backups?"
    question: String,
    /// What happens after a yes. With this, the person also hears the risk.
    #[arg(long, value_name = "TEXT")]
    consequence: Option<String>,
    /// How much harm a yes can do.
    #[arg(long, value_name = "LEVEL", default_value = "medium", value_parser = ["low", "medium", "high"], requires = "consequence")]
    risk: String,
    /// The action cannot be undone. Only the complete word yes accepts it.
    #[arg(long, requires = "consequence")]
    irreversible: bool,
    /// Seconds that the person has to answer. No answer counts as no.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    hub: ScriptHub,
}

#[derive(clap::Args)]
pub(crate) struct TellArgs {
    /// Text to announce. Without it, or with -, the text is read from standard input.
    text: Option<String>,
    #[command(flatten)]
    hub: ScriptHub,
}

/// Asks. The exit code is 0 for yes, and 1 for no and for no answer.
pub(crate) fn ask(arguments: &AskArgs) -> Result<ExitStatus, CommandError> {
    let refusal = arguments.hub.run(ask_session_summary(), async |session| {
        let timeout = Duration::from_secs(arguments.timeout);
        let refusal = if let Some(consequence) = &arguments.consequence {
            match session.ask(arguments.action(consequence).answer_timeout(timeout)).await? {
                Answer::Granted(_) => None,
                Answer::Refused(refusal) => Some(refusal.to_string()),
            }
        } else {
            let question = ClarificationRequest::new(arguments.question.as_str())
                .accept_yes_no()
                .default_response("no")
                .answer_timeout(timeout);
            match session.clarify(question).await? {
                ClarificationAnswer::YesNo(true) => None,
                ClarificationAnswer::Unanswered(by) => Some(ConsentRefusal::from(by).to_string()),
                _ => Some("the person refused".to_owned()),
            }
        };
        session.finish(done()).await?;
        Ok(refusal)
    })?;
    let Some(reason) = refusal else { return Ok(ExitStatus::Success) };
    print_stderr(&format!("sayso: no: {reason}"));
    Ok(ExitStatus::Negative)
}

/// Sends a text to the listeners, in a session of its own.
pub(crate) fn tell(arguments: &TellArgs) -> Result<ExitStatus, CommandError> {
    let text = match arguments.text.as_deref() {
        None | Some("-") => read_text()?,
        Some(text) => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(CommandError::cannot_run("there is no text to announce"));
    }
    arguments.hub.run(tell_session_summary(), async |session| {
        session.output(OutputText::complete(text.trim()).content_type("text/markdown")).await?;
        session.finish(done()).await
    })?;
    Ok(ExitStatus::Success)
}

impl AskArgs {
    fn action(&self, consequence: &str) -> Action {
        let risk = match self.risk.as_str() {
            "low" => Risk::Low,
            "medium" => Risk::Medium,
            _ => Risk::High,
        };
        let action = Action::new("shell_script", "{}")
            .says(self.question.as_str())
            .consequence(consequence)
            .risk(risk);
        if self.irreversible { action.irreversible() } else { action.reversible_with_effort() }
    }
}

impl ScriptHub {
    /// Runs `body` in a session with this text. A signal ends it, which withdraws an open question.
    fn run<T>(
        &self,
        text: LocalizedText,
        body: impl AsyncFnOnce(Session) -> Result<T, Error>,
    ) -> Result<T, CommandError> {
        let argument = self.hub.as_deref().map(complete_url).transpose()?;
        let location = HubLocation::find(argument.as_deref()).map_err(|error| error.to_string())?;
        let mut builder = Hub::connect(location.url.to_string());
        if location.source == HubSource::PersonalHub {
            personal::check_running()?;
        } else if let Some(token) = self.credentials.token()? {
            builder = builder.token(token);
        }
        if let Some(ca) = &self.credentials.ca {
            builder = builder.ca_file(ca);
        }
        if let Some((certificate, key)) = self.certificate.files() {
            builder = builder.client_certificate(certificate, key);
        }
        let runtime = build_runtime(0)?;
        let result = runtime.block_on(async {
            let signal = shutdown_signal();
            let work = async {
                let hub = builder.open().await?;
                let session = hub
                    .session("")
                    .summary_instead_of_request(text)
                    .agent(self.agent.as_str())
                    .language(self.lang.as_str())
                    .start()
                    .await?;
                let result = body(session).await;
                hub.close().await;
                result
            };
            tokio::select! {
                result = work => result.map_err(|error| error.to_string()),
                () = signal => Err("interrupted; an open question is withdrawn".to_owned()),
            }
        });
        Ok(result?)
    }
}

/// Returns the announcement at the start of a question. The question itself follows.
fn ask_session_summary() -> LocalizedText {
    localized("A question from a script.", "Una pregunta de un script.", "Ìbéèrè láti inú ètò kan.")
}

fn tell_session_summary() -> LocalizedText {
    localized("A message from a script.", "Un mensaje de un script.", "Ọ̀rọ̀ láti inú ètò kan.")
}

fn done() -> LocalizedText {
    localized("Done.", "Listo.", "Ó ti parí.")
}

fn localized(english: &str, spanish: &str, yoruba: &str) -> LocalizedText {
    LocalizedText::new(english).in_language("es", spanish).in_language("yo", yoruba)
}

fn read_text() -> Result<String, CommandError> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(MAX_TEXT_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("cannot read standard input: {}", describe_io_error(&error)))?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(CommandError::cannot_run(format!("the text is longer than {MAX_TEXT_BYTES} bytes")));
    }
    Ok(text)
}
