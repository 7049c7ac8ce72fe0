//! `sayso listen`: a terminal listener for a person.

use std::path::PathBuf;
use std::time::Duration;

use aaep::event::Verbosity;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use listen::speech::{Speaker, SpeechRate};
use listen::terminal::{self, AutoAnswerMode, TerminalCommand, TerminalHooks, TerminalSettings};
use listen::{
    EmojiMode, ManifestPolicy, MarkdownMode, Phrases, Preferences, SpeechSynthesizer, SubscriberLimits,
};
use tokio::sync::mpsc;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{HubArgs, build_runtime, shutdown_signal};
use crate::manifest::load_trusted_keys;
use crate::output::print_stderr;

/// Default of `--answer-grace`.
const DEFAULT_ANSWER_GRACE_SECONDS: u64 = listen::ANSWER_GRACE.as_secs();

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: HubArgs,
    /// How much to hear.
    #[arg(long, default_value = "normal", value_parser = verbosity_parser())]
    verbosity: Verbosity,
    /// Languages to hear, in order of preference. Example: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', default_value = "en", value_parser = parse_language_tag)]
    languages: Vec<String>,
    /// Maximum number of events per second. Critical events are never delayed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: Option<u64>,
    /// Also speak everything that is printed, with speech-dispatcher or espeak-ng.
    #[arg(long)]
    speech: bool,
    /// Speech rate from -100 to 100; 0 is normal. Default: the setting of speech-dispatcher.
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "speech", value_parser = clap::value_parser!(i8).range(-100..=100))]
    pace: Option<i8>,
    /// Public keys trusted to sign the hub's manifest: a JWK or JWK Set that you already trust.
    #[arg(long, value_name = "FILE")]
    jwk: Option<PathBuf>,
    /// Refuse to listen to a hub whose manifest is not signed with one of the keys from --jwk.
    #[arg(long, requires = "jwk")]
    signed_only: bool,
    /// Seconds that a question must be open before an answer without its number counts; 0 to 3600.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_ANSWER_GRACE_SECONDS, value_parser = clap::value_parser!(u64).range(0..=3600))]
    answer_grace: u64,
    /// Which outputs to read as Markdown, so that their markup is not spoken.
    #[arg(long, value_name = "WHICH", default_value = MarkdownMode::Labelled.as_str(), value_parser = markdown_parser())]
    markdown: MarkdownMode,
    /// Seconds that a list, a table, code or a quote is held until it is complete; 0 to 60.
    #[arg(long, value_name = "SECONDS", default_value_t = SubscriberLimits::default().markdown_hold.as_secs(), value_parser = clap::value_parser!(u64).range(0..=60))]
    markdown_hold: u64,
    /// Bytes of a list, a table, code or a quote that are held until it is complete; 256 to 1048576.
    #[arg(long, value_name = "BYTES", default_value_t = SubscriberLimits::default().markdown_hold_bytes, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(256..=1_048_576))]
    markdown_hold_bytes: usize,
    /// What to hear for emoji: the emoji itself, its English name, or nothing.
    #[arg(long, value_name = "HOW", default_value = EmojiMode::Keep.as_str(), value_parser = emoji_parser())]
    emoji: EmojiMode,
    /// Print one JSON object per line, for programs.
    #[arg(long)]
    json: bool,
    /// Handle every question automatically, without asking a person.
    #[arg(long, value_enum, value_name = "HOW")]
    auto: Option<AutoAnswer>,
}

/// How questions are handled without a person.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum AutoAnswer {
    /// Accept every question.
    Accept,
    /// Reject every question.
    Reject,
    /// Leave every question unanswered until it times out.
    #[value(name = "none")]
    LetExpire,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitStatus, CommandError> {
    let address = arguments.hub.address()?;
    let phrases = Phrases::for_languages(&arguments.languages);
    let mut settings = TerminalSettings::new(address);
    settings.preferences = Preferences {
        verbosity: arguments.verbosity.clone(),
        languages: arguments.languages.clone(),
        max_events_per_second: arguments.rate,
        answer_grace: Duration::from_secs(arguments.answer_grace),
        markdown: arguments.markdown,
        emoji: arguments.emoji,
    };
    settings.limits.markdown_hold = Duration::from_secs(arguments.markdown_hold);
    settings.limits.markdown_hold_bytes = arguments.markdown_hold_bytes;
    let trusted_keys = arguments.jwk.as_deref().map(load_trusted_keys).transpose()?;
    settings.manifest_policy =
        Some(ManifestPolicy { trusted_keys, signed_only: arguments.signed_only, limits: settings.limits });
    settings.json = arguments.json;
    settings.auto_answer = match arguments.auto {
        None => AutoAnswerMode::Off,
        Some(AutoAnswer::Accept) => AutoAnswerMode::Accept,
        Some(AutoAnswer::Reject) => AutoAnswerMode::Reject,
        Some(AutoAnswer::LetExpire) => AutoAnswerMode::LetExpire,
    };
    if let Some(warning) = settings.auto_answer.warning(phrases) {
        print_stderr(&format!("sayso: {warning}"));
    }
    let runtime = build_runtime(0)?;
    let result = runtime.block_on(async {
        let (commands, command_receiver) = mpsc::channel(1);
        let synthesizer =
            if arguments.speech { connect_synthesizer(arguments.pace, phrases).await } else { None };
        let hooks = TerminalHooks {
            input: Some(terminal::stdin_lines()),
            commands: Some(command_receiver),
            synthesizer,
            ..TerminalHooks::default()
        };
        let shutdown = shutdown_signal();
        tokio::spawn(async move {
            shutdown.await;
            let _ = commands.send(TerminalCommand::Quit).await;
        });
        terminal::run(settings, hooks, std::io::stdout()).await
    });
    // Does not wait for tasks that still run.
    runtime.shutdown_background();
    result.map(|()| ExitStatus::Success).map_err(|failure| CommandError::cannot_run(failure.0))
}

/// Connects to a speech synthesizer. If there is none, prints a warning and returns `None`.
async fn connect_synthesizer(
    pace: Option<i8>,
    phrases: &'static Phrases,
) -> Option<Box<dyn SpeechSynthesizer>> {
    match Speaker::start(pace.and_then(SpeechRate::new), phrases).await {
        Ok(speaker) => Some(Box::new(speaker)),
        Err(error) => {
            print_stderr(&format!("sayso: {}", error.describe(phrases)));
            None
        }
    }
}

/// Returns the value parser of `--markdown`.
fn markdown_parser() -> impl TypedValueParser<Value = MarkdownMode> {
    PossibleValuesParser::new(MarkdownMode::ALL.map(MarkdownMode::as_str))
        .map(|text| MarkdownMode::parse(&text).unwrap_or(MarkdownMode::Labelled))
}

/// Returns the value parser of `--emoji`.
fn emoji_parser() -> impl TypedValueParser<Value = EmojiMode> {
    PossibleValuesParser::new(EmojiMode::ALL.map(EmojiMode::as_str))
        .map(|text| EmojiMode::parse(&text).unwrap_or(EmojiMode::Keep))
}

/// Returns the value parser of `--verbosity`.
pub(crate) fn verbosity_parser() -> impl TypedValueParser<Value = Verbosity> {
    PossibleValuesParser::new(["terse", "normal", "detailed"]).map(|text| Verbosity::parse(&text))
}

pub(crate) fn parse_language_tag(tag: &str) -> Result<String, &'static str> {
    if aaep::grammar::is_language_tag(tag) {
        Ok(tag.to_owned())
    } else {
        Err("it must be a language tag such as en or es-MX")
    }
}
