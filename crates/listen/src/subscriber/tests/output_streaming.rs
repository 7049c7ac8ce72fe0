//! An agent's output is announced in sentences, each of them once.

use super::*;

fn spoken_words(lines: &[String]) -> String {
    let text: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("agent: ")).collect();
    text.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

const STORY: &str = "Dr. Ada sent $3.50 to Ben. Then, at 5 p.m., she slept! Was it much? \
    Nobody knows.\n\nÀwọn ọmọ náà wá. 今日は。元気ですか？ مرحبا بك. Family: 👩‍👩‍👧. The end";

#[test]
fn every_word_is_announced_once_wherever_the_text_is_split() {
    let whole = STORY.split_whitespace().collect::<Vec<_>>().join(" ");
    for cut in (0..=STORY.len()).filter(|cut| STORY.is_char_boundary(*cut)) {
        let mut harness = SubscriberHarness::new();
        let (first, last) = STORY.split_at(cut);
        let mut lines = harness.receive("output.streaming", &chunk(first, 0, false));
        lines.extend(harness.receive("output.streaming", &chunk(last, first.chars().count(), true)));
        assert_eq!(spoken_words(&lines).replace(' ', ""), whole.replace(' ', ""), "cut at {cut}");
    }
}

/// §11.3.3: even a text without boundaries, which is announced in pieces, is cut only between grapheme clusters.
#[test]
fn a_long_text_is_never_cut_inside_a_grapheme_cluster() {
    use unicode_segmentation::UnicodeSegmentation;
    for cluster in [
        "e\u{301}",
        "o\u{323}\u{300}",
        "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "\u{928}\u{93f}",
        "\u{1f1f3}\u{1f1ec}",
    ] {
        let text = cluster.repeat(6000);
        let mut harness = SubscriberHarness::new();
        let (mut lines, mut position) = (Vec::new(), 0);
        // The length of the chunks has no common divisor with that of the clusters, so chunks end inside clusters.
        let letters: Vec<char> = text.chars().collect();
        for part in letters.chunks(101) {
            let is_last = position + part.len() == letters.len();
            let part_text: String = part.iter().collect();
            lines.extend(harness.receive("output.streaming", &chunk(&part_text, position, is_last)));
            position += part.len();
        }
        let pieces: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("agent: ")).collect();
        assert!(pieces.len() > 1, "the text of {cluster:?} was announced as a whole");
        let clusters: Vec<&str> = pieces.iter().flat_map(|piece| piece.graphemes(true)).collect();
        assert_eq!(clusters.len(), 6000, "{cluster:?} in {} pieces", pieces.len());
        assert!(clusters.iter().all(|announced| *announced == cluster), "{cluster:?}");
    }
}

#[test]
fn a_hundred_tokens_per_second_are_announced_as_sentences() {
    let mut harness = SubscriberHarness::new();
    let (mut lines, mut position) = (Vec::new(), 0);
    let tokens: Vec<_> = STORY.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
    for (at, token) in tokens.iter().enumerate() {
        lines.extend(harness.receive("output.streaming", &chunk(token, position, at + 1 == tokens.len())));
        position += token.chars().count();
        lines.extend(harness.advance(10));
    }
    assert_eq!(
        lines[..4],
        [
            "agent: Dr. Ada sent $3.50 to Ben.",
            "agent: Then, at 5 p.m., she slept!",
            "agent: Was it much?",
            "agent: Nobody knows.",
        ]
    );
}

#[test]
fn a_chunk_that_is_a_sentence_is_not_held() {
    let mut harness = SubscriberHarness::new();
    let sentence = chunk("It is done.", 0, false).replace("none", "sentence");
    assert_eq!(harness.receive("output.streaming", &sentence), ["agent: It is done."]);
    assert!(harness.receive("output.streaming", &chunk(" And more.", 11, false)).is_empty());
}

#[test]
fn nothing_critical_is_lost_in_a_flood() {
    let mut queue = crate::AnnouncementQueue::new(50);
    let mut harness = SubscriberHarness::new();
    let mut question_count = 0;
    for number in 0..5000 {
        harness.subscriber.receive(&tool_event(&mut harness.event_count, number), START_TIME);
        if number % 100 == 0 {
            let event = harness.event("awaiting.confirmation", &confirmation(&format!("rpl_{number}")));
            harness.subscriber.receive(&event, START_TIME);
            question_count += 1;
        }
        while let Some(next) = harness.subscriber.next_announcement(START_TIME) {
            queue.push(next);
        }
        assert!(queue.len() <= 50 + 1 + question_count);
    }
    let critical = std::iter::from_fn(|| queue.pop()).filter(Announcement::is_critical).count();
    assert_eq!(critical, question_count);
}

