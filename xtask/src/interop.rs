//! Published clients of AAEP, pinned by version and hash and run against `sayso serve --compat`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::browser::unavailable;
use crate::stage::{Log, Outcome, StageResult, root, works};
use crate::{debian, npm, programs, setup};

/// Runs the tests with the clients that are programs.
pub(crate) fn run(log: &Log) -> Result<(), String> {
    let folder = install(log)?;
    give_schemas(&folder).map_err(|error| format!("schemas for the suite: {error}"))?;
    let mut tests = programs::test(log, "interop")?;
    tests.args(["--ignored", "--nocapture", "--skip", WEB_SUBSCRIBER]).env("INTEROP_CLIENTS", &folder);
    log.run(&mut tests)
}

const WEB_SUBSCRIBER: &str = "web_subscriber";

/// Runs the test with AAEP's own subscriber for React, with React, as one script in a browser. Its package names files as its
/// entries that are not in it, so our module takes its file by path.
pub(crate) fn web_subscriber(log: &Log) -> StageResult {
    if let Err(why) = debian::require(log, &debian::BROWSER) {
        return unavailable(why);
    }
    let packages = npm::install(log)?;
    let script = packages.join("web_subscriber.js");
    let module = root().join("crates/cli/tests/interop/web_subscriber.js");
    npm::bundle(log, &packages, &module, &script)?;
    let mut tests = programs::test(log, "interop")?;
    tests.args(["--ignored", "--nocapture", WEB_SUBSCRIBER]).env("INTEROP_SCRIPT", script);
    log.run(&mut tests)?;
    Ok(Outcome::Passed)
}

/// They live in the target folder, like all tools.
fn install(log: &Log) -> Result<PathBuf, String> {
    let folder = root().join("target/tools/interop");
    let pip = folder.join("bin/pip");
    if !works(Command::new(&pip).arg("--version")) {
        setup::programs(log)?;
        log.run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    // Only wheels: building a package would fetch tools that are not pinned.
    let how = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--only-binary=:all:",
        "-r",
    ];
    log.run(Command::new(&pip).args(how).arg(root().join("xtask/packages/requirements.txt")))?;
    Ok(folder)
}

/// The suite's package has no schemas in it, and looks for them beside Python's packages. It is given ours. It also wants one of the
/// envelope alone; there is none, but every envelope is that of one of the twelve.
fn give_schemas(folder: &Path) -> std::io::Result<()> {
    let mut texts = Vec::new();
    for python in std::fs::read_dir(folder.join("lib"))? {
        let place = python?.path().join("schemas");
        std::fs::create_dir_all(place.join("core"))?;
        for schema in aaep::schema::all().iter().filter(|schema| schema.name.starts_with("agent.")) {
            std::fs::write(place.join(format!("core/{}.schema.json", schema.name)), &schema.text)?;
            texts.push(schema.text.clone());
        }
        let any = texts.join(",");
        let envelope = format!(
            r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:sayso:schema:aaep:envelope","anyOf":[{any}]}}"#
        );
        std::fs::write(place.join("envelope.schema.json"), envelope)?;
        texts.clear();
    }
    Ok(())
}
