//! `cargo xtask packages`: the packages for agent authors in other languages, each with the real frameworks.

mod python;
mod typescript;

use crate::stage::{Plan, StageLane};

/// The part of the stages that `cargo xtask test` runs.
pub(crate) const REPRESENTATIVE: [&str; 7] = [
    "python-core",
    "python-3.10",
    "langchain",
    "openai-agents",
    "typescript-core",
    "typescript-browser",
    "typescript-ai",
];

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
