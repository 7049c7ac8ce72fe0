//! Packages of npm that tests need, by name and version, in the target folder like all tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::{debian, works};
use crate::stage::{command, root};

/// What is installed: the accessibility checker, AAEP's own subscriber with what it stands on, and the bundler that makes one
/// script of them.
const PACKAGES: [&str; 5] = [
    "axe-core@4.14.0",
    "@aaep/web-subscriber-react@1.0.1",
    "react@19.3.1",
    "react-dom@19.3.1",
    "esbuild@0.28.2",
];

/// Installs what is not there yet, and returns the folder with `node_modules` in it.
pub(crate) fn install() -> Result<PathBuf, String> {
    let folder = root().join("target/tools/npm");
    let (list, wanted) = (folder.join("installed"), PACKAGES.join("\n"));
    if std::fs::read_to_string(&list).is_ok_and(|there| there == wanted) {
        return Ok(folder);
    }
    if !works(Command::new("npm").arg("--version")) {
        debian(&["--no-install-recommends", "npm"]).map_err(|why| format!("npm ({why})"))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    // Nobody's scripts are run: what is installed is only read by a browser, and the bundler needs none.
    let how = ["install", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--ignore-scripts"];
    command(Command::new("npm").args(how).args(PACKAGES).current_dir(&folder))?;
    std::fs::write(list, wanted).map_err(|error| error.to_string())?;
    Ok(folder)
}

/// Makes one script of a module and all that it imports from the installed packages.
pub(crate) fn bundle(folder: &Path, module: &Path, script: &Path) -> Result<(), String> {
    let text = std::fs::File::open(module).map_err(|error| format!("{}: {error}", module.display()))?;
    let how =
        ["--bundle", "--format=iife", "--log-level=warning", "--define:process.env.NODE_ENV=\"production\""];
    command(
        Command::new(folder.join("node_modules/.bin/esbuild"))
            .args(how)
            .arg(format!("--outfile={}", script.display()))
            .current_dir(folder)
            .stdin(text),
    )
}
