//! The trace and the SVG diagram, compared with the files in `snapshots`. `BLESS_SNAPSHOTS=1` rewrites these files. Review
//! the changes before you commit them.

use std::path::Path;

use crate::asp::xml_parser;
use crate::replay::capture_process::repository_recording;
use testing::cli::{CommandOutput, run_sayso};

fn assert_matches_snapshot(name: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/snapshots").join(name);
    if std::env::var_os("BLESS_SNAPSHOTS").is_some() {
        return std::fs::write(&file, actual).unwrap();
    }
    let expected =
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(actual == expected, "{name} has changed; it is now:\n{actual}");
}

fn draw(input: &Path, visualize: bool) -> (CommandOutput, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let mut arguments = vec!["replay", input.to_str().unwrap(), "--svg", file.to_str().unwrap()];
    if visualize {
        arguments.push("--visualize");
    }
    let output = run_sayso(&arguments, "");
    (output, std::fs::read_to_string(file).unwrap_or_default())
}

#[test]
fn recordings_are_traced_and_drawn() {
    for (name, code) in [
        ("section-4-6", 0),
        ("linked-sessions", 0),
        ("two-producers", 0),
        ("a-8-5-action-after-rejection", 1),
        ("a-8-6-output-after-completion", 1),
    ] {
        let (output, svg) = draw(&repository_recording(name), true);
        assert_eq!(output.exit_code, code, "{name}: {}", output.stdout);
        assert_matches_snapshot(&format!("{name}.trace"), &output.stdout);
        assert_matches_snapshot(&format!("{name}.svg"), &svg);
        let (svg_only, second_svg) = draw(&repository_recording(name), false);
        assert_eq!((svg_only.exit_code, svg_only.stdout.as_str(), &second_svg), (code, "", &svg));
    }
}

#[test]
fn the_trace_has_the_same_findings_as_validate() {
    let folder = repository_recording("x").parent().unwrap().to_owned();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let path = file.to_str().unwrap();
        let (checked, traced) =
            (run_sayso(&["validate", path], ""), run_sayso(&["replay", "--visualize", path], ""));
        assert_eq!((traced.exit_code, traced.summary()), (checked.exit_code, checked.summary()), "{path}");
        for finding in checked.findings() {
            let (line_number, rest) = finding.strip_prefix(path).unwrap()[1..].split_once(": ").unwrap();
            let (severity, rest) = rest.split_once(' ').unwrap();
            let rule = rest.split(' ').next().unwrap();
            let severity = if severity == "error" { "rule broken" } else { severity };
            let entry = format!("{severity}: {rule} ");
            let is_found = traced
                .stdout
                .lines()
                .any(|line| line.contains(&entry) && line.ends_with(&format!("(line {line_number})")));
            assert!(is_found, "no {entry} at {line_number} in {}", traced.stdout);
        }
    }
}

#[test]
fn a_diagram_is_accessible_and_contains_no_script() {
    for name in ["section-4-6", "a-8-5-action-after-rejection"] {
        let (_, svg) = draw(&repository_recording(name), false);
        let elements = xml_parser::read(&svg).unwrap();
        let elements_named =
            |name: &str| elements.iter().filter(|element| element.name == name).collect::<Vec<_>>();
        assert!(
            elements_named("title").iter().any(|title| title.text.starts_with("A recording of 1 session."))
        );
        let (traced, _) = draw(&repository_recording(name), true);
        let first_line = traced.stdout.lines().next().unwrap();
        assert!(elements_named("desc")[0].text.contains(first_line), "{first_line}");
        assert!(
            elements_named("script").is_empty()
                && elements_named("image").is_empty()
                && elements_named("path").is_empty()
        );
        assert!(elements_named("text").iter().any(|text| text.text == "Questions and answers"));
        let root = elements_named("svg")[0];
        assert!(root.attributes.contains(&("role".to_owned(), "img".to_owned())));
    }
}

#[test]
fn the_diagram_of_a_long_recording_is_truncated_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.jsonl");
    let event = |number: usize| {
        let (session, kind, members) = match number % 5 {
            0 => (number / 5, "session.started", r#""summary_normal":"On.""#),
            1..=3 => (number / 5, "progress.updated", r#""progress":{"percent":50}"#),
            _ => (number / 5, "session.completed", r#""summary_normal":"Off.""#),
        };
        format!(
            "{{\"@context\":\"https://aaep-protocol.org/context/v1\",\"aaep_version\":\"1.0.0\",\"type\":\"aaep:agent.{kind}\",\"event_id\":\"evt_{number:032}\",\"session_id\":\"sess_{session:032}\",\"timestamp\":\"2026-05-24T14:22:11.342Z\",\"producer\":{{\"agent_id\":\"bank\"}},\"urgency\":\"normal\",\"localization_hints\":{{\"primary_language\":\"en\"}},{members}}}\n"
        )
    };
    let text: String = (0..5000).map(event).collect();
    std::fs::write(&file, text).unwrap();
    let (output, svg) = draw(&file, true);
    assert_eq!(output.exit_code, 0, "{}", output.summary());
    assert!(xml_parser::read(&svg).is_ok());
    // Three progress events are one row. The 2000 rows are 666 sessions with 3 rows each, and 2 more rows.
    assert!(svg.contains("(3 events)"), "progress events are merged");
    assert!(svg.contains("more steps, with 0 broken rules. sayso replay --visualize shows all steps."));
    assert_eq!(svg.matches("<g><title>").count(), 2000);
}
