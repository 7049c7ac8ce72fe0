//! What is said of what is heard, with a clock that is made up.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

use aaep::event::{Decision, Verbosity};
use proptest::prelude::*;

use super::tell::{PROGRESS, STATE_LASTS};
use super::*;

/// 2026-05-24T14:00:00Z
const NOON: i64 = 1_779_631_200_000;

struct Stage {
    ear: Ear,
    now: i64,
    events: u64,
}

impl Stage {
    fn new() -> Self {
        Self::with(Verbosity::Normal, Limits::default())
    }

    fn with(verbosity: Verbosity, limits: Limits) -> Self {
        let tastes = Tastes { verbosity, ..Tastes::default() };
        let mut ear = Ear::new(tastes, limits);
        ear.subscribe(SubscriptionId::parse("sub_1").unwrap());
        Self { ear, now: NOON, events: 0 }
    }

    /// An event of session 1, with the next id.
    fn event(&mut self, kind: &str, rest: &str) -> String {
        self.event_of("sess_1", kind, rest)
    }

    fn event_of(&mut self, session: &str, kind: &str, rest: &str) -> String {
        self.events += 1;
        let id = self.events;
        let time = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let rest = if rest.is_empty() { String::new() } else { format!(",{rest}") };
        format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{id}","session_id":"{session}","timestamp":"{time}","producer":{{"agent_id":"bank","agent_name":"Bank"}},"localization_hints":{{"primary_language":"en"}}{rest}}}"#
        )
    }

    fn hear(&mut self, kind: &str, rest: &str) -> Vec<String> {
        let event = self.event(kind, rest);
        self.hear_text(&event)
    }

    fn hear_text(&mut self, text: &str) -> Vec<String> {
        self.ear.hear(text, self.now);
        self.said()
    }

    fn said(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(next) = self.ear.next(self.now) {
            lines.extend(next.lines());
        }
        lines
    }

    fn pass(&mut self, millis: i64) -> Vec<String> {
        let until = self.now + millis;
        let mut lines = Vec::new();
        while let Some(due) = self.ear.next_deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            lines.extend(self.said());
        }
        self.now = until;
        lines
    }

    fn ask(&mut self, token: &str) -> Vec<String> {
        self.hear("awaiting.confirmation", &confirmation(token))
    }
}

fn confirmation(token: &str) -> String {
    format!(
        r#""urgency":"critical","action":"Send 5 euro to Ben","consequence":"It is gone.","reply_token":"{token}","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"May I pay Ben?""#
    )
}

fn chunk(text: &str, position: usize, complete: bool) -> String {
    let mut writer = aaep::json::Writer::default();
    writer.open_object();
    writer.key("chunk");
    writer.text(text);
    writer.key("position");
    writer.integer(i64::try_from(position).unwrap());
    writer.key("complete");
    writer.boolean(complete);
    writer.key("output_id");
    writer.text("out_1");
    writer.key("coalesce_hint");
    writer.text("none");
    writer.close_object();
    let text = writer.finish();
    text[1..text.len() - 1].to_owned()
}

