//! JSON that has no canonical form, is no JSON, or is too much of it.

use asp::machine::State;
use asp::{Limits, Misbehaviour};
use seal::NotCanonical;
use seal::json::MAX_DEPTH;

use crate::support::bodies::query;
use crate::support::cast::BUYER;
use crate::support::forge::forge;
use crate::support::json::Json;
use crate::support::scene::{A, Heard, Scene};

/// A message with that in its body, where anything may stand.
fn heard(data: &str) -> Heard {
    let mut scene = Scene::at(State::Conversing);
    let mut envelope = scene.next(A, &query("qry_1"));
    envelope.set("content/body/extra", Json::Leaf(data.to_owned()));
    let forged = forge(&envelope, &BUYER.keys);
    scene.hear(&forged.text)
}

fn not_canonical(heard: Heard) -> NotCanonical {
    match heard {
        Heard::Dropped(Misbehaviour::NotCanonical(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn integers_beyond_2_to_the_53_are_not_signed() {
    for number in ["9007199254740993", "-9007199254740993", "1e16", "123456789012345678901234567890"] {
        assert_eq!(not_canonical(heard(number)), NotCanonical::BigInteger(number.to_owned()), "{number}");
    }
    for number in ["9007199254740991", "-9007199254740991", "0.1", "1e21"] {
        assert_eq!(heard(number), Heard::Taken, "{number}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_not_signed() {
    assert_eq!(not_canonical(heard("1e400")), NotCanonical::HugeNumber("1e400".to_owned()));
    assert_eq!(not_canonical(heard("-1e400")), NotCanonical::HugeNumber("-1e400".to_owned()));
}

#[test]
fn a_doubled_key_is_not_signed() {
    for data in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"a":1,"b":2,"a":3}}]"#] {
        assert_eq!(not_canonical(heard(data)), NotCanonical::DoubledKey("a".to_owned()), "{data}");
    }
}

/// A doubled member of the envelope: whoever reads the first and whoever reads the last would understand two messages.
#[test]
fn a_doubled_member_of_the_envelope_is_not_signed() {
    let mut scene = Scene::at(State::Conversing);
    for member in ["version", "messageId", "sessionId", "performative", "content", "sender", "integrity"] {
        let forged = scene.forge(A, &query("qry_1"));
        let Json::Object(mut members) = Json::parse(&forged.text) else { panic!("an object") };
        let twice = members.iter().find(|(key, _)| key == member).unwrap().clone();
        members.insert(0, twice);
        let heard = scene.hear(&Json::Object(members).write());
        assert_eq!(not_canonical(heard), NotCanonical::DoubledKey(member.to_owned()));
    }
    for (outer, inner) in [("sender", "agentId"), ("sender", "dpopProof"), ("integrity", "hash")] {
        let forged = scene.forge(A, &query("qry_1"));
        let text =
            forged.text.replacen(&format!("\"{outer}\":{{"), &format!("\"{outer}\":{{\"{inner}\":\"x\","), 1);
        assert_eq!(not_canonical(scene.hear(&text)), NotCanonical::DoubledKey(inner.to_owned()));
    }
}

#[test]
fn half_a_surrogate_pair_is_not_signed() {
    for data in [r#""\ud83d""#, r#""\ude00 x""#, r#"{"\ud83d":1}"#, r#""\ude00\ud83d""#] {
        assert!(matches!(not_canonical(heard(data)), NotCanonical::LoneSurrogate(_)), "{data}");
    }
    assert_eq!(heard(r#""\ud83d\ude00""#), Heard::Taken);
}

#[test]
fn what_is_no_json_is_dropped() {
    let mut scene = Scene::at(State::Conversing);
    let good = scene.forge(A, &query("qry_1")).text;
    let texts = [
        String::new(),
        " ".to_owned(),
        "NaN".to_owned(),
        good.replace("\"sequenceNumber\":3", "\"sequenceNumber\":NaN"),
        good.replace("\"sequenceNumber\":3", "\"sequenceNumber\":03"),
        good.replace("\"sequenceNumber\":3", "\"sequenceNumber\":Infinity"),
        good.replace("asp/0.1", "asp\u{1}/0.1"),
        good.replace('"', "'"),
        format!("{good}{good}"),
        format!("{good},"),
        format!("\u{feff}{good}"),
        good[..good.len() - 1].to_owned(),
        format!("[{good}"),
    ];
    for text in texts {
        assert_ne!(text, good);
        let heard = scene.hear(&text);
        assert!(matches!(heard, Heard::Dropped(Misbehaviour::NotJson(_))), "{heard:?}: {text}");
    }
    for text in ["[]", "{}", "null", "1", "\"x\"", &format!("[{good}]")] {
        assert_eq!(scene.hear(text), Heard::Dropped(Misbehaviour::Member("sender.agentId")), "{text}");
    }
    assert_eq!(scene.hear(&good), Heard::Taken);
}

#[test]
fn deep_nesting_is_no_json_for_us() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let mut scene = Scene::at(State::Conversing);
    for deep in [nested(200_000), objects(40_000), "[".repeat(200_000), nested(MAX_DEPTH as usize + 2)] {
        let good = scene.forge(A, &query("qry_1")).text;
        scene.limits = Limits { message_bytes: 1 << 20, ..Limits::default() };
        let text = good.replacen("\"version\"", &format!("\"deep\":{deep},\"version\""), 1);
        let heard = scene.hear(&text);
        assert!(matches!(heard, Heard::Dropped(Misbehaviour::NotJson(_))), "{heard:?}");
    }
    // Three objects are around it.
    assert_eq!(heard(&nested(MAX_DEPTH as usize - 4)), Heard::Taken);
}

#[test]
fn a_body_of_ten_megabytes_is_dropped() {
    let long = format!("\"{}\"", "a".repeat(10_000_000));
    assert_eq!(heard(&long), Heard::Dropped(Misbehaviour::TooLong(256 * 1024)));
    // The limit comes before anything is read: what is no JSON at all fares alike.
    let mut scene = Scene::at(State::Conversing);
    let heard = scene.hear(&"[".repeat(10_000_000));
    assert_eq!(heard, Heard::Dropped(Misbehaviour::TooLong(256 * 1024)));
}
