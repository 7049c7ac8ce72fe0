//! What a display shows, and which keys answer a question.

use super::brlapi::{key_file, tty_path};
use super::reader::{CONFIRM_WITHIN_MS, DisplayKey, DisplaySize, MAX_ANNOUNCEMENTS};
use super::*;
use proptest::prelude::*;
use seal::UnixMillis;

const NOW: UnixMillis = UnixMillis::new(1_000_000);

fn reader(columns: usize, rows: usize) -> BrailleReader {
    let mut reader = BrailleReader::new(Phrases::for_languages(&[]));
    reader.set_size(DisplaySize { columns, rows });
    reader
}

fn question(number: u32, text: &str) -> BrailleQuestion {
    let answer = |label: &str| BrailleAnswer {
        label: label.to_owned(),
        command: format!("{label} {number}"),
        confirm_hint: format!("press {label} again to send"),
    };
    BrailleQuestion {
        number,
        paragraphs: vec![text.to_owned()],
        answers: vec![answer("yes"), answer("no")],
        hint: "routing key above your answer".to_owned(),
        cancel: "cancel".to_owned(),
    }
}

fn add(reader: &mut BrailleReader, text: &str) {
    reader.add_announcement(vec![text.to_owned()]);
}

fn shown(reader: &BrailleReader) -> String {
    reader.window().trim_end().to_owned()
}

fn press(reader: &mut BrailleReader, key: DisplayKey) -> String {
    assert_eq!(reader.press(key, NOW), None);
    shown(reader)
}

/// Presses the routing key above the first cell of a word.
fn route(reader: &mut BrailleReader, word: &str, now: UnixMillis) -> Option<String> {
    let window = reader.window();
    let at = window.split(' ').scan(0, |at, part| {
        let start = *at;
        *at += part.chars().count() + 1;
        Some((start, part.to_owned()))
    });
    let (cell, _) = at.into_iter().find(|(_, part)| part == word).unwrap();
    reader.press(DisplayKey::Route(cell), now)
}

#[test]
fn an_announcement_stays_until_the_person_moves_on() {
    let mut reader = reader(20, 1);
    assert_eq!(shown(&reader), "");
    add(&mut reader, "agent: The first sentence is long.");
    add(&mut reader, "agent: Second.");
    assert_eq!(shown(&reader), "agent: The first");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "sentence is long.");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "agent: Second.");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "");
    add(&mut reader, "agent: Third.");
    assert_eq!(shown(&reader), "agent: Third.");
    assert_eq!(press(&mut reader, DisplayKey::Back), "agent: Second.");
    assert_eq!(press(&mut reader, DisplayKey::Back), "sentence is long.");
    assert_eq!(press(&mut reader, DisplayKey::Back), "agent: The first");
    assert_eq!(press(&mut reader, DisplayKey::Back), "agent: The first");
}

#[test]
fn a_question_interrupts_and_stays_until_it_is_closed() {
    let mut reader = reader(40, 1);
    add(&mut reader, "agent: One.");
    reader.open_question(question(1, "ask: Question 1: Send 5 euros?"));
    assert_eq!(shown(&reader), "ask: Question 1: Send 5 euros?");
    add(&mut reader, "agent: Two.");
    assert_eq!(shown(&reader), "ask: Question 1: Send 5 euros?");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "yes no routing key above your answer");
    // The announcements can be read in the meantime, and the question comes back after them.
    assert_eq!(press(&mut reader, DisplayKey::Forward), "agent: One.");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "agent: Two.");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "ask: Question 1: Send 5 euros?");
    reader.open_question(question(2, "ask: Question 2: Delete it?"));
    assert_eq!(shown(&reader), "ask: Question 2: Delete it?");
    press(&mut reader, DisplayKey::Forward);
    assert_eq!(press(&mut reader, DisplayKey::Forward), "ask: Question 1: Send 5 euros?");
    reader.close_question(2);
    assert_eq!(shown(&reader), "ask: Question 1: Send 5 euros?");
    reader.close_question(1);
    assert_eq!(shown(&reader), "");
}

#[test]
fn an_answer_needs_two_different_keys_above_the_same_answer() {
    let mut reader = reader(40, 1);
    reader.open_question(question(7, "ask: Question 7: Send 5 euros?"));
    press(&mut reader, DisplayKey::Forward);
    assert_eq!(route(&mut reader, "yes", NOW), None);
    assert_eq!(shown(&reader), "cancel yes no press yes again to send");
    assert_eq!(route(&mut reader, "yes", NOW).as_deref(), Some("yes 7"));
    assert_eq!(route(&mut reader, "no", NOW), None);
    assert_eq!(shown(&reader), "cancel yes no press no again to send");
    assert_eq!(route(&mut reader, "no", NOW).as_deref(), Some("no 7"));
}

