//! `sayso asp trace`: the session states as text and as an SVG.

use asp::Performative;
use asp::state_machine::Role;

use crate::asp::transcripts::{DEMOS, TestTranscript, demo_transcript, scripted_transcript, trace};
use crate::asp::xml_parser::{self, Element};
use testing::cli::run_sayso;

/// Asserts that an SVG contains no script, no external resource and no link.
pub(crate) fn assert_safe(elements: &[Element]) {
    let known = ["svg", "title", "desc", "style", "defs", "marker", "path", "rect", "text", "line", "g"];
    for element in elements {
        assert!(known.contains(&element.name.as_str()), "<{}>", element.name);
        for (name, value) in &element.attributes {
            assert!(!name.starts_with("on") && !name.contains("href"), "{name}={value}");
            assert!(!value.contains("url(") || value.starts_with("url(#"), "{name}={value}");
        }
        if element.name == "style" {
            assert!(!element.text.contains("url") && !element.text.contains("@import"), "{}", element.text);
        }
    }
}

fn render_svg(transcript: &TestTranscript) -> (i32, Vec<Element>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.svg");
    let run = run_sayso(&["asp", "trace", "-", "--svg", path.to_str().unwrap()], transcript.text());
    let svg = std::fs::read_to_string(&path).unwrap();
    (
        run.exit_code,
        xml_parser::read(&svg).unwrap_or_else(|error| panic!("{}: {error}\n{svg}", transcript.name)),
    )
}

#[test]
fn every_svg_is_well_formed_with_title_and_description_and_no_script() {
    for transcript in DEMOS.iter() {
        let (code, elements) = render_svg(transcript);
        assert_eq!(code, 0, "{}", transcript.name);
        assert_safe(&elements);
        let root = elements.last().unwrap();
        let attribute = |name: &str| root.attributes.iter().find(|(key, _)| key == name).unwrap().1.as_str();
        assert_eq!((root.name.as_str(), attribute("role")), ("svg", "img"));
        for id in attribute("aria-labelledby").split(' ') {
            let has_id = |element: &&Element| element.attributes.contains(&("id".to_owned(), id.to_owned()));
            let labels: Vec<_> = elements.iter().filter(has_id).collect();
            assert!(labels.len() == 1 && !labels[0].text.trim().is_empty(), "{}: {id}", transcript.name);
        }
        // A screen reader reads only the title and the description, so they must contain everything.
        let description = &elements.iter().find(|element| element.name == "desc").unwrap().text;
        assert_eq!(description, trace(transcript.text()).stdout.trim_end(), "{}", transcript.name);
        let title = &elements.iter().find(|element| element.name == "title").unwrap().text;
        let is_open = transcript.name.ends_with("-timeout");
        assert!(
            title.contains(if is_open { ", still open in state " } else { ", ended in state " }),
            "{title}"
        );
    }
}

#[test]
fn every_trace_line_matches_a_transcript_line() {
    for transcript in DEMOS.iter() {
        let run = trace(transcript.text());
        let lines: Vec<_> = run.stdout.lines().collect();
        for (message, number) in transcript.messages.iter().zip(1..) {
            let value: serde_json::Value = serde_json::from_str(message).unwrap();
            let line = lines[number];
            assert!(line.starts_with(&format!("{number}. ")), "{line}");
            assert!(line.contains(value["performative"].as_str().unwrap()), "{line}");
        }
    }
}

#[test]
fn an_invalid_message_is_marked_in_place_and_the_trace_continues() {
    let mut transcript = demo_transcript("agreed").clone();
    // The commitment is accepted before it is proposed.
    let accept = transcript.messages.remove(13);
    transcript.messages.insert(10, accept);
    let run = trace(transcript.text());
    assert_eq!(run.exit_code, 1);
    let line = run.stdout.lines().nth(11).unwrap();
    assert!(line.starts_with("11. 09:04:28 invited ACCEPT: refused in CONVERSING. "), "{line}");
    assert!(line.contains(" Not allowed: invalid_state_transition: "), "{line}");
    assert!(run.stdout.lines().nth(12).unwrap().contains("COMMIT: CONVERSING to AGREEING"), "{}", run.stdout);
    let (code, elements) = render_svg(&transcript);
    assert_eq!(code, 1);
    assert!(elements.iter().any(|element| element.text.starts_with("not allowed: invalid_state_transition")));
}

