//! `cargo xtask gates`: the gates with the real programs that they are made for.

mod mcp;

use crate::stage::{Plan, StageLane};

/// Adds the stages of all gates, or of one. Returns whether there is such a gate.
pub(crate) fn add_stages(plan: &mut Plan<'_>, only: Option<&str>) -> bool {
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    if is_wanted("mcp") {
        plan.add("mcp", StageLane::Waiting, &[], mcp::run);
    }
    only.is_none_or(|only| only == "mcp")
}
