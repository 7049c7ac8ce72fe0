//! Properties that hold for every recording, every event and every text, valid or not.

use aaep::Timestamp;
use aaep::check::Validator;
use aaep::event::Event;
use aaep::grammar::{is_language_tag, is_uri};
use aaep::json::{SyntaxErrorKind, Tape};
use aaep::message::Message;
use aaep::rule::{Findings, ValidationMode};
use aaep::secret::find_secrets;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::byte_choices::RandomChoices;
use crate::support::event_writer::CORE_CONTEXT;
use crate::support::recording_check::{check_recording, describe_finding, errors};
use crate::support::recording_line::{RecordingLine, rank};
use crate::support::sample_recording::SampleRecording;
use crate::support::{malformed_json, random_bytes, sample_messages};
use testing::property::cases;

/// The only warnings that a generated recording may cause. Some state changes have no `summary_normal`, which
/// is recommended there but not required (§4.2.1), and some agents do not make the call that was accepted (§4.5.3).
const EXPECTED_WARNINGS: [&str; 2] = ["AAEP-9.3.1-7", "AAEP-4.5.3-2"];

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn valid_recordings_pass_in_both_modes(bytes in random_bytes(400)) {
        let texts = SampleRecording::of(&bytes).texts();
        for mode in [ValidationMode::Strict, ValidationMode::Receive] {
            let unexpected: Vec<_> = check_recording(&texts, mode)
                .iter()
                .filter(|(_, finding)| !EXPECTED_WARNINGS.contains(&finding.rule.id()))
                .map(|(line, finding)| describe_finding(*line, finding))
                .collect();
            prop_assert!(unexpected.is_empty(), "{mode:?}\n{}\n{}", unexpected.join("\n"), texts.join("\n"));
        }
    }

    #[test]
    fn parsed_lines_are_written_without_loss(bytes in random_bytes(300)) {
        for line in &SampleRecording::of(&bytes).lines {
            check_round_trip(line, &line.to_json())?;
        }
    }

    #[test]
    fn unknown_or_invalid_members_are_written_without_loss(bytes in random_bytes(300), edits in random_bytes(60)) {
        let mut lines = SampleRecording::of(&bytes).lines;
        lines.extend(sample_messages::all());
        let mut choices = RandomChoices::new(&edits);
        for _ in 0..8 {
            let mut line = lines[choices.below_large(lines.len())].clone();
            insert_unknown_content(&mut choices, &mut line);
            check_round_trip(&line, &line.to_json())?;
        }
    }
}

proptest! {
    #![proptest_config(cases(1200))]

    #[test]
    fn no_text_causes_a_panic(text in any::<String>()) {
        call_parsers_and_checks(&[text]);
    }

    #[test]
    fn no_json_causes_a_panic(bytes in random_bytes(200)) {
        call_parsers_and_checks(&[malformed_json::json(&mut RandomChoices::new(&bytes), 5)]);
    }

    #[test]
    fn no_damaged_recording_causes_a_panic(bytes in random_bytes(200), edits in random_bytes(200)) {
        let lines = SampleRecording::of(&bytes).lines;
        let mut choices = RandomChoices::new(&edits);
        let messages = sample_messages::all().into_iter().filter(|_| choices.one_in(8));
        let texts: Vec<_> = messages
            .chain(lines)
            .collect::<Vec<_>>()
            .iter()
            .map(|line| match choices.below(4) {
                0 => line.to_json(),
                1 => malformed_json::damage(&mut choices, &line.to_json()),
                _ => malformed_json::line(&mut choices, line),
            })
            .collect();
        call_parsers_and_checks(&texts);
    }

    #[test]
    fn malformed_events_round_trip(bytes in random_bytes(60), edits in random_bytes(120)) {
        let recording = SampleRecording::of(&bytes);
        let mut choices = RandomChoices::new(&edits);
        for line in &recording.lines {
            let text = malformed_json::line(&mut choices, line);
            if let Some(event) = Event::parse(&text) {
                prop_assert_eq!(Event::parse(&event.to_json()), Some(event), "{}", text);
            }
            if let Some(message) = Message::parse(&text) {
                prop_assert_eq!(Message::parse(&message.to_json()), Some(message), "{}", text);
            }
        }
    }

    #[test]
    fn a_timestamp_round_trips(bytes in random_bytes(40)) {
        let text = timestamp_like_text(&mut RandomChoices::new(&bytes));
        if let Ok(timestamp) = Timestamp::parse_rfc3339(&text) {
            // Digits after the ninth are dropped.
            prop_assert_eq!(timestamp.to_string(), text.replace(".1234567890", ".123456789"));
            prop_assert_eq!(Timestamp::parse_rfc3339(&timestamp.to_string()), Ok(timestamp));
        }
    }
}

