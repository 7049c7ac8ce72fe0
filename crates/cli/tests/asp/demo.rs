//! `sayso asp demo`: what it tells, and what it leaves behind.

use std::fs;

use crate::asp::talk::{Played, SCENARIOS, demo, trace};
use testing::cli::sayso;

/// How each scenario ends, and what the machine says of its transcript: a time that runs out leaves no message.
const ENDINGS: [(&str, &str, &str); 8] = [
    ("agreed", "CLOSED: both sides closed it", "The session ended CLOSED"),
    ("rejected", "FAILED: the Braille Press rejected the invitation", "The session ended FAILED"),
    ("countered", "CLOSED: both sides closed it", "The session ended CLOSED"),
    (
        "invitation-timeout",
        "FAILED: the invitation time ran out",
        "warning: the session is still open (INVITED)",
    ),
    (
        "escalation-timeout",
        "FAILED: the escalation time ran out",
        "warning: the session is still open (ESCALATED)",
    ),
    ("withdrawn", "CLOSED: Marisol's buyer withdrew", "The session ended CLOSED"),
    ("unilateral-close", "CLOSED: the Braille Press closed it without", "The session ended CLOSED"),
    ("delegated", "CLOSED: both sides closed it", "The session ended CLOSED"),
];

#[test]
fn every_scenario_ends_as_it_is_named_and_its_transcript_verifies_and_traces() {
    assert_eq!(ENDINGS.map(|(name, ..)| name), SCENARIOS);
    for (scenario, ending, verdict) in ENDINGS {
        let played = Played::new(scenario, &[]);
        assert_eq!(played.run.code, 0, "{scenario}: {}", played.run.err);
        assert!(played.run.err.starts_with("Check it: "), "only the hint: {}", played.run.err);
        let ended = format!("\nThe session ended {ending}");
        assert!(played.run.out.contains(&ended), "{scenario}: {}", played.run.out);
        let talk = played.talk(scenario);
        let verified = talk.verify();
        assert_eq!((verified.code, &*verified.err), (0, ""), "{scenario}: {}", verified.out);
        assert!(verified.out.contains(&format!("\n{verdict}")), "{scenario}: {}", verified.out);
        let traced = trace(talk.text());
        assert_eq!(traced.code, 0, "{scenario}: {}", traced.out);
        let last = verdict.replace("warning: the", "The").replace(" (", ": ").replace(')', ".");
        assert!(traced.out.contains(&format!("\n{last}")), "{scenario}: {}", traced.out);
    }
}

#[test]
fn the_demo_is_told_without_any_file_too() {
    let run = sayso(&["asp", "demo"], "");
    assert_eq!((run.code, &*run.err), (0, ""));
    assert!(run.out.contains("\nThe session ended CLOSED"), "{}", run.out);
    assert!(!run.err.contains("Check it"), "there is nothing to check: {}", run.err);
    assert_eq!(sayso(&["asp", "demo", "--plain"], "").code, 0);
}

