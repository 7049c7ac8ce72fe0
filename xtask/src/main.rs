//! `cargo xtask test`: sets up what the tests need, then runs everything and says how long each stage took.

mod asp;
mod bench;
mod browser;
mod conformance;
mod fuzz;
mod hear;
mod interop;
mod npm;
mod page;
mod setup;
mod speech;
mod stage;
mod switch_off;

use std::process::ExitCode;

use stage::Stages;

const USAGE: &str = "usage: cargo xtask COMMAND

  test                 set-up, format, clippy, documentation, all tests, published clients, speech, the page in a browser and with a screen reader, conformance table, switched-off rules, fuzzing
  doc                  documents the whole workspace, and takes no warning
  conformance [check]  writes docs/conformance.md, or says whether it is stale
  asp [check]          writes the diagram and table of docs/asp.md and docs/asp-vectors.json, or says whether they are stale
  interop              installs published clients of AAEP and runs them against the hub
  speech               installs speech-dispatcher and PulseAudio, and listens to what sayso says through them
  browser              installs Debian's Chromium and tries the listening page in it
  hear [check]         installs Debian's Orca and two browsers, plays a session on the listening page, and writes what Orca says to
                       docs/screen-reader.md; check only demands that it is right
  page                 tests the modules of the listening page in node
  rules [N]            runs each rule's test with its rule switched off and demands red; N takes every Nth rule
  fuzz [RUNS]          fuzzes each target, 200000 runs if not said
  bench [NAME] [quick] runs the benchmarks, or one of them; quick only shows that they run";

/// Links that lead nowhere are warnings; that every public item has an example, a test of `sayso` looks at.
const DOCUMENTATION: [&str; 7] = [
    "doc",
    "--workspace",
    "--all-features",
    "--no-deps",
    "--locked",
    "--config",
    "build.rustdocflags = ['-Dwarnings']",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut stages = Stages::default();
    match *words.as_slice() {
        ["test"] => test(&mut stages),
        ["doc"] => stages.cargo("documentation", &DOCUMENTATION),
        ["conformance"] => stages.run("conformance", conformance::write),
        ["conformance", "check"] => stages.run("conformance", conformance::check),
        ["asp"] => stages.run("asp", asp::write),
        ["asp", "check"] => stages.run("asp", asp::check),
        ["page"] => stages.run("page", page::run),
        ["interop"] => stages.run("interop", interop::run),
        ["speech"] => stages.run("speech", speech::run),
        ["browser"] => stages.run("browser", browser::run),
        ["hear"] => stages.run("hear", hear::write),
        ["hear", "check"] => stages.run("hear", hear::check),
        ["rules"] => stages.run("rules switched off", || switch_off::run(1)),
        ["rules", step] if step.parse::<usize>().is_ok_and(|step| step > 0) => {
            stages.run("rules switched off", || switch_off::run(step.parse().unwrap_or(1)));
        }
        ["fuzz"] => fuzz_all(&mut stages, fuzz::RUNS),
        ["fuzz", runs] if runs.parse::<u64>().is_ok() => {
            fuzz_all(&mut stages, runs.parse().unwrap_or(fuzz::RUNS));
        }
        ["bench"] => bench::run(&mut stages, None, false),
        ["bench", "quick"] => bench::run(&mut stages, None, true),
        ["bench", name] => bench::run(&mut stages, Some(name), false),
        ["bench", name, "quick"] => bench::run(&mut stages, Some(name), true),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    stages.finish()
}

fn test(stages: &mut Stages) {
    stages.run("set-up", setup::run);
    stages.cargo("format", &["fmt", "--all", "--check"]);
    let clippy =
        ["clippy", "--workspace", "--all-features", "--all-targets", "--locked", "--", "-D", "warnings"];
    stages.cargo("clippy", &clippy);
    stages.cargo("documentation", &DOCUMENTATION);
    stages.cargo("tests", &["test", "--workspace", "--locked", "--no-fail-fast"]);
    stages.run("page", page::run);
    // What is optional there: the loop for chat completions, and the adapter for rig.
    stages.cargo(
        "tests of all features",
        &["test", "-p", "sayso", "--all-features", "--locked", "--no-fail-fast"],
    );
    stages.run("interop", interop::run);
    stages.run("speech", speech::run);
    stages.run("browser", browser::run);
    stages.run("hear", hear::check);
    stages.run("conformance", conformance::check);
    stages.run("asp", asp::check);
    stages.run("rules switched off", || switch_off::run(1));
    fuzz_all(stages, fuzz::RUNS);
}

fn fuzz_all(stages: &mut Stages, runs: u64) {
    for target in fuzz::TARGETS {
        stages.run(&format!("fuzz {target}"), || fuzz::run(target, runs));
    }
}