proptest! {
    #![proptest_config(cases(5000))]

    #[test]
    fn the_reader_agrees_with_serde_json(bytes in random_bytes(80), edits in random_bytes(24)) {
        let mut choices = RandomChoices::new(&bytes);
        let original = malformed_json::json(&mut choices, 4);
        compare_readers(&original)?;
        compare_readers(&malformed_json::damage(&mut RandomChoices::new(&edits), &original))?;
    }

    #[test]
    fn the_reader_agrees_with_serde_json_on_damaged_events(bytes in random_bytes(60), edits in random_bytes(24)) {
        let mut choices = RandomChoices::new(&edits);
        let lines = SampleRecording::of(&bytes).lines;
        let line = &lines[choices.below_large(lines.len())];
        compare_readers(&malformed_json::damage(&mut choices, &line.to_json()))?;
    }
}

/// Checks that reading, writing and reading again gives an equal event or message, the same JSON value, and
/// the recommended order.
fn check_round_trip(line: &RecordingLine, text: &str) -> Result<(), TestCaseError> {
    let written = if line.kind().is_event() {
        // An event whose mandatory members are invalid cannot be represented.
        let Some(event) = Event::parse(text) else {
            prop_assert!(!has_valid_envelope(line), "not parsed: {}", text);
            return Ok(());
        };
        let written = event.to_json();
        prop_assert_eq!(Event::parse(&written), Some(event));
        check_member_order(&written)?;
        written
    } else {
        let Some(message) = Message::parse(text) else { return Ok(()) };
        let written = message.to_json();
        prop_assert_eq!(Message::parse(&written), Some(message));
        written
    };
    let (before, after): (Value, Value) =
        (serde_json::from_str(text).unwrap(), serde_json::from_str(&written).unwrap());
    prop_assert!(is_equivalent(&before, &after), "{}\nbecame\n{}", text, written);
    Ok(())
}

/// Returns whether the six members that every event has are present and valid.
fn has_valid_envelope(line: &RecordingLine) -> bool {
    let is_core = |context: &Value| {
        context.as_str().is_some_and(|context| context.starts_with("https://aaep-protocol.org/"))
    };
    let has_valid_context = line.get("@context").is_some_and(|context| match context {
        Value::Array(items) => items.first().is_some_and(is_core) && items.iter().all(Value::is_string),
        context => is_core(context),
    });
    has_valid_context
        && line.get("type").is_some_and(Value::is_string)
        && line.text("event_id").starts_with("evt_")
        && line.session().starts_with("sess_")
        && line.text("timestamp").starts_with("2026-")
        && line.text_at("/producer/agent_id").is_some()
}

/// Checks the order of §3.6: the envelope, then the payload, then extensions.
fn check_member_order(written: &str) -> Result<(), TestCaseError> {
    let mut tape = Tape::default();
    let doc = tape.read(written).unwrap();
    // An envelope member with an invalid value is written with the payload.
    let is_representable = |name: &str, value: &aaep::json::JsonValue<'_>| match name {
        "sequence_number" => value.as_number().is_some_and(|number| {
            !number.is_unsafe_integer() && number.as_i64().is_some_and(|number| number >= 0)
        }),
        "localization_hints" | "extensions" => value.kind() == aaep::json::JsonKind::Object,
        "aaep_version" | "verbosity" | "urgency" | "correlation_id" => value.text().is_some(),
        _ => true,
    };
    let ranks: Vec<_> = doc
        .root()
        .members()
        .map(|(key, value)| (key.text().unwrap(), value))
        .map(|(name, value)| if is_representable(&name, &value) { rank(&name) } else { rank("payload") })
        .collect();
    prop_assert!(ranks.is_sorted(), "{}", written);
    Ok(())
}

/// Returns whether two values are equal. `4.0` equals 4 (C-A19), and a core type may be written in full
/// (C-A3).
fn is_equivalent(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Number(before), Value::Number(after)) => before.as_f64() == after.as_f64(),
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(before, after)| is_equivalent(before, after))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .all(|(name, before)| after.get(name).is_some_and(|after| is_equivalent(before, after)))
        }
        (Value::String(before), Value::String(after)) => {
            before
                .strip_prefix("https://aaep-protocol.org/types/")
                .is_some_and(|local| *after == format!("aaep:{local}"))
                || before == after
        }
        _ => before == after,
    }
}

/// Adds unknown members, and values of an unexpected type.
fn insert_unknown_content(choices: &mut RandomChoices<'_>, line: &mut RecordingLine) {
    let names: Vec<String> = line.names().map(ToOwned::to_owned).collect();
    for _ in 0..=choices.below(3) {
        let unknown = match choices.below(8) {
            0 => json!("purple"),
            1 => json!(7),
            2 => json!(-2.5),
            3 => json!(null),
            4 => json!(["purple", 4.0, { "deep": [true] }]),
            5 => json!({ "purple": "😀", "percent": 12.0 }),
            6 => json!(9_007_199_254_740_993_u64),
            _ => json!([]),
        };
        match choices.below(7) {
            0 => line.set("from_the_future", unknown),
            6 if !line.has("@context") => line.set("@context", json!(CORE_CONTEXT)),
            1 => line.set("type", json!(choices.pick(&["medai:patient.seen", "urn:x:y", "aaep:agent.new"]))),
            2 if line.text("type").starts_with("aaep:") => {
                let full = line.text("type").replace("aaep:", "https://aaep-protocol.org/types/");
                line.set("type", json!(full));
            }
            3 if line.has("producer") => line.change("/producer/colour", Some(unknown)),
            4 if line.has("progress") => line.change("/progress/percent", Some(unknown)),
            _ => {
                let name = &names[choices.below(names.len())];
                if name != "type" {
                    line.set(name, unknown);
                }
            }
        }
    }
}

