//! A session through the hub, from its start to its end, with a question in the middle.

use crate::support::*;
use hub::command::{Command, Reply};

#[test]
fn what_an_agent_says_is_heard_and_what_is_asked_is_answered() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    assert!(matches!(stage.publish(&bank, &session, &[THINK]), Reply::EventsPublished { .. }));
    assert_eq!(types(&stage.heard(ear)), ["session.started", "state.changed"]);

    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let heard = stage.heard(ear);
    assert_eq!(types(&heard), ["state.changed", "awaiting.confirmation"]);
    assert_eq!(text_of(&heard[1], "reply_token"), token);
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);

    stage.now += 5_000;
    stage.reply(&ada, &subscription, &token, "accept");
    let heard = stage.heard(ear);
    assert_eq!(types(&heard), ["state.changed"]);
    assert!(
        heard[0]
            .contains(&format!(r#""sayso":{{"reply_token":"{token}","decision":"accept","by":"reply"}}"#))
    );
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!(
        (text_of(&resolved, "status"), text_of(&resolved, "decision")),
        ("resolved".into(), "accept".into())
    );

    let done = r#"{"type":"aaep:agent.tool.completed","tool":"transfer","tool_call_id":"call_1","status":"success","summary_normal":"Done."}"#;
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"The money is sent."}"#;
    let calling = r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#;
    let answer = stage.publish(&bank, &session, &[calling, &call(&token, "500.00"), done, end]);
    assert!(matches!(answer, Reply::EventsPublished { .. }), "{answer:?}");
    let heard = stage.heard(ear);
    assert_eq!(types(&heard), ["state.changed", "tool.invoked", "tool.completed", "session.completed"]);
    assert!(!heard[1].contains("arguments") && !heard[1].contains("reply_token"), "for the hub alone");
    assert_eq!(stage.publish(&bank, &session, &[THINK]), Reply::NotFound, "it is over");
}

#[test]
fn what_was_not_accepted_cannot_be_done() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    stage.publish(&bank, &session, &[THINK]);
    let unasked = stage.publish(&bank, &session, &[&call("rpl_1", "500.00")]);
    assert!(matches!(unasked, Reply::Unlawful(_)), "{unasked:?}");
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    assert!(matches!(stage.publish(&bank, &session, &[&call(&token, "500.00")]), Reply::Unlawful(_)));
    stage.reply(&ada, &subscription, &token, "accept");
    let other = stage.publish(&bank, &session, &[&call(&token, "5000.00")]);
    assert!(matches!(other, Reply::Unlawful(_)), "another amount was never asked for: {other:?}");
    let good = stage.publish(&bank, &session, &[&call(&token, "500.00")]);
    assert!(matches!(good, Reply::EventsPublished { .. }), "{good:?}");
    let ledger = stage.disk.decision(&token).unwrap();
    assert!(ledger.spent.is_some(), "the ledger says what the yes was spent on");
    let again = stage.publish(&bank, &session, &[&call(&token, "500.00").replace("call_1", "call_2")]);
    assert!(matches!(again, Reply::Unlawful(_)), "once only: {again:?}");
}

#[test]
fn whoever_wants_more_time_and_answers_at_once_is_heard_with_both() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    stage.publish(&bank, &session, &[THINK]);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let more = format!(
        r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    let reply = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    // In one turn, as two requests that come while another is being written.
    let answers = stage.both(&ada, say(&more), &ada, say(&reply));
    assert_eq!(answers, [Reply::Done, Reply::Done], "both are answered at once");
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!(text_of(&resolved, "decision"), "accept");
}

#[test]
fn nobody_to_ask_means_no() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let resolved = json(stage.status(&bank, &session, &token));
    assert_eq!(
        (text_of(&resolved, "decision"), text_of(&resolved, "by")),
        ("reject".into(), "unreachable".into())
    );
}

#[test]
fn silence_means_no_and_ends_the_agents_wait() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let until = stage.now + 600_000;
    let waiting = stage.send(&bank, Command::Wait { session: id(&session), token: id(&token), until });
    assert_eq!(stage.answer(waiting), None);
    stage.heard(ear);
    stage.wait(179_999);
    assert_eq!(stage.answer(waiting), None);
    assert_eq!(types(&stage.heard(ear)), ["progress.updated", "progress.updated"], "at half and at a tenth");
    stage.wait(1);
    let resolved = json(stage.answer(waiting).expect("a reply"));
    assert_eq!(
        (text_of(&resolved, "decision"), text_of(&resolved, "by")),
        ("reject".into(), "timeout".into())
    );
}

