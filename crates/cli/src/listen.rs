//! `sayso listen`: a terminal listener for a person.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use aaep::event::Verbosity;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use listen::braille::{BrailleDisplay, BrailleSettings, BrlapiAddress};
use listen::client::Address;
use listen::speech::{Speaker, SpeechRate};
use listen::terminal::{
    self, AutoAnswerMode, TerminalCommand, TerminalExit, TerminalHooks, TerminalSettings,
};
use listen::{
    EmojiMode, ManifestPolicy, MarkdownMode, Phrases, Preferences, SpeechSynthesizer, SubscriberLimits,
};
use tokio::sync::mpsc;

use crate::ExitStatus;
use crate::file::CommandError;
use crate::hub_args::{ClientCertificate, Credentials, build_runtime, shutdown_signal};
use crate::manifest::load_trusted_keys;
use crate::output::print_stderr;
use crate::serve::personal::PersonalHub;

/// Default of `--answer-grace`.
const DEFAULT_ANSWER_GRACE_SECONDS: u64 = listen::ANSWER_GRACE.as_secs();

#[derive(clap::Args)]
#[command(after_help = "With --stdio, everything after -- is the command line of the program: \
    sayso listen --stdio -- my-agent --verbose. The exit code is 0 when the program ends with success, \
    1 when it ends with an error, and 2 when it cannot be listened to.")]
pub(crate) struct Arguments {
    /// Address of the hub. Without it, sayso joins your personal hub, and runs it here if it does not run yet. Forms of the address, which the hub prints: http://HOST:PORT, https://HOST:PORT, ws://HOST:PORT, wss://HOST:PORT, grpc://HOST:PORT, grpcs://HOST:PORT or unix:PATH. For a hub on this machine, HOST:PORT is enough; unix:default is its default socket.
    #[arg(conflicts_with = "stdio")]
    url: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    certificate: ClientCertificate,
    /// Start a program, listen to its standard output, and answer on its standard input.
    #[arg(long, requires = "program")]
    stdio: bool,
    /// The program that --stdio starts, with its arguments.
    #[arg(last = true, requires = "stdio", value_name = "PROGRAM", num_args = 1..)]
    program: Vec<OsString>,
    /// How much detail to announce.
    #[arg(long, default_value = "normal", value_parser = verbosity_parser())]
    verbosity: Verbosity,
    /// Languages to hear, in order of preference. Example: --lang es,en. sayso itself speaks English (en), español (es) and Yorùbá (yo).
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
    /// Also show everything on a braille display, through brltty at HOST:N, with keys that answer questions.
    /// Default: the environment variable BRLAPI_HOST, or brltty on this machine.
    #[arg(long, value_name = "HOST:N", num_args = 0..=1, value_parser = parse_brlapi_address)]
    #[allow(clippy::option_option, reason = "clap's type for an option whose value may be left out")]
    braille: Option<Option<BrlapiAddress>>,
    /// Contract braille with this table of liblouis. Example: --braille-table en-ueb-g2.ctb
    #[arg(long, value_name = "TABLE", requires = "braille", value_parser = parse_braille_table)]
    braille_table: Option<String>,
    /// Public keys trusted to sign the hub's manifest: a JWK or JWK Set that you already trust.
    #[arg(long, value_name = "FILE")]
    jwk: Option<PathBuf>,
    /// Refuse to listen to a hub whose manifest is not signed with one of the keys from --jwk.
    #[arg(long, requires = "jwk")]
    signed_only: bool,
    /// How many seconds a question must be open before an answer that does not give the question number is accepted; 0 to 3600.
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
    /// Print the time in front of each line.
    #[arg(long)]
    times: bool,
    /// Print one JSON object per line, for programs.
    #[arg(long, conflicts_with = "times")]
    json: bool,
    /// Also print to standard error which rules the received events break. For authors of agents.
    #[arg(long)]
    violations: bool,
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
    let personal_hub = if arguments.url.is_none() && !arguments.stdio {
        if arguments.credentials.ca.is_some()
            || arguments.certificate.files().is_some()
            || arguments.credentials.has_token_argument()
        {
            return Err(CommandError::cannot_run(
                "your personal hub needs no token and no certificate; write the address of the hub they are for",
            ));
        }
        Some(PersonalHub::join_or_start()?)
    } else {
        None
    };
    let result = listen(arguments, personal_hub.as_ref());
    if let Some(hub) = personal_hub {
        hub.stop();
    }
    result
}

