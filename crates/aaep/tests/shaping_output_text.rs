//! How one subscription receives output text. Text is held back until a boundary, no text is lost, and text in
//! different languages is never merged.

use std::sync::Arc;

use aaep::message::Boundary;
use aaep::shaping::{OutgoingEvent, ShaperLimits, ShapingTerms};
use serde_json::json;

use crate::support::shaping_listener::{SampleAgent, ShapingListener};

const SESSION_A: &str = "sess_a1";
const SESSION_B: &str = "sess_b2";

fn with_boundaries(boundaries: &[Boundary]) -> ShapingTerms {
    ShapingTerms { boundaries: boundaries.to_vec(), ..ShapingTerms::default() }
}

fn texts_and_hints(listener: &ShapingListener) -> Vec<(String, String)> {
    listener.chunks().into_iter().map(|(text, _, hint, _)| (text, hint)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(text, hint)| ((*text).to_owned(), (*hint).to_owned())).collect()
}

/// Chunk texts and their hints.
type ExpectedChunks = &'static [(&'static str, &'static str)];

#[test]
fn text_is_held_until_the_negotiated_boundary() {
    let text = "Dr. No pays 3.14. Yes!\n\nNext paragraph. And";
    let expected: [(&[Boundary], ExpectedChunks); 4] = [
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
        let (mut agent, mut listener) =
            (SampleAgent::default(), ShapingListener::new(with_boundaries(boundaries)));
        for c in text.chars() {
            listener.push(&agent.chunk(0, SESSION_A, &c.to_string(), false));
        }
        listener.push(&agent.chunk(0, SESSION_A, " more.", true));
        assert_eq!(texts_and_hints(&listener), pairs(expected));
    }
}

