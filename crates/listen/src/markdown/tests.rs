//! Tests of the speakable text, for whole documents and for every way to cut them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;
use crate::Phrases;

fn english() -> &'static Phrases {
    Phrases::for_languages(&[])
}

/// Speaks the chunks of one output and returns its lines.
fn speak(chunks: &[&str]) -> Vec<String> {
    let mut stream = MarkdownStream::new(16_384);
    let mut code_blocks = CodeBlockStore::new(10, 1000);
    let mut text: String =
        chunks.iter().map(|chunk| stream.push(chunk, english(), &mut code_blocks)).collect();
    text.push_str(&stream.finish(english(), &mut code_blocks));
    lines_of(&text)
}

fn lines_of(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

const DOCUMENT: &str = "# Weekly *report*\n\nHello **Ada**, see [the site](https://x.example/a_(b)) and ![logo](l.png \"t\")! \
It has `x.y. Z` and 5 * 3 * 2 = 30, in file_names_with_underscores. ~~Old~~ New &amp; good.\nIt costs $3.50. \
Version 1.2.3 is out.\n\nTitle below\n===\n\n- one\n- **two**\n  1. inner\n  2. more. And more\n\n- [x] three\n- [ ] four\n\n\
| Name | Price |\n|------|------:|\n| Apple | 3 |\n| **Pear** | |\n\n```rust\nfn main() {\n\n}\n```\n\n> Quoted. Twice.\n> Again\n\n\
* * *\n\n7. seven\n8. eight\n\nMath $a*b*c$ here. Escaped \\*star\\*. Unclosed [note. And *more.\n\n<!-- hidden -->\n\nVec<T> and <b>bold</b>.<br>Next.\n今日は。元気ですか？\n\nThe end";

#[test]
fn each_element_is_spoken_as_a_person_would_read_it() {
    assert_eq!(
        speak(&[DOCUMENT]),
        [
            "Heading: Weekly report.",
            "Hello Ada, see the site and image: logo! It has x.y. Z and 5 * 3 * 2 = 30, in file_names_with_underscores. \
             (struck through: Old) New & good. It costs $3.50. Version 1.2.3 is out.",
            "Title below",
            "4 items.",
            "one.",
            "two.",
            "Nested list, 2 items.",
            "1: inner.",
            "2: more. And more.",
            "Done: three.",
            "To do: four.",
            "Table, 2 rows, 2 columns.",
            "Name: Apple; Price: 3.",
            "Name: Pear.",
            "Code 1, 3 lines, Rust.",
            "Quote: Quoted. Twice. Again.",
            "2 items.",
            "7: seven.",
            "8: eight.",
            "Math a times b times c here. Escaped *star*. Unclosed [note. And *more.",
            "Vec<T> and bold.",
            "Next. 今日は。元気ですか？",
            "The end",
        ]
    );
}

#[test]
fn the_text_is_the_same_at_every_cut() {
    let whole = speak(&[DOCUMENT]);
    for cut in (0..=DOCUMENT.len()).filter(|cut| DOCUMENT.is_char_boundary(*cut)) {
        let (first, last) = DOCUMENT.split_at(cut);
        assert_eq!(
            speak(&[first, last]),
            whole,
            "cut at {cut}: {:?}",
            &first[first.floor_char_boundary(cut.saturating_sub(20))..]
        );
    }
    let single: Vec<_> = DOCUMENT.split_inclusive(|_| true).collect();
    assert_eq!(speak(&single), whole);
}

/// Pieces of Markdown that are put together at random.
const PIECES: [&str; 56] = [
    "Hello there",
    "It is done. ",
    "Wow! ",
    "e.g. this ",
    "1.5 ",
    "你好。元",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\n\n\n",
    "  \n",
    "- item",
    "\n- ",
    "\n  - ",
    "\n1. ",
    "\n2) two",
    "1986. A year. ",
    "\n# ",
    "\n## Head. Line\n",
    "\n===\n",
    "\n---\n",
    "\n***\n",
    "```rust\n",
    "\n```\n",
    "\n~~~\n",
    "fn f() {}\n",
    "**",
    "*",
    "_",
    "__",
    "~~",
    "`",
    "``",
    "$",
    "$$",
    "[",
    "](http://x.example/)",
    "![",
    "]",
    "[text][ref]",
    "<b>",
    "</b>",
    "<br>",
    "Vec<T>",
    "\n<div>\n",
    "<!-- c -->",
    "| a | b |\n|---|---|\n",
    "| 1 | 2.5 |\n",
    "|",
    "\n> ",
    "\\",
    "&amp;",
    "\n    ",
    "\t",
    "[ ] ",
];

fn markdown() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wherever an output is cut, it is announced as if it had arrived whole.
    #[test]
    fn random_markdown_is_the_same_at_every_cut(text in markdown()) {
        let whole = speak(&[&text]);
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let (first, last) = text.split_at(cut);
            prop_assert_eq!(&speak(&[first, last]), &whole, "cut at {}", cut);
        }
    }

    /// Streaming speaks the same text as parsing the whole document at once.
    #[test]
    fn streaming_speaks_what_the_whole_document_says(text in markdown()) {
        // A sentence before a bar is spoken at once, although its line may turn out to be a table header.
        let is_sentence_before_bar = |line: &str| line.rsplit_once('|').is_some_and(|(before, _)| before.contains(['.', '!', '。']));
        prop_assume!(!text.lines().any(is_sentence_before_bar));
        let mut code_blocks = CodeBlockStore::new(10, 1000);
        let whole = render::render(&text, render::RenderContext::default(), english(), &mut code_blocks);
        prop_assert_eq!(speak(&[&text]), lines_of(&whole));
    }
}

