//! The modules of the listening page that need no browser, tested in node.

use std::process::Command;

use crate::setup;
use crate::stage::{Log, root};

pub(crate) fn run(log: &Log) -> Result<(), String> {
    setup::programs(log)?;
    let tests = root().join("crates/listen/page/tests");
    log.run(Command::new("node").args(["--test", "--test-reporter=dot"]).arg(tests))
}