/// Listens until the person quits, or until the program that --stdio started ends.
fn listen(arguments: &Arguments, personal_hub: Option<&PersonalHub>) -> Result<ExitStatus, CommandError> {
    let address = hub_address(arguments, personal_hub)?;
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
    settings.personal_page = personal_hub.and_then(PersonalHub::page);
    // Nobody else could answer on the socket of the personal hub, so its manifest needs no check.
    if personal_hub.is_none() || trusted_keys.is_some() {
        settings.manifest_policy = Some(ManifestPolicy {
            trusted_keys,
            signed_only: arguments.signed_only,
            limits: settings.limits,
        });
    }
    settings.json = arguments.json;
    settings.times = arguments.times;
    settings.auto_answer = match arguments.auto {
        None => AutoAnswerMode::Off,
        Some(AutoAnswer::Accept) => AutoAnswerMode::Accept,
        Some(AutoAnswer::Reject) => AutoAnswerMode::Reject,
        Some(AutoAnswer::LetExpire) => AutoAnswerMode::LetExpire,
    };
    if let Some(warning) = settings.auto_answer.warning(phrases) {
        print_stderr(&format!("sayso: {warning}"));
    }
    let braille = arguments.braille_settings()?;
    let runtime = build_runtime(0)?;
    let result = runtime.block_on(async {
        let (commands, command_receiver) = mpsc::channel(1);
        let synthesizer =
            if arguments.speech { connect_synthesizer(arguments.pace, phrases).await } else { None };
        let hooks = TerminalHooks {
            input: Some(terminal::stdin_lines()),
            commands: Some(command_receiver),
            diagnostics: Some(|line| print_stderr(&format!("program: {line}"))),
            violations: arguments.violations.then_some(|line| print_stderr(&format!("violation: {line}"))),
            synthesizer,
            braille: braille.map(|settings| BrailleDisplay::start(settings, phrases)),
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
    match result {
        Ok(TerminalExit::Quit | TerminalExit::ProgramEnded { is_success: true }) => Ok(ExitStatus::Success),
        Ok(TerminalExit::ProgramEnded { is_success: false }) => Ok(ExitStatus::Negative),
        Err(failure) => Err(CommandError::cannot_run(failure.0)),
    }
}

/// Returns the address of the hub, or of the program that --stdio starts.
fn hub_address(arguments: &Arguments, personal_hub: Option<&PersonalHub>) -> Result<Address, String> {
    if let Some(hub) = personal_hub {
        return Address::personal_hub(hub.socket()).map_err(|error| error.to_string());
    }
    match (&arguments.url, arguments.program.split_first()) {
        (Some(url), _) => arguments.certificate.apply(arguments.credentials.address(url)?),
        (None, Some((program, rest))) => {
            Address::program(program.clone(), rest.to_vec()).map_err(|error| error.to_string())
        }
        (None, None) => Err("write the address of a hub, or --stdio -- and a program".to_owned()),
    }
}

impl Arguments {
    /// Returns the settings of the braille display, if one is wanted.
    fn braille_settings(&self) -> Result<Option<BrailleSettings>, CommandError> {
        let Some(given) = &self.braille else { return Ok(None) };
        let address = match given {
            Some(address) => address.clone(),
            None => parse_brlapi_address(&std::env::var("BRLAPI_HOST").unwrap_or_default())
                .map_err(|reason| CommandError::cannot_run(format!("BRLAPI_HOST: {reason}")))?,
        };
        Ok(Some(BrailleSettings { address, table: self.braille_table.clone() }))
    }
}

fn parse_brlapi_address(text: &str) -> Result<BrlapiAddress, &'static str> {
    BrlapiAddress::parse(text)
        .ok_or("it must be HOST:N, such as 127.0.0.1:0; write the hub's address before --braille")
}

fn parse_braille_table(text: &str) -> Result<String, &'static str> {
    let is_name = !text.is_empty() && !text.contains(char::is_control);
    if is_name { Ok(text.to_owned()) } else { Err("it must be the name of a table, such as en-ueb-g2.ctb") }
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
