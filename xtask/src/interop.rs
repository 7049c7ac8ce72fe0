//! Published clients of AAEP, installed by name and version and run against `sayso serve --compat`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::{debian, works};
use crate::stage::{command, root};
use crate::{browser, npm};

/// What is installed. Their own dependencies come as they are.
const PACKAGES: [&str; 3] =
    ["aaep-conformance==1.0.0", "aaep-cli-debug==1.0.0", "aaep-minimal-producer==1.0.0"];

/// Installs them, and runs the tests that need them.
pub(crate) fn run() -> Result<(), String> {
    let folder = install()?;
    give_schemas(&folder).map_err(|error| format!("schemas for the suite: {error}"))?;
    let test = ["test", "-p", "sayso-cli", "--locked", "--test", "interop", "--", "--ignored", "--nocapture"];
    let mut tests = Command::new(env!("CARGO"));
    tests.args(test).current_dir(root()).env("INTEROP_CLIENTS", &folder);
    if browser::there("AAEP's own web subscriber")? {
        tests.env("INTEROP_SCRIPT", web_subscriber()?);
    } else {
        tests.args(["--skip", "web_subscriber"]);
    }
    command(&mut tests)
}

/// AAEP's own subscriber for React, with React, as one script. Its package names files as its entries that are not in it, so
/// the module of ours takes its file by path.
fn web_subscriber() -> Result<PathBuf, String> {
    let packages = npm::install()?;
    let script = packages.join("web_subscriber.js");
    let module = root().join("crates/cli/tests/interop/web_subscriber.js");
    npm::bundle(&packages, &module, &script)?;
    Ok(script)
}

/// They live in the target folder, like all tools.
fn install() -> Result<PathBuf, String> {
    let folder = root().join("target/tools/interop");
    let pip = folder.join("bin/pip");
    if !works(Command::new(&pip).arg("--version")) {
        let venv = || command(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        if venv().is_err() {
            debian(&["python3-venv"])?;
            venv()?;
        }
    }
    command(Command::new(&pip).args(["install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES))?;
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