fn stream(max_held_bytes: usize) -> (MarkdownStream, CodeBlockStore) {
    (MarkdownStream::new(max_held_bytes), CodeBlockStore::new(2, 24))
}

#[test]
fn sentences_of_a_paragraph_are_not_held() {
    let (mut stream, mut code_blocks) = stream(16_384);
    for (chunk, expected) in [
        ("It is **done**. ", "It is done. "),
        ("Pay $5", ""),
        (". See [the ", "Pay $5. "),
        ("site. It](x) is new. ", "See the site. It is new. "),
        ("2 * 3 = 6! Next", "2 * 3 = 6! "),
    ] {
        assert_eq!(stream.push(chunk, english(), &mut code_blocks), expected, "{chunk:?}");
        assert!(!stream.holds_block());
    }
    assert_eq!(stream.end_sentence(english(), &mut code_blocks), "Next");
    assert_eq!(stream.push(" word. ", english(), &mut code_blocks), " word. ");
}

#[test]
fn a_long_list_is_spoken_item_by_item_without_its_length() {
    let (mut stream, mut code_blocks) = stream(256);
    let list: String = (1..=40)
        .flat_map(|number| [number.to_string(), ". This is item ".to_owned(), format!("{number}\n")])
        .collect();
    let first = stream.push(&list[..300], english(), &mut code_blocks);
    assert!(first.starts_with("1: This is item 1.\n\n"), "{first}");
    let rest =
        stream.push(&list[300..], english(), &mut code_blocks) + &stream.finish(english(), &mut code_blocks);
    let expected: Vec<_> = (1..=40).map(|number| format!("{number}: This is item {number}.")).collect();
    assert_eq!(lines_of(&(first + &rest)), expected);
}

#[test]
fn a_long_table_is_spoken_row_by_row_with_the_names_of_its_columns() {
    let (mut stream, mut code_blocks) = stream(256);
    let rows: String =
        (1..=40).flat_map(|number| ["| ".to_owned(), number.to_string(), " | word |\n".to_owned()]).collect();
    let spoken = stream.push(&format!("| No | Text |\n|---|---|\n{rows}\nEnd."), english(), &mut code_blocks)
        + &stream.finish(english(), &mut code_blocks);
    let mut expected = vec!["Table, 2 columns.".to_owned()];
    expected.extend((1..=40).map(|number| format!("No: {number}; Text: word.")));
    expected.push("End.".to_owned());
    assert_eq!(lines_of(&spoken), expected);
}

#[test]
fn long_code_is_announced_before_its_end_and_kept_up_to_a_limit() {
    let (mut stream, mut code_blocks) = stream(256);
    let code = "let a = 1;\n".repeat(40);
    let spoken = stream.push(&format!("```rs\n{code}```\nDone. "), english(), &mut code_blocks);
    assert_eq!(lines_of(&spoken), ["Code 1, Rust, still being written.", "Done."]);
    let block = code_blocks.get(None).unwrap();
    assert_eq!((block.text.as_str(), block.was_cut), ("let a = 1;\nlet a = 1;\nle", true));
    stream.push("\n\n```\nb\n```\n```\nc\n```\n", english(), &mut code_blocks);
    assert_eq!(code_blocks.get(Some(2)).unwrap().text, "b\n");
    assert!(code_blocks.get(Some(1)).is_none(), "only two blocks are kept");
}

