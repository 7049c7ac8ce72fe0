//! The risk of single programs.

use super::parser::{Assignment, Redirection, SimpleCommand, Word};
use super::{MAX_DEPTH, ShellContext, assess_nested, repository};
use crate::description::speakable;
use crate::phrases::{GateText, Phrase, texts};
use crate::risk::{Assessment, RiskClass};

/// Programs that only read, whatever their arguments are.
const READERS: &[&str] = &[
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "pwd",
    "echo",
    "true",
    "false",
    ":",
    "which",
    "type",
    "whoami",
    "id",
    "uname",
    "df",
    "du",
    "stat",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "cut",
    "tr",
    "grep",
    "egrep",
    "fgrep",
    "cmp",
    "comm",
    "nl",
    "tac",
    "rev",
    "fold",
    "paste",
    "join",
    "seq",
    "sleep",
    "jq",
    "ps",
    "free",
    "uptime",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "cksum",
    "od",
    "hexdump",
    "strings",
    "cd",
    "nproc",
    "tty",
    "groups",
    "column",
    "expr",
    "locale",
    "lscpu",
    "pgrep",
];

/// Programs that can be asked for their version without any risk. Those that read a project's configuration first, such as
/// `npm`, `yarn`, `go` and the proxies of rustup, are not among them.
const VERSIONED: &[&str] = &["node", "python", "python3", "gcc", "g++", "clang", "make", "perl"];

/// Programs whose effects cannot be undone.
const DESTROYERS: &[&str] = &[
    "rm", "rmdir", "unlink", "shred", "dd", "truncate", "mkfs", "wipefs", "fdisk", "parted", "sfdisk", "srm",
    "kill", "pkill", "killall", "shutdown", "reboot", "poweroff", "halt", "dropdb", "crontab",
];

/// Programs that change files or packages in a way that can be undone with some effort.
const CHANGERS: &[&str] = &["mkdir", "touch", "ln", "chmod", "chown", "chgrp"];

