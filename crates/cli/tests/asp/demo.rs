//! `sayso asp demo`: its narration and its output files.

use std::fs;

use crate::asp::transcripts::{AspDemoRun, SCENARIOS, demo_transcript, trace};
use testing::cli::run_sayso;

/// Each scenario, its end as the demo narrates it, and the result of `verify` for its transcript. A timeout adds no message to
/// the transcript, so `verify` considers the session open.
const ENDINGS: [(&str, &str, &str); 8] = [
    ("agreed", "CLOSED: both sides closed it", "The session ended in state CLOSED"),
    ("rejected", "FAILED: the Braille Press rejected the invitation", "The session ended in state FAILED"),
    ("countered", "CLOSED: both sides closed it", "The session ended in state CLOSED"),
    (
        "invitation-timeout",
        "FAILED: the invitation timeout expired",
        "warning: the session is still open (INVITED)",
    ),
    (
        "escalation-timeout",
        "FAILED: the escalation timeout expired",
        "warning: the session is still open (ESCALATED)",
    ),
    ("withdrawn", "CLOSED: Marisol's buyer withdrew", "The session ended in state CLOSED"),
    ("unilateral-close", "CLOSED: the Braille Press closed it without", "The session ended in state CLOSED"),
    ("delegated", "CLOSED: both sides closed it", "The session ended in state CLOSED"),
];

#[test]
fn every_scenario_ends_as_named_and_its_transcript_verifies_and_traces() {
    assert_eq!(ENDINGS.map(|(name, ..)| name), SCENARIOS);
    for (scenario, ending, verdict) in ENDINGS {
        let demo = AspDemoRun::new(scenario, &[]);
        assert_eq!(demo.run.exit_code, 0, "{scenario}: {}", demo.run.stderr);
        assert!(
            demo.run.stderr.starts_with("Check the transcript: "),
            "standard error must contain only the hint: {}",
            demo.run.stderr
        );
        let ended = format!("\nThe session ended in state {ending}");
        assert!(demo.run.stdout.contains(&ended), "{scenario}: {}", demo.run.stdout);
        let transcript = demo.read_transcript(scenario);
        let verified = transcript.verify();
        assert_eq!((verified.exit_code, &*verified.stderr), (0, ""), "{scenario}: {}", verified.stdout);
        assert!(verified.stdout.contains(&format!("\n{verdict}")), "{scenario}: {}", verified.stdout);
        let traced = trace(transcript.text());
        assert_eq!(traced.exit_code, 0, "{scenario}: {}", traced.stdout);
        let trace_ending = verdict.replace("warning: the", "The").replace(" (", ": ").replace(')', ".");
        assert!(traced.stdout.contains(&format!("\n{trace_ending}")), "{scenario}: {}", traced.stdout);
    }
}

#[test]
fn the_demo_runs_without_output_files() {
    let run = run_sayso(&["asp", "demo"], "");
    assert_eq!((run.exit_code, &*run.stderr), (0, ""));
    assert!(run.stdout.contains("\nThe session ended in state CLOSED"), "{}", run.stdout);
    assert!(!run.stderr.contains("Check the transcript"), "there is no file to check: {}", run.stderr);
    assert_eq!(run_sayso(&["asp", "demo", "--plain"], "").exit_code, 0);
}

#[test]
fn the_demo_narrates_a_session_step_by_step() {
    let narration = run_sayso(&["asp", "demo", "--seed", "1"], "").stdout;
    let steps = [
        "invites the Braille Press",
        "(PROPOSE, IDLE to INVITED)",
        "accepts the invitation. (ACCEPT)",
        "Marisol's buyer introduces itself",
        "The Braille Press introduces itself and shows its card. (INFORM, INVITED to INTRODUCED)",
        "(PROPOSE, INTRODUCED to CONVERSING)",
        "The Braille Press declines the proposal and offers",
        "(COUNTER)",
        "Marisol's buyer declines the proposal and offers",
        "(COUNTER)",
        "The Braille Press asks: ",
        "(CLARIFY)",
        "Marisol's buyer answers: ",
        "(CLARIFY)",
        "Marisol's buyer commits: ",
        "(COMMIT, CONVERSING to AGREEING)",
        "The Braille Press asks Jonas for a decision",
        "(ESCALATE, AGREEING to ESCALATED)",
        "Jonas, who runs the press, has heard the terms and says yes.",
        "reports the decision by Jonas",
        "(INFORM, ESCALATED to AGREEING)",
        "accepts the commitment. (ACCEPT, AGREEING to EXECUTING)",
        "reports progress 50 percent",
        "reports that its part is done",
        "The Braille Press closes",
        "(CLOSE)",
        "Marisol's buyer closes",
        "(CLOSE, EXECUTING to CLOSED)",
        "The commitment is fulfilled.",
        "The escrow of 480.00 EUR goes to the Braille Press.",
    ];
    let mut rest = narration.as_str();
    for step in steps {
        let at = rest
            .find(step)
            .unwrap_or_else(|| panic!("{step:?} is missing or in the wrong place in\n{narration}"));
        rest = &rest[at + step.len()..];
    }
}

