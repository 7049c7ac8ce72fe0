//! Outputs in Markdown are announced without their markup.

use super::*;
use crate::{EmojiMode, MarkdownMode};

/// Creates a chunk of an output in Markdown.
fn markdown(text: &str, position: usize, complete: bool) -> String {
    format!(r#"{},"content_type":"text/markdown""#, chunk(text, position, complete))
}

/// Receives the chunks of one output and returns the announced lines.
fn receive_chunks(harness: &mut SubscriberHarness, chunks: &[&str], complete: bool) -> Vec<String> {
    let mut position = 0;
    let mut lines = Vec::new();
    for (index, text) in chunks.iter().enumerate() {
        let is_last = complete && index + 1 == chunks.len();
        lines.extend(harness.receive("output.streaming", &markdown(text, position, is_last)));
        position += text.chars().count();
    }
    lines
}

const REPORT: &str = "## Result\n\nThe **logo** is ![our logo](https://x.example/l.png)! See [the site](https://x.example).\n\n\
- first\n- second\n\n| Name | Price |\n|---|---|\n| Apple | 3 |\n\n```rust\nfn main() {\n    run();\n}\n```\n\nThe end";

const SPOKEN_REPORT: [&str; 10] = [
    "agent: Heading: Result.",
    "agent: The logo is image: our logo!",
    "agent: See the site.",
    "agent: 2 items.",
    "agent: first.",
    "agent: second.",
    "agent: Table, 1 row, 2 columns.",
    "agent: Name: Apple; Price: 3.",
    "agent: Code 1, 3 lines, Rust.",
    "agent: The end",
];

#[test]
fn the_announcements_do_not_depend_on_where_the_output_is_cut() {
    for cut in 0..=REPORT.len() {
        let mut harness = SubscriberHarness::new();
        let (first, last) = REPORT.split_at(cut);
        assert_eq!(receive_chunks(&mut harness, &[first, last], true), SPOKEN_REPORT, "cut at {cut}");
    }
}

#[test]
fn the_sentences_of_a_hub_are_announced_at_once() {
    let mut harness = SubscriberHarness::new();
    let sentence =
        |text: &str, position| markdown(text, position, false).replace(r#""none""#, r#""sentence""#);
    assert_eq!(harness.receive("output.streaming", &sentence("It is **done**.", 0)), ["agent: It is done."]);
    assert!(harness.receive("output.streaming", &sentence("\n\n- one.\n", 15)).is_empty());
    let lines = harness.receive("output.streaming", &sentence("- two.\n\nBye.", 24));
    assert_eq!(lines, ["agent: 2 items.", "agent: one.", "agent: two.", "agent: Bye."]);
}

#[test]
fn code_is_read_on_request_with_its_indentation() {
    let mut harness = SubscriberHarness::new();
    let read = |harness: &SubscriberHarness, number| {
        harness.subscriber.read_code(number).lines().collect::<Vec<_>>()
    };
    assert_eq!(read(&harness, None), ["status: The agent has not sent any code."]);
    receive_chunks(&mut harness, &[REPORT], true);
    let code = ["agent: fn main() {", "agent:     run();", "agent: }"];
    assert_eq!(read(&harness, None), code);
    assert_eq!(read(&harness, Some(1)), code);
    assert_eq!(read(&harness, Some(7)), ["status: There is no code 7."]);
}

#[test]
fn a_list_is_held_only_for_a_limited_time() {
    let mut harness = SubscriberHarness::new();
    assert!(receive_chunks(&mut harness, &["- one\n- two\n- thr"], false).is_empty());
    let hold_ms = i64::try_from(SubscriberLimits::default().markdown_hold.as_millis()).unwrap();
    assert!(harness.advance(hold_ms - 1).is_empty());
    assert_eq!(harness.advance(1), ["agent: one.", "agent: two."]);
    let rest = markdown("ee\n- four\n\nDone.", 17, true);
    assert_eq!(harness.receive("output.streaming", &rest), ["agent: three.", "agent: four.", "agent: Done."]);
}

#[test]
fn a_list_is_held_only_up_to_a_limit_in_bytes() {
    let limits = SubscriberLimits { markdown_hold_bytes: 256, ..SubscriberLimits::default() };
    let mut harness = SubscriberHarness::with(Verbosity::Normal, limits);
    let list = "- a list item\n".repeat(20);
    let lines = receive_chunks(&mut harness, &[&list], false);
    assert_eq!(lines.first().map(String::as_str), Some("agent: a list item."), "{lines:?}");
}

#[test]
fn held_text_is_announced_before_a_question_and_before_the_end() {
    let mut harness = SubscriberHarness::new();
    assert!(receive_chunks(&mut harness, &["Choose:\n\n- one\n- two\n"], false)[1..].is_empty());
    let lines = harness.ask_confirmation("rpl_1");
    assert_eq!(lines[..3], ["agent: 2 items.", "agent: one.", "agent: two."]);
    assert!(lines[3].starts_with("ask: "), "{lines:?}");

    let mut harness = SubscriberHarness::new();
    receive_chunks(&mut harness, &["- one\n- two"], false);
    let lines = harness.receive("session.completed", r#""summary_normal":"All done.""#);
    assert_eq!(lines[..3], ["agent: 2 items.", "agent: one.", "agent: two."]);
}

#[test]
fn a_gap_in_an_output_is_announced_and_loses_nothing_else() {
    let mut harness = SubscriberHarness::new();
    receive_chunks(&mut harness, &["- one\n- two\n"], false);
    let lines = harness.receive("output.streaming", &markdown("**More** text.", 50, true));
    assert_eq!(
        lines,
        [
            "agent: 2 items.",
            "agent: one.",
            "agent: two.",
            "notice: Part of the text is missing here.",
            "agent: More text."
        ]
    );
}

#[test]
fn the_number_of_unfinished_outputs_is_limited() {
    let limits = SubscriberLimits { markdown_outputs: 1, ..SubscriberLimits::default() };
    let mut harness = SubscriberHarness::with(Verbosity::Normal, limits);
    assert!(receive_chunks(&mut harness, &["- one\n- two\n"], false).is_empty());
    let other = markdown("Hello. ", 0, false).replace("out_1", "out_2");
    let lines = harness.receive("output.streaming", &other);
    assert_eq!(lines, ["agent: 2 items.", "agent: one.", "agent: two."]);
}

#[test]
fn only_markdown_is_read_as_markdown() {
    let text = "1986. A *good* year.";
    let receive = |mode, content_type: &str| {
        let mut harness = SubscriberHarness::new();
        let preferences = Preferences { markdown: mode, ..Preferences::default() };
        harness.subscriber.set_preferences(preferences);
        let event = markdown(text, 0, true).replace("text/markdown", content_type);
        harness.receive("output.streaming", &event).join(" ")
    };
    let (plain, spoken) = ("agent: 1986. A *good* year.", "agent: 1 item. agent: 1986: A good year.");
    assert_eq!(receive(MarkdownMode::Labelled, "text/plain"), plain);
    assert_eq!(receive(MarkdownMode::Labelled, "text/markdown"), spoken);
    assert_eq!(receive(MarkdownMode::All, "text/plain"), spoken);
    assert_eq!(receive(MarkdownMode::All, "text/csv"), plain);
    assert_eq!(receive(MarkdownMode::Off, "text/markdown"), plain);
    let mut harness = SubscriberHarness::new();
    assert_eq!(harness.receive("output.streaming", &chunk(text, 0, true)).join(" "), plain);
}

#[test]
fn markdown_is_announced_in_the_persons_language() {
    for (language, expected) in [("es", "agent: Título: Hi."), ("yo", "agent: Àkọlé: Hi.")] {
        let mut harness = SubscriberHarness::new();
        let preferences = Preferences { languages: vec![language.to_owned()], ..Preferences::default() };
        harness.subscriber.set_preferences(preferences);
        assert_eq!(receive_chunks(&mut harness, &["# Hi\n"], true), [expected]);
    }
}

#[test]
fn emoji_are_announced_as_the_person_wants() {
    for (mode, expected) in [
        (EmojiMode::Keep, "agent: Paid ✅."),
        (EmojiMode::Name, "agent: Paid check mark button."),
        (EmojiMode::Omit, "agent: Paid ."),
    ] {
        let mut harness = SubscriberHarness::new();
        harness.subscriber.set_preferences(Preferences { emoji: mode, ..Preferences::default() });
        assert_eq!(receive_chunks(&mut harness, &["**Paid** ✅."], true), [expected]);
    }
}
