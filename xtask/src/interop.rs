//! Tests of published AAEP clients, pinned by version and hash, against `sayso serve --compat`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::browser::unavailable;
use crate::stage::{self, StageLog, StageOutcome, StageResult, root, succeeds};
use crate::{debian, npm, setup, test_programs};

/// Runs the tests with the published clients that need no browser.
pub(crate) fn run(log: &StageLog) -> Result<(), String> {
    let folder = install(log)?;
    write_schemas(&folder)
        .map_err(|error| format!("cannot write the schemas for the conformance suite: {error}"))?;
    let mut tests = test_programs::test_command(log, "interop")?;
    tests.args(["--ignored", "--nocapture", "--skip", WEB_SUBSCRIBER]).env("INTEROP_CLIENTS", &folder);
    stage::retry(log, "interop", 2, || log.run(&mut tests))
}

const WEB_SUBSCRIBER: &str = "web_subscriber";

/// Runs the test with AAEP's own React subscriber in a browser. The subscriber and React are bundled into one script. The
/// subscriber's package.json names entry files that do not exist, so our module imports a file by its path.
pub(crate) fn web_subscriber(log: &StageLog) -> StageResult {
    if let Err(reason) = debian::require(log, &debian::BROWSER) {
        return unavailable(reason);
    }
    let packages = npm::install(log)?;
    let script = packages.join("web_subscriber.js");
    let module = root().join("crates/cli/tests/interop/web_subscriber.js");
    npm::bundle(log, &packages, &module, &script)?;
    let mut tests = test_programs::test_command(log, "interop")?;
    tests.args(["--ignored", "--nocapture", WEB_SUBSCRIBER]).env("INTEROP_SCRIPT", script);
    stage::retry(log, "web subscriber", 2, || log.run(&mut tests))?;
    Ok(StageOutcome::Passed)
}

/// Installs the clients into a folder below `target/tools` and returns that folder.
fn install(log: &StageLog) -> Result<PathBuf, String> {
    let folder = root().join("target/tools/interop");
    let pip = folder.join("bin/pip");
    if !succeeds(Command::new(&pip).arg("--version")) {
        setup::install_programs(log)?;
        log.run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    // Only wheels are installed, because building a package would download tools that are not pinned.
    let arguments = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--only-binary=:all:",
        "-r",
    ];
    log.run(Command::new(&pip).args(arguments).arg(root().join("xtask/packages/requirements.txt")))?;
    Ok(folder)
}

/// Writes our schemas next to the Python packages, where the conformance suite looks for them. The suite's own package
/// contains no schemas. The suite also needs a schema for the envelope; the one written here accepts any of the twelve events.
fn write_schemas(folder: &Path) -> std::io::Result<()> {
    let mut texts = Vec::new();
    for python_folder in std::fs::read_dir(folder.join("lib"))? {
        let schema_folder = python_folder?.path().join("schemas");
        std::fs::create_dir_all(schema_folder.join("core"))?;
        for schema in aaep::schema::all().iter().filter(|schema| schema.name.starts_with("agent.")) {
            std::fs::write(schema_folder.join(format!("core/{}.schema.json", schema.name)), &schema.text)?;
            texts.push(schema.text.clone());
        }
        let event_schemas = texts.join(",");
        let envelope = format!(
            r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:sayso:schema:aaep:envelope","anyOf":[{event_schemas}]}}"#
        );
        std::fs::write(schema_folder.join("envelope.schema.json"), envelope)?;
        texts.clear();
    }
    Ok(())
}
