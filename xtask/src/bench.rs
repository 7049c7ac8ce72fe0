//! `cargo xtask bench`: builds the binary, installs nginx with nchan for comparison, and runs the benchmarks.

use crate::stage::{Plan, StageLane};
use crate::{packages, setup};

/// The name of the benchmarks of the Python and TypeScript packages.
const CLIENTS: &str = "clients";

/// Adds the stages that run one benchmark or all of them. If `is_quick`, they only check that the benchmarks run.
pub(crate) fn add_stages<'a>(plan: &mut Plan<'a>, name: Option<&'a str>, is_quick: bool) {
    plan.cargo("build", &[], &["build", "--release", "-p", "sayso-cli"]);
    if name.is_none_or(|name| name == "fanout") {
        plan.add("nginx with nchan", StageLane::Compile, &[], |log| {
            if let Err(reason) = setup::install_nchan(log) {
                log.print(&reason);
            }
            Ok(())
        });
    }
    if name.is_none_or(|name| name == CLIENTS) {
        plan.add(CLIENTS, StageLane::Compile, &["build"], move |log| packages::bench_clients(log, is_quick));
    }
    if name == Some(CLIENTS) {
        return;
    }
    let mut arguments = vec!["bench", "-p", "sayso-benches"];
    match name {
        Some(name) => arguments.extend(["--bench", name]),
        None => arguments.push("--benches"),
    }
    if is_quick {
        arguments.extend(["--", "--quick"]);
    }
    plan.add("bench", StageLane::Compile, &["build"], move |log| log.cargo(&arguments));
}