#[test]
fn any_other_second_key_cancels_the_answer() {
    let others = [DisplayKey::Forward, DisplayKey::Back, DisplayKey::Route(0), DisplayKey::Route(39)];
    for key in others {
        let mut reader = reader(40, 1);
        reader.open_question(question(1, "ask: Question 1: Send 5 euros?"));
        press(&mut reader, DisplayKey::Forward);
        route(&mut reader, "yes", NOW);
        assert_eq!(press(&mut reader, key), "yes no routing key above your answer", "{key:?}");
    }
    let mut reader = reader(40, 1);
    reader.open_question(question(1, "ask: Question 1: Send 5 euros?"));
    press(&mut reader, DisplayKey::Forward);
    route(&mut reader, "yes", NOW);
    assert_eq!(route(&mut reader, "no", NOW), None, "yes, then no");
    route(&mut reader, "yes", NOW);
    let late = UnixMillis::new(1_000_000 + CONFIRM_WITHIN_MS + 1);
    assert_eq!(route(&mut reader, "yes", late), None, "too late");
    route(&mut reader, "yes", NOW);
    reader.open_question(question(2, "ask: Question 2: Delete it?"));
    assert_eq!(press(&mut reader, DisplayKey::Route(7)), "ask: Question 2: Delete it?");
    reader.close_question(2);
    assert_eq!(shown(&reader), "ask: Question 1: Send 5 euros?");
}

#[test]
fn a_display_with_several_rows_shows_several_lines() {
    let mut reader = reader(20, 2);
    reader.open_question(question(1, "ask: Question 1: Send 5 euros?"));
    assert_eq!(reader.window(), "ask: Question 1:    Send 5 euros?       ");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "yes no routing key  above your answer");
}

#[test]
fn the_person_is_told_how_many_unread_announcements_were_dropped() {
    let mut reader = reader(80, 1);
    for number in 0..MAX_ANNOUNCEMENTS + 2 {
        add(&mut reader, &format!("agent: {number}."));
    }
    assert_eq!(shown(&reader), "2 earlier messages were skipped, because too many came at once.");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "agent: 2.");
    assert_eq!(press(&mut reader, DisplayKey::Forward), "agent: 3.");
}

proptest! {
    #[test]
    fn panning_shows_every_word_in_order_on_every_display(
        texts in prop::collection::vec("[a-zẹọ\u{301}é ]{1,60}", 1..5),
        rows in 1_usize..4,
    ) {
        let spoken: Vec<String> = texts.iter().map(|text| format!("agent: {text}")).collect();
        let expected: String = cells::cells_of(&spoken.concat(), None).iter().map(|cell| cell.character).collect();
        let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
        for columns in 1..=80 {
            let mut reader = reader(columns, rows);
            for text in &spoken {
                add(&mut reader, text);
            }
            let mut read = String::new();
            loop {
                let window = reader.window();
                prop_assert_eq!(window.chars().count(), columns * rows);
                if window.trim().is_empty() {
                    break;
                }
                read.push_str(&window);
                reader.press(DisplayKey::Forward, NOW);
            }
            prop_assert_eq!(without_spaces(&read), without_spaces(&expected));
        }
    }

    #[test]
    fn one_key_never_answers(columns in 1_usize..=80, keys in prop::collection::vec(0_usize..90, 1..60)) {
        let mut reader = reader(columns, 1);
        reader.open_question(question(1, "ask: Question 1: Send 5 euros to Ben?"));
        // The same key, pressed any number of times, and panning in between.
        for cell in keys {
            for _ in 0..4 {
                prop_assert_eq!(reader.press(DisplayKey::Route(cell), NOW), None);
            }
            reader.press(DisplayKey::Back, NOW);
            reader.press(DisplayKey::Forward, NOW);
        }
    }
}

#[test]
fn the_key_file_and_the_tty_are_found_as_brltty_does() {
    let default = std::path::Path::new("/etc/brlapi.key");
    assert_eq!(key_file(None), default);
    assert_eq!(key_file(Some("none")), default);
    assert_eq!(key_file(Some("polkit+keyfile:/tmp/key")), std::path::Path::new("/tmp/key"));
    let path = |variables: &[(&str, &str)], stdin: &str| {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        tty_path(find, Some(std::path::Path::new(stdin)))
    };
    assert_eq!(path(&[], "/dev/pts/3"), Vec::<u32>::new());
    assert_eq!(path(&[("XDG_VTNR", "2")], "/dev/tty4"), [4]);
    assert_eq!(path(&[("DISPLAY", ":0"), ("XDG_VTNR", "2"), ("WINDOWID", "77")], "/dev/pts/3"), [2, 77]);
    assert_eq!(path(&[("WINDOWPATH", "7:9"), ("WINDOWID", "77")], "/dev/pts/3"), [7, 9, 77]);
}
