//! Texts from strangers: what could act on a terminal or a picture is shown harmless.

use asp::Performative;
use asp::machine::Role;

use crate::asp::talk::{Talk, own_talk, talk_about, trace};
use crate::asp::xml;
use testing::cli::sayso;

/// Clears the screen, rings, hides, turns around, ends the line, looks like a finding, and is markup.
const NASTY: &str = "\u{1b}[2J\u{7}\u{8}\r\nstdin:1: error fake\u{9b}31m\u{202e}eslaf\u{2066}\u{61c}\u{0}\
                     </title><script>alert(1)</script>&amp;]]>\"'\u{FFFE}\u{FFFF}<!--";

fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    })
}

/// Every place for free text that comes out somewhere: subjects, notes, terms and their names, actions, reasons.
fn nasty_talk() -> Talk {
    let nasty = serde_json::to_string(NASTY).unwrap();
    let proposal = format!(
        r#"{{"proposalId":"prop_1","type":{nasty},"subject":{nasty},"terms":{{{nasty}:{nasty},"n":1}}}}"#
    );
    let accept = format!(r#"{{"referenceId":"prop_1","note":{nasty}}}"#);
    let commit = format!(
        r#"{{"commitmentId":"cmt_1","terms":{{"obligations":[{{"party":"agent://b.example/seller","action":{nasty},
        "deadline":"2026-01-06T09:00:00Z"}}],"penalties":{{"lateFulfillment":{nasty},"nonDelivery":{nasty}}}}}}}"#
    )
    .replace('\n', "");
    let escalate = format!(r#"{{"reason":{nasty},"urgency":"high","handler":{nasty}}}"#);
    let resolution =
        format!(r#"{{"informType":"resolution","resolvedBy":{nasty},"data":{{{nasty}:{nasty}}}}}"#);
    let close = format!(r#"{{"reason":{nasty},"summary":{nasty},"outcome":{nasty}}}"#);
    own_talk(
        &[
            (Role::Inviter, Performative::Propose, &proposal),
            (Role::Invited, Performative::Accept, &accept),
            (Role::Inviter, Performative::Commit, &commit),
            (Role::Invited, Performative::Escalate, &escalate),
            (Role::Invited, Performative::Inform, &resolution),
            (Role::Invited, Performative::Close, &close),
        ],
        1,
    )
}

#[test]
fn control_characters_and_bidi_tricks_are_spelled_out() {
    let talk = nasty_talk();
    let verified = talk.verify();
    assert_eq!(verified.code, 0, "{}", verified.out);
    let traced = trace(talk.text());
    assert_eq!(traced.code, 0, "{}", traced.out);
    for run in [&verified, &traced] {
        assert!(is_harmless(&run.out) && is_harmless(&run.err), "{:?}", run.out);
        assert!(run.out.contains("\\u{1b}[2J\\u{7}\\u{8}\\u{d}\\u{a}stdin:1: error fake"), "{}", run.out);
        assert!(!run.out.lines().any(|line| line.starts_with("stdin:1: error")), "{}", run.out);
    }
    assert_eq!(
        traced.out.lines().count(),
        1 + talk.messages.len() + 2,
        "a line stays a line: {}",
        traced.out
    );
}

#[test]
fn findings_about_odd_texts_are_harmless_too() {
    let mut talk = nasty_talk();
    talk.messages.swap(5, 6);
    let (verified, traced) = (talk.verify(), trace(talk.text()));
    assert_eq!((verified.code, traced.code), (1, 1));
    assert!(is_harmless(&verified.out) && is_harmless(&traced.out), "{}{}", verified.out, traced.out);
    // A sender's name that is no name.
    let nasty = serde_json::to_string(NASTY).unwrap();
    for line in [
        format!(r#"{{"sender":{{"agentId":{nasty}}}}}"#),
        format!("{{{nasty}:1,{nasty}:1}}"),
        format!(r#"{{"version":{nasty}}}"#),
        format!("{{\"a\":\"{}\"}}", NASTY.replace('\n', "")),
    ] {
        for run in [talk.verify_bytes(line.as_bytes(), &[]), trace(line)] {
            assert_eq!(run.code, 1, "{}", run.out);
            assert!(is_harmless(&run.out) && is_harmless(&run.err), "{:?}", run.out);
        }
    }
}

#[test]
fn a_picture_of_odd_texts_is_well_formed_and_does_nothing() {
    let mut unlawful = nasty_talk();
    unlawful.messages.swap(5, 6);
    let long = talk_about(&"very_long_without_a_blank".repeat(400));
    let wide = talk_about(&"🦀é𝒳 ".repeat(100));
    for talk in [nasty_talk(), unlawful, long, wide] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd.svg");
        sayso(&["asp", "trace", "-", "--svg", path.to_str().unwrap()], talk.text());
        let svg = std::fs::read_to_string(&path).unwrap();
        let elements = xml::read(&svg).unwrap_or_else(|why| panic!("{why}\n{svg}"));
        crate::asp::trace::assert_safe(&elements);
        assert!(is_harmless(&svg), "{svg}");
    }
}
