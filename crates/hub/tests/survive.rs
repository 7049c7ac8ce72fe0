//! What a crash, a full disk and a lost connection leave: nothing lost, nothing twice, and never a yes.

use crate::support::*;
use hub::command::{Command, Output, Reply};
use hub::watch::Note;

#[test]
fn after_a_crash_an_open_question_is_still_open_and_can_be_answered() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    stage.crash();
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);
    stage.attach(&ada, &subscription, None);
    stage.reply(&ada, &subscription, &token, "accept");
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!(text_of(&resolved, "decision"), "accept");
    stage.crash();
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!(text_of(&resolved, "decision"), "accept");
    let good = stage.publish(&bank, &session, &[&call(&token, "500.00")]);
    assert!(matches!(good, Reply::EventsPublished { .. }), "{good:?}");
    stage.crash();
    let again = stage.publish(&bank, &session, &[&call(&token, "500.00").replace("call_1", "call_2")]);
    assert!(matches!(again, Reply::Unlawful(_)), "spent before the crash: {again:?}");
}

#[test]
fn a_deadline_that_passed_while_the_hub_was_away_means_no() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    stage.now += 200_000;
    stage.crash();
    stage.turn();
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!(text_of(&resolved, "decision"), "reject");
    stage.attach(&ada, &subscription, None);
    stage.reply(&ada, &subscription, &token, "accept");
    assert_eq!(stage.disk.decision(&token).unwrap().decision, "reject", "decided once");
}

#[test]
fn a_listener_that_returns_hears_what_it_missed_and_nothing_twice() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, "{}");
    let session = stage.start(&bank);
    let last = text_of(&stage.heard(ear)[0], "event_id");
    stage.ask_hub_quietly(&ada, Command::Detached { listener: ear, too_slow: false });
    stage.publish(&bank, &session, &[THINK]);
    stage.crash();
    let back = stage.attach(&ada, &subscription, Some(&last));
    assert_eq!(types(&stage.heard(back)), ["state.changed"]);
    let deciding = r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#;
    stage.publish(&bank, &session, &[deciding]);
    assert_eq!(stage.heard(back).len(), 1);
}

#[test]
fn who_joins_late_is_told_the_state_and_the_open_questions() {
    let mut stage = Stage::new();
    let (bank, ada, ben) = (agent("bank"), listener("ada", &[]), listener("ben", &[]));
    stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let (subscription, late) = stage.listener(&ben, REPLIES);
    let heard = stage.heard(late);
    assert_eq!(types(&heard), ["state.changed", "awaiting.confirmation"]);
    assert_eq!(text_of(&heard[0], "from_state"), text_of(&heard[0], "to_state"));
    stage.reply(&ben, &subscription, &token, "reject");
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!((text_of(&resolved, "decision"), text_of(&resolved, "by")), ("reject".into(), "reply".into()));
}

#[test]
fn a_full_disk_is_a_clear_no_and_nothing_is_lost() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let before = stage.disk.events().len();
    stage.disk.fill(true);
    let text = reply_text(&stage, &subscription, &token);
    assert!(matches!(stage.ask_hub(&ada, say(&text)), Reply::Unavailable(_)));
    assert!(stage.is_closed(ear), "it comes back and hears what is on disk");
    assert!(matches!(stage.publish(&bank, &session, &[&call(&token, "500.00")]), Reply::Unlawful(_)));
    stage.disk.fill(false);
    assert_eq!(stage.disk.events().len(), before);
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);
    stage.attach(&ada, &subscription, None);
    assert_eq!(stage.ask_hub(&ada, say(&text)), Reply::Done);
    assert_eq!(stage.disk.decision(&token).unwrap().decision, "accept");
}

fn reply_text(stage: &Stage, subscription: &str, token: &str) -> String {
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    )
}

#[test]
fn two_who_join_late_in_one_turn_may_both_answer() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let (ben, cleo) = (listener("ben", &[]), listener("cleo", &[]));
    let subscriptions = [stage.subscribe(&ben, REPLIES), stage.subscribe(&cleo, REPLIES)];
    let [first, second] = [(0, 91), (1, 92)].map(|(at, number): (usize, u64)| Command::Attach {
        subscription: id(&subscriptions[at]),
        last_event_id: None,
        listener: hub::ListenerId(number),
    });
    stage.both(&ben, first, &cleo, second);
    stage.reply(&cleo, &subscriptions[1], &token, "accept");
    assert_eq!(stage.disk.decision(&token).unwrap().decision, "accept");
}

