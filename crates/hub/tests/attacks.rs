//! What an attacker tries (chapter 10 of the specification), and that nothing comes of it.

use crate::support::*;
use hub::command::{Command, Reply};
use hub::{Limits, ListenerId};

const DONE: &str = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;

/// A bank that asks Ada; returns the stage, Ada's subscription, the session and the token.
fn asked() -> (Stage, String, String, String) {
    let mut stage = Stage::new();
    let (subscription, _) = stage.listener(&listener("ada", &["person:marisol"]), REPLIES);
    let session = stage.start(&agent("bank"));
    let asked = json(stage.confirm(&agent("bank"), &session, TRANSFER));
    (stage, subscription, session, text_of(&asked, "reply_token"))
}

fn attempts(stage: &Stage) -> Vec<String> {
    let attempt = |seen| if let Seen::Attempt { what } = seen { Some(what) } else { None };
    stage.disk.seen().into_iter().filter_map(attempt).collect()
}

#[test]
fn t1_a_forged_reply_has_no_effect_and_is_answered_and_written_down_like_a_good_one() {
    let (mut stage, adas, session, token) = asked();
    let eve = listener("eve", &["person:jonas"]);
    let (eves, _) = stage.listener(&eve, REPLIES);
    attempts(&stage);
    let unknown = "rpl_00000000000000000000000000000000";
    for (subscription, token, why) in [
        (&adas, &*token, "other_identity"),
        (&eves, &*token, "not_entitled"),
        (&eves, unknown, "unknown"),
        (&"sub_00000000000000000000000000000000".to_owned(), &*token, "no_subscription"),
    ] {
        stage.reply(&eve, subscription, token, "accept");
        assert_eq!(attempts(&stage), [why]);
    }
    stage.reply(&agent("bank"), &adas, &token, "accept");
    assert_eq!(stage.status(&agent("bank"), &session, &token), Reply::QuestionPending);
    attempts(&stage);
    stage.reply(&listener("ada", &["person:marisol"]), &adas, &token, "accept");
    assert_eq!(attempts(&stage), ["taken"]);
}

#[test]
fn t2_a_reply_counts_once() {
    let (mut stage, adas, session, token) = asked();
    let ada = listener("ada", &["person:marisol"]);
    stage.reply(&ada, &adas, &token, "reject");
    stage.reply(&ada, &adas, &token, "accept");
    stage.crash();
    stage.attach(&ada, &adas, None);
    stage.reply(&ada, &adas, &token, "accept");
    assert_eq!(stage.disk.decision(&token).unwrap().decision, "reject");
    let call = stage.publish(&agent("bank"), &session, &[&call(&token, "500.00")]);
    assert!(matches!(call, Reply::Unlawful(_)), "{call:?}");
}

#[test]
fn t3_an_agent_speaks_neither_as_another_nor_as_the_hub_nor_as_the_person() {
    let (mut stage, _, session, token) = asked();
    let bank = agent("bank");
    for event in [
        r#"{"type":"aaep:agent.state.changed","to_state":"thinking","producer":{"agent_id":"post"}}"#,
        &format!(
            r#"{{"type":"aaep:agent.state.changed","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"{token}","decision":"accept","by":"reply"}}}}}}"#
        ),
        // A question that is only published could not be answered, and is not counted.
        &format!(
            r#"{{"type":"aaep:agent.awaiting.confirmation","reply_token":"rpl_11111111111111111111111111111111",{}"#,
            TRANSFER
                .replace(r#","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}"#, "")
                .trim_start_matches('{')
        ),
    ] {
        let answer = stage.publish(&bank, &session, &[event]);
        assert!(matches!(answer, Reply::Malformed(_)), "{answer:?} to {event}");
    }
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);
}

