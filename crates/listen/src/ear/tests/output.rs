//! What an agent writes, in sentences and once.

use super::*;

fn words(lines: &[String]) -> String {
    let text: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("agent: ")).collect();
    text.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

const STORY: &str = "Dr. Ada sent $3.50 to Ben. Then, at 5 p.m., she slept! Was it much? \
    Nobody knows.\n\nÀwọn ọmọ náà wá. 今日は。元気ですか？ مرحبا بك. Family: 👩‍👩‍👧. The end";

#[test]
fn every_word_is_said_once_wherever_the_text_is_cut() {
    let whole = STORY.split_whitespace().collect::<Vec<_>>().join(" ");
    for cut in (0..=STORY.len()).filter(|cut| STORY.is_char_boundary(*cut)) {
        let mut stage = Stage::new();
        let (first, last) = STORY.split_at(cut);
        let mut said = stage.hear("output.streaming", &chunk(first, 0, false));
        said.extend(stage.hear("output.streaming", &chunk(last, first.chars().count(), true)));
        assert_eq!(words(&said).replace(' ', ""), whole.replace(' ', ""), "cut at {cut}");
    }
}

#[test]
fn a_hundred_tokens_a_second_are_heard_as_sentences() {
    let mut stage = Stage::new();
    let (mut said, mut position) = (Vec::new(), 0);
    let tokens: Vec<_> = STORY.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
    for (at, token) in tokens.iter().enumerate() {
        said.extend(stage.hear("output.streaming", &chunk(token, position, at + 1 == tokens.len())));
        position += token.chars().count();
        said.extend(stage.pass(10));
    }
    assert_eq!(
        said[..4],
        [
            "agent: Dr. Ada sent $3.50 to Ben.",
            "agent: Then, at 5 p.m., she slept!",
            "agent: Was it much?",
            "agent: Nobody knows.",
        ]
    );
}

#[test]
fn a_sentence_that_was_cut_already_is_not_held() {
    let mut stage = Stage::new();
    let sentence = chunk("It is done.", 0, false).replace("none", "sentence");
    assert_eq!(stage.hear("output.streaming", &sentence), ["agent: It is done."]);
    assert!(stage.hear("output.streaming", &chunk(" And more.", 11, false)).is_empty());
}

#[test]
fn nothing_critical_is_lost_in_a_flood() {
    let mut queue = crate::Queue::new(50);
    let mut stage = Stage::new();
    let mut asked = 0;
    for number in 0..5000 {
        stage.ear.hear(&stage_event(&mut stage.events, number), NOON);
        if number % 100 == 0 {
            let event = stage.event("awaiting.confirmation", &confirmation(&format!("rpl_{number}")));
            stage.ear.hear(&event, NOON);
            asked += 1;
        }
        while let Some(next) = stage.ear.next(NOON) {
            queue.push(next);
        }
        assert!(queue.len() <= 50 + 1 + asked);
    }
    let critical = std::iter::from_fn(|| queue.take()).filter(Announcement::is_critical).count();
    assert_eq!(critical, asked);
}

fn stage_event(events: &mut u64, number: u64) -> String {
    *events += 1;
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked","event_id":"evt_{events}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00Z","producer":{{"agent_id":"bank"}},"tool":"t","summary_normal":"Call {number}."}}"#
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Pieces, each sent up to three times, some of them later than others that follow: each word once.
    #[test]
    fn repeated_events_change_nothing(
        cuts in prop::collection::btree_set(1..STORY.chars().count(), 0..12),
        again in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20),
    ) {
        let chars: Vec<char> = STORY.chars().collect();
        let mut stage = Stage::new();
        let mut pieces = Vec::new();
        let mut from = 0;
        for to in cuts.into_iter().chain([chars.len()]) {
            let text: String = chars[from..to].iter().collect();
            pieces.push(stage.event("output.streaming", &chunk(&text, from, to == chars.len())));
            from = to;
        }
        let mut sent: Vec<usize> = (0..pieces.len()).collect();
        for (what, place) in again {
            let what = what.index(pieces.len());
            let first = sent.iter().position(|piece| *piece == what).unwrap();
            let place = first + 1 + place.index(sent.len() - first);
            sent.insert(place.min(sent.len()), what);
        }
        let mut said = Vec::new();
        for piece in sent {
            said.extend(stage.hear_text(&pieces[piece]));
        }
        let whole: String = STORY.split_whitespace().collect();
        prop_assert_eq!(words(&said).replace(' ', ""), whole);
    }

    /// Events in any order: nothing is said twice, nothing critical is left out, and no question is open after its end.
    #[test]
    fn events_in_any_order_do_no_harm(order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle()) {
        let mut stage = Stage::new();
        let events = [
            stage.event("session.started", r#""summary_normal":"S0.""#),
            stage.event("tool.invoked", r#""tool":"t","summary_normal":"S1.""#),
            stage.event("tool.completed", r#""tool":"t","status":"success","summary_normal":"S2.""#),
            stage.event("awaiting.confirmation", &confirmation("rpl_1")),
            stage.event("state.changed", &settled("rpl_1", "reject", "timeout")),
            stage.event("awaiting.confirmation", &confirmation("rpl_2")),
            stage.event("session.errored", r#""error_category":"unknown","summary_normal":"S3.""#),
            stage.event("handoff.requested", r#""reason":"S4.","target_kind":"human""#),
        ];
        let mut said = Vec::new();
        for event in order {
            said.extend(stage.hear_text(&events[event]));
        }
        for number in 0..5 {
            let times = said.iter().filter(|line| line.contains(&format!("S{number}."))).count();
            prop_assert_eq!(times, 1, "S{} in {:?}", number, said);
        }
        prop_assert!(stage.ear.questions().next().is_none(), "{:?}", said);
    }

    /// Whatever comes, it neither panics nor lets anything through that acts on a terminal.
    #[test]
    fn strangers_do_no_harm(text in "\\PC{0,40}", odd in prop::collection::vec(any::<char>(), 0..40)) {
        let mut stage = Stage::new();
        stage.hear_text(&text);
        let odd: String = odd.into_iter().collect();
        let mut writer = aaep::json::Writer::default();
        writer.text(&odd);
        let json = writer.finish();
        let said = [
            stage.hear("tool.invoked", &format!(r#""tool":"t","summary_normal":{json}"#)),
            stage.hear("output.streaming", &format!(r#""chunk":{json},"position":0,"complete":true"#)),
            stage.hear("state.changed", &format!(r#""from_state":"a","to_state":{json}"#)),
            stage.pass(10_000),
        ];
        for line in said.concat() {
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            let word = line.split(": ").next().unwrap();
            prop_assert!(crate::Kind::ALL.iter().any(|kind| kind.word() == word), "{line:?}");
        }
    }
}
