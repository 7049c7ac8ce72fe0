//! Sessions from start to end, with questions in between.

use crate::support::*;
use hub::command::{HubCommand, HubReply, MalformedRequest};

#[test]
fn events_reach_listeners_and_questions_get_answers() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    assert!(matches!(harness.publish(&bank, &session, &[THINK]), HubReply::EventsPublished { .. }));
    assert_eq!(event_types(&harness.take_events(listener_id)), ["session.started", "state.changed"]);

    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let events = harness.take_events(listener_id);
    assert_eq!(event_types(&events), ["state.changed", "awaiting.confirmation"]);
    assert_eq!(text_member(&events[1], "reply_token"), token);
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);

    harness.now += 5_000;
    harness.reply(&ada, &subscription, &token, "accept");
    let events = harness.take_events(listener_id);
    assert_eq!(event_types(&events), ["state.changed"]);
    assert!(
        events[0]
            .contains(&format!(r#""sayso":{{"reply_token":"{token}","decision":"accept","by":"reply"}}"#))
    );
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(
        (text_member(&resolved, "status"), text_member(&resolved, "decision")),
        ("resolved".into(), "accept".into())
    );

    let completed = r#"{"type":"aaep:agent.tool.completed","tool":"transfer","tool_call_id":"call_1","status":"success","summary_normal":"Done."}"#;
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"The money is sent."}"#;
    let calling = r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#;
    let reply = harness.publish(&bank, &session, &[calling, &tool_invoked(&token, "500.00"), completed, end]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    let events = harness.take_events(listener_id);
    assert_eq!(
        event_types(&events),
        ["state.changed", "tool.invoked", "tool.completed", "session.completed"]
    );
    assert!(
        !events[1].contains("arguments") && !events[1].contains("reply_token"),
        "members that only the hub needs are not sent"
    );
    assert_eq!(harness.publish(&bank, &session, &[THINK]), HubReply::SessionEnded, "the session has ended");
}

#[test]
fn a_call_without_an_accepted_confirmation_is_refused() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.publish(&bank, &session, &[THINK]);
    let before_question = harness.publish(&bank, &session, &[&tool_invoked("rpl_1", "500.00")]);
    assert!(matches!(before_question, HubReply::RuleViolations(_)), "{before_question:?}");
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    assert!(matches!(
        harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00")]),
        HubReply::RuleViolations(_)
    ));
    harness.reply(&ada, &subscription, &token, "accept");
    let other_amount = harness.publish(&bank, &session, &[&tool_invoked(&token, "5000.00")]);
    assert!(
        matches!(other_amount, HubReply::RuleViolations(_)),
        "this amount was not confirmed: {other_amount:?}"
    );
    let accepted_call = harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(accepted_call, HubReply::EventsPublished { .. }), "{accepted_call:?}");
    let decision = harness.disk.decision(&token).unwrap();
    assert!(decision.spent_on.is_some(), "the ledger records the call");
    let second_call =
        harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00").replace("call_1", "call_2")]);
    assert!(
        matches!(second_call, HubReply::RuleViolations(_)),
        "a consent can be spent once: {second_call:?}"
    );
}

#[test]
fn an_extension_and_a_reply_in_one_turn_both_count() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.publish(&bank, &session, &[THINK]);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let extension = format!(
        r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    let reply = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    // In one turn, like two requests that arrive while another turn is being written.
    let replies = harness.ask_both_in_one_turn(&ada, send_message(&extension), &ada, send_message(&reply));
    assert_eq!(replies, [HubReply::Done, HubReply::Done], "both get a reply");
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(text_member(&resolved, "decision"), "accept");
}

#[test]
fn a_question_without_listeners_is_rejected() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let resolved = reply_json(harness.status(&bank, &session, &token));
    assert_eq!(
        (text_member(&resolved, "decision"), text_member(&resolved, "by")),
        ("reject".into(), "unreachable".into())
    );
}

#[test]
fn an_unanswered_question_is_rejected_and_ends_the_agents_wait() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let until = harness.now + 600_000;
    let waiting = harness.send(&bank, HubCommand::Wait { session: id(&session), token: id(&token), until });
    assert_eq!(harness.take_reply(waiting), None);
    harness.take_events(listener_id);
    harness.advance_time(179_999);
    assert_eq!(harness.take_reply(waiting), None);
    assert_eq!(
        event_types(&harness.take_events(listener_id)),
        ["progress.updated", "progress.updated"],
        "reminders at a half and at a tenth of the time"
    );
    harness.advance_time(1);
    let resolved = reply_json(harness.take_reply(waiting).expect("a reply"));
    assert_eq!(
        (text_member(&resolved, "decision"), text_member(&resolved, "by")),
        ("reject".into(), "timeout".into())
    );
}

