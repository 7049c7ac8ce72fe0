//! `sayso listen`: a person hears agents, and answers.

use std::path::PathBuf;

use aaep::event::Verbosity;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use listen::speech::{Pace, Speaker};
use listen::terminal::{self, Auto, Hooks, Order, Settings};
use listen::{Checks, Phrases, Tastes, Voice};
use tokio::sync::mpsc;

use crate::Outcome;
use crate::file::Stop;
use crate::manifest::trusted;
use crate::print::tell;
use crate::way::{Way, runtime, stopped};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    way: Way,
    /// How much is said.
    #[arg(long, default_value = "normal", value_parser = verbosity())]
    verbosity: Verbosity,
    /// The languages to hear, the dearest first: --lang es,en
    #[arg(long = "lang", value_name = "TAG", value_delimiter = ',', default_value = "en", value_parser = language)]
    languages: Vec<String>,
    /// At most so many events in a second; urgent ones do not wait.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: Option<u64>,
    /// Speaks what is printed, too: through speech-dispatcher, or else by espeak-ng.
    #[arg(long)]
    speech: bool,
    /// How fast it speaks, from -100 over 0, the usual, to 100. Without it, as is set in speech-dispatcher.
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "speech", value_parser = clap::value_parser!(i8).range(-100..=100))]
    pace: Option<i8>,
    /// The public keys by one of which the hub's manifest must be signed, as you got them beforehand: a JWK or a set of them.
    #[arg(long, value_name = "FILE")]
    jwk: Option<PathBuf>,
    /// Listens only to a hub that has a manifest signed so.
    #[arg(long, requires = "jwk")]
    signed_only: bool,
    /// One JSON object a line, for programs.
    #[arg(long)]
    json: bool,
    /// Answers every question without a person.
    #[arg(long, value_enum, value_name = "HOW")]
    auto: Option<Alone>,
}

/// How questions are answered without a person.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Alone {
    /// Everything is allowed.
    Accept,
    /// Everything is refused.
    Reject,
    /// Nothing is answered: each question runs out of time.
    None,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Stop> {
    let address = arguments.way.address()?;
    let phrases = Phrases::of(&arguments.languages);
    let mut settings = Settings::new(address);
    settings.tastes = Tastes {
        verbosity: arguments.verbosity.clone(),
        languages: arguments.languages.clone(),
        rate: arguments.rate,
    };
    let trusted = arguments.jwk.as_deref().map(trusted).transpose()?;
    settings.checks = Some(Checks { trusted, signed_only: arguments.signed_only, limits: settings.limits });
    settings.json = arguments.json;
    settings.auto = match arguments.auto {
        None => Auto::Off,
        Some(Alone::Accept) => Auto::Accept,
        Some(Alone::Reject) => Auto::Reject,
        Some(Alone::None) => Auto::None,
    };
    if let Some(warning) = settings.auto.warning(phrases) {
        tell(&format!("sayso: {warning}"));
    }
    let runtime = runtime(0)?;
    let ended = runtime.block_on(async {
        let (orders, inbox) = mpsc::channel(1);
        let voice = if arguments.speech { voice(arguments.pace, phrases).await } else { None };
        let hooks = Hooks { input: Some(terminal::stdin()), orders: Some(inbox), voice, ..Hooks::default() };
        let stopped = stopped();
        tokio::spawn(async move {
            stopped.await;
            let _ = orders.send(Order::End).await;
        });
        terminal::run(settings, hooks, std::io::stdout()).await
    });
    // The thread that reads standard input may never hear of the end.
    runtime.shutdown_background();
    ended.map(|()| Outcome::Good).map_err(|failure| Stop::failed(failure.0))
}

/// Something that speaks. Without it, what is printed is still there to be read.
async fn voice(pace: Option<i8>, phrases: &'static Phrases) -> Option<Box<dyn Voice>> {
    match Speaker::start(pace.and_then(Pace::new), phrases).await {
        Ok(speaker) => Some(Box::new(speaker)),
        Err(why) => {
            tell(&format!("sayso: {}", why.in_words(phrases)));
            None
        }
    }
}

/// How much is said, as an argument.
pub(crate) fn verbosity() -> impl TypedValueParser<Value = Verbosity> {
    PossibleValuesParser::new(["terse", "normal", "detailed"]).map(|word| Verbosity::of(&word))
}

pub(crate) fn language(tag: &str) -> Result<String, &'static str> {
    if aaep::form::is_language_tag(tag) {
        Ok(tag.to_owned())
    } else {
        Err("a language is a tag like en or es-MX")
    }
}
