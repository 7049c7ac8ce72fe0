//! `cargo xtask test`: sets up what the tests need, then runs everything and says how long each stage took.

mod asp;
mod bench;
mod browser;
mod conformance;
mod debian;
mod fuzz;
mod hear;
mod interop;
mod npm;
mod oracle;
mod page;
mod programs;
mod setup;
mod speech;
mod stage;
mod switch_off;

use std::process::ExitCode;

use stage::{Lane, Plan};

const USAGE: &str = "usage: cargo xtask COMMAND

  test                 everything: set-up, format, clippy, documentation, all tests, published clients, speech, the page in a browser
                       and with a screen reader, conformance table, switched-off rules, fuzzing
  test quick           format, clippy, unit, property and integration tests; no examples
                       of the documentation, no browser, no sound, no fuzzing
  setup                brings what the tests use to the newest version that this machine's sources offer, and prints the versions
  doc                  documents the whole workspace, and takes no warning
  conformance [check]  writes docs/conformance.md, or says whether it is stale
  asp [check]          writes the diagram and table of docs/asp.md and docs/asp-vectors.json, or says whether they are stale
  oracle               compares with what AAEP's authors published, where ../shared has it
  interop              installs published clients of AAEP and runs them against the hub
  speech               installs speech-dispatcher and PulseAudio, and listens to what sayso says through them
  browser              installs Debian's Chromium and tries the listening page in it
  hear [check]         installs Debian's Orca and two browsers, plays a session on the listening page, and writes what Orca says to
                       docs/screen-reader.md; check only demands that it is right
  page                 tests the modules of the listening page in node
  rules [N]            runs each rule's test with its rule switched off and demands red; N takes every Nth rule
  fuzz [RUNS]          fuzzes each target, 200000 runs if not said
  bench [NAME] [quick] runs the benchmarks, or one of them; quick only shows that they run";

const FORMAT: [&str; 3] = ["fmt", "--all", "--check"];

const CLIPPY: [&str; 8] =
    ["clippy", "--workspace", "--all-features", "--all-targets", "--locked", "--", "-D", "warnings"];

/// Links that lead nowhere are warnings; a test of `sayso` demands that every public item has an example.
const DOCUMENTATION: [&str; 7] = [
    "doc",
    "--workspace",
    "--all-features",
    "--no-deps",
    "--locked",
    "--config",
    "build.rustdocflags = ['-Dwarnings']",
];

const DOCUMENTATION_TESTS: [&str; 6] =
    ["test", "--workspace", "--all-features", "--locked", "--no-fail-fast", "--doc"];

/// The crate for authors needs one way to a hub; either is enough.
const CLIENT_ALONE: [&str; 7] =
    ["check", "--locked", "-p", "sayso", "--no-default-features", "--features", "client"];