#[test]
fn questions_that_end_together_leave_no_state_behind() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    stage.confirm(&bank, &session, TRANSFER);
    stage.confirm(&bank, &session, &TRANSFER.replace("500", "600"));
    stage.wait(180_000);
    let heard = stage.heard(ear);
    let states: Vec<_> = heard
        .iter()
        .filter(|event| event.contains("reply_token\":\"rpl") && event.contains("to_state"))
        .collect();
    let [first, second] = states[..] else { panic!("{heard:?}") };
    assert_eq!(text_of(first, "to_state"), "awaiting_input");
    assert_eq!(text_of(second, "to_state"), "thinking");
}

#[test]
fn a_full_disk_is_not_tried_again_at_once_and_an_unreadable_one_is_waited_for() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    stage.disk.fill(true);
    stage.disk.fail(true);
    stage.now += 180_000;
    let outputs = stage.core.turn(Vec::new(), stage.now);
    let notes = outputs.iter().filter_map(|output| match output {
        Output::Note(note) => Some(note),
        _ => None,
    });
    assert!(matches!(notes.collect::<Vec<_>>()[..], [Note::NotStored(_), Note::NotRead(_)]), "{outputs:?}");
    stage.perform(outputs);
    assert!(stage.core.next_deadline().is_some_and(|at| at > stage.now));
    assert!(matches!(stage.status(&bank, &session, &token), Reply::Unavailable(_)));
    stage.disk.fill(false);
    stage.disk.fail(false);
    stage.wait(1_000);
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!(text_of(&resolved, "decision"), "reject");
}

#[test]
fn who_returns_after_a_session_has_ended_hears_its_end() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &["person:marisol"]));
    let (subscription, ear) = stage.listener(&ada, "{}");
    let session = stage.start(&bank);
    let last = text_of(&stage.heard(ear)[0], "event_id");
    stage.ask_hub_quietly(&ada, Command::Detached { listener: ear, too_slow: false });
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    stage.publish(&bank, &session, &[end]);
    let back = stage.attach(&ada, &subscription, Some(&last));
    assert_eq!(types(&stage.heard(back)), ["session.completed"]);
}

#[test]
fn a_retry_of_what_ended_a_session_is_answered_as_the_first_time() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let session = stage.start(&bank);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#.to_owned();
    let publish = Command::Publish { session: id(&session), events: vec![end.into()], key: Some("k".into()) };
    let first = stage.ask_hub(&bank, publish.clone());
    assert!(matches!(first, Reply::EventsPublished { .. }));
    assert_eq!(stage.ask_hub(&bank, publish), first);
}

/// The other session's end overtakes a tool that waits for the rate: the mark after it says from where to go on.
#[test]
fn who_resumes_from_an_event_that_overtook_hears_what_it_overtook() {
    for crashes in [false, true] {
        let mut stage = Stage::new();
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, ear) = stage.listener(&ada, r#"{"max_events_per_second":1}"#);
        let session = stage.start(&bank);
        stage.publish(&bank, &session, &[THINK, LOOK]);
        let other = stage.start(&bank);
        stage.publish(&bank, &other, &[FAILED]);
        let heard = stage.heard(ear);
        assert_eq!(types(&heard).last().unwrap(), "session.errored");
        assert!(!types(&heard).contains(&"tool.invoked".to_owned()));
        let last = stage.last_id(ear).unwrap();
        if crashes {
            stage.crash();
        } else {
            stage.ask_hub_quietly(&ada, Command::Detached { listener: ear, too_slow: false });
        }
        let back = stage.attach(&ada, &subscription, Some(&last));
        stage.wait(10_000);
        assert!(types(&stage.heard(back)).contains(&"tool.invoked".to_owned()));
        assert_eq!(stage.told(back), Vec::<String>::new(), "no gap");
    }
}

const LOOK: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
const FAILED: &str = r#"{"type":"aaep:agent.session.errored","error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost."}"#;