#[test]
fn a_listener_hears_only_what_is_in_its_scope() {
    let mut stage = Stage::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let (_, all) = stage.listener(&listener("ada", &[]), "{}");
    let (_, some) = stage.listener(&listener("ben", &["agent:post"]), "{}");
    let (_, hers) = stage.listener(&listener("cleo", &["person:marisol"]), "{}");
    let (_, his) = stage.listener(&listener("dan", &["person:jonas"]), "{}");
    stage.start(&bank);
    stage.start(&post);
    let mut counts = Vec::new();
    for ear in [all, some, hers, his] {
        counts.push(stage.heard(ear).len());
    }
    assert_eq!(counts, [2, 1, 2, 0]);
}

#[test]
fn an_observer_hears_and_its_answer_has_no_effect() {
    let mut stage = Stage::new();
    let (bank, ada, eve) = (agent("bank"), listener("ada", &[]), observer("eve"));
    stage.listener(&ada, REPLIES);
    let (watching, ear) = stage.listener(&eve, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    assert_eq!(types(&stage.heard(ear)), ["session.started", "state.changed"], "the question is withheld");
    stage.reply(&eve, &watching, &token, "accept");
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);
}

#[test]
fn somebody_elses_session_is_no_session() {
    let mut stage = Stage::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let session = stage.start(&bank);
    assert_eq!(stage.publish(&post, &session, &[THINK]), Reply::NotFound);
    assert_eq!(stage.publish(&post, "sess_1", &[THINK]), Reply::NotFound);
    let spoofed = r#"{"summary_normal":"x","producer":{"agent_id":"bank"}}"#.to_owned();
    assert!(matches!(
        stage.ask_hub(&post, Command::Start { body: spoofed.into(), key: None }),
        Reply::Malformed(_)
    ));
    assert_eq!(
        stage.ask_hub(&listener("ada", &[]), Command::Start { body: "{}".into(), key: None }),
        Reply::Forbidden
    );
}

#[test]
fn a_batch_is_taken_whole_or_not_at_all() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let (_, ear) = stage.listener(&listener("ada", &[]), "{}");
    let session = stage.start(&bank);
    stage.heard(ear);
    let before = stage.disk.events().len();
    let wrong =
        r#"{"type":"aaep:agent.tool.completed","tool":"never","status":"success","summary_normal":"x"}"#;
    assert!(matches!(stage.publish(&bank, &session, &[THINK, wrong]), Reply::Unlawful(_)));
    assert_eq!((stage.disk.events().len(), stage.heard(ear).len()), (before, 0));
    assert!(
        matches!(stage.publish(&bank, &session, &[THINK]), Reply::EventsPublished { .. }),
        "as if it had never been"
    );
}

#[test]
fn the_same_key_does_the_same_thing_once() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let session = stage.start(&bank);
    let publish = |events: &str| Command::Publish {
        session: id(&session),
        events: vec![events.into()],
        key: Some("k1".into()),
    };
    let first = json(stage.ask_hub(&bank, publish(THINK)));
    assert_eq!(json(stage.ask_hub(&bank, publish(THINK))), first);
    let other = THINK.replace("idle", "writing_output");
    assert_eq!(stage.ask_hub(&bank, publish(&other)), Reply::Conflict);
    stage.crash();
    assert_eq!(json(stage.ask_hub(&bank, publish(THINK))), first);
}

#[test]
fn an_agent_that_is_gone_has_its_session_ended_for_it() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    assert!(matches!(stage.publish(&bank, &session, &[THINK, tool]), Reply::EventsPublished { .. }));
    stage.heard(ear);
    stage.wait(300_000);
    assert_eq!(types(&stage.heard(ear)), ["tool.completed", "session.errored"]);
    assert_eq!(stage.publish(&bank, &session, &[THINK]), Reply::NotFound);
}