#[test]
fn word_chunks_mark_the_end_of_a_sentence() {
    let (mut agent, mut listener) = (
        SampleAgent::default(),
        ShapingListener::new(with_boundaries(&[Boundary::Word, Boundary::Sentence])),
    );
    listener.push(&agent.chunk(0, SESSION_A, "Mr. Fox ran. He stop", false));
    listener.push(&agent.chunk(0, SESSION_A, "ped.", true));
    assert_eq!(
        texts_and_hints(&listener),
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
fn the_none_boundary_delivers_chunks_as_the_agent_sent_them() {
    let (mut agent, mut listener) = (
        SampleAgent::default(),
        ShapingListener::new(with_boundaries(&[Boundary::None, Boundary::Sentence])),
    );
    let chunk = agent.chunk(0, SESSION_A, "Hel", false);
    listener.push(&chunk);
    assert!(
        matches!(&listener.delivered[0].outgoing, OutgoingEvent::Unchanged(same) if Arc::ptr_eq(same, &chunk))
    );
}

#[test]
fn a_chunk_that_is_already_a_sentence_is_delivered_unchanged() {
    let mut agent = SampleAgent::default();
    let mut listener = ShapingListener::new(ShapingTerms::default());
    let chunk = |position: u64, text: &str, hint: &str, complete: bool| json!({ "chunk": text, "position": position, "complete": complete, "coalesce_hint": hint });
    listener.push(&agent.event(0, SESSION_A, "output.streaming", chunk(0, "One. ", "sentence", false)));
    listener.push(&agent.event(1, SESSION_A, "output.streaming", chunk(5, "Two. ", "sentence", false)));
    listener.push(&agent.event(2, SESSION_A, "output.streaming", chunk(10, "End.", "completion", true)));
    assert_eq!(listener.delivered.len(), 3);
    assert!(
        listener.delivered.iter().all(|delivered| matches!(delivered.outgoing, OutgoingEvent::Unchanged(_)))
    );
}

#[test]
fn a_finished_sentence_is_delivered_before_a_tool_call() {
    let (mut agent, mut listener) = (SampleAgent::default(), ShapingListener::new(ShapingTerms::default()));
    listener.push(&agent.chunk(0, SESSION_A, "Let me look that up.", false));
    assert!(listener.delivered.is_empty());
    listener.push(&agent.tool(1, SESSION_A));
    assert_eq!(listener.names(), ["output.streaming", "tool.invoked"]);
    listener.push(&agent.chunk(2, SESSION_A, " It costs $3.", false));
    listener.push(&agent.tool(3, SESSION_A));
    assert_eq!(listener.delivered.len(), 3, "the number may continue");
    listener.push(&agent.chunk(4, SESSION_A, "50.", true));
    assert_eq!(listener.delivered[3].chunk().unwrap().chunk, " It costs $3.50.");
}

#[test]
fn chunks_of_different_languages_are_never_merged() {
    let (mut agent, mut listener) = (SampleAgent::default(), ShapingListener::new(ShapingTerms::default()));
    let chunk = |text: &str, position: u64, language: &str, complete: bool| {
        json!({
            "chunk": text, "position": position, "complete": complete, "coalesce_hint": "none", "language": language,
        })
    };
    listener.push(&agent.event(0, SESSION_A, "output.streaming", chunk("She said ", 0, "en", false)));
    listener.push(&agent.event(0, SESSION_A, "output.streaming", chunk("ẹ kú àárọ̀", 9, "yo", true)));
    let languages: Vec<_> =
        listener.delivered.iter().map(|delivered| delivered.json()["language"].clone()).collect();
    assert_eq!(languages, ["en", "yo"]);
    assert_eq!(texts_and_hints(&listener), pairs(&[("She said ", "none"), ("ẹ kú àárọ̀", "completion")]));
}

#[test]
fn unknown_members_are_kept_in_rewritten_events() {
    let (mut agent, mut listener) = (SampleAgent::default(), ShapingListener::new(ShapingTerms::default()));
    for (position, text, complete) in [(0, "Hel", false), (3, "lo.", true)] {
        let payload = json!({
            "chunk": text, "position": position, "complete": complete, "coalesce_hint": "none", "from_the_future": [1],
        });
        listener.push(&agent.event(0, SESSION_A, "output.streaming", payload));
    }
    assert_eq!(listener.delivered.len(), 1);
    assert_eq!(listener.delivered[0].json()["from_the_future"], json!([1]));
}

#[test]
fn merged_chunks_of_both_directions_have_direction_auto() {
    let (mut agent, mut listener) = (SampleAgent::default(), ShapingListener::new(ShapingTerms::default()));
    listener.push(&agent.chunk(0, SESSION_A, "Acme ", false));
    listener.push(&agent.chunk(0, SESSION_A, "شركة.", true));
    assert_eq!(listener.delivered[0].json()["localization_hints"]["text_direction"], "auto");
}

#[test]
fn a_text_without_boundaries_is_released_before_it_grows_too_long() {
    let limits = ShaperLimits { max_text_bytes: 100, ..ShaperLimits::default() };
    let (mut agent, mut listener) =
        (SampleAgent::default(), ShapingListener::with_limits(ShapingTerms::default(), limits));
    let text = "word after word ".repeat(40);
    listener.push(&agent.chunk(0, SESSION_A, &text, true));
    let chunks = listener.chunks();
    assert!(chunks.iter().all(|(text, ..)| text.len() <= 100));
    assert!(chunks.iter().rev().skip(1).all(|(text, _, hint, _)| text.ends_with(' ') && hint == "none"));
    assert_eq!(chunks.into_iter().map(|(text, ..)| text).collect::<String>(), text);
}

#[test]
fn with_too_many_outputs_further_text_is_not_held() {
    let limits = ShaperLimits { max_held_outputs: 1, ..ShaperLimits::default() };
    let (mut agent, mut listener) =
        (SampleAgent::default(), ShapingListener::with_limits(ShapingTerms::default(), limits));
    listener.push(&agent.chunk(0, SESSION_A, "Held", false));
    listener.push(&agent.chunk(0, SESSION_B, "not held", false));
    assert_eq!(texts_and_hints(&listener), pairs(&[("not held", "none")]));
}