#[test]
fn where_history_is_gone_a_listener_is_told_so_and_how_things_stand() {
    let limits = hub::Limits { replay: 3, ..hub::Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let last = stage.last_id(ear).unwrap();
    stage.ask_hub_quietly(&ada, Command::Detached { listener: ear, too_slow: false });
    stage.publish(&bank, &session, &[THINK, LOOK]);
    let back = stage.attach(&ada, &subscription, Some(&last));
    assert_eq!((types(&stage.heard(back)).len(), stage.told(back).len()), (2, 0), "all of it is there");
    let done = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_9","status":"success","summary_normal":"Seen."}"#;
    stage.publish(&bank, &session, &[done]);
    stage.confirm(&bank, &session, TRANSFER);
    for unknown in [&*last, "evt_never", "at_999999", "behind"] {
        let back = stage.attach(&ada, &subscription, Some(unknown));
        let [told] = &stage.told(back)[..] else { panic!("one notice") };
        assert_eq!(
            (text_of(told, "type"), text_of(told, "last_event_id")),
            ("sayso:gap".into(), unknown.into())
        );
        assert_eq!(text_of(told, "subscription_id"), subscription);
        let heard = stage.heard(back);
        assert_eq!(types(&heard), ["state.changed", "awaiting.confirmation"]);
        assert!(heard[0].contains(r#""gap":true"#), "{}", heard[0]);
        let last = stage.last_id(back).unwrap();
        let again = stage.attach(&ada, &subscription, Some(&last));
        assert_eq!(
            (stage.heard(again).len(), stage.told(again).len()),
            (0, 0),
            "and then goes on from there"
        );
    }
}

#[test]
fn who_is_replaced_or_too_slow_is_told_and_when_the_hub_stops_questions_stay_open() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, first) = stage.listener(&ada, REPLIES);
    let second = stage.attach(&ada, &subscription, None);
    let reason = |told: Vec<String>| told.iter().map(|one| text_of(one, "reason_code")).collect::<Vec<_>>();
    assert_eq!(reason(stage.told(first)), ["replaced"]);
    assert!(stage.is_closed(first) && !stage.is_closed(second));
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    assert_eq!(stage.ask_hub(&ada, Command::Goodbye), Reply::Done);
    assert_eq!(reason(stage.told(second)), ["producer_shutdown"]);
    stage.ask_hub_quietly(&ada, Command::Detached { listener: second, too_slow: false });
    stage.crash();
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);
    let back = stage.attach(&ada, &subscription, None);
    stage.reply(&ada, &subscription, &token, "accept");
    assert_eq!(stage.disk.decision(&token).unwrap().decision, "accept");
    stage.ask_hub_quietly(&ada, Command::Detached { listener: back, too_slow: true });
    assert_eq!(reason(stage.told(back)), ["slow_consumer"]);
    let attach = Command::Attach {
        subscription: id(&subscription),
        last_event_id: None,
        listener: hub::ListenerId(1_000),
    };
    assert_eq!(stage.ask_hub(&ada, attach), Reply::NotFound, "it is closed");
}

/// What a lane holds for two is not lost to the one who wants it otherwise from now on.
#[test]
fn who_renegotiates_keeps_the_text_that_was_held() {
    let mut stage = Stage::new();
    let (bank, ada, ben) = (agent("bank"), listener("ada", &[]), listener("ben", &[]));
    let (subscription, ear) = stage.listener(&ada, "{}");
    let (_, other) = stage.listener(&ben, "{}");
    let session = stage.start(&bank);
    let piece = |text: &str| Command::Output {
        session: id(&session),
        output_id: None,
        text: text.to_owned(),
        language: None,
        content_type: None,
        complete: false,
        stays: false,
        key: None,
    };
    stage.ask_hub(&bank, piece("One sentence. And half"));
    let text = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{{"coalesce_boundaries":["word"]}}}}"#
    );
    let answer = stage.ask_hub(&ada, say(&text));
    assert!(matches!(answer, Reply::Renegotiated(_)), "{answer:?}");
    stage.ask_hub(&bank, piece(" of one more. "));
    let think = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    assert!(matches!(stage.publish(&bank, &session, &[think]), Reply::EventsPublished { .. }));
    let mut said = |ear| -> Vec<String> {
        let heard = stage.heard(ear);
        let texts = heard.iter().filter(|event| event.contains("output.streaming"));
        texts.map(|event| text_of(event, "chunk")).collect()
    };
    let words = said(ear);
    assert_eq!(words.concat(), "One sentence. And half of one more. ");
    assert!(words.len() > 4, "by the word from then on: {words:?}");
    assert_eq!(said(other), ["One sentence. ", "And half of one more. "], "and for nobody else");
}
