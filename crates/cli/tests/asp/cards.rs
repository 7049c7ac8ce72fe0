//! Accepted card formats, and errors in cards.

use crate::asp::transcripts::{
    OTHER_DEMOS, TestTranscript, demo_transcript, scripted_transcript, test_agent,
};

#[track_caller]
fn assert_card_fault(transcript: &TestTranscript, cards: &str, expected: &str) {
    let run = transcript.with_cards(cards).verify();
    assert_eq!((run.exit_code, &*run.stderr), (1, ""), "{}", run.stdout);
    assert!(run.stdout.contains(expected), "expected {expected:?}: {}", run.stdout);
    assert_eq!(run.stdout.lines().count(), 1, "{}", run.stdout);
}

#[test]
fn cards_may_be_an_array_or_one_per_line_in_any_order() {
    let transcript = demo_transcript("agreed");
    let cards = transcript.each_card();
    let reader_card = &demo_transcript("delegated").each_card()[2];
    for variant in [
        cards.join("\n"),
        cards.join("\r\n") + "\r\n\r\n",
        format!("{}\n{}", cards[1], cards[0]),
        format!("[{},{}]", cards[1], cards[0]),
        format!("[{},{reader_card},{}]", cards[0], cards[1]),
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&transcript.cards).unwrap())
            .unwrap(),
    ] {
        let run = transcript.with_cards(&variant).verify();
        assert_eq!(run.exit_code, 0, "{variant}: {}", run.stdout);
    }
}

#[test]
fn missing_invalid_and_duplicate_cards_are_reported() {
    let transcript = demo_transcript("agreed");
    let [buyer, press] = <[String; 2]>::try_from(transcript.each_card()).unwrap();
    let reader_card = &demo_transcript("delegated").each_card()[2];
    assert_card_fault(transcript, "", "the cards of both agents are required");
    assert_card_fault(transcript, "[]", "the cards of both agents are required");
    assert_card_fault(transcript, &buyer, "the cards of both agents are required");
    assert_card_fault(transcript, &format!("[{press}]"), "the cards of both agents are required");
    assert_card_fault(
        transcript,
        &format!("[{buyer},{press},{buyer}]"),
        "card 3: duplicate card for agent://marisol",
    );
    assert_card_fault(transcript, &format!("{buyer}\n{buyer}"), "card 2: duplicate card for agent://marisol");
    assert_card_fault(transcript, &format!("[{buyer},{press}"), "not JSON");
    assert_card_fault(transcript, &format!("{buyer}\n{press}x"), "card 2: the card is not a JSON object");
    assert_card_fault(transcript, "[1,2]", "card 1: the card is not a JSON object");
    assert_card_fault(transcript, "not cards at all", "card 1: the card is not a JSON object");
    assert_card_fault(
        transcript,
        &format!("[{},{press}]", buyer.replace("Marisol's buyer", "Someone")),
        "card 1: the card's signature",
    );
    assert_card_fault(
        transcript,
        &format!("[{buyer},{}]", press.replace("\"standard\"", "\"full\"")),
        "card 2: the card's signature",
    );
    assert_card_fault(
        transcript,
        &format!("[{buyer},{}]", press.replace("signingPublicKey", "key")),
        "card 2: the card's signingPublicKey is missing",
    );
    assert_card_fault(
        transcript,
        &format!("[{buyer},{reader_card}]"),
        ":1: error: unauthorized: no card is known for agent://braillepress",
    );
    assert_card_fault(
        transcript,
        &format!("[{press},{reader_card}]"),
        ":1: error: not authentic: no card is known for the sender \"agent://marisol",
    );
    assert_card_fault(transcript, &transcript.text(), "card 1: the card's agentId is missing");
    let run = transcript.with_cards(&"x".repeat(2 << 20)).verify();
    assert_eq!(run.exit_code, 2, "{}", run.stdout);
    assert!(
        run.stderr.contains("longer than 1048576 bytes") && !run.stderr.contains("--max-bytes"),
        "{}",
        run.stderr
    );
}

#[test]
fn cards_that_are_not_utf8_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (transcript, cards) = (folder.path().join("talk"), folder.path().join("cards"));
    std::fs::write(&transcript, demo_transcript("agreed").text()).unwrap();
    std::fs::write(&cards, [b"[\"", &[0xFF][..], b"\"]"].concat()).unwrap();
    let run = testing::cli::run_sayso(
        &["asp", "verify", transcript.to_str().unwrap(), "--cards", cards.to_str().unwrap()],
        "",
    );
    assert_eq!(run.exit_code, 1);
    assert!(run.stdout.contains("cards: error: not UTF-8"), "{}", run.stdout);
}

/// These cards have the same names but other keys. If they were accepted, anyone could sign a transcript in another agent's name.
#[test]
fn cards_with_other_keys_do_not_verify_a_transcript() {
    for (transcript, other) in crate::asp::transcripts::DEMOS.iter().zip(OTHER_DEMOS.iter()) {
        assert_card_fault(
            transcript,
            &other.cards,
            ":1: error: not authentic: integrity.signature is not the sender's",
        );
        let (own_cards, other_cards) = (transcript.each_card(), other.each_card());
        let invited = 1 + usize::from(transcript.name == "delegate");
        let mut mixed = own_cards.clone();
        mixed[invited].clone_from(&other_cards[invited]);
        let run = transcript.with_cards(&format!("[{}]", mixed.join(","))).verify();
        // If the invited side sends nothing, its key is not needed.
        let invited_sends = transcript.messages.len() > 1;
        assert_eq!(run.exit_code, i32::from(invited_sends), "{}: {}", transcript.name, run.stdout);
        assert!(!invited_sends || run.stdout.starts_with("stdin:2: error: not authentic"), "{}", run.stdout);
    }
}

#[test]
fn cards_with_swapped_keys_do_not_verify_a_transcript() {
    let transcript = scripted_transcript(&[], 1);
    let swapped = [test_agent("agent://a.example/buyer", 2), test_agent("agent://b.example/seller", 1)];
    let cards = swapped.map(|actor| actor.card.as_str().to_owned()).join("\n");
    assert_card_fault(
        &transcript,
        &cards,
        ":1: error: not authentic: integrity.signature is not the sender's",
    );
    let [buyer, press] = <[String; 2]>::try_from(demo_transcript("agreed").each_card()).unwrap();
    let renamed =
        buyer.replace("agent://marisol.example/bistro/buyer", "agent://braillepress.example/orders/desk");
    assert_card_fault(
        demo_transcript("agreed"),
        &format!("[{press},{renamed}]"),
        "card 2: the card's signature",
    );
}