#[test]
fn t4_floods_are_capped() {
    let limits = Limits { subscriptions: 3, sessions: 2, events_in_request: 5, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    for _ in 0..3 {
        stage.listener(&ada, REPLIES);
    }
    let text =
        r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"ear","capabilities":{}}"#;
    let request = subscribe(text);
    assert!(matches!(stage.ask_hub(&ada, request), Reply::LimitReached(_)));

    let session = stage.start(&bank);
    stage.start(&bank);
    let start = Command::Start { body: r#"{"summary_normal":"x"}"#.into(), key: None };
    assert!(matches!(stage.ask_hub(&bank, start), Reply::LimitReached(_)));
    assert!(matches!(stage.publish(&bank, &session, &[THINK; 6]), Reply::Malformed(_)));

    let mut made = 0;
    for number in 0..40 {
        let amount = format!("{number}.00");
        let text = TRANSFER.replace("500 euro", &format!("{amount} euro")).replace("500.00", &amount);
        match stage.confirm(&bank, &session, &text) {
            Reply::QuestionOpened { .. } | Reply::SessionStarted { .. } => made += 1,
            Reply::LimitReached(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(made, limits.questions.open_in_session);
}

#[test]
fn t4_who_wants_too_little_at_a_time_of_too_much_is_let_go() {
    let shape = aaep::shape::Limits { events: 10, ..aaep::shape::Limits::default() };
    let mut stage = Stage::with(&Limits { shape, ..Limits::default() }, Disk::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, slow) = stage.listener(&ada, r#"{"max_events_per_second":1}"#);
    let (_, quick) = stage.listener(&ada, "{}");
    for _ in 0..8 {
        let session = stage.start(&bank);
        assert!(matches!(stage.publish(&bank, &session, &[THINK]), Reply::EventsPublished { .. }));
    }
    stage.turn();
    assert!(stage.is_closed(slow), "sixteen events, and ten are held at most");
    assert!(!stage.is_closed(quick));
    assert_eq!(stage.heard(quick).len(), 16);
}

#[test]
fn t4_subscriptions_that_nobody_listens_on_make_room() {
    let limits = Limits { subscriptions: 3, attach_window: 20_000, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let ada = listener("ada", &[]);
    let never = stage.subscribe(&ada, REPLIES);
    let (left, ear) = stage.listener(&ada, REPLIES);
    let (stayed, _) = stage.listener(&ada, REPLIES);
    stage.ask_hub_quietly(&ada, Command::Detached { listener: ear, too_slow: false });
    stage.wait(limits.resume_window);
    for gone in [never, left] {
        let command =
            Command::Attach { subscription: id(&gone), last_event_id: None, listener: ListenerId(90) };
        assert_eq!(stage.ask_hub(&ada, command), Reply::NotFound);
    }
    stage.attach(&ada, &stayed, None);
    stage.subscribe(&ada, REPLIES);
    stage.subscribe(&ada, REPLIES);
    stage.wait(limits.attach_window);
    assert!(format!("{:?}", stage.core).contains(" subscriptions: 1,"), "{:?}", stage.core);
}

#[test]
fn t4_nobody_takes_all_subscriptions() {
    let limits = Limits { subscriptions_per_principal: 2, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let (ada, eve) = (listener("ada", &[]), listener("eve", &[]));
    stage.subscribe(&eve, REPLIES);
    let (closed, _) = stage.listener(&eve, REPLIES);
    let text =
        r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"ear","capabilities":{}}"#;
    let request = subscribe(text);
    let refused = stage.ask_hub(&eve, request.clone());
    let json = json(refused);
    assert_eq!(text_of(&json, "reason_code"), "rate_limit");
    assert!(text_of(&json, "reason_message").contains("too many subscriptions"), "{json}");
    stage.subscribe(&ada, REPLIES);
    let text = format!(r#"{{"type":"subscription.close","subscription_id":"{closed}"}}"#);
    assert_eq!(stage.ask_hub(&eve, say(&text)), Reply::Done);
    stage.subscribe(&eve, REPLIES);
    assert!(matches!(stage.ask_hub(&eve, request), Reply::SubscriptionRejected(_)));
}

#[test]
fn t4_an_agent_that_marks_everything_critical_is_told_to_stop_and_drowns_nobody() {
    let limits = Limits { criticals_per_minute: 3, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let (bank, post) = (agent("bank"), agent("post"));
    let (_, ear) = stage.listener(&listener("ada", &[]), REPLIES);
    let (session, other) = (stage.start(&bank), stage.start(&post));
    stage.heard(ear);
    let shout = r#"{"type":"aaep:agent.progress.updated","urgency":"critical","progress":{"percent":5},"summary_normal":"Look!"}"#;
    let calm =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    let full_name = shout.replace("aaep:", "https://aaep-protocol.org/types/");
    assert!(matches!(stage.publish(&bank, &session, &[shout, calm]), Reply::EventsPublished { .. }));
    assert!(matches!(stage.publish(&bank, &session, &[shout, &full_name]), Reply::EventsPublished { .. }));
    let by_type = r#"{"type":"aaep:agent.handoff.requested","reason":"Too hard.","target_kind":"human","summary_normal":"A person is needed."}"#;
    for events in [&[shout][..], &[calm, &full_name], &[by_type]] {
        let refused = stage.publish(&bank, &session, events);
        let Reply::LimitReached(why) = &refused else { panic!("{refused:?}") };
        assert!(why.to_string().contains("3 critical events in a minute"), "{why}");
    }
    assert!(
        matches!(stage.publish(&bank, &session, &[calm]), Reply::EventsPublished { .. }),
        "what is not critical may go on"
    );
    assert!(
        matches!(
            stage.confirm(&bank, &session, TRANSFER),
            Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }
        ),
        "and so may questions"
    );
    assert!(
        matches!(stage.publish(&post, &other, &[shout]), Reply::EventsPublished { .. }),
        "and so may others"
    );
    assert_eq!(stage.heard(ear).iter().filter(|event| event.contains("Look!")).count(), 4);
    stage.wait(60_000);
    assert!(matches!(stage.publish(&bank, &session, &[shout]), Reply::EventsPublished { .. }));
}

#[test]
fn t4_questions_that_are_asked_and_withdrawn_at_once_are_capped_too() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    stage.listener(&listener("ada", &[]), REPLIES);
    let mut made = 0;
    for _ in 0..200 {
        let session = stage.start(&bank);
        made += usize::from(matches!(
            stage.confirm(&bank, &session, TRANSFER),
            Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }
        ));
        let end = r#"{"type":"aaep:agent.session.cancelled","cancelled_by":"producer","summary_normal":"Never mind."}"#;
        let ended = stage.publish(&bank, &session, &[end]);
        assert!(matches!(ended, Reply::EventsPublished { .. }), "{ended:?}");
    }
    assert_eq!(made, 120, "and the rest is refused");
    stage.wait(60_000);
    let session = stage.start(&bank);
    assert!(
        matches!(
            stage.confirm(&bank, &session, TRANSFER),
            Reply::QuestionOpened { .. } | Reply::SessionStarted { .. }
        ),
        "a minute later"
    );
}

#[test]
fn t5_nothing_outside_a_scope_is_heard_by_joining_late_resuming_or_renegotiating() {
    let mut stage = Stage::new();
    let (bank, jonas) = (agent("bank"), listener("jonas", &["person:jonas"]));
    let (_, all) = stage.listener(&listener("ada", &[]), REPLIES);
    let (subscription, first) = stage.listener(&jonas, REPLIES);
    let session = stage.start(&bank);
    stage.confirm(&bank, &session, TRANSFER);
    let known = text_of(&stage.heard(all)[0], "event_id");
    let late = stage.attach(&jonas, &subscription, None);
    let resumed = stage.attach(&jonas, &subscription, Some(&known));
    let text = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{REPLIES}}}"#
    );
    stage.ask_hub(&jonas, say(&text));
    stage.heard(all);
    let end = r#"{"type":"aaep:agent.session.errored","error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost."}"#;
    stage.publish(&bank, &session, &[end]);
    let again = stage.attach(&jonas, &subscription, Some(&known));
    for ear in [first, late, resumed, again] {
        assert_eq!(stage.heard(ear), Vec::<String>::new());
    }
    assert!(!stage.heard(all).is_empty());
}

#[test]
fn t5_an_answer_is_told_to_the_agent_that_asked_and_to_no_other() {
    let (mut stage, adas, session, token) = asked();
    let (bank, post) = (agent("bank"), agent("post"));
    assert_eq!(stage.status(&post, &session, &token), Reply::NotFound);
    stage.reply(&listener("ada", &["person:marisol"]), &adas, &token, "reject");
    assert_eq!(stage.status(&post, &session, &token), Reply::NotFound);
    stage.publish(&bank, &session, &[DONE]);
    assert_eq!(stage.status(&post, &session, &token), Reply::NotFound);
    assert!(
        matches!(stage.status(&bank, &session, &token), Reply::QuestionPending | Reply::QuestionResolved(_)),
        "it may still ask"
    );
}

#[test]
fn t6_who_is_let_in_as_something_is_nothing_else() {
    let (mut stage, ..) = asked();
    let text =
        r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"ear","capabilities":{}}"#;
    let request = subscribe(text);
    assert_eq!(stage.ask_hub(&agent("bank"), request), Reply::Forbidden);
    let start = Command::Start { body: r#"{"summary_normal":"x"}"#.into(), key: None };
    assert_eq!(stage.ask_hub(&listener("ada", &[]), start), Reply::Forbidden);
    let as_bank = r#"{"summary_normal":"x","producer":{"agent_id":"bank"}}"#.to_owned();
    let answer = stage.ask_hub(&agent("post"), Command::Start { body: as_bank.into(), key: None });
    assert!(matches!(answer, Reply::Malformed(_)));
}

#[test]
fn t7_an_extension_neither_speaks_for_the_hub_nor_softens_a_rule() {
    let (mut stage, adas, session, token) = asked();
    let bank = agent("bank");
    let told = format!(r#"{{"reply_token":"{token}","decision":"accept","by":"reply"}}"#);
    let core = "https://aaep-protocol.org/context/v1";
    let state = r#""type":"aaep:agent.state.changed","to_state":"thinking""#;
    for event in [
        format!(r#"{{{state},"extensions":{{"sayso":{told}}}}}"#),
        format!(r#"{{{state},"extensions":{{"s\u0061yso":{told}}}}}"#),
        format!(r#"{{{state},"extensions":{{"urn:sayso:context:v1":{told}}}}}"#),
        // An event of the hub's kind.
        format!(r#"{{"type":"sayso:session.stop","session_id":"{session}"}}"#),
        r#"{"type":"sayso:resolved","summary_normal":"You said yes."}"#.to_owned(),
        r#"{"type":"urn:sayso:context:v1#resolved","summary_normal":"You said yes."}"#.to_owned(),
        // A question in its long name is a question.
        format!(
            r#"{{"type":"https://aaep-protocol.org/types/agent.awaiting.confirmation","reply_token":"rpl_11111111111111111111111111111111",{}"#,
            TRANSFER
                .replace(r#","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}"#, "")
                .trim_start_matches('{')
        ),
    ] {
        let answer = stage.publish(&bank, &session, &[&event]);
        assert!(matches!(answer, Reply::Malformed(_)), "{answer:?} to {event}");
    }
    // What is in an extension's own name is carried, and decides nothing.
    let declared = format!(r#""@context":["{core}","https://bank.example/ns/v1"]"#);
    let soft = r#""extensions":{"bank":{"confirmed":true,"skip_confirmation":true,"irreversible":false}}"#;
    let call = call(&token, "500.00").replacen('{', &format!("{{{declared},{soft},"), 1);
    for call in [call.clone(), call.replace("aaep:", "https://aaep-protocol.org/types/")] {
        let answer = stage.publish(&bank, &session, &[&call]);
        assert!(matches!(answer, Reply::Unlawful(_)), "{answer:?}");
    }
    for event in [
        format!(r#"{{{state},"confirmed":true}}"#),
        format!(r#"{{{state},"extensions":{{"bank":{{"confirmed":true}}}}}}"#),
        // The hub's own words under another name, another's under the hub's, and the protocol's taken away.
        format!(
            r#"{{"@context":["{core}",{{"bank":"urn:sayso:context:v1"}}],{state},"extensions":{{"bank":{told}}}}}"#
        ),
        format!(r#"{{"@context":["{core}",{{"sayso":"https://bank.example/v1"}}],{state}}}"#),
        format!(r#"{{"@context":["{core}",{{"aaep":"https://bank.example/ns/v1"}}],{state}}}"#),
        format!(r#"{{"@context":["https://bank.example/ns/v1"],{state}}}"#),
        format!(r#"{{{declared},{state},"extensions":{{"bank":{}}}}}"#, "[".repeat(9_000)),
    ] {
        let answer = stage.publish(&bank, &session, &[&event]);
        assert!(matches!(answer, Reply::Unlawful(_) | Reply::Malformed(_)), "{answer:?} to {event:.200}");
    }
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);
    let marked = TRANSFER.replace("500", "600").replacen('{', &format!("{{{declared},{soft},"), 1);
    let asked = stage.confirm(&bank, &session, &marked);
    let asked = json(asked);
    let second = text_of(&asked, "reply_token");
    assert_eq!(stage.status(&bank, &session, &second), Reply::QuestionPending);
    stage.reply(&listener("ada", &["person:marisol"]), &adas, &token, "accept");
    let good = stage.publish(&bank, &session, &[&call]);
    assert!(matches!(good, Reply::EventsPublished { .. }), "{good:?}");
}

#[test]
fn t8_somebody_elses_subscription_is_no_subscription() {
    let (mut stage, adas, session, token) = asked();
    let eve = listener("eve", &[]);
    let before = format!("{:?}", stage.core);
    let answers = ["sub_00000000000000000000000000000000", &adas].map(|subscription| {
        let attach = Command::Attach { subscription: id(subscription), last_event_id: None, listener: ListenerId(77) };
        let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
        let says = [
            format!(r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{{}}}}"#),
            format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#),
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
            ),
            format!(
                r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
            ),
        ];
        let mut answers = vec![stage.ask_hub(&eve, attach)];
        answers.extend(says.map(|text| stage.ask_hub(&eve, say(&text))));
        answers
    });
    assert_eq!(answers[0], answers[1]);
    assert_eq!(format!("{:?}", stage.core), before);
    assert_eq!(stage.status(&agent("bank"), &session, &token), Reply::QuestionPending);
}
