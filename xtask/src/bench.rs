//! `cargo xtask bench`: the binary, the peers, then the benchmarks.

use crate::setup;
use crate::stage::Stages;

/// Runs one benchmark or all; the quick form only shows that they run.
pub(crate) fn run(stages: &mut Stages, name: Option<&str>, quick: bool) {
    stages.cargo("build", &["build", "--release", "-p", "sayso-cli"]);
    if name.is_none_or(|name| name == "fanout") {
        stages.run("nginx with nchan", || {
            if let Err(why) = setup::nchan() {
                println!("not to be had here: {why}");
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
    stages.cargo("bench", &arguments);
}