fn tool_event(event_count: &mut u64, number: u64) -> String {
    *event_count += 1;
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.tool.invoked","event_id":"evt_{event_count}","session_id":"sess_1","timestamp":"2026-05-24T14:00:00Z","producer":{{"agent_id":"bank"}},"tool":"t","summary_normal":"Call {number}."}}"#
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Chunks may arrive several times, and late. Each word is announced once.
    #[test]
    fn repeated_events_change_nothing(
        cuts in prop::collection::btree_set(1..STORY.chars().count(), 0..12),
        repetitions in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20),
    ) {
        let chars: Vec<char> = STORY.chars().collect();
        let mut harness = SubscriberHarness::new();
        let mut pieces = Vec::new();
        let mut from = 0;
        for to in cuts.into_iter().chain([chars.len()]) {
            let text: String = chars[from..to].iter().collect();
            pieces.push(harness.event("output.streaming", &chunk(&text, from, to == chars.len())));
            from = to;
        }
        let mut arrivals: Vec<usize> = (0..pieces.len()).collect();
        for (piece_index, position) in repetitions {
            let piece_index = piece_index.index(pieces.len());
            let first = arrivals.iter().position(|piece| *piece == piece_index).unwrap();
            let position = first + 1 + position.index(arrivals.len() - first);
            arrivals.insert(position.min(arrivals.len()), piece_index);
        }
        let mut lines = Vec::new();
        for piece in arrivals {
            lines.extend(harness.receive_text(&pieces[piece]));
        }
        let whole: String = STORY.split_whitespace().collect();
        prop_assert_eq!(spoken_words(&lines).replace(' ', ""), whole);
    }

    /// In any order of events, nothing is announced twice, nothing critical is lost, and no settled question stays open.
    #[test]
    fn events_in_any_order_are_announced_once(order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle()) {
        let mut harness = SubscriberHarness::new();
        let events = [
            harness.event("session.started", r#""summary_normal":"S0.""#),
            harness.event("tool.invoked", r#""tool":"t","summary_normal":"S1.""#),
            harness.event("tool.completed", r#""tool":"t","status":"success","summary_normal":"S2.""#),
            harness.event("awaiting.confirmation", &confirmation("rpl_1")),
            harness.event("state.changed", &resolution("rpl_1", "reject", "timeout")),
            harness.event("awaiting.confirmation", &confirmation("rpl_2")),
            harness.event("session.errored", r#""error_category":"unknown","summary_normal":"S3.""#),
            harness.event("handoff.requested", r#""reason":"S4.","target_kind":"human""#),
        ];
        let mut lines = Vec::new();
        for event in order {
            lines.extend(harness.receive_text(&events[event]));
        }
        for number in 0..5 {
            let times = lines.iter().filter(|line| line.contains(&format!("S{number}."))).count();
            prop_assert_eq!(times, 1, "S{} in {:?}", number, lines);
        }
        prop_assert!(harness.subscriber.questions().next().is_none(), "{:?}", lines);
    }

    /// Arbitrary input neither panics nor passes control characters to a terminal.
    #[test]
    fn arbitrary_input_is_sanitized(text in "\\PC{0,40}", arbitrary in prop::collection::vec(any::<char>(), 0..40)) {
        let mut harness = SubscriberHarness::new();
        harness.receive_text(&text);
        let arbitrary: String = arbitrary.into_iter().collect();
        let mut writer = aaep::json::JsonWriter::default();
        writer.text(&arbitrary);
        let json = writer.finish();
        let lines = [
            harness.receive("tool.invoked", &format!(r#""tool":"t","summary_normal":{json}"#)),
            harness.receive("output.streaming", &format!(r#""chunk":{json},"position":0,"complete":true"#)),
            harness.receive("state.changed", &format!(r#""from_state":"a","to_state":{json}"#)),
            harness.advance(10_000),
        ];
        for line in lines.concat() {
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            let label = line.split(": ").next().unwrap();
            prop_assert!(crate::AnnouncementKind::ALL.iter().any(|kind| kind.as_str() == label), "{line:?}");
        }
    }
}
