//! What holds for every recording, every event and every text, however it came about.

use aaep::Timestamp;
use aaep::check::Validator;
use aaep::event::Event;
use aaep::form::{is_language_tag, is_uri};
use aaep::json::{Problem, Tape};
use aaep::message::Message;
use aaep::rule::{Face, Findings};
use aaep::secret::find_secrets;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::choices::Choices;
use crate::support::judge::{errors, in_words, judge};
use crate::support::line::{Line, rank};
use crate::support::recording::Recording;
use crate::support::scribe::CORE_CONTEXT;
use crate::support::{decisions, messages, odd};
use testing::property::cases;

/// The only warning that a generated recording may earn: now and then a change of state says nothing, and
/// `summary_normal` is advised there, not required (§4.2.1).
const ADVICE: [&str; 1] = ["AAEP-9.3.1-7"];

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn lawful_recordings_pass_in_both_faces(bytes in decisions(400)) {
        let texts = Recording::of(&bytes).texts();
        for face in [Face::Strict, Face::Receive] {
            let unexpected: Vec<_> = judge(&texts, face)
                .iter()
                .filter(|(_, finding)| !ADVICE.contains(&finding.rule.id()))
                .map(|(line, finding)| in_words(*line, finding))
                .collect();
            prop_assert!(unexpected.is_empty(), "{face:?}\n{}\n{}", unexpected.join("\n"), texts.join("\n"));
        }
    }

    #[test]
    fn what_is_read_is_written_without_loss(bytes in decisions(300)) {
        for line in &Recording::of(&bytes).lines {
            lossless(line, &line.to_json())?;
        }
    }

    #[test]
    fn what_is_unknown_or_wrong_is_written_without_loss(bytes in decisions(300), edits in decisions(60)) {
        let mut lines = Recording::of(&bytes).lines;
        lines.extend(messages::all());
        let mut choices = Choices::new(&edits);
        for _ in 0..8 {
            let mut line = lines[choices.place(lines.len())].clone();
            make_foreign(&mut choices, &mut line);
            lossless(&line, &line.to_json())?;
        }
    }
}

proptest! {
    #![proptest_config(cases(1200))]

    #[test]
    fn no_text_makes_anything_panic(text in any::<String>()) {
        try_everything(&[text]);
    }

    #[test]
    fn no_json_makes_anything_panic(bytes in decisions(200)) {
        try_everything(&[odd::json(&mut Choices::new(&bytes), 5)]);
    }

    #[test]
    fn no_damaged_recording_makes_anything_panic(bytes in decisions(200), edits in decisions(200)) {
        let lines = Recording::of(&bytes).lines;
        let mut choices = Choices::new(&edits);
        let messages = messages::all().into_iter().filter(|_| choices.rarely(8));
        let texts: Vec<_> = messages
            .chain(lines)
            .collect::<Vec<_>>()
            .iter()
            .map(|line| match choices.below(4) {
                0 => line.to_json(),
                1 => odd::damaged(&mut choices, &line.to_json()),
                _ => odd::line(&mut choices, line),
            })
            .collect();
        try_everything(&texts);
    }

    #[test]
    fn odd_events_still_read_back_as_they_were_written(bytes in decisions(60), edits in decisions(120)) {
        let recording = Recording::of(&bytes);
        let mut choices = Choices::new(&edits);
        for line in &recording.lines {
            let text = odd::line(&mut choices, line);
            if let Some(event) = Event::parse(&text) {
                prop_assert_eq!(Event::parse(&event.to_json()), Some(event), "{}", text);
            }
            if let Some(message) = Message::parse(&text) {
                prop_assert_eq!(Message::parse(&message.to_json()), Some(message), "{}", text);
            }
        }
    }

    #[test]
    fn a_timestamp_is_written_as_it_was_read(bytes in decisions(40)) {
        let text = almost_a_timestamp(&mut Choices::new(&bytes));
        if let Ok(read) = Timestamp::parse_rfc3339(&text) {
            // Digits after the ninth are dropped.
            prop_assert_eq!(read.to_string(), text.replace(".1234567890", ".123456789"));
            prop_assert_eq!(Timestamp::parse_rfc3339(&read.to_string()), Ok(read));
        }
    }
}