/// Calls the functions that read untrusted events, messages and text.
fn call_parsers_and_checks(texts: &[String]) {
    for mode in [ValidationMode::Strict, ValidationMode::Receive] {
        let _ = errors(texts, mode);
    }
    for text in texts {
        if let Some(event) = Event::parse(text) {
            let _ = event.to_json();
        }
        if let Some(message) = Message::parse(text) {
            let _ = message.to_json();
        }
        let _ = (find_secrets(text).count(), is_uri(text), is_language_tag(text), Timestamp::parse(text));
        let _ = aaep::json::unescape(text);
    }
    Validator::report_empty_input(&mut Findings::new(ValidationMode::Strict));
}

/// Returns a text that resembles a timestamp: the right characters, mostly in the right positions.
fn timestamp_like_text(choices: &mut RandomChoices<'_>) -> String {
    let two_digits = |choices: &mut RandomChoices<'_>| {
        format!("{:02}", choices.pick(&[0, 1, 2, 6, 12, 23, 28, 29, 30, 31, 59, 60, 61]))
    };
    let year = choices.pick(&["2016", "0000", "1972", "2026", "9999", "1900", "2000", "20x6"]);
    let (month, day) = (two_digits(choices), two_digits(choices));
    let separator = choices.pick(&["T", "t", " ", ""]);
    let (hour, minute, second) = (two_digits(choices), two_digits(choices), two_digits(choices));
    let fraction = choices.pick(&["", ".", ".5", ".000", ".123456", ".123456789", ".1234567890"]);
    let offset = match choices.below(6) {
        0 => "Z".to_owned(),
        1 => "z".to_owned(),
        2 => String::new(),
        3 => "-00:00".to_owned(),
        sign => {
            format!("{}{}:{}", if sign == 4 { '+' } else { '-' }, two_digits(choices), two_digits(choices))
        }
    };
    format!("{year}-{month}-{day}{separator}{hour}:{minute}:{second}{fraction}{offset}")
}

/// Checks that our reader and serde_json both reject the text, or both accept it with equal values. There are two
/// exceptions. Our reader may reject deep nesting that serde_json accepts. Our reader accepts and notes lone
/// surrogates and numbers beyond the range of a double, which serde_json rejects.
fn compare_readers(text: &str) -> Result<(), TestCaseError> {
    let mut tape = Tape::default();
    let theirs = serde_json::from_str::<Value>(text);
    match tape.read(text) {
        Err(error) if error.kind == SyntaxErrorKind::TooDeep => {}
        Err(error) => prop_assert!(theirs.is_err(), "our reader reports {}: {:?}", error, text),
        Ok(doc) if doc.notes().has_lone_surrogate || doc.notes().has_out_of_range_number => {
            prop_assert!(theirs.is_err(), "serde_json accepts {:?}", text);
        }
        Ok(doc) => match theirs {
            Ok(theirs) => prop_assert!(is_equal(doc.root(), &theirs), "{:?}", text),
            Err(error) => prop_assert!(false, "serde_json reports {}: {:?}", error, text),
        },
    }
    Ok(())
}

fn is_equal(ours: aaep::json::JsonValue<'_>, theirs: &Value) -> bool {
    match theirs {
        Value::Null => ours.kind() == aaep::json::JsonKind::Null,
        Value::Bool(value) => ours.as_bool() == Some(*value),
        Value::String(text) => ours.text().is_some_and(|ours| ours == **text),
        Value::Number(theirs) => ours.as_number().is_some_and(|ours| {
            let (a, b) = (ours.as_f64(), theirs.as_f64().unwrap_or(f64::NAN));
            // serde_json's fast path for fractions may differ from the nearest double in the last bit.
            let is_close = (a - b).abs() <= a.abs() * f64::EPSILON;
            is_close && (!theirs.is_i64() || ours.as_i64() == theirs.as_i64())
        }),
        Value::Array(theirs) => {
            ours.items().count() == theirs.len()
                && ours.items().zip(theirs).all(|(ours, theirs)| is_equal(ours, theirs))
        }
        Value::Object(theirs) => {
            ours.kind() == aaep::json::JsonKind::Object
                && ours.members().all(|(key, _)| theirs.contains_key(&*key.text().unwrap_or_default()))
                && theirs
                    .iter()
                    .all(|(name, theirs)| ours.member(name).is_some_and(|ours| is_equal(ours, theirs)))
        }
    }
}