#[test]
fn output_goes_in_however_cut_and_comes_out_in_sentences() {
    let mut stage = Stage::new();
    let bank = agent("bank");
    let (_, ear) = stage.listener(&listener("ada", &[]), "{}");
    let session = stage.start(&bank);
    stage.publish(&bank, &session, &[THINK]);
    stage.heard(ear);
    for piece in ["Your bal", "ance is 12.5", "0 euro. Noth", "ing else", " is due. "] {
        let command = Command::Output {
            session: id(&session),
            output_id: None,
            text: piece.to_owned(),
            language: None,
            content_type: None,
            complete: false,
            stays: false,
            key: None,
        };
        assert!(matches!(stage.ask_hub(&bank, command), Reply::EventsPublished { .. }));
    }
    let command = Command::Output {
        session: id(&session),
        output_id: None,
        text: "Good day.".to_owned(),
        language: None,
        content_type: None,
        complete: true,
        stays: false,
        key: None,
    };
    assert!(matches!(stage.ask_hub(&bank, command), Reply::EventsPublished { .. }));
    let heard = stage.heard(ear);
    let texts: Vec<_> = heard
        .iter()
        .filter(|event| event.contains("output.streaming"))
        .map(|event| text_of(event, "chunk"))
        .collect();
    assert_eq!(texts, ["Your balance is 12.50 euro. ", "Nothing else is due. ", "Good day."]);
    assert_eq!(types(&heard).first().map(String::as_str), Some("state.changed"));
}

#[test]
fn a_wait_that_comes_in_the_same_turn_as_the_answer_is_answered() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let reply = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    let wait = Command::Wait { session: id(&session), token: id(&token), until: stage.now + 60_000 };
    let answers = stage.both(&ada, say(&reply), &bank, wait);
    let [Reply::Done, resolved @ Reply::QuestionResolved(_)] = &answers else { panic!("{answers:?}") };
    let resolved = &json(resolved.clone());
    assert_eq!(text_of(resolved, "decision"), "accept");
}

#[test]
fn a_session_is_stopped_whatever_is_open_in_it() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    let text = "Half a sen".to_owned();
    let piece = Command::Output {
        session: id(&session),
        output_id: None,
        text,
        language: None,
        content_type: None,
        complete: false,
        stays: false,
        key: None,
    };
    assert!(matches!(stage.ask_hub(&bank, piece), Reply::EventsPublished { .. }));
    let called = stage.publish(&bank, &session, &[tool]);
    assert!(matches!(called, Reply::EventsPublished { .. }), "{called:?}");
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    stage.heard(ear);
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    assert_eq!(stage.ask_hub(&ada, say(&text)), Reply::Done);
    let heard = stage.heard(ear);
    let kinds = types(&heard);
    assert_eq!(kinds.last().unwrap(), "session.cancelled", "{kinds:?}");
    assert!(kinds.contains(&"tool.completed".to_owned()) && kinds.contains(&"output.streaming".to_owned()));
    let told = json(stage.status(&bank, &session, &text_of(&asked, "reply_token")));
    assert_eq!(text_of(&told, "status"), "stopped");
    assert_eq!(stage.publish(&bank, &session, &[tool]), Reply::NotFound);
}

#[test]
fn text_that_comes_while_a_question_is_open_does_not_say_that_it_was_answered() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    stage.heard(ear);
    for (text, complete) in [("Meanwhile ", false), ("I wait.", true)] {
        let text = text.to_owned();
        let piece = Command::Output {
            session: id(&session),
            output_id: None,
            text,
            language: None,
            content_type: None,
            complete,
            stays: false,
            key: None,
        };
        let said = stage.ask_hub(&bank, piece);
        assert!(matches!(said, Reply::EventsPublished { .. }), "{said:?}");
    }
    assert_eq!(types(&stage.heard(ear)), ["output.streaming"]);
    let token = text_of(&asked, "reply_token");
    assert_eq!(stage.status(&bank, &session, &token), Reply::QuestionPending);
    stage.wait(180_000);
    let told = stage.heard(ear);
    let resolved = told.iter().find(|event| event.contains(r#""decision":"reject""#)).expect("an outcome");
    assert_eq!(text_of(resolved, "from_state"), "awaiting_input");
}

#[test]
fn the_outcome_of_a_question_is_told_while_a_tool_runs() {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    let calls = r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#;
    assert!(matches!(stage.publish(&bank, &session, &[calls, tool]), Reply::EventsPublished { .. }));
    let asked = json(stage.confirm(&bank, &session, TRANSFER));
    stage.heard(ear);
    stage.reply(&ada, &subscription, &text_of(&asked, "reply_token"), "reject");
    let told = stage.heard(ear);
    assert!(told[0].contains(r#""decision":"reject""#), "{told:?}");
    assert_eq!(text_of(&told[0], "to_state"), "calling_tool", "it still runs");
    let done = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_9","status":"success","summary_normal":"Seen."}"#;
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let think = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    let ended = stage.publish(&bank, &session, &[done, think, end]);
    assert!(matches!(ended, Reply::EventsPublished { .. }), "{ended:?}");
}
