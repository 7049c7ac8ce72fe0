//! `sayso asp trace`: the states line by line, and as a picture.

use asp::Performative;
use asp::machine::Role;

use crate::asp::talk::{DEMOS, Talk, demo, own_talk, trace};
use crate::asp::xml::{self, Element};
use testing::cli::sayso;

/// A picture that runs nothing, loads nothing and leads nowhere.
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

fn picture(talk: &Talk) -> (i32, Vec<Element>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.svg");
    let run = sayso(&["asp", "trace", "-", "--svg", path.to_str().unwrap()], talk.text());
    let svg = std::fs::read_to_string(&path).unwrap();
    (run.code, xml::read(&svg).unwrap_or_else(|why| panic!("{}: {why}\n{svg}", talk.name)))
}

#[test]
fn every_picture_is_well_formed_has_a_title_and_a_description_and_no_script() {
    for talk in DEMOS.iter() {
        let (code, elements) = picture(talk);
        assert_eq!(code, 0, "{}", talk.name);
        assert_safe(&elements);
        let root = elements.last().unwrap();
        let attribute = |name: &str| root.attributes.iter().find(|(key, _)| key == name).unwrap().1.as_str();
        assert_eq!((root.name.as_str(), attribute("role")), ("svg", "img"));
        for id in attribute("aria-labelledby").split(' ') {
            let has_id = |element: &&Element| element.attributes.contains(&("id".to_owned(), id.to_owned()));
            let labels: Vec<_> = elements.iter().filter(has_id).collect();
            assert!(labels.len() == 1 && !labels[0].text.trim().is_empty(), "{}: {id}", talk.name);
        }
        // A picture is read out by its title and description alone, so all of it must stand there.
        let description = &elements.iter().find(|element| element.name == "desc").unwrap().text;
        assert_eq!(description, trace(talk.text()).out.trim_end(), "{}", talk.name);
        let title = &elements.iter().find(|element| element.name == "title").unwrap().text;
        let open = talk.name.ends_with("-timeout");
        assert!(title.contains(if open { ", still open: " } else { ", ended " }), "{title}");
    }
}

#[test]
fn every_line_of_the_trace_stands_for_a_line_of_the_transcript() {
    for talk in DEMOS.iter() {
        let run = trace(talk.text());
        let lines: Vec<_> = run.out.lines().collect();
        for (message, number) in talk.messages.iter().zip(1..) {
            let value: serde_json::Value = serde_json::from_str(message).unwrap();
            let line = lines[number];
            assert!(line.starts_with(&format!("{number}. ")), "{line}");
            assert!(line.contains(value["performative"].as_str().unwrap()), "{line}");
        }
    }
}

#[test]
fn an_unlawful_line_is_shown_where_it_stands_and_the_rest_goes_on() {
    let mut talk = demo("agreed").clone();
    // The commitment is accepted before it is made.
    let accept = talk.messages.remove(13);
    talk.messages.insert(10, accept);
    let run = trace(talk.text());
    assert_eq!(run.code, 1);
    let line = run.out.lines().nth(11).unwrap();
    assert!(line.starts_with("11. 09:04:28 invited ACCEPT: CONVERSING refuses it. "), "{line}");
    assert!(line.contains(" Not lawful: invalid_state_transition: "), "{line}");
    assert!(run.out.lines().nth(12).unwrap().contains("COMMIT: CONVERSING to AGREEING"), "{}", run.out);
    let (code, elements) = picture(&talk);
    assert_eq!(code, 1);
    assert!(elements.iter().any(|element| element.text.starts_with("not lawful: invalid_state_transition")));
}

#[test]
fn what_no_side_of_the_session_sent_moves_nothing() {
    // Another session's ACCEPT, of a stranger and of the invited agent itself.
    let first = demo("agreed").messages[0].clone();
    let strange = demo("delegate").messages[1].clone();
    let run = trace(format!("{first}\n{strange}\n"));
    assert_eq!(run.code, 1);
    let line = run.out.lines().nth(2).unwrap();
    assert!(line.contains("somebody else ACCEPT: INVITED refuses it."), "{line}");
    assert!(line.contains("Not lawful: it belongs to another session."), "{line}");
    let renamed = demo("agreed").messages[1].replace("braillepress", "somewhere");
    let run = trace(format!("{first}\n{renamed}\n"));
    assert!(
        run.out.contains("Not lawful: agent://somewhere.example/orders/desk is not in this session."),
        "{}",
        run.out
    );
    assert!(run.out.ends_with("The session is still open: INVITED.\n"), "{}", run.out);
    let own = |dice| own_talk(&[], dice).messages;
    let run = trace(format!("{}\n{}\n", own(1)[0], own(2)[1]));
    assert_eq!(run.code, 1);
    assert!(run.out.contains("invited ACCEPT: INVITED refuses it."), "{}", run.out);
}

#[test]
fn a_time_that_ran_out_before_a_message_is_shown() {
    let mut messages = demo("escalation-timeout").messages.clone();
    let late = demo("agreed").messages.last().unwrap().replace("T09:24:38", "T10:24:38");
    messages.push(late);
    let run = trace(messages.join("\n"));
    assert_eq!(run.code, 1);
    assert!(
        run.out.contains("9. 09:10:16 nobody timeout: ESCALATED to FAILED. The escalation time ran out."),
        "{}",
        run.out
    );
    assert!(run.out.contains("CLOSE: FAILED refuses it."), "{}", run.out);
}

#[test]
fn a_first_message_to_everybody_is_followed_by_whoever_answers() {
    let talk = own_talk(&[(Role::Invited, Performative::Close, r#"{"reason":"done"}"#)], 1);
    let text = talk.text().replacen(r#""recipient":"agent://b.example/seller","#, "", 1);
    assert_ne!(text, talk.text());
    let run = trace(text);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(
        run.out.starts_with("agent://a.example/buyer invites, agent://b.example/seller is invited."),
        "{}",
        run.out
    );
}

#[test]
fn lines_that_are_no_messages_are_told_and_passed_over() {
    let messages = &demo("rejected").messages;
    let run = trace(format!("nonsense\n{}\n{{}}\n{}\n", messages[0], messages[1]));
    assert_eq!(run.code, 1);
    assert!(run.out.contains("2. 09:00:02 inviter PROPOSE: IDLE to INVITED."), "{}", run.out);
    assert!(run.out.contains("4. 09:00:04 invited REJECT: INVITED to FAILED."), "{}", run.out);
    assert!(run.out.contains("\nstdin:1: error not JSON"), "{}", run.out);
    assert!(run.out.contains("\nstdin:3: error schema_unsupported: /version must be there"), "{}", run.out);
}