#[test]
fn foreign_messages_do_not_change_the_state() {
    // An ACCEPT from another session, by an unknown agent.
    let first = demo_transcript("agreed").messages[0].clone();
    let foreign = demo_transcript("delegate").messages[1].clone();
    let run = trace(format!("{first}\n{foreign}\n"));
    assert_eq!(run.exit_code, 1);
    let line = run.stdout.lines().nth(2).unwrap();
    assert!(line.contains("someone else ACCEPT: refused in INVITED."), "{line}");
    assert!(line.contains("Not allowed: the message belongs to another session."), "{line}");
    // An ACCEPT in this session, by an unknown agent.
    let renamed = demo_transcript("agreed").messages[1].replace("braillepress", "somewhere");
    let run = trace(format!("{first}\n{renamed}\n"));
    assert!(
        run.stdout.contains("Not allowed: agent://somewhere.example/orders/desk is not in this session."),
        "{}",
        run.stdout
    );
    assert!(run.stdout.ends_with("The session is still open: INVITED.\n"), "{}", run.stdout);
    // An ACCEPT from another session, by the invited agent.
    let messages_of = |seed| scripted_transcript(&[], seed).messages;
    let run = trace(format!("{}\n{}\n", messages_of(1)[0], messages_of(2)[1]));
    assert_eq!(run.exit_code, 1);
    assert!(run.stdout.contains("invited ACCEPT: refused in INVITED."), "{}", run.stdout);
}

#[test]
fn a_timeout_before_a_message_is_shown() {
    let mut messages = demo_transcript("escalation-timeout").messages.clone();
    let late = demo_transcript("agreed").messages.last().unwrap().replace("T09:24:38", "T10:24:38");
    messages.push(late);
    let run = trace(messages.join("\n"));
    assert_eq!(run.exit_code, 1);
    assert!(
        run.stdout.contains("9. 09:10:16 timeout: ESCALATED to FAILED. The escalation timeout expired."),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("CLOSE: refused in FAILED."), "{}", run.stdout);
}

#[test]
fn an_invitation_without_recipient_is_traced_to_the_agent_that_replies() {
    let transcript = scripted_transcript(&[(Role::Invited, Performative::Close, r#"{"reason":"done"}"#)], 1);
    let text = transcript.text().replacen(r#""recipient":"agent://b.example/seller","#, "", 1);
    assert_ne!(text, transcript.text());
    let run = trace(text);
    assert_eq!(run.exit_code, 0, "{}", run.stdout);
    assert!(
        run.stdout
            .starts_with("agent://a.example/buyer (inviter) invites agent://b.example/seller (invited)."),
        "{}",
        run.stdout
    );
}

#[test]
fn lines_that_are_not_messages_are_reported_and_skipped() {
    let messages = &demo_transcript("rejected").messages;
    let run = trace(format!("nonsense\n{}\n{{}}\n{}\n", messages[0], messages[1]));
    assert_eq!(run.exit_code, 1);
    assert!(run.stdout.contains("2. 09:00:02 inviter PROPOSE: IDLE to INVITED."), "{}", run.stdout);
    assert!(run.stdout.contains("4. 09:00:04 invited REJECT: INVITED to FAILED."), "{}", run.stdout);
    assert!(run.stdout.contains("\nstdin:1: error: not JSON"), "{}", run.stdout);
    assert!(
        run.stdout.contains("\nstdin:3: error: schema_unsupported: /version must be present"),
        "{}",
        run.stdout
    );
}