proptest! {
    #![proptest_config(cases(5000))]

    #[test]
    fn the_reader_agrees_with_serde_json(bytes in decisions(80), edits in decisions(24)) {
        let mut choices = Choices::new(&bytes);
        let whole = odd::json(&mut choices, 4);
        compare_readers(&whole)?;
        compare_readers(&odd::damaged(&mut Choices::new(&edits), &whole))?;
    }

    #[test]
    fn the_reader_agrees_with_serde_json_on_damaged_events(bytes in decisions(60), edits in decisions(24)) {
        let mut choices = Choices::new(&edits);
        let lines = Recording::of(&bytes).lines;
        let line = &lines[choices.place(lines.len())];
        compare_readers(&odd::damaged(&mut choices, &line.to_json()))?;
    }
}

/// Reading, writing and reading again gives an equal event or message, the same JSON value, and the advised order.
fn lossless(line: &Line, text: &str) -> Result<(), TestCaseError> {
    let printed = if line.kind().is_event() {
        // What every event has cannot be held if it is wrong; then there is no event.
        let Some(event) = Event::parse(text) else {
            prop_assert!(!has_sound_envelope(line), "not read: {}", text);
            return Ok(());
        };
        let printed = event.to_json();
        prop_assert_eq!(Event::parse(&printed), Some(event));
        in_advised_order(&printed)?;
        printed
    } else {
        let Some(message) = Message::parse(text) else { return Ok(()) };
        let printed = message.to_json();
        prop_assert_eq!(Message::parse(&printed), Some(message));
        printed
    };
    let (before, after): (Value, Value) =
        (serde_json::from_str(text).unwrap(), serde_json::from_str(&printed).unwrap());
    prop_assert!(same(&before, &after), "{}\nbecame\n{}", text, printed);
    Ok(())
}

/// Whether the six members that every event has are there and can be held.
fn has_sound_envelope(line: &Line) -> bool {
    let context = line.get("@context").is_some_and(|context| match context {
        Value::Array(items) => items.iter().all(Value::is_string),
        context => context.as_str().is_some_and(|context| context.starts_with("https://aaep-protocol.org/")),
    });
    context
        && line.get("type").is_some_and(Value::is_string)
        && line.text("event_id").starts_with("evt_")
        && line.session().starts_with("sess_")
        && line.text("timestamp").starts_with("2026-")
        && line.text_at("/producer/agent_id").is_some()
}

/// §3.6: the envelope, then the payload, then extensions.
fn in_advised_order(printed: &str) -> Result<(), TestCaseError> {
    let mut tape = Tape::default();
    let doc = tape.read(printed).unwrap();
    // A member of the envelope that could not be held stands with the payload.
    let held = |name: &str, value: &aaep::json::Value<'_>| match name {
        "sequence_number" => value
            .number()
            .is_some_and(|number| !number.is_big() && number.as_i64().is_some_and(|number| number >= 0)),
        "localization_hints" | "extensions" => value.kind() == aaep::json::Kind::Object,
        "aaep_version" | "verbosity" | "urgency" | "correlation_id" => value.text().is_some(),
        _ => true,
    };
    let ranks: Vec<_> = doc
        .root()
        .members()
        .map(|(key, value)| (key.text().unwrap(), value))
        .map(|(name, value)| if held(&name, &value) { rank(&name) } else { rank("payload") })
        .collect();
    prop_assert!(ranks.is_sorted(), "{}", printed);
    Ok(())
}

/// Equal, but that `4.0` is 4 (C-A19) and that a core type may be written in full (C-A3).
fn same(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Number(before), Value::Number(after)) => before.as_f64() == after.as_f64(),
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(before, after)| same(before, after))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .all(|(name, before)| after.get(name).is_some_and(|after| same(before, after)))
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

