//! What the system tells of a process.

use std::fs;
use std::time::Duration;

/// A running process.
#[derive(Clone, Copy, Debug)]
pub struct Process(pub u32);

impl Process {
    /// Resident memory in KiB.
    pub fn resident(self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    }

    /// Time on a processor, of all its threads.
    pub fn busy(self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0)).into_iter().flatten().flatten();
        let nanos = threads.filter_map(|thread| {
            let told = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            told.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// The only process that this one started.
    pub fn child(self) -> Option<Self> {
        let told = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.0)).ok()?;
        told.split_whitespace().next()?.parse().ok().map(Self)
    }
}
