//! What was typed and cannot be meant, told in sentences: what is wrong, and what to type.

use std::error::Error as _;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::print::{printable, tell};
use crate::{Arguments, Outcome};

/// Commands that need something behind them, each with a line that works.
const EXAMPLES: [(&str, &str); 8] = [
    ("listen", "http://127.0.0.1:8787"),
    ("capture", "http://127.0.0.1:8787 --output session.jsonl"),
    ("replay", "session.jsonl"),
    ("token new", "--role listener --name ada"),
    ("manifest sign", "manifest.json"),
    ("manifest verify", "manifest.jws --jwk public.json"),
    ("asp trace", "transcript.jsonl"),
    ("asp verify", "transcript.jsonl --cards cards.json"),
];

/// Tells what is wrong with what was typed, or the help that was asked for.
pub(crate) fn answer(error: &Error) -> ExitCode {
    let path = command_path(std::env::args().skip(1));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            return ExitCode::from(Outcome::Good as u8);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            tell(&format!("sayso: no command was given; type {path} and one of the commands above."));
        }
        _ => {
            tell(&format!("sayso: {}", wrong(error)));
            tell(&format!("{}Type {path} --help for all that can be typed.", example(error, &path)));
        }
    }
    ExitCode::from(Outcome::Failed as u8)
}

fn wrong(error: &Error) -> String {
    let argument = words(error, ContextKind::InvalidArg);
    let value = words(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::MissingRequiredArgument => match argument.as_slice() {
            [one] => format!("{one} is missing."),
            several => format!("{} are missing.", list(several, "and")),
        },
        ErrorKind::UnknownArgument => {
            let meant = meant(&words(error, ContextKind::SuggestedArg));
            format!("{} is not known here.{meant}", argument.concat())
        }
        ErrorKind::InvalidSubcommand => {
            let meant = meant(&words(error, ContextKind::SuggestedSubcommand));
            format!("there is no command {}.{meant}", words(error, ContextKind::InvalidSubcommand).concat())
        }
        ErrorKind::InvalidValue if value.concat().is_empty() => match argument.concat() {
            option if option.starts_with("--") => {
                format!("{option} wants something behind it{}", takes(error))
            }
            place => format!("{place} must not be empty."),
        },
        ErrorKind::InvalidValue => {
            format!("{} does not take {}{}", argument.concat(), value.concat(), takes(error))
        }
        ErrorKind::ValueValidation => {
            let why = error.source().map(|why| format!(": {}", in_plain_words(&why.to_string())));
            let (argument, value) = (argument.concat(), value.concat());
            format!("{argument} does not take {value}{}.", why.unwrap_or_default())
        }
        ErrorKind::ArgumentConflict => {
            let other = words(error, ContextKind::PriorArg);
            format!("{} cannot be used together with {}.", argument.concat(), list(&other, "and"))
        }
        ErrorKind::InvalidUtf8 => "what was typed is not text in UTF-8.".to_owned(),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}.", printable(first.strip_prefix("error: ").unwrap_or(first)))
        }
    }
}

/// Why a value is not taken; what is said of numbers is said by the language that this is written in.
fn in_plain_words(why: &str) -> String {
    if let Some((_, range)) = why.split_once(" is not in ")
        && let Some((from, to)) = range.split_once("..=")
    {
        return format!("it takes a whole number from {from} to {to}");
    }
    if ["invalid digit", "integer from empty", "number too"].iter().any(|part| why.contains(part)) {
        return "it takes a whole number".to_owned();
    }
    printable(why)
}

/// What an option takes, where that can be listed.
fn takes(error: &Error) -> String {
    let valid = words(error, ContextKind::ValidValue);
    if valid.is_empty() { ".".to_owned() } else { format!(": it takes {}.", list(&valid, "or")) }
}

fn meant(suggested: &[String]) -> String {
    if suggested.is_empty() { String::new() } else { format!(" Did you mean {}?", list(suggested, "or")) }
}

/// A line that works, where something is missing that stands in it.
fn example(error: &Error, path: &str) -> String {
    let known = EXAMPLES.iter().find(|(command, _)| path.strip_prefix("sayso ") == Some(command));
    let missing = words(error, ContextKind::InvalidArg);
    let is_in = |option: &str, line: &str| option.split(' ').next().is_some_and(|name| line.contains(name));
    let shows = |line: &str| {
        missing
            .iter()
            .all(|one| !one.starts_with("--") || one.split(" or ").any(|option| is_in(option, line)))
    };
    match known {
        Some((_, rest)) if error.kind() == ErrorKind::MissingRequiredArgument && shows(rest) => {
            format!("It is typed like this: {path} {rest}\n")
        }
        _ => String::new(),
    }
}

/// The commands at the beginning of what was typed.
fn command_path(typed: impl Iterator<Item = String>) -> String {
    let all = Arguments::command();
    let (mut path, mut at) = (vec!["sayso".to_owned()], &all);
    for word in typed.filter(|word| word != "--plain") {
        let Some(next) = at.find_subcommand(&word) else { break };
        at = next;
        path.push(word);
    }
    path.join(" ")
}

/// What is said about the error under a name; without the brackets around what stands for something else.
fn words(error: &Error, kind: ContextKind) -> Vec<String> {
    let all: Vec<String> = match error.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(several)) => several.clone(),
        _ => Vec::new(),
    };
    let is_value = matches!(kind, ContextKind::InvalidValue | ContextKind::InvalidSubcommand);
    all.iter()
        .map(|word| {
            if is_value {
                printable(word)
            } else {
                printable(word).replace(['<', '>'], "").replace('|', " or ")
            }
        })
        .collect()
}

fn list(words: &[String], and: &str) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} {and} {last}", others.join(", ")),
        _ => words.concat(),
    }
}
