//! The trace and the picture, compared with what stands in `snapshots`. `BLESS_SNAPSHOTS=1` writes them anew: look at them then.

use std::path::Path;

use crate::asp::xml;
use crate::replay::recorder::recording;
use testing::cli::{Finished, sayso};

fn compare(name: &str, found: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/snapshots").join(name);
    if std::env::var_os("BLESS_SNAPSHOTS").is_some() {
        return std::fs::write(&file, found).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    assert!(found == expected, "{name} has changed; it is now:\n{found}");
}

fn draw(input: &Path, visualize: bool) -> (Finished, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.svg");
    let mut arguments = vec!["replay", input.to_str().unwrap(), "--svg", file.to_str().unwrap()];
    if visualize {
        arguments.push("--visualize");
    }
    let ended = sayso(&arguments, "");
    (ended, std::fs::read_to_string(file).unwrap_or_default())
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
        let (ended, picture) = draw(&recording(name), true);
        assert_eq!(ended.code, code, "{name}: {}", ended.out);
        compare(&format!("{name}.trace"), &ended.out);
        compare(&format!("{name}.svg"), &picture);
        let (alone, again) = draw(&recording(name), false);
        assert_eq!((alone.code, alone.out.as_str(), &again), (code, "", &picture));
    }
}

#[test]
fn the_trace_finds_what_validate_finds() {
    let folder = recording("x").parent().unwrap().to_owned();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let path = file.to_str().unwrap();
        let (checked, traced) = (sayso(&["validate", path], ""), sayso(&["replay", "--visualize", path], ""));
        assert_eq!((traced.code, traced.summary()), (checked.code, checked.summary()), "{path}");
        for finding in checked.findings() {
            let (place, rest) = finding.strip_prefix(path).unwrap()[1..].split_once(": ").unwrap();
            let (word, rest) = rest.split_once(' ').unwrap();
            let rule = rest.split(' ').next().unwrap();
            let word = if word == "error" { "rule broken" } else { word };
            let said = format!("{word}: {rule} ");
            let found = traced
                .out
                .lines()
                .any(|line| line.contains(&said) && line.ends_with(&format!("(line {place})")));
            assert!(found, "no {said} at {place} in {}", traced.out);
        }
    }
}

#[test]
fn a_picture_can_be_read_without_being_seen_and_runs_nothing() {
    for name in ["section-4-6", "a-8-5-action-after-rejection"] {
        let (_, picture) = draw(&recording(name), false);
        let elements = xml::read(&picture).unwrap();
        let of = |name: &str| elements.iter().filter(|element| element.name == name).collect::<Vec<_>>();
        assert!(of("title").iter().any(|title| title.text.starts_with("A recording of 1 session.")));
        let (traced, _) = draw(&recording(name), true);
        let words = traced.out.lines().next().unwrap();
        assert!(of("desc")[0].text.contains(words), "{words}");
        assert!(of("script").is_empty() && of("image").is_empty() && of("path").is_empty());
        assert!(of("text").iter().any(|text| text.text == "Questions and answers"));
        let root = of("svg")[0];
        assert!(root.attributes.contains(&("role".to_owned(), "img".to_owned())));
    }
}

#[test]
fn a_long_recording_is_drawn_as_far_as_it_can_be_looked_at_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.jsonl");
    let event = |number: usize| {
        let (session, kind, more) = match number % 5 {
            0 => (number / 5, "session.started", r#""summary_normal":"On.""#),
            1..=3 => (number / 5, "progress.updated", r#""progress":{"percent":50}"#),
            _ => (number / 5, "session.completed", r#""summary_normal":"Off.""#),
        };
        format!(
            "{{\"@context\":\"https://aaep-protocol.org/context/v1\",\"aaep_version\":\"1.0.0\",\"type\":\"aaep:agent.{kind}\",\"event_id\":\"evt_{number:032}\",\"session_id\":\"sess_{session:032}\",\"timestamp\":\"2026-05-24T14:22:11.342Z\",\"producer\":{{\"agent_id\":\"bank\"}},\"urgency\":\"normal\",\"localization_hints\":{{\"primary_language\":\"en\"}},{more}}}\n"
        )
    };
    let text: String = (0..5000).map(event).collect();
    std::fs::write(&file, text).unwrap();
    let (ended, picture) = draw(&file, true);
    assert_eq!(ended.code, 0, "{}", ended.summary());
    assert!(xml::read(&picture).is_ok());
    // Three messages of progress are one row: 666 sessions of 3 rows, and 2 rows.
    assert!(picture.contains("(3 pieces)"), "they are joined");
    assert!(
        picture.contains(
            "more steps are not drawn, with 0 broken rules. sayso replay --visualize shows them all."
        )
    );
    assert_eq!(picture.matches("<g><title>").count(), 2000);
}
