//! Packages of npm that tests need, each with its version and hash in `xtask/packages/package-lock.json`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Log, root};

const PINS: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs what is not there yet, and returns the folder with `node_modules` in it.
pub(crate) fn install(log: &Log) -> Result<PathBuf, String> {
    let (pins, folder) = (root().join("xtask/packages"), root().join("target/tools/npm"));
    let failed = |error: std::io::Error| format!("npm packages: {error}");
    let installed = folder.join("installed");
    let wanted = std::fs::read_to_string(pins.join("package-lock.json")).map_err(failed)?;
    if std::fs::read_to_string(&installed).is_ok_and(|there| there == wanted) {
        return Ok(folder);
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for file in PINS {
        std::fs::copy(pins.join(file), folder.join(file)).map_err(failed)?;
    }
    // No script of a package is run: they are only read by a browser, and the bundler needs none.
    let how = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    log.run(Command::new("npm").args(how).current_dir(&folder))?;
    std::fs::write(installed, wanted).map_err(failed)?;
    Ok(folder)
}

/// Makes one script of a module and all that it imports from the installed packages.
pub(crate) fn bundle(log: &Log, folder: &Path, module: &Path, script: &Path) -> Result<(), String> {
    let text = std::fs::File::open(module).map_err(|error| format!("{}: {error}", module.display()))?;
    let how =
        ["--bundle", "--format=iife", "--log-level=warning", "--define:process.env.NODE_ENV=\"production\""];
    log.run(
        Command::new(folder.join("node_modules/.bin/esbuild"))
            .args(how)
            .arg(format!("--outfile={}", script.display()))
            .current_dir(folder)
            .stdin(text),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test fails where it cannot go on")]

    use super::*;

    #[test]
    fn every_package_has_an_exact_version_and_a_hash_and_no_address() {
        let read = |file| std::fs::read_to_string(root().join("xtask/packages").join(file)).expect(file);
        let lock = read("package-lock.json");
        let count = |needle: &str| lock.matches(needle).count();
        assert!(count("\"node_modules/") > 5);
        assert_eq!(count("\"node_modules/"), count("\"integrity\": \"sha512-"));
        let pins = read("requirements.txt");
        let packages = pins.lines().filter(|line| !line.starts_with(' '));
        for (package, next) in packages.zip(pins.lines().skip(1)) {
            assert!(package.contains("==") && package.ends_with('\\'), "{package} before {next}");
        }
        for text in [&lock, &pins, &read("package.json")] {
            assert!(!text.contains("://"), "an address of a registry");
        }
    }
}
