//! The modules of the listening page that need no browser, tested in node.

use std::process::Command;

use crate::setup::{debian, works};
use crate::stage::{command, root};

pub(crate) fn run() -> Result<(), String> {
    if !works(Command::new("node").arg("--version")) {
        debian(&["--no-install-recommends", "nodejs"])?;
    }
    let tests = root().join("crates/listen/page/tests");
    command(Command::new("node").args(["--test", "--test-reporter=dot"]).arg(tests))
}