#[test]
fn a_session_is_told_in_sentences() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.hear("session.started", r#""summary_normal":"Paying Ben","summary_terse":"Pay""#),
        ["session: Bank has begun. Paying Ben."]
    );
    assert!(stage.hear("state.changed", r#""from_state":"idle","to_state":"thinking""#).is_empty());
    assert_eq!(
        stage.hear("tool.invoked", r#""tool":"send","summary_normal":"Sending.""#),
        ["tool: Sending."]
    );
    assert_eq!(
        stage.hear("tool.completed", r#""tool":"send","status":"error","error_message":"No money""#),
        ["tool: The tool send has failed. No money."]
    );
    assert_eq!(
        stage.hear(
            "session.errored",
            r#""error_category":"requires_user","summary_normal":"It failed","remediation_hint":"Put money in""#
        ),
        ["error: Bank has failed. It failed. You have to do something first. What you can do: Put money in."]
    );
    assert!(stage.ear.sessions().next().is_none());
}

#[test]
fn each_end_has_its_own_words() {
    let mut stage = Stage::new();
    let mut end = |session: &str, kind: &str, rest: &str| {
        let event = stage.event_of(session, kind, &format!(r#""summary_normal":"It is over."{rest}"#));
        stage.hear_text(&event).concat()
    };
    assert_eq!(end("sess_1", "session.completed", ""), "session: Bank is done. It is over.");
    assert_eq!(
        end("sess_2", "session.cancelled", r#","cancelled_by":"timeout""#),
        "session: Bank was stopped because its time was over. It is over."
    );
    assert_eq!(
        end("sess_3", "session.errored", r#","error_category":"transient""#),
        "error: Bank has failed. It is over. Trying again is likely to work."
    );
}

#[test]
fn our_words_are_the_persons_and_the_agents_are_told_apart_where_they_are_of_another_language() {
    let mut stage = Stage::new();
    stage.ear.set_tastes(Tastes { languages: vec!["es".to_owned()], ..Tastes::default() });
    let event = stage.event("session.started", r#""summary_normal":"Paying Ben""#);
    stage.ear.hear(&event, stage.now);
    let said = stage.ear.next(stage.now).unwrap();
    assert_eq!(said.text, "Bank ha empezado. Paying Ben.");
    assert_eq!(said.language.as_deref(), Some("en"));
    assert_eq!(said.quotes, Some(vec!["Paying Ben".to_owned()]));
    let event = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.ear.hear(&event, stage.now);
    let asked = stage.ear.next(stage.now).unwrap();
    let again = stage.ear.repeat(1, stage.now).unwrap();
    assert_eq!((&asked.text, &asked.quotes), (&again.text, &again.quotes));
    let quotes = asked.quotes.unwrap();
    for quote in ["May I pay Ben?", "Send 5 euro to Ben", "It is gone."] {
        assert!(asked.text.contains(quote) && quotes.iter().any(|one| one == quote), "{quote}: {quotes:?}");
    }
    let english = Stage::new().hear("session.started", r#""summary_normal":"Paying Ben""#);
    assert_eq!(english, ["session: Bank has begun. Paying Ben."]);
}

#[test]
fn words_are_in_the_persons_language_where_there_are_such() {
    let mut ear =
        Ear::new(Tastes { languages: vec!["es".to_owned()], ..Tastes::default() }, Limits::default());
    let mut stage = Stage::new();
    let both = r#""tool":"t","summary_normal":"Looking.","summary_normal_es":"Buscando.""#;
    ear.hear(&stage.event("tool.invoked", both), NOON);
    let said = ear.next(NOON).unwrap();
    assert_eq!((said.text.as_str(), said.language.as_deref()), ("Buscando.", Some("es")));
    // There are no others: then it is said as it is.
    ear.hear(&stage.event("tool.invoked", r#""tool":"t","summary_normal":"Looking.""#), NOON);
    let said = ear.next(NOON).unwrap();
    assert_eq!((said.text.as_str(), said.language.as_deref()), ("Looking.", Some("en")));
    let arabic = stage
        .event("tool.invoked", r#""tool":"t","summary_normal":"جارٍ البحث.""#)
        .replace(r#""primary_language":"en""#, r#""primary_language":"ar","text_direction":"rtl""#);
    ear.hear(&arabic, NOON);
    let said = ear.next(NOON).unwrap();
    assert_eq!((said.text.as_str(), said.direction), ("جارٍ البحث.", aaep::event::TextDirection::RightToLeft));
}

#[test]
fn events_in_the_wrong_order_are_noticed_once() {
    let mut stage = Stage::new();
    let call =
        |number: u32| format!(r#""sequence_number":{number},"tool":"t","summary_normal":"Call {number}.""#);
    assert_eq!(stage.hear("tool.invoked", &call(2)), ["tool: Call 2."]);
    assert_eq!(
        stage.hear("tool.invoked", &call(1)),
        ["notice: Events of this session came in the wrong order.", "tool: Call 1."]
    );
    assert_eq!(stage.hear("tool.invoked", &call(0)), ["tool: Call 0."]);
}

#[test]
fn what_comes_twice_is_said_once() {
    let mut stage = Stage::new();
    let event = stage.event("tool.invoked", r#""tool":"send","summary_normal":"Sending.""#);
    assert_eq!(stage.hear_text(&event), ["tool: Sending."]);
    assert!(stage.hear_text(&event).is_empty());
}

#[test]
fn what_is_not_known_gets_a_line() {
    let mut stage = Stage::new();
    let purple = stage.event("purple", r#""summary_normal":"Hm.""#);
    assert_eq!(
        stage.hear_text(&purple),
        ["notice: Bank sent a aaep:agent.purple, which is not known here. It says: Hm."]
    );
    assert_eq!(
        stage.hear("awaiting.confirmation", r#""action":"Boil the sea.""#),
        [
            "error: Bank sent a aaep:agent.awaiting.confirmation that could not be understood. It says: Boil the sea."
        ]
    );
    stage.hear("state.changed", r#""from_state":"idle","to_state":"purple_flamingo""#);
    assert_eq!(stage.pass(STATE_LASTS), ["agent: Bank is in a state called purple_flamingo."]);
    assert_eq!(stage.hear_text("{"), ["error: Something came that is no event; it was left out."]);
    assert_eq!(
        stage.hear_text(r#"{"type":"odd\u001b[2J"}"#),
        ["error: Something of the type odd\\u{1b}[2J came that could not be understood."]
    );
}

#[test]
fn a_state_is_said_if_it_lasts_and_flapping_is_not() {
    let mut stage = Stage::new();
    stage.hear("state.changed", r#""from_state":"idle","to_state":"thinking""#);
    assert!(stage.pass(STATE_LASTS - 1).is_empty());
    assert_eq!(stage.pass(1), ["agent: Bank is thinking."]);
    let mut said = Vec::new();
    for turn in 0..40 {
        let (from, to) = if turn % 2 == 0 { ("thinking", "deciding") } else { ("deciding", "thinking") };
        said.extend(stage.hear("state.changed", &format!(r#""from_state":"{from}","to_state":"{to}""#)));
        said.extend(stage.pass(1000));
    }
    // Quieted, but not for ever.
    assert!((1..=3).contains(&said.len()), "{said:?}");
}

#[test]
fn who_wants_all_of_it_hears_every_state() {
    let mut stage = Stage::with(Verbosity::Detailed, Limits::default());
    assert_eq!(
        stage.hear("state.changed", r#""from_state":"idle","to_state":"thinking","summary_normal":"Hm.""#),
        ["agent: Hm."]
    );
    assert_eq!(
        stage.hear("progress.updated", r#""progress":{"percent":40,"step":2,"total_steps":5}"#),
        ["progress: Step 2 of 5. 40 percent."]
    );
}

#[test]
fn of_much_progress_the_last_is_said() {
    let mut stage = Stage::new();
    let said: Vec<_> = (0..100)
        .flat_map(|percent| {
            let mut said = stage.hear("progress.updated", &format!(r#""progress":{{"percent":{percent}}}"#));
            said.extend(stage.pass(100));
            said
        })
        .collect();
    assert_eq!(said, ["progress: 0 percent.", "progress: 49 percent.", "progress: 99 percent."]);
    assert!(stage.pass(PROGRESS).is_empty());
}

#[test]
fn what_a_summary_says_already_is_not_said_again() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.hear("tool.completed", r#""tool":"send_email","status":"error","summary_normal":"Send email failed: no paper","error_message":"no paper""#),
        ["tool: Send email failed: no paper."]
    );
    assert_eq!(
        stage.hear(
            "tool.completed",
            r#""tool":"send_email","status":"error","summary_normal":"Alas","error_message":"no paper""#
        ),
        ["tool: The tool send email has failed. Alas. no paper."]
    );
    let both = confirmation("rpl_1").replace("May I pay Ben?", "Send 5 euro to Ben It is gone.");
    let asked = stage.hear("awaiting.confirmation", &both);
    assert_eq!(
        asked.get(..3).unwrap(),
        [
            "ask: Question 1, from Bank.",
            "ask: What it would do: Send 5 euro to Ben.",
            "ask: What follows from it: It is gone."
        ]
    );
}

#[test]
fn a_question_is_asked_answered_and_settled() {
    let mut stage = Stage::new();
    assert_eq!(
        stage.ask("rpl_1"),
        [
            "ask: Question 1, from Bank: May I pay Ben?",
            "ask: What it would do: Send 5 euro to Ben.",
            "ask: What follows from it: It is gone.",
            "ask: The risk is high, and it can never be undone.",
            "ask: You have 2 minutes. Without an answer it is not done.",
            "ask: Type the whole word accept or yes to allow it, or reject or no to refuse it.",
        ]
    );
    let reply = stage.ear.decide(1, Decision::Accept, stage.now).unwrap();
    assert_eq!(
        reply,
        r#"{"type":"confirmation.reply","reply_token":"rpl_1","decision":"accept","subscription_id":"sub_1","timestamp":"2026-05-24T14:00:00.000Z"}"#
    );
    assert_eq!(stage.ear.decide(1, Decision::Accept, stage.now), Err(NotAnswered::Twice));
    assert_eq!(
        stage.hear("state.changed", &settled("rpl_1", "accept", "reply")),
        ["answer: Your answer to question 1 counts: it may be done."]
    );
    assert!(stage.ear.questions().next().is_none());
    assert_eq!(stage.ask("rpl_1"), ["answer: Bank asked something that is settled already."]);
}

#[test]
fn who_was_not_the_first_is_not_told_that_it_counts() {
    for (said, became, told) in
        [(Decision::Reject, "accept", "it may be done"), (Decision::Accept, "reject", "it is not done")]
    {
        let mut stage = Stage::new();
        stage.ask("rpl_1");
        stage.ear.decide(1, said, stage.now).unwrap();
        assert_eq!(
            stage.hear("state.changed", &settled("rpl_1", became, "reply")),
            [format!("answer: Somebody else answered question 1 first: {told}. Your answer came too late.")]
        );
    }
}

#[test]
fn of_a_wish_that_did_not_reach_the_hub_nothing_more_is_said() {
    for (reached, told) in [(true, 1), (false, 0)] {
        let mut stage = Stage::new();
        stage.ask("rpl_1");
        stage.ear.more_time(1, stage.now).unwrap();
        if !reached {
            stage.ear.wish_not_sent();
        }
        let said = stage.pass(20_000);
        assert_eq!(said.iter().filter(|line| line.contains("has not given")).count(), told, "{said:?}");
    }
}

#[test]
fn how_bad_it_could_be_is_said_as_far_as_it_is_known() {
    for (said, told) in [
        ("", "The agent does not say how great the risk is. Whether it can be undone is not said."),
        (r#","risk_level":"low","irreversible":false"#, "The risk is low. It can be undone."),
        (
            r#","risk_level":"medium","reversibility":"reversible_with_effort""#,
            "The risk is medium, and it is hard to undo.",
        ),
        (
            r#","risk_level":"high","reversibility":"irreversible""#,
            "The risk is high, and it can never be undone.",
        ),
        // Of two that do not agree, the worse holds.
        (
            r#","risk_level":"low","reversibility":"reversible","irreversible":true"#,
            "The risk is low, and it can never be undone.",
        ),
    ] {
        let mut stage = Stage::new();
        let question = format!(
            r#""action":"A","consequence":"C","reply_token":"rpl_1","timeout_seconds":60,"default_decision":"reject"{said}"#
        );
        let lines = stage.hear("awaiting.confirmation", &question);
        assert!(lines.contains(&format!("ask: {told}")), "{lines:#?}");
    }
}

fn settled(token: &str, decision: &str, by: &str) -> String {
    format!(
        r#""from_state":"awaiting_input","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"{token}","decision":"{decision}","by":"{by}"}}}}"#
    )
}

#[test]
fn how_a_question_went_away_is_said() {
    for (by, said) in [
        ("reply", "answer: Question 1 was answered elsewhere: it is not done."),
        ("timeout", "answer: Nobody answered question 1 in time: it is not done."),
        ("closure", "answer: Nobody was left to answer question 1: it is not done."),
        ("cancelled", "answer: Question 1 is withdrawn: it is not done."),
    ] {
        let mut stage = Stage::new();
        stage.ask("rpl_1");
        assert_eq!(stage.hear("state.changed", &settled("rpl_1", "reject", by)), [said]);
    }
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.hear("session.cancelled", r#""cancelled_by":"user","summary_normal":"Stopped.""#),
        [
            "answer: Question 1 is withdrawn, because its session is over.",
            "session: Bank was stopped by a person. Stopped."
        ]
    );
    // Of other producers it is only known that the agent goes on.
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.hear("state.changed", r#""from_state":"awaiting_input","to_state":"thinking""#),
        ["answer: Question 1 is closed: Bank goes on without your answer."]
    );
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.pass(200_000).last().unwrap(),
        "answer: The time for question 1 is over. Without an answer it is not done."
    );
}

#[test]
fn time_is_said_at_half_and_at_a_tenth_and_can_be_had_more() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(
        stage.pass(119_000),
        [
            "ask: You have 60 seconds left for question 1. Type more time if you need more.",
            "ask: You have 10 seconds left for question 1. Type more time if you need more.",
        ]
    );
    let wish = stage.ear.more_time(1, stage.now).unwrap();
    assert!(wish.starts_with(r#"{"type":"sayso:deadline.extend","reply_token":"rpl_1""#), "{wish}");
    assert_eq!(stage.ear.time_left(1, stage.now).unwrap(), "1 second", "only the hub gives more");
    let more = "ask: There is more time for question 1. It now stays open for 2 minutes.";
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 240)), [more]);
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 240)), [""; 0], "once");
    assert_eq!(
        stage.pass(9_999),
        ["ask: You have 2 minutes left for question 1. Type more time if you need more."]
    );
    assert_eq!(stage.pass(2), [""; 0], "the wish was granted");
    stage.hear("progress.updated", &more_time("rpl_1", 1200));
    assert_eq!(stage.ear.more_time(1, stage.now), Err(NotAnswered::NoMoreTime));
}

/// The hub tells that a question can be answered until so many seconds after noon.
fn more_time(token: &str, seconds: i64) -> String {
    let until = aaep::Timestamp::from_unix_millis(NOON + seconds * 1000).unwrap();
    format!(
        r#""progress":{{"description":"x"}},"summary_normal":"There is more time.","extensions":{{"sayso":{{"extended":"{token}","deadline":"{until}"}}}}"#
    )
}

#[test]
fn of_a_short_question_time_is_said_while_there_is_enough_to_answer() {
    for (seconds, expected) in [("30", &["15 seconds"][..]), ("60", &["30 seconds", "6 seconds"]), ("9", &[])]
    {
        let mut stage = Stage::new();
        stage.hear("awaiting.confirmation", &confirmation("rpl_1").replace("120", seconds));
        let expected: Vec<_> = expected
            .iter()
            .map(|left| format!("ask: You have {left} left for question 1. Type more time if you need more."))
            .collect();
        assert_eq!(stage.pass(seconds.parse::<i64>().unwrap() * 1000 - 1), expected);
    }
}

#[test]
fn more_time_that_somebody_else_asked_for_is_had_here_too() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    stage.pass(100_000);
    let told = stage.hear("progress.updated", &more_time("rpl_1", 240));
    assert_eq!(told, ["ask: There is more time for question 1. It now stays open for 2 minutes."]);
    let until_end = stage.pass(139_999);
    assert_eq!(until_end.len(), 2, "half and a tenth are said anew: {until_end:?}");
    assert!(stage.ear.decide(1, Decision::Accept, stage.now).is_ok());
    // What is told of a question that is settled, or of none, is nothing to be said.
    stage.hear("state.changed", &settled("rpl_1", "accept", "reply"));
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 480)), [""; 0]);
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_9", 480)), [""; 0]);
}

#[test]
fn time_is_never_taken_away_and_only_the_mark_gives_it() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 60)), [""; 0]);
    let words = more_time("rpl_1", 240).replace("sayso", "other");
    assert_eq!(stage.hear("progress.updated", &words), ["progress: There is more time."]);
    let at_state = more_time("rpl_1", 240).replace(
        r#""progress":{"description":"x"}"#,
        r#""from_state":"awaiting_input","to_state":"awaiting_input""#,
    );
    stage.hear("state.changed", &at_state);
    assert_eq!(stage.ear.time_left(1, stage.now).unwrap(), "2 minutes");
}

#[test]
fn who_asks_for_more_time_and_gets_none_is_told_so() {
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    stage.ear.more_time(1, stage.now).unwrap();
    assert_eq!(
        stage.pass(10_000),
        ["ask: The hub has not given question 1 more time. It stays open for 115 seconds."]
    );
    assert_eq!(stage.pass(10_000), [""; 0], "once");
}

#[test]
fn who_joins_late_has_the_time_that_is_left() {
    // In front of the question it is told how much time it has.
    let mut stage = Stage::new();
    let question = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.now += 150_000;
    assert_eq!(stage.hear("progress.updated", &more_time("rpl_1", 240)), [""; 0]);
    let told = stage.hear_text(&question);
    assert!(
        told.iter().any(|line| line == "ask: You have 90 seconds. Without an answer it is not done."),
        "{told:?}"
    );
    // Behind it, where it is told what was missed: until then the clock here seemed to be wrong.
    let mut stage = Stage::new();
    let question = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.now += 100_000;
    let more = stage.event("progress.updated", &more_time("rpl_1", 240));
    stage.now += 50_000;
    stage.hear_text(&question);
    assert_eq!(
        stage.hear_text(&more),
        ["ask: There is more time for question 1. It now stays open for 90 seconds."]
    );
    // A clock that is wrong stays wrong.
    let mut stage = Stage::new();
    let question = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.now += 10_000;
    let more = stage.event("progress.updated", &more_time("rpl_1", 240));
    stage.now += 3_600_000;
    stage.ear.hear(&question, stage.now - 10_000);
    stage.said();
    assert_eq!(
        stage.hear_text(&more),
        ["ask: There is more time for question 1. It now stays open for 3 minutes."]
    );
}

#[test]
fn a_reminder_of_the_hub_is_known_by_its_mark_and_not_by_its_words() {
    let words = r#""progress":{"description":"60 seconds are left to answer."}"#;
    let mark = |token: &str| format!(r#"{words},"extensions":{{"sayso":{{"reminds_of":"{token}"}}}}"#);
    let mut stage = Stage::new();
    stage.ask("rpl_1");
    assert_eq!(stage.hear("progress.updated", &mark("rpl_1")), [""; 0], "it is said here by this clock");
    assert_eq!(stage.hear("progress.updated", words), ["progress: 60 seconds are left to answer."]);
    stage.pass(10_000);
    assert_eq!(
        stage.hear("progress.updated", &mark("rpl_2").replace("60", "50")),
        ["progress: 50 seconds are left to answer."]
    );
}

#[test]
fn what_the_hub_says_of_a_state_is_said_here_in_words_of_ours() {
    let words = |from: &str, to: &str, mark: &str| {
        format!(
            r#""urgency":"normal","from_state":"{from}","to_state":"{to}","summary_terse":"Hub.","summary_normal":"The hub's words.","extensions":{{"sayso":{{{mark}}}}}"#
        )
    };
    let mark = r#""words":"hub""#;
    let mut stage = Stage::new();
    assert_eq!(
        stage.hear("state.changed", &words("thinking", "thinking", mark)),
        ["agent: Bank is thinking."]
    );
    assert!(stage.hear("state.changed", &words("thinking", "writing_output", mark)).is_empty());
    assert_eq!(stage.pass(STATE_LASTS), ["agent: Bank is writing."]);
    stage.ask("rpl_1");
    let told = stage.hear(
        "state.changed",
        &words(
            "awaiting_input",
            "calling_tool",
            r#""reply_token":"rpl_1","decision":"reject","by":"timeout""#,
        ),
    );
    assert_eq!(told, ["answer: Nobody answered question 1 in time: it is not done."]);
    assert_eq!(
        stage.pass(STATE_LASTS),
        ["agent: Bank is using a tool."],
        "and not how it was resolved once more"
    );
    // An agent's words are said as they are.
    stage.hear("state.changed", &words("calling_tool", "deciding", r#""words":"agent""#));
    assert_eq!(stage.pass(STATE_LASTS), ["agent: The hub's words."]);
}

#[test]
fn an_answer_without_a_number_is_for_the_only_question_that_could_be_meant() {
    let mut stage = Stage::new();
    assert!(stage.ear.only_question(stage.now).is_none());
    stage.ask("rpl_1");
    assert_eq!(stage.ear.only_question(stage.now).unwrap().number, 1);
    let event = stage.event_of("sess_2", "awaiting.confirmation", &confirmation("rpl_2"));
    assert!(stage.hear_text(&event)[0].starts_with("ask: In session 2: Question 2, from Bank"));
    assert!(stage.ear.only_question(stage.now).is_none());
    // The first goes away by itself: a yes on its way must not hit the second.
    stage.hear("state.changed", &settled("rpl_1", "reject", "reply"));
    assert!(stage.ear.only_question(stage.now).is_none());
    stage.pass(answer::SURPRISE);
    assert_eq!(stage.ear.only_question(stage.now).unwrap().number, 2);
    assert_eq!(stage.ear.decide(1, Decision::Accept, stage.now), Err(NotAnswered::NotOpen));
    assert!(stage.ear.decide(2, Decision::Accept, stage.now).unwrap().contains("rpl_2"));
}

#[test]
fn clarifications_take_what_they_say_they_take() {
    let mut stage = Stage::new();
    let ask = |token: &str, more: &str| {
        format!(r#""question":"Which?","reply_token":"{token}","timeout_seconds":60{more}"#)
    };
    let choices = r#","choices":[{"value":"a","label":"The first"},{"value":"b","label":"The second"}]"#;
    let said = stage.hear("awaiting.clarification", &ask("rpl_1", choices));
    assert_eq!(said[1..3], ["ask: Choice 1: The first.", "ask: Choice 2: The second."]);
    assert_eq!(stage.ear.respond(1, "3", stage.now), Err(NotAnswered::NotTaken));
    assert!(stage.ear.respond(1, "the SECOND", stage.now).unwrap().contains(r#""response":"b""#));
    for (number, kinds, said, json) in [
        (2, r#"["yes_no"]"#, "no", "false"),
        (3, r#"["numeric"]"#, "2.5", "2.5"),
        (4, r#"["freetext"]"#, " Lagos ", "\"Lagos\""),
    ] {
        stage.hear(
            "awaiting.clarification",
            &ask(&format!("rpl_{number}"), &format!(r#","accepted_response_kinds":{kinds}"#)),
        );
        assert_eq!(stage.ear.respond(number, "", stage.now), Err(NotAnswered::NotTaken));
        let reply = stage.ear.respond(number, said, stage.now).unwrap();
        assert!(reply.contains(&format!(r#""response":{json},"#)), "{reply}");
    }
}

#[test]
fn a_clock_that_is_wrong_here_costs_nobody_an_answer() {
    for ahead in [-3_600_000, 3_600_000] {
        let mut stage = Stage::new();
        let event = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
        stage.now += ahead;
        let said = stage.hear_text(&event);
        assert!(
            said.contains(&"ask: You have 2 minutes. Without an answer it is not done.".to_owned()),
            "{said:?}"
        );
        let reply = stage.ear.decide(1, Decision::Reject, stage.now).unwrap();
        assert!(reply.contains("2026-05-24T14:00:00.000Z"), "{reply}");
    }
}

#[test]
fn more_questions_than_can_be_kept_are_said_and_not_kept() {
    let mut stage = Stage::with(Verbosity::Normal, Limits { questions: 3, ..Limits::default() });
    for number in 0..3 {
        stage.ask(&format!("rpl_{number}"));
    }
    assert_eq!(
        stage.ask("rpl_9"),
        [
            "error: Bank asks more than can be kept open here. This cannot be answered here: Send 5 euro to Ben. Without an answer it is not done."
        ]
    );
    assert_eq!(stage.ear.questions().count(), 3);
}

#[test]
fn sessions_ids_and_outputs_stay_within_their_limits() {
    let limits = Limits { sessions: 10, ids: 20, outputs: 2, ..Limits::default() };
    let mut stage = Stage::with(Verbosity::Normal, limits);
    for number in 0..100 {
        let event = stage.event_of(&format!("sess_{number}"), "session.started", r#""summary_normal":"Hm.""#);
        stage.hear_text(&event);
    }
    assert_eq!(stage.ear.sessions().count(), 10);
    let event = stage.event_of("sess_99", "tool.invoked", r#""tool":"t","summary_normal":"Hm.""#);
    assert_eq!(stage.hear_text(&event).len(), 1);
    for number in 0..50 {
        let text = format!(r#""chunk":"Hm. ","position":0,"complete":false,"output_id":"out_{number}""#);
        stage.hear("output.streaming", &text);
    }
    assert!(stage.ear.sessions.iter().all(|session| session.outputs() <= 2));
}

#[test]
fn text_that_is_missing_or_repeated_is_noticed() {
    let mut stage = Stage::new();
    let text = "One is here. Two is here. Three is here.";
    stage.hear("output.streaming", &chunk("One is here. ", 0, false));
    // The same place again, cut otherwise: only what is new is said.
    let mut said = stage.hear("output.streaming", &chunk(&text[..26], 0, false));
    said.extend(stage.hear("output.streaming", &chunk(&text[20..], 20, true)));
    assert_eq!(said, ["agent: One is here.", "agent: Two is here.", "agent: Three is here."]);
    // Another text that claims to stand where one stood already is heard all the same.
    assert_eq!(stage.hear("output.streaming", &chunk("Liar. ", 0, true)), ["agent: Liar."]);
    let mut stage = Stage::new();
    stage.hear("output.streaming", &chunk("One ", 0, false));
    assert_eq!(
        stage.hear("output.streaming", &chunk("Three.", 100, true)),
        ["agent: One", "notice: Some words are missing here; they did not arrive.", "agent: Three."]
    );
}

#[test]
fn a_gap_and_what_holds_after_it_are_told() {
    let mut stage = Stage::new();
    let gap =
        r#"{"type":"sayso:gap","subscription_id":"sub_1","last_event_id":"evt_1","reason_message":"Gone."}"#;
    assert_eq!(
        stage.hear_text(gap),
        ["notice: Some of what was said while you were away is not kept any more. What holds now follows."]
    );
    assert_eq!(
        stage.hear("state.changed", r#""from_state":"thinking","to_state":"thinking""#),
        ["agent: Bank is thinking."]
    );
}

#[test]
fn what_is_not_told_again_after_a_gap_is_over() {
    let mut stage = Stage::new();
    let first = stage.event("awaiting.confirmation", &confirmation("rpl_1"));
    stage.hear_text(&first);
    let event = stage.event_of("sess_2", "awaiting.confirmation", &confirmation("rpl_2"));
    stage.hear_text(&event);
    stage.ear.begin_anew(stage.now);
    // The first session goes on, and its question with it; it is not asked again.
    stage.hear("state.changed", r#""from_state":"awaiting_input","to_state":"awaiting_input""#);
    assert!(stage.hear_text(&first).is_empty());
    assert_eq!(
        stage.pass(UNSURE),
        [
            "answer: Question 2 is not open any more. What became of it was not heard.",
            "session: Bank is over. How it ended was not heard.",
        ]
    );
    stage.pass(answer::SURPRISE);
    assert_eq!(stage.ear.only_question(stage.now).unwrap().number, 1);
    assert_eq!(stage.ear.sessions().count(), 1);
}

#[test]
fn a_session_that_is_not_told_again_after_a_gap_is_over_by_itself() {
    let mut stage = Stage::new();
    stage.hear("session.started", r#""summary_normal":"Hm.""#);
    stage.hear_text(r#"{"type":"sayso:gap","subscription_id":"sub_1","last_event_id":"evt_1"}"#);
    assert_eq!(stage.pass(UNSURE), ["session: Bank is over. How it ended was not heard."]);
}

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