#[test]
fn a_listener_receives_only_sessions_in_its_scope() {
    let mut harness = HubHarness::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let (_, unlimited) = harness.connect_listener(&listener("ada", &[]), "{}");
    let (_, for_post) = harness.connect_listener(&listener("ben", &["agent:post"]), "{}");
    let (_, for_marisol) = harness.connect_listener(&listener("cleo", &["person:marisol"]), "{}");
    let (_, for_jonas) = harness.connect_listener(&listener("dan", &["person:jonas"]), "{}");
    harness.start(&bank);
    harness.start(&post);
    let mut counts = Vec::new();
    for listener_id in [unlimited, for_post, for_marisol, for_jonas] {
        counts.push(harness.take_events(listener_id).len());
    }
    assert_eq!(counts, [2, 1, 2, 0]);
}

#[test]
fn an_observer_receives_events_but_its_reply_has_no_effect() {
    let mut harness = HubHarness::new();
    let (bank, ada, eve) = (agent("bank"), listener("ada", &[]), observer("eve"));
    harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let (observer_subscription, listener_id) = harness.connect_listener(&eve, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    assert_eq!(
        event_types(&harness.take_events(listener_id)),
        ["session.started", "state.changed"],
        "the question is withheld"
    );
    harness.reply(&eve, &observer_subscription, &token, "accept");
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);
}

#[test]
fn another_principals_session_is_not_found() {
    let mut harness = HubHarness::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let session = harness.start(&bank);
    assert_eq!(harness.publish(&post, &session, &[THINK]), HubReply::NotFound);
    assert_eq!(harness.publish(&post, "sess_1", &[THINK]), HubReply::NotFound);
    let spoofed = r#"{"summary_normal":"x","producer":{"agent_id":"bank"}}"#.to_owned();
    assert!(matches!(
        harness.ask_hub(&post, HubCommand::Start { body: spoofed.into(), idempotency_key: None }),
        HubReply::Malformed(_)
    ));
    assert_eq!(
        harness
            .ask_hub(&listener("ada", &[]), HubCommand::Start { body: "{}".into(), idempotency_key: None }),
        HubReply::Forbidden
    );
}

#[test]
fn a_batch_is_published_completely_or_not_at_all() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let (_, listener_id) = harness.connect_listener(&listener("ada", &[]), "{}");
    let session = harness.start(&bank);
    harness.take_events(listener_id);
    let before = harness.disk.events().len();
    let unmatched_completion =
        r#"{"type":"aaep:agent.tool.completed","tool":"never","status":"success","summary_normal":"x"}"#;
    assert!(matches!(
        harness.publish(&bank, &session, &[THINK, unmatched_completion]),
        HubReply::RuleViolations(_)
    ));
    assert_eq!((harness.disk.events().len(), harness.take_events(listener_id).len()), (before, 0));
    assert!(
        matches!(harness.publish(&bank, &session, &[THINK]), HubReply::EventsPublished { .. }),
        "the refused batch leaves no trace"
    );
}

#[test]
fn a_repeated_idempotency_key_returns_the_first_reply() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = harness.start(&bank);
    let publish = |events: &str| HubCommand::Publish {
        session: id(&session),
        events: vec![events.into()],
        idempotency_key: Some("k1".into()),
    };
    let first = reply_json(harness.ask_hub(&bank, publish(THINK)));
    assert_eq!(reply_json(harness.ask_hub(&bank, publish(THINK))), first);
    let other_event = THINK.replace("idle", "writing_output");
    assert_eq!(harness.ask_hub(&bank, publish(&other_event)), HubReply::Conflict);
    harness.crash();
    assert_eq!(reply_json(harness.ask_hub(&bank, publish(THINK))), first);
}

#[test]
fn the_hub_ends_the_session_of_an_agent_that_disappeared() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    assert!(matches!(harness.publish(&bank, &session, &[THINK, tool]), HubReply::EventsPublished { .. }));
    harness.take_events(listener_id);
    harness.advance_time(300_000);
    assert_eq!(event_types(&harness.take_events(listener_id)), ["tool.completed", "session.errored"]);
    assert_eq!(harness.publish(&bank, &session, &[THINK]), HubReply::SessionEnded);
}

