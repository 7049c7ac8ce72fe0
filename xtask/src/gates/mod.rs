//! `cargo xtask gates`: tests each gate with the real programs that it is made for.

mod acp;
mod harness;
mod mcp;
mod otlp;

use crate::stage::{Plan, StageLane};

/// The gates that `cargo xtask test` runs. The other programs take too much space to install in every run.
pub(crate) const REPRESENTATIVE: [&str; 5] = ["claude", "mcp", "acp", "adapter", "otlp"];

/// Adds the stages of all gates, or of one. Returns whether there is such a gate.
pub(crate) fn add_stages<'a>(
    plan: &mut Plan<'a>,
    only: Option<&str>,
    lane: StageLane,
    after: &'a [&'a str],
) -> bool {
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut is_known = false;
    for harness in harness::HARNESSES.iter().filter(|harness| is_wanted(harness.name)) {
        plan.add(harness.name, lane, after, move |log| harness::run(log, harness));
        is_known = true;
    }
    if is_wanted("mcp") {
        plan.add("mcp", lane, after, mcp::run);
        is_known = true;
    }
    if is_wanted("rmcp") {
        plan.add("rmcp", lane, after, mcp::run_rmcp);
        is_known = true;
    }
    if is_wanted("acp") {
        plan.add("acp", lane, after, acp::run);
        is_known = true;
    }
    if is_wanted("otlp") {
        plan.add("otlp", lane, after, otlp::run);
        is_known = true;
    }
    is_known
}