const EMBEDDED_ALONE: [&str; 7] =
    ["check", "--locked", "-p", "sayso", "--no-default-features", "--features", "embedded"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut plan = Plan::default();
    let number = |word: &str| word.parse::<u64>().ok().filter(|number| *number > 0);
    match *words.as_slice() {
        ["test"] => test(&mut plan),
        ["test", "quick"] => quick(&mut plan),
        ["setup"] => {
            plan.add("toolchain", Lane::Compile, &[], setup::toolchain);
            plan.add("packages", Lane::Compile, &[], setup::packages);
        }
        ["doc"] => plan.cargo("documentation", &[], &DOCUMENTATION),
        ["conformance"] => plan.add("conformance", Lane::Compile, &[], |_| conformance::write()),
        ["conformance", "check"] => plan.add("conformance", Lane::Compile, &[], |_| conformance::check()),
        ["asp"] => plan.add("asp", Lane::Compile, &[], |_| asp::write()),
        ["asp", "check"] => plan.add("asp", Lane::Compile, &[], |_| asp::check()),
        ["oracle"] => plan.add("oracle", Lane::Compile, &[], oracle::run),
        ["page"] => plan.add("page", Lane::Compile, &[], page::run),
        ["interop"] => {
            plan.add("interop", Lane::Compile, &[], interop::run);
            plan.add("web subscriber", Lane::Compile, &[], interop::web_subscriber);
        }
        ["speech"] => plan.add("speech", Lane::Compile, &[], speech::run),
        ["browser"] => plan.add("browser", Lane::Compile, &[], browser::run),
        ["hear"] => plan.add("hear", Lane::Compile, &[], hear::write),
        ["hear", "check"] => plan.add("hear", Lane::Compile, &[], hear::check),
        ["rules"] => rules(&mut plan, 1),
        ["rules", step] if let Some(step) = number(step) => rules(&mut plan, step),
        ["fuzz"] => fuzz(&mut plan, fuzz::RUNS),
        ["fuzz", runs] if let Some(runs) = number(runs) => fuzz(&mut plan, runs),
        ["bench"] => bench::plan(&mut plan, None, false),
        ["bench", "quick"] => bench::plan(&mut plan, None, true),
        ["bench", name] => bench::plan(&mut plan, Some(name), false),
        ["bench", name, "quick"] => bench::plan(&mut plan, Some(name), true),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    plan.run()
}

/// Runs every stage. Tests and stages in real time start after the build and run beside the remaining compilation, because none of
/// them uses all processors alone.
fn test(plan: &mut Plan<'_>) {
    plan.add("packages", Lane::RealTime, &[], setup::packages);
    plan.add("page", Lane::RealTime, &[], page::run);
    plan.add("browser", Lane::RealTime, &["build"], browser::run);
    plan.add("hear", Lane::RealTime, &["build"], hear::check);
    plan.add("speech", Lane::RealTime, &["build"], speech::run);

    tests(plan);
    rules(plan, 1);
    plan.add("web subscriber", Lane::Test, &["build", "packages"], interop::web_subscriber);
    plan.add("interop", Lane::Test, &["build", "packages"], interop::run);

    plan.add("toolchain", Lane::Compile, &[], setup::toolchain);
    plan.cargo("format", &["toolchain"], &FORMAT);
    plan.add("build", Lane::Compile, &[], programs::build);
    plan.cargo("clippy", &["toolchain"], &CLIPPY);
    plan.cargo("documentation", &[], &DOCUMENTATION);
    plan.cargo("examples in documentation", &[], &DOCUMENTATION_TESTS);
    plan.cargo("client alone", &[], &CLIENT_ALONE);
    plan.cargo("embedded alone", &[], &EMBEDDED_ALONE);
    fuzz(plan, fuzz::RUNS);
}

/// What finds most mistakes soonest.
fn quick(plan: &mut Plan<'_>) {
    plan.add("packages", Lane::RealTime, &[], setup::programs);
    plan.add("page", Lane::RealTime, &[], page::run);

    tests(plan);

    plan.add("toolchain", Lane::Compile, &[], setup::toolchain);
    plan.cargo("format", &["toolchain"], &FORMAT);
    plan.add("build", Lane::Compile, &[], programs::build);
    plan.cargo("clippy", &["toolchain"], &CLIPPY);
}

fn tests(plan: &mut Plan<'_>) {
    plan.add("tests", Lane::Test, &["build", "packages"], programs::run_tests);
    plan.add("oracle", Lane::Test, &["build"], oracle::run);
    plan.add("conformance", Lane::Test, &["build"], |_| conformance::check());
    plan.add("asp", Lane::Test, &["build"], |_| asp::check());
}

fn rules(plan: &mut Plan<'_>, step: u64) {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    plan.add("rules switched off", Lane::Test, &[], move |log| switch_off::run(log, step));
}

fn fuzz(plan: &mut Plan<'_>, runs: u64) {
    plan.add("fuzz", Lane::Compile, &[], move |log| fuzz::run(log, runs));
}
