//! The test of a cluster with a database that Patroni manages.

use crate::browser::unavailable;
use crate::stage::{StageLog, StageOutcome, StageResult};
use crate::{debian, test_programs};

/// Installs Patroni and etcd, and runs the test. It starts processes of its own and needs no system service.
pub(crate) fn run(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::DATABASE_CLUSTER) {
        return unavailable(reason);
    }
    let mut tests = test_programs::test_command(log, "all")?;
    test_programs::run_selected(log, tests.args(["--ignored", "--nocapture", "serve::cluster::patroni::"]))?;
    Ok(StageOutcome::Passed)
}
