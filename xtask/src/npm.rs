//! npm packages for the tests. `xtask/packages/package-lock.json` pins the version and hash of each.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{StageLog, root};

const PACKAGE_FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages if the lock file has changed. Returns the folder that contains `node_modules`.
pub(crate) fn install(log: &StageLog) -> Result<PathBuf, String> {
    let folder = root().join("target/tools/npm");
    install_pinned(log, &root().join("xtask/packages"), &folder)?;
    Ok(folder)
}

/// Installs the packages that the lock file in the folder `pins` pins by version and hash. Returns `true` if it installed them,
/// and `false` if they were already installed.
pub(crate) fn install_pinned(log: &StageLog, pins: &Path, folder: &Path) -> Result<bool, String> {
    let install_error = |error: std::io::Error| format!("cannot install the npm packages: {error}");
    let marker = folder.join("installed");
    let lock_file = std::fs::read_to_string(pins.join("package-lock.json")).map_err(install_error)?;
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == lock_file) {
        return Ok(false);
    }
    std::fs::create_dir_all(folder).map_err(install_error)?;
    for file in PACKAGE_FILES {
        std::fs::copy(pins.join(file), folder.join(file)).map_err(install_error)?;
    }
    // Install scripts are disabled, because they could download something that is not pinned.
    let arguments = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    log.run(Command::new("npm").args(arguments).current_dir(folder))?;
    std::fs::write(marker, lock_file).map_err(install_error)?;
    Ok(true)
}

/// Bundles a module and its imports from the installed packages into one script.
pub(crate) fn bundle(log: &StageLog, folder: &Path, module: &Path, script: &Path) -> Result<(), String> {
    let source = std::fs::File::open(module).map_err(|error| format!("{}: {error}", module.display()))?;
    let arguments =
        ["--bundle", "--format=iife", "--log-level=warning", "--define:process.env.NODE_ENV=\"production\""];
    log.run(
        Command::new(folder.join("node_modules/.bin/esbuild"))
            .args(arguments)
            .arg(format!("--outfile={}", script.display()))
            .current_dir(folder)
            .stdin(source),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test reports a failure by panicking")]

    use super::*;

    #[test]
    fn every_package_is_pinned_by_version_and_hash_without_a_registry_address() {
        let harnesses = std::fs::read_dir(root().join("xtask/gates/harnesses")).expect("the harnesses");
        let mut folders = vec![root().join("xtask/packages"), root().join("xtask/gates/mcp")];
        folders.extend(harnesses.map(|entry| entry.expect("an entry").path()));
        assert!(folders.len() > 6);
        for folder in folders {
            let read = |file| std::fs::read_to_string(folder.join(file)).expect(file);
            let lock = read("package-lock.json");
            let count = |needle: &str| lock.matches(needle).count();
            assert!(count("\"node_modules/") > 0);
            assert_eq!(count("\"node_modules/"), count("\"integrity\": \"sha512-"), "{}", folder.display());
            for text in [&lock, &read("package.json")] {
                assert!(!text.contains("://"), "{} contains a registry address", folder.display());
            }
        }
        let pins = std::fs::read_to_string(root().join("xtask/packages/requirements.txt")).expect("the pins");
        let packages = pins.lines().filter(|line| !line.starts_with(' '));
        for (package, next) in packages.zip(pins.lines().skip(1)) {
            assert!(package.contains("==") && package.ends_with('\\'), "{package} before {next}");
        }
        assert!(!pins.contains("://"), "contains a registry address");
    }
}