/// Variables that change the language or the look of a program's output, and nothing else.
const HARMLESS_VARIABLES: &[&str] =
    &["LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "CI"];

const HARMLESS_DEVICES: &[&str] = &["/dev/null", "/dev/stdin", "/dev/zero", "/dev/urandom", "/dev/random"];

pub(super) fn assess(command: &SimpleCommand, context: ShellContext<'_>) -> Assessment {
    let mut assessment = Assessment::harmless();
    for Assignment { name, value } in &command.assignments {
        // A variable without a command stays in the shell, and can change what later commands do. A value that is a path can
        // make a program read any file as its locale.
        let is_path = value.as_ref().is_none_or(|value| value.starts_with(['/', ':', '.']));
        if is_path || !HARMLESS_VARIABLES.contains(&name.as_str()) {
            assessment =
                assessment.max(Assessment::new(RiskClass::Irreversible, texts::SETS_VARIABLE.with(&[name])));
        }
    }
    for redirection in &command.redirections {
        if let Redirection::Input(source) = redirection
            // Shells connect to other computers through names such as `/dev/tcp/HOST/PORT`.
            && !source.literal().is_some_and(|text| text == "/dev/null" || !text.contains("/dev/"))
        {
            assessment = assessment.max(Assessment::irreversible(&texts::UNKNOWN_INPUT));
        }
        if let Redirection::Output(target) = redirection
            && !matches!(target.literal(), Some("/dev/null" | "/dev/stdout" | "/dev/stderr"))
        {
            assessment = assessment.max(Assessment::new(RiskClass::Irreversible, &texts::REPLACES_CONTENT));
        }
    }
    if command.words.is_empty() {
        return assessment;
    }
    assessment.max(assess_words(&command.words, context))
}

fn assess_words(words: &[Word], context: ShellContext<'_>) -> Assessment {
    let assessment = assess_program(words, context);
    if assessment.class != RiskClass::Harmless {
        return assessment;
    }
    if words.iter().any(Word::may_become_option) {
        return Assessment::irreversible(&texts::UNKNOWN_ARGUMENTS);
    }
    // Reading some devices changes them, for example a watchdog.
    if words.iter().any(names_device) {
        return Assessment::irreversible(&texts::UNKNOWN_DEVICE);
    }
    assessment
}

fn names_device(word: &Word) -> bool {
    let (Word::Literal(text) | Word::Dynamic(text)) = word;
    let mut rest = HARMLESS_DEVICES.iter().fold(text.clone(), |text, name| text.replace(name, ""));
    rest.push('/');
    rest.contains("/dev/")
}

fn assess_program(words: &[Word], context: ShellContext<'_>) -> Assessment {
    if context.depth > MAX_DEPTH {
        return Assessment::irreversible(&texts::UNKNOWN_COMMAND);
    }
    let Some((Word::Literal(program), arguments)) = words.split_first() else {
        return Assessment::irreversible(&texts::UNKNOWN_RUN);
    };
    // A program that is named by a path may be anything, unless it is one of the system's.
    let name = match program.rsplit_once('/') {
        None => program.as_str(),
        Some(("/bin" | "/usr/bin", name)) => name,
        Some(_) => return Assessment::irreversible(&texts::UNKNOWN_RUN),
    };
    match name {
        "sudo" | "doas" | "su" | "pkexec" | "run0" => {
            Assessment::new(RiskClass::Irreversible, &texts::OTHER_USER)
        }
        "env" | "nice" | "timeout" | "command" | "setsid" | "stdbuf" | "ionice" | "builtin" | "xargs"
        | "chronic" => assess_wrapped(name, arguments, context),
        "exec" => Assessment::irreversible(&texts::UNKNOWN_COMMAND),
        "sh" | "bash" | "dash" | "zsh" | "ksh" => assess_inner_shell(arguments, context),
        "find" => assess_find(arguments),
        "git" => assess_git(arguments, context),
        // Their operands can be arithmetic, in which an array's index is executed.
        "printf" | "test" | "[" => only_if(
            arguments.iter().all(|word| {
                word.literal().is_some_and(|text| !text.starts_with("-v") && !text.contains('['))
            }),
            &texts::MAY_SET_VARIABLES,
        ),
        "hostname" => only_if(arguments.is_empty(), &texts::CHANGES_NAME),
        "date" => only_if(
            arguments.iter().all(|word| {
                word.literal().is_some_and(|text| text.starts_with('+') || ["-u", "-I", "-R"].contains(&text))
            }),
            &texts::CHANGES_CLOCK,
        ),
        "sort" | "tree" => only_if(
            no_option(arguments, &["-o", "--output", "--compress-program", "-R", "-T"]),
            &texts::MAY_WRITE,
        ),
        "file" => only_if(
            no_option(
                arguments,
                &["-C", "--compile", "-z", "-Z", "--uncompress-noreport", "-m", "--magic-file"],
            ),
            &texts::MAY_WRITE,
        ),
        "diff" => only_if(no_option(arguments, &["-l", "--paginate"]), &texts::MAY_WRITE),
        // With an option, another program answers.
        "getconf" => only_if(operands(arguments) == arguments.len(), &texts::MAY_WRITE),
        "rg" => only_if(
            no_option(arguments, &["--pre", "--hostname-bin", "-z", "--search-zip"])
                && !arguments.iter().filter_map(Word::literal).any(|text| text.starts_with("--pre")),
            &texts::MAY_WRITE,
        ),
        "uniq" | "xxd" => {
            only_if(operands(arguments) <= 1 && no_option(arguments, &["-r"]), &texts::MAY_WRITE)
        }
        "sed" => only_if(is_printing_sed(arguments), &texts::MAY_WRITE),
        name if READERS.contains(&name) => Assessment::harmless(),
        name if VERSIONED.contains(&name) && is_version_question(arguments) => Assessment::harmless(),
        name if DESTROYERS.contains(&name) || name.starts_with("mkfs.") => Assessment::new(
            RiskClass::Irreversible,
            match name {
                "rm" | "rmdir" | "unlink" | "shred" | "srm" => (&texts::DELETES).into(),
                "kill" | "pkill" | "killall" => (&texts::ENDS_PROGRAMS).into(),
                _ => texts::RUNS.with(&[name]),
            },
        ),
        name if CHANGERS.contains(&name) => Assessment::new(RiskClass::Risky, &texts::CHANGES_FILES),
        "mv" | "cp" | "install" | "tee" | "rsync" => {
            Assessment::new(RiskClass::Irreversible, &texts::REPLACES_FILES)
        }
        "curl" | "wget" | "ssh" | "scp" | "sftp" | "nc" | "ncat" | "telnet" | "ftp" => {
            Assessment::new(RiskClass::Irreversible, &texts::CONTACTS_COMPUTER)
        }
        _ => Assessment::irreversible(unknown_program(name)),
    }
}

/// The sentence about a program that is not known.
fn unknown_program(name: &str) -> GateText {
    GateText::new(|language| texts::UNKNOWN_PROGRAM.fill(language, &[&speakable(name, 60, language)]))
}

fn only_if(is_harmless: bool, otherwise: &Phrase) -> Assessment {
    if is_harmless { Assessment::harmless() } else { Assessment::new(RiskClass::Irreversible, otherwise) }
}

/// Whether none of these options is among the arguments, not even joined with its value or with other letters, and no
/// argument is unknown.
fn no_option(arguments: &[Word], options: &[&str]) -> bool {
    arguments.iter().all(|word| {
        let Some(text) = word.literal() else { return false };
        !options.iter().any(|option| {
            if let Some(long) = option.strip_prefix("--") {
                // An unambiguous beginning of a long option means the same.
                text.strip_prefix("--").is_some_and(|given| {
                    let given = given.split('=').next().unwrap_or_default();
                    !given.is_empty() && long.starts_with(given)
                })
            } else {
                let letter = option.trim_start_matches('-');
                text.strip_prefix('-').is_some_and(|given| !given.starts_with('-') && given.contains(letter))
            }
        })
    })
}

/// Returns the number of arguments that are not options. An unknown one counts twice. Some programs know no options after
/// the first operand, so everything there counts.
fn operands(arguments: &[Word]) -> usize {
    let mut has_ended = false;
    let mut count = 0;
    for word in arguments {
        match word.literal() {
            None => count += 2,
            Some("--") if !has_ended => has_ended = true,
            Some(text) => {
                has_ended |= !text.starts_with('-') || text == "-";
                count += usize::from(has_ended);
            }
        }
    }
    count
}

fn is_version_question(arguments: &[Word]) -> bool {
    let texts: Option<Vec<_>> = arguments.iter().map(Word::literal).collect();
    matches!(texts.as_deref(), Some(["--version"]))
}

/// Judges the command behind a program that runs another one.
fn assess_wrapped(wrapper: &str, arguments: &[Word], context: ShellContext<'_>) -> Assessment {
    let unknown = || Assessment::irreversible(unknown_program(wrapper));
    // Options without a value, options with a value, and the number of words before the command.
    let (flags, valued, leading): (&[&str], &[&str], usize) = match wrapper {
        "nice" => (&[], &["-n", "--adjustment"], 0),
        "timeout" => {
            (&["--foreground", "--preserve-status", "-v"], &["-s", "-k", "--signal", "--kill-after"], 1)
        }
        "command" => (&["-v", "-V", "-p"], &[], 0),
        "stdbuf" => (&[], &["-i", "-o", "-e"], 0),
        "ionice" => (&["-t"], &["-c", "-n"], 0),
        "setsid" => (&["-w", "-f", "-c"], &[], 0),
        "xargs" => (
            &["-0", "--null", "-r", "--no-run-if-empty", "-t", "--verbose", "-x"],
            &["-n", "--max-args", "-P", "--max-procs", "-L", "-d", "--delimiter", "-s"],
            0,
        ),
        _ => (&[], &[], 0),
    };
    let mut rest = arguments;
    let mut leading_left = leading;
    let mut assessment = Assessment::harmless();
    while let Some((word, after)) = rest.split_first() {
        let Some(text) = word.literal() else { return unknown() };
        if text == "--" {
            rest = after;
            break;
        }
        if wrapper == "command" && matches!(text, "-v" | "-V") {
            return Assessment::harmless();
        }
        if flags.contains(&text) {
            rest = after;
        } else if valued.contains(&text) {
            let Some((_, after)) = after.split_first() else { return unknown() };
            rest = after;
        } else if valued.iter().any(|option| {
            let joined = text.strip_prefix(option);
            joined.is_some_and(|value| !option.starts_with("--") || value.starts_with('='))
        }) {
            rest = after;
        } else if text.starts_with('-') {
            return unknown();
        } else if wrapper == "env"
            && let Some((name, value)) = text.split_once('=')
        {
            let assignment = Assignment { name: name.to_owned(), value: Some(value.to_owned()) };
            let setting = SimpleCommand { assignments: vec![assignment], ..SimpleCommand::default() };
            assessment = assessment.max(assess(&setting, context));
            rest = after;
        } else if leading_left > 0 {
            leading_left -= 1;
            rest = after;
        } else {
            break;
        }
    }
    if rest.is_empty() {
        // `env` prints the environment, which can contain secrets, but changes nothing; `xargs` runs echo.
        return if matches!(wrapper, "env" | "xargs" | "nice") { assessment } else { unknown() };
    }
    let mut words = rest.to_vec();
    if wrapper == "xargs" {
        // It adds arguments from its input, which is unknown.
        words.push(Word::Dynamic(String::new()));
    }
    assessment.max(assess_words(&words, context.deeper()))
}

/// Judges `sh -c 'COMMAND'`. A script file or commands on standard input are unknown.
fn assess_inner_shell(arguments: &[Word], context: ShellContext<'_>) -> Assessment {
    if is_version_question(arguments) {
        return Assessment::harmless();
    }
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.literal() else { break };
        let Some(letters) = text.strip_prefix('-') else { break };
        if letters.contains('c') && letters.chars().all(|c| "celux".contains(c)) {
            let Some(Word::Literal(command)) = words.next() else { break };
            return assess_nested(command, context.deeper());
        }
        if !letters.chars().all(|c| "elux".contains(c)) {
            break;
        }
    }
    Assessment::irreversible(&texts::UNKNOWN_RUN)
}

