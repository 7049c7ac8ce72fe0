//! Memory and CPU time of a process, from `/proc`.

use std::fs;
use std::time::Duration;

/// Reads statistics of the process with this id.
#[derive(Clone, Copy, Debug)]
pub struct ProcessStats(pub u32);

impl ProcessStats {
    /// Returns the resident memory in KiB.
    pub fn resident_kib(self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    }

    /// Returns the CPU time of all threads.
    pub fn cpu_time(self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0)).into_iter().flatten().flatten();
        let nanos = threads.filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// Returns the first child process, for a process that has only one.
    pub fn only_child(self) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.0)).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Self)
    }
}
