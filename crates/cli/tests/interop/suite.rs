//! `aaep-conformance`, the protocol's own suite.

use std::path::Path;

use serde_json::Value;

use crate::{compat, program};

/// The one check that nobody can pass: it counts the two replies that the suite sent itself.
const ALWAYS: &str = "L2-CONF-002";

/// Runs the suite, and returns its report.
fn judged(endpoint: &str, level: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let report = |name: &str| folder.path().join(name);
    let output = program("aaep-conformance")
        .args(["producer", "--endpoint", endpoint, "--level", level, "--report-json"])
        .arg(report("report.json"))
        .arg("--report-html")
        .arg(report("report.html"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|_| panic!("{said}"));
    let report: Value = serde_json::from_str(&read(&report("report.json"))).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(report["verdict"] != "PASS")), "{said}");
    report
}

fn check(endpoint: &str, level: &str) {
    let report = judged(endpoint, level);
    println!(
        "{endpoint} level {level}: {} {} of {}",
        report["verdict"], report["tests_passed"], report["tests_run"]
    );
    let failures = report["failures"].as_array().unwrap();
    assert_eq!(report["verdict"], "PASS", "{failures:#?}");
    let at_most = usize::from(level != "1");
    assert!(failures.len() <= at_most, "{failures:#?}");
    for failure in failures {
        assert_eq!(failure["severity"], "warning", "{failure:#}");
        assert_eq!(failure["test_id"], ALWAYS, "{failure:#}");
    }
    // Messages of checks that had nothing to look at are no success.
    let vacuous = |one: &&Value| one["message"].as_str().is_some_and(|text| text.starts_with("No "));
    for result in report["test_results"].as_array().unwrap().iter().filter(vacuous) {
        println!("  nothing to look at: {} {}", result["test_id"], result["message"]);
    }
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn it_passes_at_every_level_over_http() {
    for level in ["1", "2", "3"] {
        let hub = compat();
        check(&format!("http://{}", hub.address), level);
    }
}

#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn it_passes_at_every_level_over_websocket() {
    for level in ["1", "2", "3"] {
        let hub = compat();
        check(&format!("ws://{}/aaep/v1/ws", hub.address), level);
    }
}

/// What the verdict is worth: a program that deletes first and asks afterwards gets it, too.
#[test]
#[ignore = "needs what `cargo xtask interop` installs"]
fn it_passes_who_asks_after_acting_as_well() {
    use std::io::BufRead;
    let stub = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/asks_too_late.py");
    #[allow(clippy::zombie_processes, reason = "it is killed and waited for below")]
    let mut child = program("python").arg(stub).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut endpoint = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut endpoint).unwrap();
    let report = judged(endpoint.trim(), "2");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(report["verdict"], "PASS", "{report:#}");
}
