//! Text from untrusted agents: control characters and markup are escaped in terminal output and in SVG.

use asp::Performative;
use asp::state_machine::Role;

use crate::asp::transcripts::{TestTranscript, scripted_transcript, trace, transcript_with_subject};
use crate::asp::xml_parser;
use testing::cli::run_sayso;

/// Text that clears the screen, rings the bell, hides text, reverses the direction, ends the line, imitates a finding and
/// contains markup.
const HOSTILE_TEXT: &str = "\u{1b}[2J\u{7}\u{8}\r\nstdin:1: error fake\u{9b}31m\u{202e}eslaf\u{2066}\u{61c}\u{0}\
                     </title><script>alert(1)</script>&amp;]]>\"'\u{FFFE}\u{FFFF}<!--";

fn is_safe(text: &str) -> bool {
    !text.chars().any(|c| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    })
}

/// Returns a transcript with hostile text in every free-text field that is shown: subjects, notes, names and values of terms,
/// actions and reasons.
fn hostile_transcript() -> TestTranscript {
    let hostile = serde_json::to_string(HOSTILE_TEXT).unwrap();
    let proposal = format!(
        r#"{{"proposalId":"prop_1","type":{hostile},"subject":{hostile},"terms":{{{hostile}:{hostile},"n":1}}}}"#
    );
    let accept = format!(r#"{{"referenceId":"prop_1","note":{hostile}}}"#);
    let commit = format!(
        r#"{{"commitmentId":"cmt_1","terms":{{"obligations":[{{"party":"agent://b.example/seller","action":{hostile},
        "deadline":"2026-01-06T09:00:00Z"}}],"penalties":{{"lateFulfillment":{hostile},"nonDelivery":{hostile}}}}}}}"#
    )
    .replace('\n', "");
    let escalate = format!(r#"{{"reason":{hostile},"urgency":"high","handler":{hostile}}}"#);
    let resolution =
        format!(r#"{{"informType":"resolution","resolvedBy":{hostile},"data":{{{hostile}:{hostile}}}}}"#);
    let close = format!(r#"{{"reason":{hostile},"summary":{hostile},"outcome":{hostile}}}"#);
    scripted_transcript(
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
fn control_and_bidi_characters_are_escaped() {
    let transcript = hostile_transcript();
    let verified = transcript.verify();
    assert_eq!(verified.exit_code, 0, "{}", verified.stdout);
    let traced = trace(transcript.text());
    assert_eq!(traced.exit_code, 0, "{}", traced.stdout);
    for run in [&verified, &traced] {
        assert!(is_safe(&run.stdout) && is_safe(&run.stderr), "{:?}", run.stdout);
        assert!(
            run.stdout.contains("\\u{1b}[2J\\u{7}\\u{8}\\u{d}\\u{a}stdin:1: error fake"),
            "{}",
            run.stdout
        );
        assert!(!run.stdout.lines().any(|line| line.starts_with("stdin:1: error")), "{}", run.stdout);
    }
    assert_eq!(
        traced.stdout.lines().count(),
        1 + transcript.messages.len() + 2,
        "each message is one line: {}",
        traced.stdout
    );
}

#[test]
fn findings_about_hostile_text_are_escaped() {
    let mut transcript = hostile_transcript();
    transcript.messages.swap(5, 6);
    let (verified, traced) = (transcript.verify(), trace(transcript.text()));
    assert_eq!((verified.exit_code, traced.exit_code), (1, 1));
    assert!(is_safe(&verified.stdout) && is_safe(&traced.stdout), "{}{}", verified.stdout, traced.stdout);
    // Lines that are not valid messages.
    let hostile = serde_json::to_string(HOSTILE_TEXT).unwrap();
    for line in [
        format!(r#"{{"sender":{{"agentId":{hostile}}}}}"#),
        format!("{{{hostile}:1,{hostile}:1}}"),
        format!(r#"{{"version":{hostile}}}"#),
        format!("{{\"a\":\"{}\"}}", HOSTILE_TEXT.replace('\n', "")),
    ] {
        for run in [transcript.verify_bytes(line.as_bytes(), &[]), trace(line)] {
            assert_eq!(run.exit_code, 1, "{}", run.stdout);
            assert!(is_safe(&run.stdout) && is_safe(&run.stderr), "{:?}", run.stdout);
        }
    }
}

#[test]
fn an_svg_of_hostile_text_is_well_formed_and_safe() {
    let mut invalid = hostile_transcript();
    invalid.messages.swap(5, 6);
    let long = transcript_with_subject(&"very_long_without_a_blank".repeat(400));
    let wide = transcript_with_subject(&"🦀é𝒳 ".repeat(100));
    for transcript in [hostile_transcript(), invalid, long, wide] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("odd.svg");
        run_sayso(&["asp", "trace", "-", "--svg", path.to_str().unwrap()], transcript.text());
        let svg = std::fs::read_to_string(&path).unwrap();
        let elements = xml_parser::read(&svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
        crate::asp::trace::assert_safe(&elements);
        assert!(is_safe(&svg), "{svg}");
    }
}