#[test]
fn the_transcript_contains_every_narrated_message() {
    for scenario in SCENARIOS {
        let demo = AspDemoRun::new(scenario, &["--seed", "7"]);
        let narration = demo.run.stdout.lines().filter(|line| {
            line.strip_suffix(')').and_then(|line| line.rsplit_once('(')).is_some_and(|(_, label)| {
                let performative = label.split(',').next().unwrap_or_default();
                asp::Performative::parse(performative).is_some()
            })
        });
        let delegate_messages =
            if scenario == "delegated" { demo_transcript("delegate").messages.len() } else { 0 };
        assert_eq!(
            narration.count(),
            demo.read_transcript(scenario).messages.len() + delegate_messages,
            "{}",
            demo.run.stdout
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_gives_other_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let run = |scenario: &str, seed: Option<&str>| {
        let mut arguments =
            vec!["asp", "demo", "--scenario", scenario, "--transcript", path.to_str().unwrap()];
        arguments.extend(seed.into_iter().flat_map(|seed| ["--seed", seed]));
        let narration = run_sayso(&arguments, "").stdout;
        let cards = fs::read_to_string(path.with_extension("cards.json")).unwrap();
        (narration, fs::read_to_string(&path).unwrap(), cards)
    };
    let ids = |transcript: &str| -> Vec<String> {
        let values = transcript.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        values.flat_map(|value| [value["messageId"].to_string(), value["sessionId"].to_string()]).collect()
    };
    for scenario in SCENARIOS {
        let reference = run(scenario, Some("18446744073709551615"));
        assert!(reference == run(scenario, Some("18446744073709551615")), "{scenario} differs");
        for other in [run(scenario, Some("0")), run(scenario, None)] {
            assert_ne!(reference.2, other.2, "{scenario}: the same cards");
            let other_ids = ids(&other.1);
            assert!(ids(&reference.1).iter().all(|id| !other_ids.contains(id)), "{scenario}: a duplicate id");
        }
    }
    assert_ne!(run("agreed", None).1, run("agreed", None).1);
}

#[test]
fn cards_are_written_next_to_the_transcript_or_to_the_given_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let path_string = |name: &str| path(name).to_str().unwrap().to_owned();
    for (transcript, cards) in
        [("a.jsonl", "a.cards.json"), ("b", "b.cards.json"), ("c.d.e", "c.d.cards.json")]
    {
        let run = run_sayso(&["asp", "demo", "--transcript", &path_string(transcript)], "");
        let hint = format!(
            "Check the transcript: sayso asp verify {} --cards {}\n",
            path_string(transcript),
            path_string(cards)
        );
        assert!(run.stderr.ends_with(&hint), "{}", run.stderr);
        assert_eq!(
            run_sayso(&["asp", "verify", &path_string(transcript), "--cards", &path_string(cards)], "")
                .exit_code,
            0
        );
    }
    let run = run_sayso(
        &["asp", "demo", "--transcript", &path_string("f.jsonl"), "--cards", &path_string("mine")],
        "",
    );
    assert_eq!(run.exit_code, 0);
    assert!(path("mine").exists() && !path("f.cards.json").exists());
    let run = run_sayso(&["asp", "demo", "--cards", &path_string("only")], "");
    assert_eq!(run.exit_code, 0);
    assert!(path("only").exists());
}

#[test]
fn the_delegates_own_session_verifies_with_the_same_cards() {
    let (main_transcript, delegate_transcript) = (demo_transcript("delegated"), demo_transcript("delegate"));
    assert_eq!(main_transcript.each_card().len(), 3);
    let run = delegate_transcript.verify();
    assert_eq!(run.exit_code, 0, "{}", run.stdout);
    assert!(run.stdout.contains("agent://lighthouse.example/proof/reader"), "{}", run.stdout);
    let demo = AspDemoRun::new("delegated", &["--seed", "7"]);
    let delegate_path = demo.folder.path().join("talk.delegate.jsonl");
    assert!(demo.run.stderr.contains(&format!("sayso asp verify {} --cards", delegate_path.display())));
    assert!(demo_transcript("agreed").each_card().len() == 2, "only participants show their cards");
}

#[test]
fn every_performative_is_used_in_some_scenario() {
    let all: String =
        crate::asp::transcripts::DEMOS.iter().map(crate::asp::transcripts::TestTranscript::text).collect();
    for performative in asp::Performative::ALL {
        assert!(all.contains(&format!("\"performative\":\"{performative}\"")), "{performative}");
    }
}
