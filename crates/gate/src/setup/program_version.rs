//! Finds out which version of another program is installed.

use std::ffi::OsStr;
use std::fmt;
use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How long a program may take to print its version.
const MAX_DURATION: Duration = Duration::from_secs(20);
/// Maximum number of bytes that are read from a program's output.
const MAX_OUTPUT_BYTES: u64 = 4096;

/// A version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Its three parts.
    pub parts: [u32; 3],
}

/// Whether a program is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstalledVersion {
    /// There is no such program on the path.
    NotFound,
    /// The program exists, but its version is not known.
    Unknown,
    /// This version is installed.
    Known(Version),
}

impl Version {
    /// Creates a version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { parts: [major, minor, patch] }
    }

    /// Returns the first version number in a text, such as the one in `codex-cli 0.166.0`.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
            let mut parts = word.split('.').map(str::parse);
            let (major, minor, patch) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
            Some(Self::new(major, minor, patch))
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.parts;
        write!(formatter, "{major}.{minor}.{patch}")
    }
}

/// Runs `PROGRAM --version`.
pub async fn installed_version(program: impl AsRef<OsStr>) -> InstalledVersion {
    let command = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = match command {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return InstalledVersion::NotFound,
        Err(_) => return InstalledVersion::Unknown,
    };
    let output = child.stdout.take();
    let read = async {
        let mut text = Vec::new();
        output?.take(MAX_OUTPUT_BYTES).read_to_end(&mut text).await.ok()?;
        Version::find(&String::from_utf8_lossy(&text))
    };
    match tokio::time::timeout(MAX_DURATION, read).await {
        Ok(Some(version)) => InstalledVersion::Known(version),
        _ => InstalledVersion::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_programs_print() {
        for (text, expected) in [
            ("2.1.325 (Claude Code)\n", Some(Version::new(2, 1, 325))),
            ("codex-cli 0.166.0\n", Some(Version::new(0, 166, 0))),
            ("0.61.0\n", Some(Version::new(0, 61, 0))),
            ("v1.18.33", Some(Version::new(1, 18, 33))),
            ("1.109.3-insider\nabc\nx64", Some(Version::new(1, 109, 3))),
            ("unknown", None),
            ("1.2", None),
            ("99999999999.1.1", None),
        ] {
            assert_eq!(Version::find(text), expected, "{text}");
        }
        assert!(
            Version::new(2, 1, 295) < Version::new(2, 1, 325)
                && Version::new(2, 1, 9) < Version::new(2, 1, 10)
        );
    }
}
