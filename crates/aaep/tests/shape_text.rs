//! How one subscription hears output: held to a boundary, whole, and in its own words.

use std::sync::Arc;

use aaep::message::Boundary;
use aaep::shape::{Limits, Out, Wants};
use seal::UnixMillis;
use serde_json::json;

use crate::support::shaping::{Agent, Listener};

const A: &str = "sess_a1";
const B: &str = "sess_b2";

fn cut_at(boundaries: &[Boundary]) -> Wants {
    Wants { boundaries: boundaries.to_vec(), ..Wants::default() }
}

fn pieces(listener: &Listener) -> Vec<(String, String)> {
    listener.chunks().into_iter().map(|(text, _, hint, _)| (text, hint)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(text, hint)| ((*text).to_owned(), (*hint).to_owned())).collect()
}

/// Texts and their hints.
type Pieces = &'static [(&'static str, &'static str)];

#[test]
fn text_is_held_to_the_negotiated_boundary() {
    let text = "Dr. No pays 3.14. Yes!\n\nNext paragraph. And";
    let expected: [(&[Boundary], Pieces); 4] = [
        (
            &[Boundary::Sentence, Boundary::Completion],
            &[
                ("Dr. No pays 3.14. ", "sentence"),
                ("Yes!\n\n", "sentence"),
                ("Next paragraph. ", "sentence"),
                ("And more.", "completion"),
            ],
        ),
        (
            &[Boundary::Sentence, Boundary::Paragraph],
            &[
                ("Dr. No pays 3.14. ", "sentence"),
                ("Yes!\n\n", "paragraph"),
                ("Next paragraph. ", "sentence"),
                ("And more.", "completion"),
            ],
        ),
        (
            &[Boundary::Paragraph],
            &[("Dr. No pays 3.14. Yes!\n\n", "paragraph"), ("Next paragraph. And more.", "completion")],
        ),
        (&[Boundary::Completion], &[("Dr. No pays 3.14. Yes!\n\nNext paragraph. And more.", "completion")]),
    ];
    for (boundaries, expected) in expected {
        let (mut agent, mut listener) = (Agent::default(), Listener::new(cut_at(boundaries)));
        for c in text.chars() {
            listener.push(&agent.chunk(UnixMillis::new(0), A, &c.to_string(), false));
        }
        listener.push(&agent.chunk(UnixMillis::new(0), A, " more.", true));
        assert_eq!(pieces(&listener), pairs(expected));
    }
}

#[test]
fn words_say_where_a_sentence_ends() {
    let (mut agent, mut listener) =
        (Agent::default(), Listener::new(cut_at(&[Boundary::Word, Boundary::Sentence])));
    listener.push(&agent.chunk(UnixMillis::new(0), A, "Mr. Fox ran. He stop", false));
    listener.push(&agent.chunk(UnixMillis::new(0), A, "ped.", true));
    assert_eq!(
        pieces(&listener),
        pairs(&[
            ("Mr. ", "word"),
            ("Fox ", "word"),
            ("ran. ", "sentence"),
            ("He ", "word"),
            ("stopped.", "completion")
        ])
    );
}

#[test]
fn with_none_output_comes_as_the_agent_cut_it() {
    let (mut agent, mut listener) =
        (Agent::default(), Listener::new(cut_at(&[Boundary::None, Boundary::Sentence])));
    let piece = agent.chunk(UnixMillis::new(0), A, "Hel", false);
    listener.push(&piece);
    assert!(matches!(&listener.heard[0].out, Out::Same(same) if Arc::ptr_eq(same, &piece)));
}

#[test]
fn a_chunk_that_is_a_sentence_already_is_passed_on_as_it_is() {
    let mut agent = Agent::default();
    let mut listener = Listener::new(Wants::default());
    let chunk = |position: u64, text: &str, hint: &str, complete: bool| json!({ "chunk": text, "position": position, "complete": complete, "coalesce_hint": hint });
    listener.push(&agent.says(
        UnixMillis::new(0),
        A,
        "output.streaming",
        chunk(0, "One. ", "sentence", false),
    ));
    listener.push(&agent.says(
        UnixMillis::new(1),
        A,
        "output.streaming",
        chunk(5, "Two. ", "sentence", false),
    ));
    listener.push(&agent.says(
        UnixMillis::new(2),
        A,
        "output.streaming",
        chunk(10, "End.", "completion", true),
    ));
    assert_eq!(listener.heard.len(), 3);
    assert!(listener.heard.iter().all(|heard| matches!(heard.out, Out::Same(_))));
}

