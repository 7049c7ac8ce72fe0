//! `cargo xtask packages`: the packages for agent authors in other languages, each with the real frameworks.

mod python;
mod typescript;

use crate::stage::{Plan, StageLane, StageLog, StageResult};
use crate::test_programs;

/// The part of the stages that `cargo xtask test` runs.
pub(crate) const REPRESENTATIVE: [&str; 8] = [
    "python-core",
    "python-3.10",
    "langchain",
    "openai-agents",
    "peers",
    "typescript-core",
    "typescript-browser",
    "typescript-ai",
];

/// Measures the cost of an event and of a token through the packages, with the hub of the release build. A quick run makes few
/// calls.
pub(crate) fn bench_clients(log: &StageLog, is_quick: bool) -> StageResult {
    let calls = if is_quick { "20" } else { "1000" };
    python::bench(log, calls)?;
    typescript::bench(log, calls)
}

/// Adds a stage that builds the binary, and all stages that need it, or only those with these names. Returns whether all names
/// are known.
pub(crate) fn add_build_and_stages(plan: &mut Plan<'_>, only: &[&str]) -> bool {
    plan.add("build", StageLane::Compile, &[], |log| test_programs::sayso_binary(log).map(drop));
    add_stages(plan, only, StageLane::Compile, &["build"])
}

/// Adds all stages, or only those with these names. Returns whether all names are known.
pub(crate) fn add_stages(
    plan: &mut Plan<'_>,
    only: &[&str],
    lane: StageLane,
    after: &'static [&'static str],
) -> bool {
    let is_wanted = |name: &str| only.is_empty() || only.contains(&name);
    let mut added = python::add_stages(plan, &is_wanted, lane, after);
    added += typescript::add_stages(plan, &is_wanted, lane, after);
    only.is_empty() || added == only.len()
}
