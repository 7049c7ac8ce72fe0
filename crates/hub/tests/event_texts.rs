//! The texts that the hub writes: for states, tools and progress without a summary, and for the outcome of a question.

use crate::support::*;
use hub::command::{HubCommand, HubReply, MalformedRequest};
use hub::{HubLimits, ListenerId, Principal};

/// A session with a listener that has heard everything so far.
fn fixture() -> (HubHarness, Principal, String, ListenerId) {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    harness.take_events(connection);
    (harness, bank, session, connection)
}

/// Publishes one event without a summary and returns the last event that listeners receive.
fn publish_and_hear(event: &str) -> String {
    let (mut harness, bank, session, connection) = fixture();
    let reply = harness.publish(&bank, &session, &[event]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{event}: {reply:?}");
    harness.take_events(connection).pop().unwrap()
}

#[test]
fn every_state_has_a_text_in_each_language() {
    for (state, terse, normal, spanish) in [
        ("thinking", "Thinking.", "The agent is thinking.", "Pensando."),
        ("calling_tool", "Using a tool.", "The agent is using a tool.", "Usando una herramienta."),
        ("writing_output", "Writing.", "The agent is writing.", "Escribiendo."),
        ("deciding", "Deciding.", "The agent is deciding what to do.", "Decidiendo."),
        (
            "awaiting_input",
            "Waiting for an answer.",
            "The agent is waiting for an answer.",
            "Esperando una respuesta.",
        ),
        ("handing_off", "Handing over.", "The agent is handing over.", "Traspasando."),
        ("idle", "Idle.", "The agent is idle.", "Sin nada que hacer."),
    ] {
        let event = format!(r#"{{"type":"aaep:agent.state.changed","to_state":"{state}"}}"#);
        let (mut harness, bank, session, connection) = fixture();
        // From a state that is never the new one.
        let first = if state == "thinking" { "deciding" } else { "thinking" };
        let first = format!(r#"{{"type":"aaep:agent.state.changed","to_state":"{first}"}}"#);
        harness.publish(&bank, &session, &[&first]);
        let reply = harness.publish(&bank, &session, &[&event]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{state}: {reply:?}");
        let heard = harness.take_events(connection).pop().unwrap();
        assert_eq!(text_member(&heard, "to_state"), state);
        let texts =
            ["summary_terse", "summary_normal", "summary_terse_es"].map(|name| text_member(&heard, name));
        assert_eq!(texts, [terse, normal, spanish]);
    }
}

#[test]
fn only_a_short_state_change_gets_the_hubs_text() {
    for (length, has_text) in [(100, true), (192, true), (193, false), (300, false)] {
        let (mut harness, bank, session, connection) = fixture();
        let bare = r#"{"type":"aaep:agent.state.changed","to_state":"deciding""#;
        let event = format!("{bare}{}}}", " ".repeat(length - bare.len() - 1));
        harness.publish(&bank, &session, &[&event]);
        let heard = harness.take_events(connection).pop().unwrap();
        assert_eq!(heard.contains(r#""summary_terse":"Deciding.""#), has_text, "{length}: {heard}");
    }
}

#[test]
fn the_result_of_a_tool_without_a_summary_says_whether_it_finished() {
    for (status, expected) in [
        ("success", "The tool look has finished."),
        ("error", "The tool look failed."),
        ("timeout", "The tool look did not finish."),
    ] {
        let (mut harness, bank, session, connection) = fixture();
        let begin = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_1"}"#;
        let end = format!(
            r#"{{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_1","status":"{status}"}}"#
        );
        let reply = harness.publish(&bank, &session, &[begin, &end]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
        let events = harness.take_events(connection);
        let find = |kind: &str| events.iter().find(|event| event.contains(kind)).unwrap();
        assert_eq!(text_member(find("tool.invoked"), "summary_normal"), "Using the tool look.");
        assert_eq!(text_member(find("tool.completed"), "summary_normal"), expected);
    }
}

#[test]
fn progress_without_a_summary_says_how_far_it_is() {
    for (progress, expected) in [
        (r#"{"description":"Copying files.","percent":40}"#, "Copying files."),
        (r#"{"percent":40}"#, "40 percent."),
        (r#"{"percent":40,"step":2,"total_steps":5}"#, "40 percent."),
        (r#"{"step":2,"total_steps":5}"#, "Step 2 of 5."),
        (r#"{"step":2}"#, "Step 2."),
    ] {
        let event = format!(r#"{{"type":"aaep:agent.progress.updated","progress":{progress}}}"#);
        assert_eq!(text_member(&publish_and_hear(&event), "summary_normal"), expected, "{progress}");
    }
    let described = r#"{"type":"aaep:agent.tool.invoked","tool":"look","description":"Looking it up."}"#;
    assert_eq!(text_member(&publish_and_hear(described), "summary_normal"), "Looking it up.");
    let short =
        r#"{"type":"aaep:agent.progress.updated","progress":{"percent":40},"summary_terse":"Nearly half."}"#;
    assert_eq!(text_member(&publish_and_hear(short), "summary_normal"), "Nearly half.");
}

#[test]
fn a_question_and_a_handoff_without_a_summary_are_heard_in_their_own_words() {
    let (mut harness, bank, session, connection) = fixture();
    let question = TRANSFER.replace(r#","summary_normal":"May I transfer 500 euros to Ben?""#, "");
    let clarification = r#"{"question":"Which Ben?","question_es":"¿Qué Ben?","accepted_response_kinds":["freetext"],"timeout_seconds":60}"#;
    for (body, is_clarification) in [(question.as_str(), false), (clarification, true)] {
        let reply = harness.ask_hub(&bank, ask(&session, body, is_clarification));
        assert!(matches!(reply, HubReply::QuestionOpened { .. }), "{reply:?}");
    }
    let events = harness.take_events(connection);
    let questions: Vec<_> = events.iter().filter(|event| event.contains("awaiting.")).collect();
    let heard = questions.iter().map(|event| text_member(event, "summary_normal")).collect::<Vec<_>>();
    assert_eq!(heard, ["Transfer 500 euros to Ben. It cannot be undone.", "Which Ben?"]);
    assert_eq!(text_member(questions[1], "summary_normal_es"), "¿Qué Ben?");
}

fn ask(session: &str, body: &str, is_clarification: bool) -> HubCommand {
    HubCommand::Ask { session: id(session), body: body.into(), is_clarification, idempotency_key: None }
}

const LOW_RISK: &str = r#"{"action":"Book a room.","consequence":"It can be cancelled.","irreversible":false,"risk_level":"low","timeout_seconds":60,"default_decision":"accept","summary_normal":"May I book a room?"}"#;
const CLARIFY: &str = r#"{"question":"Which Ben?","accepted_response_kinds":["freetext"],"timeout_seconds":60,"default_response":"The tall one.","summary_normal":"Which Ben?"}"#;

/// Asks, lets something happen to the question, and returns the terse and the normal text of the outcome.
fn outcome(
    body: &str,
    is_clarification: bool,
    happen: impl FnOnce(&mut HubHarness, &Principal, &str, &str, &str, ListenerId),
) -> [String; 2] {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (_, observer) =
        harness.connect_listener(&observer("eve"), r#"{"supported_conformance_levels":[1,2,3]}"#);
    let (subscription, connection) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let opened = reply_json(harness.ask_hub(&bank, ask(&session, body, is_clarification)));
    let token = text_member(&opened, "reply_token");
    harness.take_events(observer);
    happen(&mut harness, &bank, &session, &token, &subscription, connection);
    let events = harness.take_events(observer);
    let resolved = events.iter().find(|event| event.contains(&token) && event.contains("state.changed"));
    let resolved = resolved.unwrap_or_else(|| panic!("no outcome: {events:#?}"));
    ["summary_terse", "summary_normal"].map(|name| text_member(resolved, name))
}

#[test]
fn the_outcome_of_a_question_says_who_decided_and_what_follows() {
    let reply = |decision: &'static str| {
        move |harness: &mut HubHarness,
              _: &Principal,
              _: &str,
              token: &str,
              subscription: &str,
              _: ListenerId| {
            harness.reply(&listener("ada", &[]), subscription, token, decision);
        }
    };
    assert_eq!(outcome(TRANSFER, false, reply("accept")), ["Accepted.", "A person said yes."]);
    assert_eq!(outcome(TRANSFER, false, reply("reject")), ["Refused.", "A person said no."]);
    let wait = |harness: &mut HubHarness, _: &Principal, _: &str, _: &str, _: &str, _: ListenerId| {
        harness.advance_time(180_000);
    };
    let late = "Not answered in time.";
    let not_performed = "Nobody answered in time. The action will not be performed.";
    assert_eq!(outcome(TRANSFER, false, wait), [late, not_performed]);
    let performed = "Nobody answered in time. The action will be performed.";
    assert_eq!(outcome(LOW_RISK, false, wait), [late, performed]);
    let default = "Nobody answered in time. The agent will use its default answer.";
    assert_eq!(outcome(CLARIFY, true, wait), [late, default]);
    assert_eq!(
        outcome(&CLARIFY.replace(r#""default_response":"The tall one.","#, ""), true, wait),
        [late, "Nobody answered in time."]
    );
    let answered = outcome(CLARIFY, true, |harness, _, _, token, subscription, _| {
        let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
        let text = format!(
            r#"{{"type":"clarification.reply","reply_token":"{token}","response":"The short one.","subscription_id":"{subscription}","timestamp":"{at}"}}"#
        );
        assert_eq!(harness.ask_hub(&listener("ada", &[]), send_message(&text)), HubReply::Done);
    });
    assert_eq!(answered, ["Answered.", "A person answered."]);
    let withdrawn = outcome(TRANSFER, false, |harness, bank, session, token, _, _| {
        harness.ask_hub(bank, HubCommand::Withdraw { session: id(session), token: id(token) });
    });
    assert_eq!(withdrawn, ["Question withdrawn.", "The question was withdrawn."]);
    let left = outcome(TRANSFER, false, |harness, _, _, _, subscription, _| {
        let close = format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#);
        harness.ask_hub(&listener("ada", &[]), send_message(&close));
    });
    let nobody_left = "Nobody was left to answer. The action will not be performed.";
    assert_eq!(left, ["Nobody left to answer.", nobody_left]);
}

#[test]
fn a_question_that_nobody_can_hear_says_so() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let (_, observer) =
        harness.connect_listener(&observer("eve"), r#"{"supported_conformance_levels":[1,2,3]}"#);
    let session = harness.start(&bank);
    harness.confirm(&bank, &session, TRANSFER);
    let events = harness.take_events(observer);
    let resolved = events.iter().find(|event| event.contains("Nobody to ask.")).unwrap();
    let normal = "Nobody could be asked. The action will not be performed.";
    assert_eq!(text_member(resolved, "summary_normal"), normal);
}

fn output(session: &str, text: &str, hint: Option<&str>, complete: bool) -> HubCommand {
    HubCommand::StreamOutput {
        session: id(session),
        output_id: None,
        producer: None,
        text: text.to_owned(),
        language: None,
        content_type: None,
        coalesce_hint: hint.map(str::to_owned),
        complete,
        agent_reports_next_state: false,
        idempotency_key: None,
    }
}

#[test]
fn the_parts_of_an_output_have_positions_and_the_hint_belongs_to_the_last_one() {
    let (mut harness, bank, session, _) = fixture();
    let long = "é".repeat(8_192 + 3);
    for (text, hint, complete) in
        [("ab", None, false), (&long, Some("sentence"), false), ("c", Some("sentence"), true)]
    {
        let reply = harness.ask_hub(&bank, output(&session, text, hint, complete));
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    }
    let refused = harness.ask_hub(&bank, output(&session, "", None, false));
    assert_eq!(refused, HubReply::Malformed(MalformedRequest::NoText));
    let parts: Vec<_> = harness
        .disk
        .events()
        .into_iter()
        .map(|event| String::from_utf8(event.body).unwrap())
        .filter(|event| event.contains("output.streaming"))
        .collect();
    let expected = [
        (r#""position":0,"complete":false,"coalesce_hint":"none""#),
        (r#""position":2,"complete":false,"coalesce_hint":"none""#),
        (r#""position":8194,"complete":false,"coalesce_hint":"sentence""#),
        (r#""position":8197,"complete":true,"coalesce_hint":"completion""#),
    ];
    assert_eq!(parts.len(), expected.len());
    for (part, expected) in parts.iter().zip(expected) {
        assert!(part.contains(expected), "{expected} in {}", &part[part.len() - 300..]);
    }
}

#[test]
fn ids_of_later_events_are_greater() {
    let mut harness = HubHarness::with(&HubLimits::default(), FaultyJournal::default(), START);
    let bank = agent("bank");
    let session = harness.start(&bank);
    for state in ["thinking", "deciding", "thinking", "deciding"] {
        harness.now += 1;
        let event = format!(r#"{{"type":"aaep:agent.state.changed","to_state":"{state}"}}"#);
        harness.publish(&bank, &session, &[&event]);
    }
    let ids: Vec<_> = harness.disk.events().into_iter().map(|event| event.event_id).collect();
    assert_eq!(ids.len(), 5);
    assert!(ids.is_sorted(), "{ids:?}");
}

#[test]
fn reminders_of_a_long_question_name_hours() {
    let limits = HubLimits { lease_ms: 100_000_000, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let bank = agent("bank");
    let session = harness.start(&bank);
    let question = TRANSFER.replace(r#""timeout_seconds":180"#, r#""timeout_seconds":28800"#);
    harness.confirm(&bank, &session, &question);
    harness.take_events(connection);
    harness.advance_time(14_400_000);
    let reminder = harness.take_events(connection).concat();
    assert!(reminder.contains("4 hours"), "{reminder}");
}

#[test]
fn after_an_output_the_agent_thinks_unless_it_reports_its_state() {
    for (agent_reports_next_state, expected) in [(false, "thinking"), (true, "writing_output")] {
        let (mut harness, bank, session, _) = fixture();
        let mut command = output(&session, "All.", None, true);
        if let HubCommand::StreamOutput { agent_reports_next_state: reports, .. } = &mut command {
            *reports = agent_reports_next_state;
        }
        assert!(matches!(harness.ask_hub(&bank, command), HubReply::EventsPublished { .. }));
        let events = harness.disk.events();
        let last_state = events.iter().rev().find_map(|event| {
            let event = std::str::from_utf8(&event.body).unwrap();
            event.contains("state.changed").then(|| text_member(event, "to_state"))
        });
        assert_eq!(last_state.as_deref(), Some(expected));
    }
}
