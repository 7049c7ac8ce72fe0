//! Usage errors: turns an error of `clap` into sentences that say what is wrong and what to type.

use std::error::Error as _;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::output::{print_stderr, printable};
use crate::{Arguments, ExitStatus};

/// Example arguments of commands, shown if a required argument is missing.
const EXAMPLES: [(&str, &str); 18] = [
    ("listen", "http://127.0.0.1:8787"),
    ("capture", "http://127.0.0.1:8787 --output session.jsonl"),
    ("replay", "session.jsonl"),
    ("setup mcp", "claude-desktop"),
    ("token new", "--role listener --name ada"),
    ("backup", "--data sayso-data backup-1"),
    ("restore", "backup-1 --data sayso-data"),
    ("reshard", "--data sayso-data --shards 4"),
    ("manifest sign", "manifest.json"),
    ("manifest verify", "manifest.jws --jwk public.json"),
    ("asp keygen", "--agent agent://127.0.0.1:8788/buyer --name Buyer --out buyer"),
    ("asp invite", "agent://127.0.0.1:8789/press '40 menus in braille'"),
    ("asp send", "SESSION ACCEPT '{\"referenceId\":\"prop_1\"}'"),
    ("asp watch", "SESSION"),
    ("asp transcript", "SESSION --output talk.jsonl --cards cards.jsonl"),
    ("asp trust", "agent://127.0.0.1:8789/press"),
    ("asp trace", "transcript.jsonl"),
    ("asp verify", "transcript.jsonl --cards cards.json"),
];

/// Prints a usage error, or the help or version that was requested.
pub(crate) fn report_usage_error(error: &Error) -> ExitCode {
    let path = command_path(std::env::args().skip(1));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            return ExitCode::from(ExitStatus::Success as u8);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            print_stderr(&format!("sayso: no command given; type {path} and one of the commands above."));
        }
        _ => {
            print_stderr(&format!("sayso: {}", describe_error(error)));
            print_stderr(&format!("{}Type {path} --help for all options.", example(error, &path)));
        }
    }
    ExitCode::from(ExitStatus::CannotRun as u8)
}

fn describe_error(error: &Error) -> String {
    let argument = context_values(error, ContextKind::InvalidArg);
    let value = context_values(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::MissingRequiredArgument => match argument.as_slice() {
            [one] => format!("{one} is missing."),
            several => format!("{} are missing.", join_words(several, "and")),
        },
        ErrorKind::UnknownArgument => {
            let hint = suggestion(&context_values(error, ContextKind::SuggestedArg));
            format!("{} is not a known argument here.{hint}", argument.concat())
        }
        ErrorKind::InvalidSubcommand => {
            let hint = suggestion(&context_values(error, ContextKind::SuggestedSubcommand));
            format!(
                "unknown command {}.{hint}",
                context_values(error, ContextKind::InvalidSubcommand).concat()
            )
        }
        ErrorKind::InvalidValue if value.concat().is_empty() => match argument.concat() {
            option if option.starts_with("--") => {
                format!("{option} needs a value{}", possible_values(error))
            }
            positional => format!("{positional} must not be empty."),
        },
        ErrorKind::InvalidValue => {
            format!("{} does not accept {}{}", argument.concat(), value.concat(), possible_values(error))
        }
        ErrorKind::ValueValidation => {
            let reason =
                error.source().map(|reason| format!(": {}", describe_value_error(&reason.to_string())));
            let (argument, value) = (argument.concat(), value.concat());
            format!("{argument} does not accept {value}{}.", reason.unwrap_or_default())
        }
        ErrorKind::ArgumentConflict => {
            let other = context_values(error, ContextKind::PriorArg);
            format!("{} cannot be used together with {}.", argument.concat(), join_words(&other, "and"))
        }
        ErrorKind::InvalidUtf8 => "an argument is not valid UTF-8.".to_owned(),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}.", printable(first.strip_prefix("error: ").unwrap_or(first)))
        }
    }
}

/// Describes why a value was rejected. Replaces the messages of Rust's number parser with simpler ones.
fn describe_value_error(reason: &str) -> String {
    if let Some((_, range)) = reason.split_once(" is not in ")
        && let Some((from, to)) = range.split_once("..=")
    {
        return format!("it must be a whole number from {from} to {to}");
    }
    if ["invalid digit", "integer from empty", "number too"].iter().any(|part| reason.contains(part)) {
        return "it must be a whole number".to_owned();
    }
    printable(reason)
}

/// Returns the end of a sentence that lists the accepted values, if they are known.
fn possible_values(error: &Error) -> String {
    let valid = context_values(error, ContextKind::ValidValue);
    if valid.is_empty() { ".".to_owned() } else { format!(": use {}.", join_words(&valid, "or")) }
}

fn suggestion(suggested: &[String]) -> String {
    if suggested.is_empty() {
        String::new()
    } else {
        format!(" Did you mean {}?", join_words(suggested, "or"))
    }
}

/// Returns an example command line if required arguments are missing.
fn example(error: &Error, path: &str) -> String {
    let known = EXAMPLES.iter().find(|(command, _)| path.strip_prefix("sayso ") == Some(command));
    let missing = context_values(error, ContextKind::InvalidArg);
    let contains_option =
        |line: &str, option: &str| option.split(' ').next().is_some_and(|name| line.contains(name));
    let contains_all_missing = |line: &str| {
        missing.iter().all(|argument| {
            !argument.starts_with("--") || argument.split(" or ").any(|option| contains_option(line, option))
        })
    };
    match known {
        Some((_, rest))
            if error.kind() == ErrorKind::MissingRequiredArgument && contains_all_missing(rest) =>
        {
            format!("Example: {path} {rest}\n")
        }
        _ => String::new(),
    }
}

/// Returns the command and subcommands at the start of the command line.
fn command_path(words: impl Iterator<Item = String>) -> String {
    let root = Arguments::command();
    let (mut path, mut command) = (vec!["sayso".to_owned()], &root);
    for word in words.filter(|word| word != "--plain") {
        let Some(subcommand) = command.find_subcommand(&word) else { break };
        command = subcommand;
        path.push(word);
    }
    path.join(" ")
}

/// Returns the error's context values of one kind, without the angle brackets around placeholders.
fn context_values(error: &Error, kind: ContextKind) -> Vec<String> {
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

fn join_words(words: &[String], conjunction: &str) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{} {conjunction} {last}", others.join(", "))
        }
        _ => words.concat(),
    }
}