/// Puts into a line what this version does not know, or knows in another form.
fn make_foreign(choices: &mut Choices<'_>, line: &mut Line) {
    let names: Vec<String> = line.names().map(ToOwned::to_owned).collect();
    for _ in 0..=choices.below(3) {
        let foreign = match choices.below(8) {
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
            0 => line.set("from_the_future", foreign),
            6 if !line.has("@context") => line.set("@context", json!(CORE_CONTEXT)),
            1 => line.set("type", json!(choices.of(&["medai:patient.seen", "urn:x:y", "aaep:agent.new"]))),
            2 if line.text("type").starts_with("aaep:") => {
                let full = line.text("type").replace("aaep:", "https://aaep-protocol.org/types/");
                line.set("type", json!(full));
            }
            3 if line.has("producer") => line.change("/producer/colour", Some(foreign)),
            4 if line.has("progress") => line.change("/progress/percent", Some(foreign)),
            _ => {
                let name = &names[choices.below(names.len())];
                if name != "type" {
                    line.set(name, foreign);
                }
            }
        }
    }
}

/// Every entrance to the core that takes what strangers wrote.
fn try_everything(texts: &[String]) {
    for face in [Face::Strict, Face::Receive] {
        let _ = errors(texts, face);
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
    Validator::refuse_empty(&mut Findings::new(Face::Strict));
}

/// Made of the right characters, mostly at the right places.
fn almost_a_timestamp(choices: &mut Choices<'_>) -> String {
    let two = |choices: &mut Choices<'_>| {
        format!("{:02}", choices.of(&[0, 1, 2, 6, 12, 23, 28, 29, 30, 31, 59, 60, 61]))
    };
    let year = choices.of(&["2016", "0000", "1972", "2026", "9999", "1900", "2000", "20x6"]);
    let (month, day) = (two(choices), two(choices));
    let t = choices.of(&["T", "t", " ", ""]);
    let (hour, minute, second) = (two(choices), two(choices), two(choices));
    let fraction = choices.of(&["", ".", ".5", ".000", ".123456", ".123456789", ".1234567890"]);
    let offset = match choices.below(6) {
        0 => "Z".to_owned(),
        1 => "z".to_owned(),
        2 => String::new(),
        3 => "-00:00".to_owned(),
        sign => format!("{}{}:{}", if sign == 4 { '+' } else { '-' }, two(choices), two(choices)),
    };
    format!("{year}-{month}-{day}{t}{hour}:{minute}:{second}{fraction}{offset}")
}

/// Both take it, with equal values, or both refuse it; but for depth, half surrogates and numbers beyond a double,
/// which we note and serde_json refuses.
fn compare_readers(text: &str) -> Result<(), TestCaseError> {
    let mut tape = Tape::default();
    let theirs = serde_json::from_str::<Value>(text);
    match tape.read(text) {
        Err(error) if error.problem == Problem::Depth => {}
        Err(error) => prop_assert!(theirs.is_err(), "we say {}: {:?}", error, text),
        Ok(doc) if doc.marks().lone_surrogate || doc.marks().huge_number => {
            prop_assert!(theirs.is_err(), "serde_json takes {:?}", text);
        }
        Ok(doc) => match theirs {
            Ok(theirs) => prop_assert!(equal(doc.root(), &theirs), "{:?}", text),
            Err(error) => prop_assert!(false, "serde_json says {}: {:?}", error, text),
        },
    }
    Ok(())
}

fn equal(ours: aaep::json::Value<'_>, theirs: &Value) -> bool {
    match theirs {
        Value::Null => ours.kind() == aaep::json::Kind::Null,
        Value::Bool(value) => ours.boolean() == Some(*value),
        Value::String(text) => ours.text().is_some_and(|ours| ours == **text),
        Value::Number(theirs) => ours.number().is_some_and(|ours| {
            let (a, b) = (ours.as_f64(), theirs.as_f64().unwrap_or(f64::NAN));
            // serde_json's quick way of reading fractions may miss the nearest double by one.
            let close = (a - b).abs() <= a.abs() * f64::EPSILON;
            close && (!theirs.is_i64() || ours.as_i64() == theirs.as_i64())
        }),
        Value::Array(theirs) => {
            ours.items().count() == theirs.len()
                && ours.items().zip(theirs).all(|(ours, theirs)| equal(ours, theirs))
        }
        Value::Object(theirs) => {
            ours.kind() == aaep::json::Kind::Object
                && ours.members().all(|(key, _)| theirs.contains_key(&*key.text().unwrap_or_default()))
                && theirs
                    .iter()
                    .all(|(name, theirs)| ours.member(name).is_some_and(|ours| equal(ours, theirs)))
        }
    }
}
