//! `cargo xtask bench`: the binary, the peers, then the benchmarks.

use crate::setup;
use crate::stage::{Lane, Plan};

/// Runs one benchmark or all; the quick form only shows that they run.
pub(crate) fn plan<'a>(plan: &mut Plan<'a>, name: Option<&'a str>, quick: bool) {
    plan.cargo("build", &[], &["build", "--release", "-p", "sayso-cli"]);
    if name.is_none_or(|name| name == "fanout") {
        plan.add("nginx with nchan", Lane::Compile, &[], |log| {
            if let Err(why) = setup::nchan(log) {
                log.say(&why);
            }
            Ok(())
        });
    }
    let mut arguments = vec!["bench", "-p", "sayso-benches"];
    match name {
        Some(name) => arguments.extend(["--bench", name]),
        None => arguments.push("--benches"),
    }
    if quick {
        arguments.extend(["--", "--quick"]);
    }
    plan.add("bench", Lane::Compile, &["build"], move |log| log.cargo(&arguments));
}