fn assess_find(arguments: &[Word]) -> Assessment {
    for word in arguments {
        let Some(text) = word.literal() else {
            // A variable could hold an action such as -delete.
            return Assessment::irreversible(&texts::UNKNOWN_ARGUMENTS);
        };
        if text == "-delete" {
            return Assessment::new(RiskClass::Irreversible, &texts::DELETES);
        }
        if text.starts_with("-fprint") || text.starts_with("-fls") {
            return Assessment::new(RiskClass::Irreversible, &texts::REPLACES_CONTENT);
        }
        if text.starts_with("-exec") || text.starts_with("-ok") {
            return Assessment::new(RiskClass::Irreversible, &texts::RUNS_FOR_EACH_FILE);
        }
    }
    Assessment::harmless()
}

/// Whether a call of `sed` only prints lines by number.
fn is_printing_sed(arguments: &[Word]) -> bool {
    let mut has_quiet = false;
    let mut scripts = 0;
    for word in arguments {
        let Some(text) = word.literal() else { return false };
        if text == "-n" {
            has_quiet = true;
        } else if text.starts_with('-') {
            return false;
        } else if scripts == 0 {
            scripts += 1;
            let is_printing = text
                .strip_suffix('p')
                .is_some_and(|lines| lines.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$')));
            if !is_printing {
                return false;
            }
        }
    }
    has_quiet && scripts == 1
}

fn assess_git(arguments: &[Word], context: ShellContext<'_>) -> Assessment {
    let unknown = || Assessment::irreversible(&texts::UNKNOWN_GIT);
    if context.is_folder_changed || !repository::is_of_project(context.folders) {
        return Assessment::irreversible(&texts::GIT_ELSEWHERE);
    }
    let mut words = Vec::new();
    for word in arguments {
        // A variable could hold an option.
        let Some(text) = word.literal() else { return unknown() };
        words.push(text);
    }
    let mut rest = words.as_slice();
    let (command, options) = loop {
        match rest {
            ["--no-pager" | "--no-optional-locks" | "-P", after @ ..] => rest = after,
            [command, after @ ..] if !command.starts_with('-') => break (*command, after),
            ["--version"] => return Assessment::harmless(),
            _ => return unknown(),
        }
    };
    let begins = |names: &[&str]| {
        options.iter().any(|option| {
            let name = option.split('=').next().unwrap_or_default();
            names
                .iter()
                .any(|bad| name == *bad || (bad.starts_with("--") && name.len() > 2 && bad.starts_with(name)))
        })
    };
    // `--output` and its abbreviations write to a file.
    let writes = options.iter().any(|option| {
        let name = option.split('=').next().unwrap_or_default();
        option.starts_with("-o")
            || option.starts_with("--output")
            || (name.len() > 2 && "--output".starts_with(name))
    });
    if writes {
        return Assessment::new(RiskClass::Irreversible, &texts::MAY_WRITE);
    }
    let is_reading = match command {
        "status" | "rev-parse" | "ls-files" | "ls-tree" | "blame" | "describe" | "shortlog" | "cat-file"
        | "rev-list" | "merge-base" | "show-ref" | "for-each-ref" | "name-rev" | "count-objects"
        | "check-ignore" | "var" => !begins(&["--output", "--textconv", "--filters"]),
        "log" | "diff" | "show" => !begins(&["--output", "--ext-diff", "--textconv"]),
        "branch" => options.iter().all(|option| {
            ["-a", "-r", "-v", "-vv", "--list", "--show-current", "--all", "--remotes", "--verbose"]
                .contains(option)
        }),
        "tag" => options.iter().all(|option| ["-l", "--list", "-n"].contains(option)),
        "remote" => matches!(options, [] | ["-v"] | ["get-url", ..]),
        "stash" | "worktree" => matches!(options, ["list", ..]) && !begins(&["--ext-diff", "--textconv"]),
        "reflog" => matches!(options, [] | ["show", ..]) && !begins(&["--ext-diff", "--textconv"]),
        "config" => match options {
            ["--get" | "--list" | "-l", rest @ ..] => rest.iter().all(|option| !option.starts_with('-')),
            _ => false,
        },
        _ => false,
    };
    if is_reading {
        return Assessment::harmless();
    }
    match command {
        "add" | "commit" | "switch" | "fetch" | "tag" | "mv"
            if !begins(&["--amend", "--force", "-f", "--discard-changes"]) =>
        {
            Assessment::new(RiskClass::Risky, &texts::CHANGES_REPOSITORY)
        }
        "push" => Assessment::new(RiskClass::Irreversible, &texts::PUBLISHES),
        "reset" | "clean" | "checkout" | "restore" | "rebase" | "branch" | "rm" => {
            Assessment::new(RiskClass::Irreversible, &texts::DISCARDS_WORK)
        }
        _ => unknown(),
    }
}