#[test]
fn a_finished_sentence_does_not_wait_for_a_tool() {
    let (mut agent, mut listener) = (Agent::default(), Listener::new(Wants::default()));
    listener.push(&agent.chunk(UnixMillis::new(0), A, "Let me look that up.", false));
    assert!(listener.heard.is_empty());
    listener.push(&agent.tool(UnixMillis::new(1), A));
    assert_eq!(listener.names(), ["output.streaming", "tool.invoked"]);
    listener.push(&agent.chunk(UnixMillis::new(2), A, " It costs $3.", false));
    listener.push(&agent.tool(UnixMillis::new(3), A));
    assert_eq!(listener.heard.len(), 3, "a number may go on");
    listener.push(&agent.chunk(UnixMillis::new(4), A, "50.", true));
    assert_eq!(listener.heard[3].chunk().unwrap().chunk, " It costs $3.50.");
}

#[test]
fn a_change_of_language_is_never_joined_over() {
    let (mut agent, mut listener) = (Agent::default(), Listener::new(Wants::default()));
    let chunk = |text: &str, position: u64, language: &str, complete: bool| {
        json!({
            "chunk": text, "position": position, "complete": complete, "coalesce_hint": "none", "language": language,
        })
    };
    listener.push(&agent.says(UnixMillis::new(0), A, "output.streaming", chunk("She said ", 0, "en", false)));
    listener.push(&agent.says(UnixMillis::new(0), A, "output.streaming", chunk("ẹ kú àárọ̀", 9, "yo", true)));
    let languages: Vec<_> = listener.heard.iter().map(|heard| heard.json()["language"].clone()).collect();
    assert_eq!(languages, ["en", "yo"]);
    assert_eq!(pieces(&listener), pairs(&[("She said ", "none"), ("ẹ kú àárọ̀", "completion")]));
}

#[test]
fn what_is_unknown_stays_in_what_is_made() {
    let (mut agent, mut listener) = (Agent::default(), Listener::new(Wants::default()));
    for (position, text, complete) in [(0, "Hel", false), (3, "lo.", true)] {
        let payload = json!({
            "chunk": text, "position": position, "complete": complete, "coalesce_hint": "none", "from_the_future": [1],
        });
        listener.push(&agent.says(UnixMillis::new(0), A, "output.streaming", payload));
    }
    assert_eq!(listener.heard.len(), 1);
    assert_eq!(listener.heard[0].json()["from_the_future"], json!([1]));
}

#[test]
fn pieces_of_both_directions_say_so_when_they_meet() {
    let (mut agent, mut listener) = (Agent::default(), Listener::new(Wants::default()));
    listener.push(&agent.chunk(UnixMillis::new(0), A, "Acme ", false));
    listener.push(&agent.chunk(UnixMillis::new(0), A, "شركة.", true));
    assert_eq!(listener.heard[0].json()["localization_hints"]["text_direction"], "auto");
}

#[test]
fn a_text_without_boundaries_is_released_before_it_grows_too_long() {
    let limits = Limits { text: 100, ..Limits::default() };
    let (mut agent, mut listener) = (Agent::default(), Listener::within(Wants::default(), limits));
    let text = "word after word ".repeat(40);
    listener.push(&agent.chunk(UnixMillis::new(0), A, &text, true));
    let chunks = listener.chunks();
    assert!(chunks.iter().all(|(text, ..)| text.len() <= 100));
    assert!(chunks.iter().rev().skip(1).all(|(text, _, hint, _)| text.ends_with(' ') && hint == "none"));
    assert_eq!(chunks.into_iter().map(|(text, ..)| text).collect::<String>(), text);
}

#[test]
fn with_too_many_outputs_further_text_is_not_held() {
    let limits = Limits { outputs: 1, ..Limits::default() };
    let (mut agent, mut listener) = (Agent::default(), Listener::within(Wants::default(), limits));
    listener.push(&agent.chunk(UnixMillis::new(0), A, "Held", false));
    listener.push(&agent.chunk(UnixMillis::new(0), B, "not held", false));
    assert_eq!(pieces(&listener), pairs(&[("not held", "none")]));
}
