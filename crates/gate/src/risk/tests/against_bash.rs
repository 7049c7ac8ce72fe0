//! Compares the parser with real shells: what it calls harmless is executed, and must neither run an unknown program nor
//! change a file.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::collection::vec;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

/// Parts of command lines. `PWN` is a program that leaves a trace.
const PARTS: &[&str] = &[
    "PWN",
    "PWN",
    "PWN a",
    "echo",
    "ls",
    "cat",
    "cat a",
    "a",
    "b",
    "true",
    ":",
    "git",
    "cd d",
    "find .",
    "sed -n 1p",
    "sort",
    "env",
    "command",
    "builtin",
    "xargs",
    "sh -c",
    "bash -c",
    "timeout 5",
    "printf",
    "test",
    "[",
    "]",
    "uniq",
    "diff a b",
    " ",
    " ",
    " ",
    " ",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "$",
    "$(",
    ")",
    "(",
    "`",
    "{",
    "}",
    ",",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "<",
    "<<",
    "<<<",
    "<<-",
    ">",
    ">>",
    ">|",
    "&>",
    ">&",
    "<&",
    "<>",
    "2>",
    "2>&1",
    ">/dev/null",
    "1",
    "-",
    "--",
    "-c",
    "-e",
    "-o",
    "#",
    "!",
    "=",
    "A=",
    "LANG=",
    "x=PWN",
    "$x",
    "${x}",
    "${x:-",
    "$((",
    "))",
    "$[",
    "[[",
    "]]",
    "$'",
    "$\"",
    "\\n",
    "\n",
    "\n",
    "\t",
    "*",
    "?",
    "[a]",
    "~",
    "^",
    "%",
    "@",
    "+",
    ":",
    "if",
    "then",
    "fi",
    "for i in",
    "do",
    "done",
    "case",
    "in",
    "esac",
    "while",
    "function",
    "coproc",
    "time",
    "select",
    "eval",
    "exec",
    "trap",
    "EXIT",
    "alias",
    "EOF",
    "<(",
    ">(",
    "=(",
    "a[",
    "]=",
    "$@",
    "\"$@\"",
    "$*",
    "${!x}",
    "..",
    "{a,b}",
    "{1..2}",
    "é",
    "\u{a0}",
    "\\\n",
    "$\n",
    "&>>",
    "{fd}>",
    "<<'E'\n",
    "\nE\n",
];

/// Words for which nothing is executed or changed, whatever surrounds them.
const QUOTING: &[&str] = &[
    "'",
    "\"",
    "\\",
    "$(",
    ")",
    "`",
    "\n",
    ";",
    "|",
    "&",
    " ",
    "#",
    "$",
    "{",
    "}",
    "(",
    "<",
    ">",
    "!",
    "=",
    "PWN",
    "PWN;",
    ";PWN",
    "$(PWN)",
    "`PWN`",
    "\"$(PWN)\"",
    "'PWN'",
    "echo ",
    "a",
    "\\'",
    "\\\"",
    "$'",
    "<<E\n",
    "\nE\n",
    "${",
    "[",
    "]",
    "*",
    "\\\\",
];

struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let programs = folder.path().join("programs");
        std::fs::create_dir(&programs).unwrap();
        for name in [
            "ls", "cat", "sort", "env", "xargs", "sh", "bash", "timeout", "uniq", "diff", "find", "sed",
            "head", "wc", "true", "printf", "test", "touch",
        ] {
            for source in ["/bin", "/usr/bin"] {
                let source = Path::new(source).join(name);
                if source.exists() && !programs.join(name).exists() {
                    std::os::unix::fs::symlink(source, programs.join(name)).unwrap();
                }
            }
        }
        let trap = format!("#!/bin/sh\n: > '{}'\n", folder.path().join("trace").display());
        for name in ["PWN", "git"] {
            let path = programs.join(name);
            // `git` only reads here, so it leaves no trace.
            std::fs::write(&path, if name == "git" { "#!/bin/sh\n" } else { &trap }).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
        }
        Self { folder }
    }

    /// Executes a command line. Returns what it changed.
    fn changes(&self, shell: &[&str], command: &str) -> Vec<String> {
        let work = self.folder.path().join("work");
        std::fs::create_dir_all(work.join("d")).unwrap();
        for name in ["a", "b", "d/a"] {
            std::fs::write(work.join(name), "PWN\n").unwrap();
        }
        let (program, options) = shell.split_first().unwrap();
        Command::new(program)
            .args(options)
            .arg(command)
            .env_clear()
            .env("PATH", self.folder.path().join("programs"))
            .env("HOME", &work)
            .env("LANG", "C.UTF-8")
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let mut changes = Vec::new();
        if self.folder.path().join("trace").exists() {
            changes.push("it executed PWN".to_owned());
        }
        let mut left: Vec<_> = [work.clone(), work.join("d")]
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap())
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.is_file() || std::fs::read(path).unwrap() != b"PWN\n")
            .map(|path| path.display().to_string())
            .filter(|path| *path != work.join("d").display().to_string())
            .collect();
        if std::fs::read_dir(&work).unwrap().count() != 3
            || std::fs::read_dir(work.join("d")).unwrap().count() != 1
        {
            left.push("the number of files".to_owned());
        }
        changes.extend(left);
        if !changes.is_empty() {
            drop(std::fs::remove_file(self.folder.path().join("trace")));
            drop(std::fs::remove_dir_all(&work));
        }
        changes
    }
}

/// Number of command lines to generate. `RISK_CASES` sets another one, for a long attack.
fn cases() -> u32 {
    std::env::var("RISK_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(4_000)
}

fn attack(parts: &'static [&'static str], length: std::ops::Range<usize>, prefix: &str) {
    let sandbox = Sandbox::new();
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, seed());
    let mut executed = 0;
    let result = runner.run(&vec(select(parts), length), |parts| {
        let command = format!("{prefix}{}", parts.concat());
        if assess_command(&command).class == Harmless {
            for shell in [&["/bin/bash", "-c"][..], &["/bin/bash", "--posix", "-c"], &["/bin/sh", "-c"]] {
                let changes = sandbox.changes(shell, &command);
                prop_assert!(changes.is_empty(), "{shell:?} {command:?}: {changes:?}");
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // Without this, a parser that refuses everything would pass.
    let harmless = ["echo ';PWN' \"a;b\" | cat && ls d", "cat a;ls\ncat b|sort"];
    for command in harmless {
        assert_eq!(assess_command(command).class, Harmless, "{command}");
        assert_eq!(sandbox.changes(&["/bin/bash", "-c"], command), Vec::<String>::new(), "{command}");
        executed += 1;
    }
    assert_eq!(executed, harmless.len());
    assert_eq!(sandbox.changes(&["/bin/bash", "-c"], "echo \"$(PWN)\" > c").len(), 2 + 1, "the trap works");
}

fn seed() -> TestRng {
    match std::env::var("RISK_SEED").ok().and_then(|seed| seed.parse::<u8>().ok()) {
        Some(seed) => TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]),
        None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    }
}

#[test]
fn no_shell_changes_anything_by_a_harmless_command() {
    attack(PARTS, 1..9, "");
}

#[test]
fn no_shell_leaves_the_quotes_of_a_harmless_command() {
    attack(QUOTING, 2..14, "echo ");
}
