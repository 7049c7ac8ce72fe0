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
        ("outcomes", 0),
        ("rejected", 0),
        ("defaulted", 0),
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
        assert!(elements_named("text").iter().any(|text| text.text == "questions"));
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
    assert!(svg.contains("(line 3)"), "the description contains the merged events");
    assert!(svg.contains("more steps, with 0 broken rules. sayso replay --visualize shows all steps."));
    assert_eq!(svg.matches("<g><title>").count(), 2000);
}

/// Returns the elements of the SVG of a recording in the repository.
fn elements_of(name: &str) -> Vec<xml_parser::Element> {
    xml_parser::read(&draw(&repository_recording(name), false).1).unwrap()
}

fn attribute<'e>(element: &'e xml_parser::Element, name: &str) -> &'e str {
    let found = element.attributes.iter().find(|(key, _)| key == name);
    found.map_or("", |(_, value)| value.as_str())
}

fn number(element: &xml_parser::Element, name: &str) -> f64 {
    attribute(element, name).parse().unwrap()
}

/// Returns the bar or band whose tooltip starts with this text.
fn bar<'e>(elements: &'e [xml_parser::Element], tooltip: &str) -> &'e xml_parser::Element {
    // An element is listed after the elements in it, so a bar follows its tooltip.
    let at = elements
        .iter()
        .position(|element| element.name == "title" && element.text.starts_with(tooltip))
        .unwrap_or_else(|| panic!("no {tooltip:?}"));
    elements[at..].iter().find(|element| element.name == "rect").unwrap()
}

#[test]
fn results_read_and_look_different_even_without_colour() {
    let recording = repository_recording("outcomes");
    let traced = run_sayso(&["replay", recording.to_str().unwrap(), "--visualize"], "").stdout;
    for text in [
        "find_order (call_1) succeeded after 1.3 s.",
        "check_policy (call_2) failed after 900 ms. Error: “The policy service answered with 503.”",
        "exchange_rate (call_3) timed out after 5 s.",
        "Question 1 was rejected.",
        "Question 2 was not answered (timeout).",
        "Hand-off 1: taken over. “I am calling the customer.”",
        "The session ends: error (requires_user, POLICY_UNAVAILABLE).",
    ] {
        assert!(traced.contains(text), "{text}: {traced}");
    }
    let elements = elements_of("outcomes");
    let classes =
        ["find_order: succeeded", "check_policy: failed", "exchange_rate: timed out", "question 1: rejected"]
            .map(|tooltip| attribute(bar(&elements, tooltip), "class"));
    assert_eq!(classes, ["bar ok", "bar fail", "bar late", "bar no"]);
    // Each of these classes has its own width or dashes of the outline, besides its colour.
    let svg = draw(&recording, false).1;
    let outlines: std::collections::BTreeSet<_> =
        [".bar.ok", ".bar.fail", ".bar.late", ".bar.no", ".bar.off"]
            .map(|class| {
                let rule = svg.split(class).nth(1).unwrap().split('}').next().unwrap();
                rule.split(';')
                    .filter(|part| part.contains("width") || part.contains("dash"))
                    .collect::<String>()
            })
            .into();
    assert_eq!(outlines.len(), 5, "{outlines:?}");
}

#[test]
fn time_is_to_scale_and_long_waits_are_cut_out() {
    let elements = elements_of("outcomes");
    let width = |tooltip: &str| number(bar(&elements, tooltip), "width");
    let pixels_per_ms = [("find_order", 1300.0), ("check_policy", 900.0), ("exchange_rate", 5000.0)]
        .map(|(tool, ms)| width(tool) / ms);
    for scale in pixels_per_ms {
        assert!((scale / pixels_per_ms[2] - 1.0).abs() < 0.03, "{pixels_per_ms:?}");
    }
    let cuts: Vec<_> = elements.iter().filter(|element| element.text.ends_with("not to scale")).collect();
    let texts: Vec<_> = cuts.iter().map(|cut| cut.text.as_str()).collect();
    assert_eq!(
        texts,
        ["2 min 30 s", "36 s", "1 min", "18 s"].map(|wait| format!("{wait} without an event, not to scale"))
    );
    let recording = repository_recording("outcomes");
    let traced = run_sayso(&["replay", recording.to_str().unwrap(), "--visualize"], "").stdout;
    assert!(traced.contains("answer: After 36 s: Question 1 was answered: reject."), "{traced}");
}

#[test]
fn a_state_of_one_agent_does_not_end_the_state_of_another() {
    let elements = elements_of("two-producers");
    // From 0.4 to 2 seconds. In between, the other agent changes its state twice.
    let thinking = bar(&elements, "thinking for 1.6 s");
    let calling = bar(&elements, "calling_tool for 2 s");
    assert!(number(thinking, "y") < number(calling, "y"), "each agent has its own lane");
    assert!(
        number(calling, "x") < number(thinking, "x") + number(thinking, "width"),
        "the states overlap in time"
    );
    for agent in ["Trip Planner", "Fare Researcher"] {
        assert!(elements.iter().any(|element| element.name == "text" && element.text == agent), "{agent}");
    }
}

#[test]
fn a_linked_session_is_drawn_and_traced_as_a_part_of_its_parent() {
    let recording = repository_recording("linked-sessions");
    let (output, svg) = draw(&recording, true);
    assert!(output.stdout.contains("It is a part of session 1. Agent: Fare Researcher (fare-researcher)."));
    let elements = xml_parser::read(&svg).unwrap();
    let link = elements.iter().find(|element| attribute(element, "class") == "link").unwrap();
    let idle = bar(&elements, "idle for 400 ms");
    assert!(number(link, "y1") < number(link, "y2"));
    assert!(number(link, "x1") > number(idle, "x"), "the part starts later than its parent");
    assert!(elements.iter().any(|element| element.text == "Session 2, part of session 1: Fare Researcher"));
    assert_eq!(
        elements.iter().filter(|element| element.text == "What happened").count(),
        1,
        "one list of steps"
    );
}

#[test]
fn a_question_of_any_length_is_shown_whole() {
    let sentences =
        |noun: &str| (0..700).map(|index| format!("{noun} {index}.")).collect::<Vec<_>>().join(" ");
    let (action, consequence) = (sentences("Action"), sentences("Effect"));
    let members = format!(
        r#""action":"{action}","consequence":"{consequence}","reply_token":"rpl_00000000000000000000000000000001","timeout_seconds":60,"default_decision":"reject""#
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("question.jsonl");
    std::fs::write(&file, super::bad_input::event(1, "14:00:00.000", "awaiting.confirmation", &members))
        .unwrap();
    let (output, svg) = draw(&file, true);
    assert!(output.stdout.contains(&format!("“{action}” Consequence: “{consequence}”")));
    let elements = xml_parser::read(&svg).unwrap();
    let drawn: Vec<_> = elements
        .iter()
        .filter(|element| element.name == "text")
        .map(|element| element.text.as_str())
        .collect();
    let drawn = drawn.join(" ");
    assert!(drawn.contains(&action) && drawn.contains(&consequence), "{drawn}");
}