#[test]
fn streamed_output_is_delivered_as_sentences() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let (_, listener_id) = harness.connect_listener(&listener("ada", &[]), "{}");
    let session = harness.start(&bank);
    harness.publish(&bank, &session, &[THINK]);
    harness.take_events(listener_id);
    for chunk in ["Your bal", "ance is 12.5", "0 euros. Noth", "ing else", " is due. "] {
        let command = HubCommand::StreamOutput {
            session: id(&session),
            output_id: None,
            producer: None,
            text: chunk.to_owned(),
            language: None,
            content_type: None,
            coalesce_hint: None,
            complete: false,
            agent_reports_next_state: false,
            idempotency_key: None,
        };
        assert!(matches!(harness.ask_hub(&bank, command), HubReply::EventsPublished { .. }));
    }
    let command = HubCommand::StreamOutput {
        session: id(&session),
        output_id: None,
        producer: None,
        text: "Good day.".to_owned(),
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: true,
        agent_reports_next_state: false,
        idempotency_key: None,
    };
    assert!(matches!(harness.ask_hub(&bank, command), HubReply::EventsPublished { .. }));
    let events = harness.take_events(listener_id);
    let texts: Vec<_> = events
        .iter()
        .filter(|event| event.contains("output.streaming"))
        .map(|event| text_member(event, "chunk"))
        .collect();
    assert_eq!(texts, ["Your balance is 12.50 euros. ", "Nothing else is due. ", "Good day."]);
    assert_eq!(event_types(&events).first().map(String::as_str), Some("state.changed"));
}

#[test]
fn a_wait_in_the_same_turn_as_the_reply_is_answered() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    let token = text_member(&opened, "reply_token");
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let reply = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    let wait = HubCommand::Wait { session: id(&session), token: id(&token), until: harness.now + 60_000 };
    let replies = harness.ask_both_in_one_turn(&ada, send_message(&reply), &bank, wait);
    let [HubReply::Done, resolved @ HubReply::QuestionResolved(_)] = &replies else { panic!("{replies:?}") };
    let resolved = &reply_json(resolved.clone());
    assert_eq!(text_member(resolved, "decision"), "accept");
}

#[test]
fn a_stop_ends_a_session_with_open_tools_outputs_and_questions() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    let text = "Half a sen".to_owned();
    let chunk = HubCommand::StreamOutput {
        session: id(&session),
        output_id: None,
        producer: None,
        text,
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: false,
        agent_reports_next_state: false,
        idempotency_key: None,
    };
    assert!(matches!(harness.ask_hub(&bank, chunk), HubReply::EventsPublished { .. }));
    let invoked = harness.publish(&bank, &session, &[tool]);
    assert!(matches!(invoked, HubReply::EventsPublished { .. }), "{invoked:?}");
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    harness.take_events(listener_id);
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    );
    assert_eq!(harness.ask_hub(&ada, send_message(&text)), HubReply::Done);
    let events = harness.take_events(listener_id);
    let kinds = event_types(&events);
    assert_eq!(kinds.last().unwrap(), "session.cancelled", "{kinds:?}");
    assert!(kinds.contains(&"tool.completed".to_owned()) && kinds.contains(&"output.streaming".to_owned()));
    let outcome = reply_json(harness.status(&bank, &session, &text_member(&opened, "reply_token")));
    assert_eq!(text_member(&outcome, "status"), "stopped");
    assert_eq!(harness.publish(&bank, &session, &[tool]), HubReply::SessionEnded);
}

