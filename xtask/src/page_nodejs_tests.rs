//! Node.js tests for the modules of the listening page that need no browser.

use std::process::Command;

use crate::setup;
use crate::stage::{StageLog, root};

pub(crate) fn run(log: &StageLog) -> Result<(), String> {
    setup::install_programs(log)?;
    let tests = root().join("crates/listen/page/tests");
    log.run(Command::new("node").args(["--test", "--test-reporter=dot"]).arg(tests))
}
