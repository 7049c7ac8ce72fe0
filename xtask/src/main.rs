//! `cargo xtask`: installs what the tests need, runs the stages, and reports how long each one took.

mod asp;
mod bench;
mod braille;
mod browser;
mod conformance;
mod debian;
mod fuzz;
mod gates;
mod interop;
mod mutants;
mod namespaces;
mod npm;
mod oracle;
mod packages;
mod page_nodejs_tests;
mod patroni;
mod rule_switch_off;
mod screen_reader;
mod setup;
mod speech;
mod stage;
mod test_programs;

use std::process::ExitCode;

use mutants::MutationSelection;
use stage::{Plan, StageLane};

const USAGE: &str = "usage: cargo xtask COMMAND

  test                 runs every check that a change must pass: setup, format, clippy, documentation, all tests, published clients, speech, braille, the page in a browser
                       and with a screen reader, conformance table, switched-off rules, fuzzing
  test quick           runs format, clippy, unit, property and integration tests; no documentation
                       examples, browser, sound or fuzzing
  setup                updates the test tools to the newest version in this machine's package sources, and prints the versions
  doc                  builds the documentation of the workspace; any warning is an error
  conformance [check]  writes docs/conformance.md, or checks that it is up to date
  asp [check]          writes the diagram and tables of docs/asp.md, and docs/asp-vectors.json, or checks that they are up to date
  oracle               compares sayso with the schemas and fixtures that AAEP's authors published, if ../shared contains them
  interop              installs published AAEP clients and runs them against the hub
  speech               installs speech-dispatcher and PulseAudio, measures how long announcements are, and checks recordings of what sayso says
  namespaces           installs iproute2, and runs two ASP nodes in two network namespaces; skipped without root
  patroni              installs Patroni and etcd, and runs a cluster whose database loses its primary
  braille              installs brltty and liblouis, and checks what `sayso listen --braille` shows on a virtual display
  browser              installs Debian's Chromium and tests the listening page in it
  hear [check]         installs Debian's Orca and two browsers, plays a session on the listening page, and writes what Orca says to
                       docs/screen-reader.md; `hear check` writes nothing, but fails if Orca does not say everything correctly
  page                 tests the modules of the listening page that need no browser, in Node.js
  rules [N]            switches off each rule in turn, and checks that the test recordings that break only that rule are then
                       accepted; with N, only every Nth rule
  gates [--only NAME]  installs the real programs that the gates are made for, and runs them through the gates; NAME is claude, codex, gemini,
                       opencode, mcp, acp or otlp
  packages [--only NAME,...]
                       builds the binary, creates environments with the pinned frameworks, and runs the packages for other languages and
                       their adapters against them, the hub and a scripted model. Names: python-core, python-types, python-hub,
                       python-3.10, python-3.11, python-3.12, python-3.13; agent-framework, anthropic, autogen, claude-agent, crewai,
                       google-adk, langchain, openai, openai-agents, pydantic-ai, semantic-kernel, smolagents, strands, peers;
                       typescript-core, typescript-browser, typescript-runtimes, typescript-ai, typescript-claude-agent,
                       typescript-langchain, typescript-mastra, typescript-openai-agents
  fuzz [RUNS]          fuzzes each target, 200000 runs by default
  mutants [--in-diff REF] [--survivors | --left-out] [PATH...]
                       installs cargo-mutants, changes the code that decides about consent and access, one expression at a time, and
                       checks that the tests fail; with REF only lines that differ from it, with PATH only these files. --survivors
                       tries only what survived the last run, and --left-out only what that run could not try
  bench [NAME] [quick] runs all benchmarks, or one; `quick` only checks that they run";

const FORMAT: [&str; 3] = ["fmt", "--all", "--check"];

const CLIPPY: [&str; 8] =
    ["clippy", "--workspace", "--all-features", "--all-targets", "--locked", "--", "-D", "warnings"];

/// Warnings, such as broken links, are errors.
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

/// The crate `sayso` needs at least one of the features `client` and `embedded`. It must compile with either one alone.
const CLIENT_ALONE: [&str; 7] =
    ["check", "--locked", "-p", "sayso", "--no-default-features", "--features", "client"];