#[test]
fn no_text_is_lost_at_any_limit() {
    let words = |lines: Vec<String>| -> Vec<String> {
        lines
            .join(" ")
            .split(|c: char| !c.is_alphabetic())
            .filter(|word| word.len() > 3)
            .map(str::to_owned)
            .collect()
    };
    for document in [
        "[never closed. And so on. ",
        "- item with words\n  more of them\n\n",
        "> quoted words\n",
        "word",
        "*some words. ",
    ] {
        let text = document.repeat(80);
        let (mut stream, mut code_blocks) = stream(256);
        let mut spoken = String::new();
        for chunk in text.split_inclusive(' ') {
            spoken.push_str(&stream.push(chunk, english(), &mut code_blocks));
        }
        spoken.push_str(&stream.finish(english(), &mut code_blocks));
        let sayso_words = ["Quote", "quote", "items", "List"];
        let spoken: Vec<_> = words(lines_of(&spoken))
            .into_iter()
            .filter(|word| !sayso_words.contains(&word.as_str()))
            .collect();
        let expected = words(vec![text]);
        assert_eq!(spoken.concat(), expected.concat(), "{document:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// With arbitrary text and arbitrary calls to `release`, nothing panics, no text is held forever, and the held text stays small.
    #[test]
    fn arbitrary_text_is_handled(
        chunks in prop::collection::vec(prop_oneof![markdown(), "\\PC{0,40}", ".{0,20}", "[ -~\n]{0,200}"], 0..12),
        reasons in prop::collection::vec(prop::option::of(any::<bool>()), 12),
    ) {
        let mut stream = MarkdownStream::new(0);
        let mut code_blocks = CodeBlockStore::new(2, 24);
        for (chunk, reason) in chunks.iter().zip(reasons) {
            stream.push(chunk, english(), &mut code_blocks);
            match reason {
                Some(true) => drop(stream.release(ReleaseReason::Pause, english(), &mut code_blocks)),
                Some(false) => drop(stream.release(ReleaseReason::Limit, english(), &mut code_blocks)),
                None => {}
            }
            prop_assert!(stream.held_bytes() <= 256 + 4, "{}", stream.held_bytes());
        }
        stream.finish(english(), &mut code_blocks);
        prop_assert_eq!(stream.held_bytes(), 0);
    }
}

/// Without the rule in `is_worth_parsing`, this test takes minutes.
#[test]
fn long_blocks_are_not_parsed_at_every_line() {
    for piece in ["-\n", "[a. ", "> a\n", "<a. ", "- a\n  - b\n", "*a. ", "```\nb\n"] {
        let text = piece.repeat(65_536 / piece.len());
        let (mut stream, mut code_blocks) = stream(16_384);
        stream.push(&text, english(), &mut code_blocks);
        assert!(stream.held_bytes() <= 16_384, "{piece:?}: {}", stream.held_bytes());
    }
}

/// Rendering is recursive, so elements inside each other are limited. Without the limit, the stack overflows.
#[test]
fn deeply_nested_elements_are_spoken() {
    for (open, text) in [(">", "quoted"), ("- ", "item"), ("[", "link"), ("*a ", "emphasis")] {
        let spoken = speak(&[&format!("{}{text}", open.repeat(16_000 / open.len()))]);
        assert!(
            spoken.last().unwrap().contains(text) || spoken.iter().any(|line| line.contains(text)),
            "{open}"
        );
        let tree = parse_for_page(&[open.repeat(16_000 / open.len())], true, english());
        assert!(tree.matches("\"children\"").count() <= 16_000, "{open}");
    }
}

/// The page announces what is new in `spoken`, so text that was announced must not change.
#[test]
fn the_text_that_the_page_announces_only_grows() {
    let ends = DOCUMENT.char_indices().map(|(at, _)| at).chain([DOCUMENT.len()]);
    let mut before = String::new();
    for end in ends.step_by(7) {
        let response = parse_for_page(&[DOCUMENT[..end].to_owned()], false, english());
        let spoken =
            response.split_once("\"spoken\":\"").unwrap().1.rsplit_once("\",\"held\"").unwrap().0.to_owned();
        assert!(spoken.starts_with(&before), "{before}\n{spoken}");
        before = spoken;
    }
    assert!(before.contains("Heading: Weekly report.") && before.contains("3 lines, Rust"), "{before}");
}

#[test]
fn math_is_spoken_without_its_delimiters_and_amounts_keep_their_signs() {
    for (text, expected) in [
        ("So $x^2 + 1$ holds.", "So x squared plus 1 holds."),
        ("So $$a = b$$ holds.", "So a equals b holds."),
        ("Let $n$ be even.", "Let n be even."),
        ("So $\\sum_{i=1}^{n} i$ holds.", "So \\sum_{i=1}^{n} i holds."),
        ("It costs 5$ or 6$ now.", "It costs 5$ or 6$ now."),
        ("Between $5 and 6$ a day.", "Between $5 and 6$ a day."),
    ] {
        assert_eq!(speak(&[text]), [expected]);
    }
}