#[test]
fn the_whole_life_of_a_session_is_told_step_by_step() {
    let told = sayso(&["asp", "demo", "--seed", "1"], "").out;
    let steps = [
        "invites the Braille Press",
        "(PROPOSE, IDLE to INVITED)",
        "accepts the invitation. (ACCEPT)",
        "Marisol's buyer says who it is",
        "The Braille Press says who it is and shows its card. (INFORM, INVITED to INTRODUCED)",
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
        "The Braille Press asks Jonas to decide",
        "(ESCALATE, AGREEING to ESCALATED)",
        "Jonas, who runs the press, has heard the terms and says yes.",
        "what was decided by Jonas",
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
    let mut rest = told.as_str();
    for step in steps {
        let at = rest.find(step).unwrap_or_else(|| panic!("{step:?} is missing, or too early, in\n{told}"));
        rest = &rest[at + step.len()..];
    }
}

#[test]
fn the_transcript_has_every_message_that_was_told() {
    for scenario in SCENARIOS {
        let played = Played::new(scenario, &["--seed", "7"]);
        let told = played.run.out.lines().filter(|line| {
            line.strip_suffix(')').and_then(|line| line.rsplit_once('(')).is_some_and(|(_, mark)| {
                let word = mark.split(',').next().unwrap_or_default();
                asp::Performative::parse(word).is_some()
            })
        });
        let delegate = if scenario == "delegated" { demo("delegate").messages.len() } else { 0 };
        assert_eq!(told.count(), played.talk(scenario).messages.len() + delegate, "{}", played.run.out);
    }
}

#[test]
fn the_same_seed_makes_the_same_bytes_and_another_one_other_ids() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let run = |scenario: &str, seed: Option<&str>| {
        let mut arguments =
            vec!["asp", "demo", "--scenario", scenario, "--transcript", path.to_str().unwrap()];
        arguments.extend(seed.into_iter().flat_map(|seed| ["--seed", seed]));
        let told = sayso(&arguments, "").out;
        let cards = fs::read_to_string(path.with_extension("cards.json")).unwrap();
        (told, fs::read_to_string(&path).unwrap(), cards)
    };
    let ids = |transcript: &str| -> Vec<String> {
        let values = transcript.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        values.flat_map(|value| [value["messageId"].to_string(), value["sessionId"].to_string()]).collect()
    };
    for scenario in SCENARIOS {
        let one = run(scenario, Some("18446744073709551615"));
        assert!(one == run(scenario, Some("18446744073709551615")), "{scenario} differs");
        for other in [run(scenario, Some("0")), run(scenario, None)] {
            assert_ne!(one.2, other.2, "{scenario}: the same cards");
            let theirs = ids(&other.1);
            assert!(ids(&one.1).iter().all(|id| !theirs.contains(id)), "{scenario}: an id came twice");
        }
    }
    assert_ne!(run("agreed", None).1, run("agreed", None).1);
}

#[test]
fn the_cards_go_beside_the_transcript_or_where_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    for (transcript, cards) in
        [("a.jsonl", "a.cards.json"), ("b", "b.cards.json"), ("c.d.e", "c.d.cards.json")]
    {
        let run = sayso(&["asp", "demo", "--transcript", &text(transcript)], "");
        let hint = format!("Check it: sayso asp verify {} --cards {}\n", text(transcript), text(cards));
        assert!(run.err.ends_with(&hint), "{}", run.err);
        assert_eq!(sayso(&["asp", "verify", &text(transcript), "--cards", &text(cards)], "").code, 0);
    }
    let run = sayso(&["asp", "demo", "--transcript", &text("f.jsonl"), "--cards", &text("mine")], "");
    assert_eq!(run.code, 0);
    assert!(path("mine").exists() && !path("f.cards.json").exists());
    let run = sayso(&["asp", "demo", "--cards", &text("only")], "");
    assert_eq!(run.code, 0);
    assert!(path("only").exists());
}

#[test]
fn the_delegate_has_a_session_of_its_own_that_verifies_with_the_same_cards() {
    let (first, own) = (demo("delegated"), demo("delegate"));
    assert_eq!(first.each_card().len(), 3);
    let run = own.verify();
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("agent://lighthouse.example/proof/reader"), "{}", run.out);
    let played = Played::new("delegated", &["--seed", "7"]);
    let delegate = played.folder.path().join("talk.delegate.jsonl");
    assert!(played.run.err.contains(&format!("sayso asp verify {} --cards", delegate.display())));
    assert!(demo("agreed").each_card().len() == 2, "only those who take part show their cards");
}

#[test]
fn every_performative_is_used_in_some_scenario() {
    let all: String = crate::asp::talk::DEMOS.iter().map(crate::asp::talk::Talk::text).collect();
    for performative in asp::Performative::ALL {
        assert!(all.contains(&format!("\"performative\":\"{performative}\"")), "{performative}");
    }
}