const EMBEDDED_ALONE: [&str; 7] =
    ["check", "--locked", "-p", "sayso", "--no-default-features", "--features", "embedded"];
/// The command must also compile without the journal in Postgres.
const WITHOUT_POSTGRES: [&str; 5] = ["check", "--locked", "-p", "sayso-cli", "--no-default-features"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut plan = Plan::default();
    let parse_positive = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    match *command.as_slice() {
        ["test"] => add_all_stages(&mut plan),
        ["test", "quick"] => add_quick_stages(&mut plan),
        ["setup"] => {
            plan.add("toolchain", StageLane::Compile, &[], setup::install_toolchain);
            plan.add("packages", StageLane::Compile, &[], setup::install_packages);
        }
        ["doc"] => plan.cargo("documentation", &[], &DOCUMENTATION),
        ["conformance"] => plan.add("conformance", StageLane::Compile, &[], |_| conformance::write()),
        ["conformance", "check"] => {
            plan.add("conformance", StageLane::Compile, &[], |_| conformance::check());
        }
        ["asp"] => plan.add("asp", StageLane::Compile, &[], |_| asp::write()),
        ["asp", "check"] => plan.add("asp", StageLane::Compile, &[], |_| asp::check()),
        ["oracle"] => plan.add("oracle", StageLane::Compile, &[], oracle::run),
        ["page"] => plan.add("page", StageLane::Compile, &[], page_nodejs_tests::run),
        ["interop"] => {
            plan.add("interop", StageLane::Compile, &[], interop::run);
            plan.add("web subscriber", StageLane::Compile, &[], interop::web_subscriber);
        }
        ["gates"] => drop(gates::add_stages(&mut plan, None, StageLane::Compile, &[])),
        ["gates", "--only", name] if gates::add_stages(&mut plan, Some(name), StageLane::Compile, &[]) => {}
        ["speech"] => plan.add("speech", StageLane::Compile, &[], speech::run),
        ["namespaces"] => plan.add("namespaces", StageLane::Compile, &[], namespaces::run),
        ["patroni"] => plan.add("patroni", StageLane::Compile, &[], patroni::run),
        ["braille"] => plan.add("braille", StageLane::Compile, &[], braille::run),
        ["browser"] => plan.add("browser", StageLane::Compile, &[], browser::run),
        ["hear"] => plan.add("hear", StageLane::Compile, &[], screen_reader::write),
        ["hear", "check"] => plan.add("hear", StageLane::Compile, &[], screen_reader::check),
        ["rules"] => add_rules_stage(&mut plan, 1),
        ["rules", step] if let Some(step) = parse_positive(step) => add_rules_stage(&mut plan, step),
        ["packages"] => drop(packages::add_build_and_stages(&mut plan, &[])),
        ["packages", "--only", names]
            if packages::add_build_and_stages(&mut plan, &names.split(',').collect::<Vec<_>>()) => {}
        ["fuzz"] => add_fuzz_stage(&mut plan, &[], fuzz::RUNS),
        ["fuzz", runs] if let Some(runs) = parse_positive(runs) => add_fuzz_stage(&mut plan, &[], runs),
        ["mutants", ref arguments @ ..] if let Some(selection) = MutationSelection::parse(arguments) => {
            plan.add("mutants", StageLane::Compile, &[], move |log| mutants::run(log, &selection));
        }
        ["bench"] => bench::add_stages(&mut plan, None, false),
        ["bench", "quick"] => bench::add_stages(&mut plan, None, true),
        ["bench", name] => bench::add_stages(&mut plan, Some(name), false),
        ["bench", name, "quick"] => bench::add_stages(&mut plan, Some(name), true),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    plan.run()
}

/// Adds every stage. Most test and waiting stages start after the build and run while other stages compile, because few
/// stages keep all processors busy.
fn add_all_stages(plan: &mut Plan<'_>) {
    plan.add("packages", StageLane::Waiting, &[], setup::install_packages);
    plan.add("page", StageLane::Waiting, &[], page_nodejs_tests::run);
    plan.add("browser", StageLane::Waiting, &["build"], browser::run);
    plan.add("hear", StageLane::Waiting, &["build"], screen_reader::check);
    plan.add("speech", StageLane::Waiting, &["build"], speech::run);
    plan.add("braille", StageLane::Waiting, &["build"], braille::run);
    plan.add("namespaces", StageLane::Waiting, &["build"], namespaces::run);

    add_test_stages(plan);
    for gate in gates::REPRESENTATIVE {
        gates::add_stages(plan, Some(gate), StageLane::Test, &["build", "packages"]);
    }
    add_rules_stage(plan, 1);
    packages::add_stages(plan, &packages::REPRESENTATIVE, StageLane::Test, &["build", "packages"]);
    plan.add("web subscriber", StageLane::Test, &["build", "packages"], interop::web_subscriber);
    plan.add("interop", StageLane::Test, &["build", "packages"], interop::run);

    plan.add("toolchain", StageLane::Compile, &[], setup::install_toolchain);
    plan.cargo("format", &["toolchain"], &FORMAT);
    plan.add("build", StageLane::Compile, &[], test_programs::build);
    plan.cargo("clippy", &["toolchain"], &CLIPPY);
    plan.cargo("documentation", &[], &DOCUMENTATION);
    plan.cargo("examples in documentation", &[], &DOCUMENTATION_TESTS);
    plan.cargo("client alone", &[], &CLIENT_ALONE);
    plan.cargo("embedded alone", &[], &EMBEDDED_ALONE);
    plan.cargo("without Postgres", &[], &WITHOUT_POSTGRES);
    // Fuzzing keeps all processors busy, which can make speech late.
    add_fuzz_stage(plan, &["speech"], fuzz::RUNS);
}

/// Adds the stages of a quick run, which finds most mistakes.
fn add_quick_stages(plan: &mut Plan<'_>) {
    plan.add("packages", StageLane::Waiting, &[], setup::install_programs);
    plan.add("page", StageLane::Waiting, &[], page_nodejs_tests::run);

    add_test_stages(plan);

    plan.add("toolchain", StageLane::Compile, &[], setup::install_toolchain);
    plan.cargo("format", &["toolchain"], &FORMAT);
    plan.add("build", StageLane::Compile, &[], test_programs::build);
    plan.cargo("clippy", &["toolchain"], &CLIPPY);
}

fn add_test_stages(plan: &mut Plan<'_>) {
    plan.add("tests", StageLane::Test, &["build", "packages"], test_programs::run_tests);
    plan.add("oracle", StageLane::Test, &["build"], oracle::run);
    plan.add("conformance", StageLane::Test, &["build"], |_| conformance::check());
    plan.add("asp", StageLane::Test, &["build"], |_| asp::check());
}

fn add_rules_stage(plan: &mut Plan<'_>, step: u64) {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    plan.add("rules switched off", StageLane::Test, &[], move |log| rule_switch_off::run(log, step));
}

fn add_fuzz_stage<'a>(plan: &mut Plan<'a>, after: &'a [&'a str], runs: u64) {
    plan.add("fuzz", StageLane::Compile, after, move |log| fuzz::run(log, runs));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_stage_of_the_packages() {
        let mut plan = Plan::default();
        assert!(packages::add_build_and_stages(&mut plan, &[]));
        let names = plan.stage_names();
        assert_eq!(names.first(), Some(&"build"), "the tests need the binary");
        let (_, help) = USAGE.split_once("  packages [").unwrap_or_default();
        let (help, _) = help.split_once("  fuzz [").unwrap_or_default();
        let words: Vec<&str> = help.split([' ', ',', ';', '\n']).collect();
        for name in names.iter().skip(1) {
            assert!(words.contains(name), "{name}");
        }
        assert!(names.len() > 25, "{names:?}");
    }

    #[test]
    fn an_unknown_stage_of_the_packages_is_refused() {
        for only in [["core"], ["versions"]] {
            assert!(!packages::add_build_and_stages(&mut Plan::default(), &only), "{only:?}");
        }
    }
}
