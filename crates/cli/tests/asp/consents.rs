//! `sayso asp verify --hub-key`: people's consents in a transcript (D24).

use aaep::consent::{BoundAction, Receipt};
use asp::message::{Body, Commit, Consent};
use asp::state_machine::Role;
use asp::{Performative, SessionId, SessionRecord, consent};
use seal::json::{RawJson, write_object};
use seal::jws::{self, JwsHeader, JwsSigner};
use seal::{Jwk, es256};

use super::transcripts::{ScriptLine, TestTranscript, changed_transcript};
use testing::cli::CommandOutput;

const COMMIT: &str = r#"{"commitmentId":"cmt_1","terms":{"obligations":[
    {"party":"agent://b.example/seller","action":"print","deadline":"2026-02-05T00:00:00Z"}]}}"#;
const LINES: [ScriptLine<'static>; 4] = [
    (Role::Inviter, Performative::Query, r#"{"queryId":"qry_1","queryType":"t","subject":"s"}"#),
    (Role::Inviter, Performative::Commit, COMMIT),
    (Role::Invited, Performative::Accept, r#"{"referenceId":"cmt_1"}"#),
    (Role::Invited, Performative::Inform, r#"{"informType":"result"}"#),
];

fn hub_key(role: Role) -> es256::SigningKey {
    es256::SigningKey::from_secret(&[if role == Role::Inviter { 41 } else { 42 }; 32]).unwrap()
}

/// An answer as a hub would have recorded it.
#[derive(Clone, Copy)]
struct TestAnswer {
    decision: &'static str,
    by: &'static str,
}

const YES: TestAnswer = TestAnswer { decision: "accept", by: "reply" };

/// Makes the consent to a message, as a node and its hub do.
fn consent_to(session: SessionId, body: &Body, commit: Option<&Commit>, answer: TestAnswer) -> Consent {
    let digest = consent::action_digest(session, body, commit).unwrap();
    // AAEP computes the same digest for the same tool call.
    let arguments = consent::arguments(session, body, commit).unwrap();
    let action = BoundAction::new(consent::tool(body).unwrap(), &arguments).unwrap();
    assert_eq!(action.digest(), digest);
    let receipt = write_object(|writer| {
        writer.text_members([
            ("action_digest", &*digest.to_string()),
            ("agent_id", "agent"),
            ("asked_at", "2026-01-05T08:59:00.000Z"),
            ("by", answer.by),
            ("deadline", "2026-01-05T09:10:00.000Z"),
            ("decided_by", "Marisol"),
            ("decision", answer.decision),
            ("event_id", "evt_0123456789"),
            ("reply_token", "rpl_0123456789abcdef0123456789abcdef"),
            ("resolved_at", "2026-01-05T09:00:00.000Z"),
            ("session_id", "sess_0123456789"),
            ("type", "sayso:receipt"),
        ]);
    });
    assert!(Receipt::parse(&receipt).is_some(), "the receipt has the form that a hub writes: {receipt}");
    let role = if commit.is_some() { Role::Invited } else { Role::Inviter };
    let (key, header) = (hub_key(role), JwsHeader::default());
    let signature = jws::sign_detached(JwsSigner::P256(&key), &header, receipt.as_bytes()).unwrap();
    Consent::new(RawJson::parse(&receipt).unwrap(), signature)
}

/// Returns a transcript in which the COMMIT and the ACCEPT have these answers.
fn transcript(commit_answer: Option<TestAnswer>, accept_answer: Option<TestAnswer>) -> TestTranscript {
    changed_transcript(&LINES, 1, |record: &SessionRecord, body| {
        let commit = record.session().commitment().map(|commitment| commitment.commit().clone());
        let (commit, answer) = match &body {
            Body::Commit(_) => (None, commit_answer),
            Body::Accept(_) if commit.is_some() => (commit, accept_answer),
            _ => return body,
        };
        match answer {
            Some(answer) => {
                let consent = consent_to(record.session_id(), &body, commit.as_ref(), answer);
                consent::attach(body, consent)
            }
            None => body,
        }
    })
}

fn verify(transcript: &TestTranscript, roles: &[Role], options: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments: Vec<String> = options.iter().map(ToString::to_string).collect();
    for role in roles {
        let path = folder.path().join(format!("{role}.jwk"));
        std::fs::write(&path, Jwk::P256(hub_key(*role).verifying_key().clone()).to_json()).unwrap();
        arguments.extend(["--hub-key".to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    transcript.verify_bytes(transcript.text().as_bytes(), &arguments)
}

const BOTH: [Role; 2] = [Role::Inviter, Role::Invited];

#[test]
fn verify_says_what_a_person_agreed_to_and_when() {
    let transcript = transcript(Some(YES), Some(YES));
    for options in [&[] as &[_], &["--require-consent"]] {
        let run = verify(&transcript, &BOTH, options);
        assert_eq!(run.exit_code, 0, "{}{}", run.stdout, run.stderr);
        for line in [
            "agent://a.example/buyer: a person (Marisol) agreed to send the commitment cmt_1 at 2026-01-05T09:00:00.000Z.\n",
            "agent://b.example/seller: a person (Marisol) agreed to accept the commitment cmt_1 at 2026-01-05T09:00:00.000Z.\n",
        ] {
            assert!(run.stdout.contains(line), "{}", run.stdout);
        }
    }
    let run = transcript.verify();
    assert_eq!(run.exit_code, 0);
    assert!(
        run.stdout.contains("2 consents of a person were not checked; use --hub-key FILE to check."),
        "{}",
        run.stdout
    );
}

#[test]
fn an_invalid_consent_is_a_fault() {
    let no = TestAnswer { decision: "reject", ..YES };
    let silence = TestAnswer { by: "timeout", ..YES };
    for (commit, accept, roles, line, reason) in [
        (Some(YES), Some(YES), [Role::Inviter].as_slice(), 7, "has a signature that does not match"),
        (Some(YES), Some(YES), &[Role::Invited], 6, "has a signature that does not match"),
        (Some(no), Some(YES), &BOTH, 6, "the member decision of the receipt is missing or wrong"),
        (Some(YES), Some(no), &BOTH, 7, "the member decision of the receipt is missing or wrong"),
        (Some(YES), Some(silence), &BOTH, 7, "the member by of the receipt is missing or wrong"),
    ] {
        let run = verify(&transcript(commit, accept), roles, &[]);
        assert_eq!(run.exit_code, 1, "{}", run.stdout);
        let output = format!("{}{}", run.stdout, run.stderr);
        assert!(
            output.contains(&format!(":{line}: error: consent: ")) && output.contains(reason),
            "{output}"
        );
    }
}

#[test]
fn a_required_consent_must_not_be_missing() {
    for (commit, accept, line) in [(None, Some(YES), 6), (Some(YES), None, 7)] {
        let transcript = transcript(commit, accept);
        assert_eq!(verify(&transcript, &BOTH, &[]).exit_code, 0);
        let run = verify(&transcript, &BOTH, &["--require-consent"]);
        assert_eq!(run.exit_code, 1, "{}", run.stdout);
        let output = format!("{}{}", run.stdout, run.stderr);
        assert!(
            output.contains(&format!(":{line}: error: consent: there is no person's consent")),
            "{output}"
        );
    }
    // The option needs a key, and messages other than commitments need no consent.
    let run = verify(&transcript(Some(YES), Some(YES)), &[], &["--require-consent"]);
    assert_eq!(run.exit_code, 2, "{}", run.stderr);
    let talk = changed_transcript(&LINES[..1], 1, |_, body| body);
    assert_eq!(verify(&talk, &BOTH, &["--require-consent"]).exit_code, 0);
}

#[test]
fn unusable_key_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = transcript(Some(YES), Some(YES));
    let path = folder.path().join("hub.jwk");
    let ed25519 = Jwk::Ed25519(super::transcripts::BUYER.keys.signing.verifying_key()).to_json();
    for (text, expected) in [
        ("", "is not a JWK"),
        ("{}", "cannot use"),
        (r#"{"keys":[]}"#, "contains no key"),
        (&*ed25519, "contains a key of a type other than P-256"),
    ] {
        std::fs::write(&path, text).unwrap();
        let options = ["--hub-key", path.to_str().unwrap()];
        let run = transcript.verify_bytes(transcript.text().as_bytes(), &options);
        assert_eq!(run.exit_code, 2, "{text}: {}", run.stdout);
        assert!(run.stderr.contains(expected), "{text}: {}", run.stderr);
    }
    // A JWK set works too.
    let keys = BOTH.map(|role| Jwk::P256(hub_key(role).verifying_key().clone()).to_json());
    std::fs::write(&path, format!(r#"{{"keys":[{}]}}"#, keys.join(","))).unwrap();
    let options = ["--require-consent", "--hub-key", path.to_str().unwrap()];
    assert_eq!(transcript.verify_bytes(transcript.text().as_bytes(), &options).exit_code, 0);
}