#[test]
fn output_during_an_open_question_does_not_leave_the_waiting_state() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    harness.take_events(listener_id);
    for (text, complete) in [("Meanwhile ", false), ("I wait.", true)] {
        let text = text.to_owned();
        let chunk = HubCommand::StreamOutput {
            session: id(&session),
            output_id: None,
            producer: None,
            text,
            language: None,
            content_type: None,
            coalesce_hint: None,
            complete,
            agent_reports_next_state: false,
            idempotency_key: None,
        };
        let reply = harness.ask_hub(&bank, chunk);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    }
    assert_eq!(event_types(&harness.take_events(listener_id)), ["output.streaming"]);
    let token = text_member(&opened, "reply_token");
    assert_eq!(harness.status(&bank, &session, &token), HubReply::QuestionPending);
    harness.advance_time(180_000);
    let events = harness.take_events(listener_id);
    let resolved = events.iter().find(|event| event.contains(r#""decision":"reject""#)).expect("an outcome");
    assert_eq!(text_member(resolved, "from_state"), "awaiting_input");
}

#[test]
fn a_question_is_resolved_while_a_tool_runs() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let tool = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    let calling = r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#;
    assert!(matches!(harness.publish(&bank, &session, &[calling, tool]), HubReply::EventsPublished { .. }));
    let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
    harness.take_events(listener_id);
    harness.reply(&ada, &subscription, &text_member(&opened, "reply_token"), "reject");
    let events = harness.take_events(listener_id);
    assert!(events[0].contains(r#""decision":"reject""#), "{events:?}");
    assert_eq!(text_member(&events[0], "to_state"), "calling_tool", "the tool is still running");
    let completed = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_9","status":"success","summary_normal":"Seen."}"#;
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let think = r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#;
    let ended = harness.publish(&bank, &session, &[completed, think, end]);
    assert!(matches!(ended, HubReply::EventsPublished { .. }), "{ended:?}");
}

#[test]
fn a_call_with_either_risk_needs_a_consent_for_the_same_arguments() {
    for (risk_level, irreversible) in [("high", true), ("high", false), ("low", true)] {
        let with_risk = |json: &str| {
            json.replace(r#""risk_level":"high""#, &format!(r#""risk_level":"{risk_level}""#))
                .replace(r#""irreversible":true"#, &format!(r#""irreversible":{irreversible}"#))
        };
        let mut harness = HubHarness::new();
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let unasked = with_risk(&tool_invoked("rpl_1", "500.00"));
        let opened = reply_json(harness.confirm(&bank, &session, &with_risk(TRANSFER)));
        let token = text_member(&opened, "reply_token");
        harness.reply(&ada, &subscription, &token, "accept");
        let call = |amount| with_risk(&tool_invoked(&token, amount));
        for (call, is_accepted) in [
            (unasked, false),
            (call("5000.00"), false),
            (call("500.00"), true),
            (call("500.00").replace("call_1", "call_2"), false),
        ] {
            let reply = harness.publish(&bank, &session, &[&call]);
            let is_expected = match reply {
                HubReply::EventsPublished { .. } => is_accepted,
                HubReply::RuleViolations(_) => !is_accepted,
                _ => false,
            };
            assert!(is_expected, "{reply:?} to {call}");
        }
    }
}

#[test]
fn a_critical_event_over_the_limit_leaves_the_session_unchanged() {
    let limits = hub::HubLimits { criticals_per_minute: 0, ..hub::HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let bank = agent("bank");
    let session = harness.start(&bank);
    let call = r#"{"type":"aaep:agent.tool.invoked","urgency":"critical","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking."}"#;
    let result = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_9","status":"success","summary_normal":"Seen."}"#;
    let refused = harness.publish(&bank, &session, &[call]);
    assert!(matches!(refused, HubReply::LimitReached(_)), "{refused:?}");
    let reply = harness.publish(&bank, &session, &[result]);
    assert!(matches!(reply, HubReply::RuleViolations(_)), "there was no call: {reply:?}");
    for event in [&call.replace(r#""urgency":"critical","#, ""), result] {
        let reply = harness.publish(&bank, &session, &[event]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?} to {event}");
    }
}

#[test]
fn a_member_that_binds_a_call_is_given_once() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let session = harness.start(&bank);
    let token = "rpl_00000000000000000000000000000000";
    let token_member = format!(r#""reply_token":"{token}""#);
    for (name, member) in [
        ("tool", r#""tool":"look""#),
        ("arguments", r#""arguments":{"amount":"5.00","to":"Ben"}"#),
        ("reply_token", &token_member),
        ("tool", r#""t\u006fol":"look""#),
    ] {
        let twice = |json: &str| json.replacen('{', &format!("{{{member},"), 1);
        let expected: HubReply = MalformedRequest::DuplicateMember(name).into();
        let call = twice(&tool_invoked(token, "500.00"));
        assert_eq!(harness.publish(&bank, &session, &[&call]), expected, "{call}");
        let question = twice(&TRANSFER.replacen('{', &format!("{{{token_member},"), 1));
        assert_eq!(harness.confirm(&bank, &session, &question), expected, "{question}");
    }
}

#[test]
fn the_members_that_bind_a_call_are_hidden_from_listeners_in_calls_only() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let (_, listener_id) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.take_events(listener_id);
    let call = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","risk_level":"low","summary_normal":"Looking.","arguments":{"at":"a secret"}}"#;
    let reply = harness.publish(&bank, &session, &[call]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    assert!(harness.take_events(listener_id).iter().all(|event| !event.contains("a secret")));
    let progress =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;
    for (name, value) in [("arguments", "{}"), ("reply_token", r#""rpl_00000000000000000000000000000000""#)] {
        let event = progress.replacen('{', &format!(r#"{{"{name}":{value},"#), 1);
        let reply = harness.publish(&bank, &session, &[&event]);
        let HubReply::RuleViolations(findings) = &reply else { panic!("{reply:?} to {event}") };
        assert_eq!(findings[0].pointer, format!("/{name}"));
    }
}

#[test]
fn a_second_question_about_the_same_action_breaks_a_rule() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    assert!(matches!(harness.confirm(&bank, &session, TRANSFER), HubReply::QuestionOpened { .. }));
    // The same text, and the same call with a different text.
    for question in [TRANSFER, &TRANSFER.replace("Transfer 500 euros to Ben.", "Send the money.")] {
        let reply = harness.confirm(&bank, &session, question);
        let HubReply::RuleViolations(findings) = &reply else { panic!("{reply:?}") };
        assert_eq!(findings[0].rule.id(), "AAEP-6.1-5");
    }
}

#[test]
fn the_body_that_starts_a_session_is_an_object() {
    let mut harness = HubHarness::new();
    for body in ["[]", "7", "null", r#""summary_normal""#] {
        let start = HubCommand::Start { body: body.into(), idempotency_key: None };
        let reply = harness.ask_hub(&agent("bank"), start);
        assert_eq!(reply, MalformedRequest::SessionNotObject.into(), "{body}");
    }
}

#[test]
fn only_a_name_from_a_token_or_from_the_hubs_program_is_verified() {
    use hub::AgentNaming;
    let mut harness = HubHarness::new();
    let (_, listener_id) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    for (naming, is_verified) in [
        (AgentNaming::SelfDeclared, false),
        (AgentNaming::Token("The bank".into()), true),
        (AgentNaming::InProcess, true),
    ] {
        let bank = hub::Principal { naming, ..agent("bank") };
        harness.start(&bank);
        let events = harness.take_events(listener_id);
        assert_eq!(events[0].contains(r#""verified_name":true"#), is_verified, "{events:?}");
    }
}

#[test]
fn critical_events_and_questions_overtake_events_of_other_sessions() {
    let mut harness = HubHarness::new();
    let (bank, post) = (agent("bank"), agent("post"));
    let (_, listener_id) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let (slow, urgent) = (harness.start(&bank), harness.start(&post));
    harness.take_events(listener_id);
    let publish = |session: &str, event: &str| HubCommand::Publish {
        session: id(session),
        events: vec![event.into()],
        idempotency_key: None,
    };
    let ask = HubCommand::Ask {
        session: id(&urgent),
        body: TRANSFER.into(),
        is_clarification: false,
        idempotency_key: None,
    };
    let deciding = r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#;
    let failed = r#"{"type":"aaep:agent.session.errored","error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost."}"#;
    for (first, second, urgent_count) in
        [(publish(&slow, THINK), ask, 2), (publish(&slow, deciding), publish(&urgent, failed), 1)]
    {
        harness.ask_both_in_one_turn(&bank, first, &post, second);
        let events = harness.take_events(listener_id);
        let sessions: Vec<_> = events.iter().map(|event| text_member(event, "session_id")).collect();
        assert!(sessions[..urgent_count].iter().all(|session| *session == urgent), "{events:?}");
        assert!(sessions.contains(&slow), "{events:?}");
    }
}

#[test]
fn an_agent_whose_event_was_just_refused_is_not_announced_as_absent() {
    let unknown_call = r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_9","status":"success","summary_normal":"Seen."}"#;
    for sends_event in [false, true] {
        let mut harness = HubHarness::new();
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let (subscription, listener_id) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
        // Long enough for the agent to count as away, but not as gone.
        harness.advance_time(40_000);
        if sends_event {
            let refused = harness.publish(&bank, &session, &[unknown_call]);
            assert!(matches!(refused, HubReply::RuleViolations(_)), "{refused:?}");
        }
        harness.reply(&ada, &subscription, &text_member(&opened, "reply_token"), "accept");
        let events = harness.take_events(listener_id);
        let is_absent = events.iter().any(|event| event.contains("The agent is not connected"));
        assert_eq!(is_absent, !sends_event, "{events:#?}");
    }
}

#[test]
fn a_risky_question_with_accept_as_default_is_refused() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let irreversible = TRANSFER.replace(r#""default_decision":"reject""#, r#""default_decision":"accept""#);
    // The rules only discourage this one, but the hub refuses it, too.
    let reversible = irreversible.replace(r#""irreversible":true"#, r#""irreversible":false"#);
    for question in [irreversible, reversible] {
        let reply = harness.confirm(&bank, &session, &question);
        let HubReply::RuleViolations(findings) = &reply else { panic!("{reply:?}") };
        assert_eq!(findings[0].pointer, "/default_decision", "{findings:?}");
    }
}
