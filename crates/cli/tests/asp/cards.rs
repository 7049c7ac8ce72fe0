//! The cards: how they may be given, and what is wrong with others.

use crate::asp::talk::{OTHER_DEMOS, Talk, actor, demo, own_talk};

#[track_caller]
fn fault(talk: &Talk, cards: &str, says: &str) {
    let run = talk.with_cards(cards).verify();
    assert_eq!((run.code, &*run.err), (1, ""), "{}", run.out);
    assert!(run.out.contains(says), "wanted {says:?}: {}", run.out);
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);
}

#[test]
fn cards_are_taken_as_an_array_or_one_a_line_in_any_order() {
    let talk = demo("agreed");
    let cards = talk.each_card();
    let reader = &demo("delegated").each_card()[2];
    for given in [
        cards.join("\n"),
        cards.join("\r\n") + "\r\n\r\n",
        format!("{}\n{}", cards[1], cards[0]),
        format!("[{},{}]", cards[1], cards[0]),
        format!("[{},{reader},{}]", cards[0], cards[1]),
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&talk.cards).unwrap())
            .unwrap(),
    ] {
        let run = talk.with_cards(&given).verify();
        assert_eq!(run.code, 0, "{given}: {}", run.out);
    }
}

#[test]
fn cards_that_are_missing_broken_or_doubled_are_told() {
    let talk = demo("agreed");
    let [buyer, press] = <[String; 2]>::try_from(talk.each_card()).unwrap();
    let reader = &demo("delegated").each_card()[2];
    fault(talk, "", "the cards of both agents are needed");
    fault(talk, "[]", "the cards of both agents are needed");
    fault(talk, &buyer, "the cards of both agents are needed");
    fault(talk, &format!("[{press}]"), "the cards of both agents are needed");
    fault(talk, &format!("[{buyer},{press},{buyer}]"), "card 3: a second card of agent://marisol");
    fault(talk, &format!("{buyer}\n{buyer}"), "card 2: a second card of agent://marisol");
    fault(talk, &format!("[{buyer},{press}"), "not JSON");
    fault(talk, &format!("{buyer}\n{press}x"), "card 2: a card is a JSON object");
    fault(talk, "[1,2]", "card 1: a card is a JSON object");
    fault(talk, "not cards at all", "card 1: a card is a JSON object");
    fault(
        talk,
        &format!("[{},{press}]", buyer.replace("Marisol's buyer", "Someone")),
        "card 1: the card's signature",
    );
    fault(
        talk,
        &format!("[{buyer},{}]", press.replace("\"standard\"", "\"full\"")),
        "card 2: the card's signature",
    );
    fault(
        talk,
        &format!("[{buyer},{}]", press.replace("signingPublicKey", "key")),
        "card 2: the card's signingPublicKey is missing",
    );
    fault(
        talk,
        &format!("[{buyer},{reader}]"),
        ":1: error unauthorized: no card is known for agent://braillepress",
    );
    fault(
        talk,
        &format!("[{press},{reader}]"),
        ":1: error not authentic: no card is known for the sender \"agent://marisol",
    );
    fault(talk, &talk.text(), "card 1: the card's agentId is missing");
    let run = talk.with_cards(&"x".repeat(2 << 20)).verify();
    assert_eq!(run.code, 2, "{}", run.out);
    assert!(run.err.contains("longer than 1048576 bytes") && !run.err.contains("--max-bytes"), "{}", run.err);
}

#[test]
fn cards_that_are_not_utf8_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let (talk, cards) = (folder.path().join("talk"), folder.path().join("cards"));
    std::fs::write(&talk, demo("agreed").text()).unwrap();
    std::fs::write(&cards, [b"[\"", &[0xFF][..], b"\"]"].concat()).unwrap();
    let run = testing::cli::sayso(
        &["asp", "verify", talk.to_str().unwrap(), "--cards", cards.to_str().unwrap()],
        "",
    );
    assert_eq!(run.code, 1);
    assert!(run.out.contains("cards: error not UTF-8"), "{}", run.out);
}

/// The same names with other keys: whoever holds the transcript cannot have it pass with cards of his own making.
#[test]
fn cards_with_other_keys_do_not_verify_it() {
    for (talk, other) in crate::asp::talk::DEMOS.iter().zip(OTHER_DEMOS.iter()) {
        fault(talk, &other.cards, ":1: error not authentic: integrity.signature is not the sender's");
        let (ours, theirs) = (talk.each_card(), other.each_card());
        let inviter = usize::from(talk.name == "delegate");
        let mut mixed = ours.clone();
        mixed[inviter + 1].clone_from(&theirs[inviter + 1]);
        let run = talk.with_cards(&format!("[{}]", mixed.join(","))).verify();
        // Where the invited side never speaks, its key is never needed.
        let speaks = talk.messages.len() > 1;
        assert_eq!(run.code, i32::from(speaks), "{}: {}", talk.name, run.out);
        assert!(!speaks || run.out.starts_with("stdin:2: error not authentic"), "{}", run.out);
    }
}

/// Each key under the other's name.
#[test]
fn swapped_cards_do_not_verify_it() {
    let talk = own_talk(&[], 1);
    let swapped = [actor("agent://a.example/buyer", 2), actor("agent://b.example/seller", 1)];
    let cards = swapped.map(|actor| actor.card.as_str().to_owned()).join("\n");
    fault(&talk, &cards, ":1: error not authentic: integrity.signature is not the sender's");
    let [buyer, press] = <[String; 2]>::try_from(demo("agreed").each_card()).unwrap();
    let crossed =
        buyer.replace("agent://marisol.example/bistro/buyer", "agent://braillepress.example/orders/desk");
    fault(demo("agreed"), &format!("[{press},{crossed}]"), "card 2: the card's signature");
}
