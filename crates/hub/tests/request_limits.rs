//! The limits for one request, one session and one token. Every limit accepts its maximum and refuses one more.

use crate::support::*;
use hub::command::{HubCommand, HubReply, LimitReached, MalformedRequest};
use hub::{HubLimits, Principal};

const PROGRESS: &str =
    r#"{"type":"aaep:agent.progress.updated","progress":{"percent":5},"summary_normal":"Working."}"#;

fn harness_with(limits: &HubLimits) -> HubHarness {
    HubHarness::with(limits, FaultyJournal::default(), START)
}

fn with_token(principal: Principal) -> Principal {
    Principal { token_digest: Some(seal::Digest::of(principal.name.as_bytes())), ..principal }
}

/// Creates the command that starts a session, with these members in addition to the summary.
fn start_command(members: &str) -> HubCommand {
    let body = format!(r#"{{"summary_normal":"Moving money.",{members}}}"#);
    HubCommand::Start { body: body.into(), idempotency_key: None }
}

fn publish_command(session: &str, key: Option<&str>) -> HubCommand {
    HubCommand::Publish {
        session: id(session),
        events: vec![PROGRESS.into()],
        idempotency_key: key.map(str::to_owned),
    }
}

/// Returns the size of the events that were written since the last call.
fn take_event_bytes(harness: &HubHarness) -> usize {
    let size = |entry| if let RecordedEntry::Event { body, .. } = entry { body.len() } else { 0 };
    harness.disk.take_written().into_iter().map(size).sum()
}

fn assert_published(reply: &HubReply) {
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
}

#[test]
fn the_number_of_events_in_a_request_is_limited() {
    let mut harness = harness_with(&HubLimits { events_per_request: 3, ..HubLimits::default() });
    let bank = agent("bank");
    let session = harness.start(&bank);
    assert_published(&harness.publish(&bank, &session, &[PROGRESS; 3]));
    for count in [0, 4, 5] {
        let refused = harness.publish(&bank, &session, &vec![PROGRESS; count]);
        assert_eq!(refused, MalformedRequest::EventCount { max: 3 }.into(), "{count} events");
    }
}

#[test]
fn an_idempotency_key_is_limited_in_characters() {
    let mut harness = harness_with(&HubLimits { idempotency_key_chars: 4, ..HubLimits::default() });
    let bank = agent("bank");
    let session = harness.start(&bank);
    for (key, is_accepted) in [("abcd", true), ("éééé", true), ("abcde", false), ("abcdef", false)] {
        let reply = harness.ask_hub(&bank, publish_command(&session, Some(key)));
        if is_accepted {
            assert_published(&reply);
        } else {
            assert_eq!(reply, MalformedRequest::IdempotencyKeyTooLong { max: 4 }.into(), "{key}");
        }
    }
}

#[test]
fn the_events_of_a_request_are_limited_in_bytes_with_their_envelopes() {
    let events = [PROGRESS; 3];
    let bank = agent("bank");
    let mut harness = HubHarness::new();
    let session = harness.start(&bank);
    take_event_bytes(&harness);
    assert_published(&harness.publish(&bank, &session, &events));
    let size = take_event_bytes(&harness);
    for (max, is_accepted) in [(size, true), (size - 1, false), (size - 2, false)] {
        let mut harness = harness_with(&HubLimits { bytes_per_request: max, ..HubLimits::default() });
        let session = harness.start(&bank);
        take_event_bytes(&harness);
        let reply = harness.publish(&bank, &session, &events);
        if is_accepted {
            assert_published(&reply);
        } else {
            assert_eq!(reply, MalformedRequest::ComposedTooLarge { max }.into());
            assert_eq!(take_event_bytes(&harness), 0, "a refused request writes nothing");
        }
    }
}

#[test]
fn a_tokens_bytes_include_the_idempotency_key_and_the_stored_reply() {
    let bank = with_token(agent("bank"));
    let key = "a key of some length";
    let mut harness = HubHarness::new();
    let session = harness.start(&bank);
    let reply = harness.ask_hub(&bank, publish_command(&session, Some(key)));
    assert_published(&reply);
    let used = take_event_bytes(&harness) + key.len() + reply_json(reply).len();
    for (max, is_accepted) in [(used + 1, true), (used, false)] {
        let mut harness = harness_with(&HubLimits { bytes_per_minute: max, ..HubLimits::default() });
        let session = harness.start(&bank);
        assert_published(&harness.ask_hub(&bank, publish_command(&session, Some(key))));
        let next = harness.ask_hub(&bank, publish_command(&session, None));
        if is_accepted {
            assert_published(&next);
        } else {
            assert_eq!(next, LimitReached::BytesPerMinute { max }.into());
        }
        let repeated = harness.ask_hub(&bank, publish_command(&session, Some(key)));
        assert_published(&repeated);
    }
}

#[test]
fn names_and_values_that_are_copied_into_every_event_are_limited_in_characters() {
    const MAX: usize = 20;
    let mut harness = harness_with(&HubLimits { shared_member_chars: MAX, ..HubLimits::default() });
    let bank = agent("bank");
    let array = |chars: usize| format!("[{}]", "1".repeat(chars - 2));
    let producer = |member: &str| format!(r#""producer":{{"agent_id":"bank",{member}}}"#);
    let hints = |member: &str| format!(r#""localization_hints":{{"primary_language":"en",{member}}}"#);
    for (object, wrap) in [("producer", &producer as &dyn Fn(&str) -> String), ("localization_hints", &hints)]
    {
        for (chars, is_short) in [(MAX, true), (MAX + 1, false), (MAX + 2, false)] {
            for member in [
                format!(r#""x_note":"{}""#, "a".repeat(chars)),
                // One character, but six in the source.
                format!(r#""x_note":"{}""#, r"\u00e9".repeat(chars)),
                format!(r#""x_note":{}"#, array(chars)),
                format!(r#""x_{}":"a""#, "a".repeat(chars - 2)),
            ] {
                let reply = harness.ask_hub(&bank, start_command(&wrap(&member)));
                let refusal: HubReply = MalformedRequest::SharedMemberTooLong { object, max: MAX }.into();
                // The rules, which are checked later, do not know these members.
                let is_within_limit = matches!(reply, HubReply::RuleViolations(_));
                assert!(if is_short { is_within_limit } else { reply == refusal }, "{reply:?} to {member}");
            }
        }
    }
}

#[test]
fn an_object_that_is_copied_into_every_event_is_limited_in_bytes() {
    let producer = r#"{"agent_id":"bank","agent_version":"1.0.0","agent_name":"Bank"}"#;
    let bank = agent("bank");
    let size = producer.len();
    for (max, is_accepted) in [(size, true), (size - 1, false), (size - 2, false)] {
        let mut harness = harness_with(&HubLimits { shared_object_bytes: max, ..HubLimits::default() });
        let members = format!(r#""producer":{producer},"localization_hints":{{"primary_language":"en"}}"#);
        let reply = harness.ask_hub(&bank, start_command(&members));
        if is_accepted {
            assert!(matches!(reply, HubReply::SessionStarted { .. }), "{reply:?}");
        } else {
            assert_eq!(reply, MalformedRequest::SharedObjectTooLarge { object: "producer", max }.into());
        }
    }
}

#[test]
fn the_sessions_of_one_token_are_limited() {
    let mut harness = harness_with(&HubLimits { sessions_per_principal: 2, ..HubLimits::default() });
    let (bank, post) = (with_token(agent("bank")), with_token(agent("post")));
    let new_bank_token = Principal { token_digest: Some(seal::Digest::of(b"new")), ..bank.clone() };
    let start = || start_command(r#""localization_hints":{"primary_language":"en"}"#);
    let first = harness.start(&bank);
    harness.start(&bank);
    let refusal: HubReply = LimitReached::SessionsPerPrincipal { max: 2 }.into();
    assert_eq!(harness.ask_hub(&bank, start()), refusal);
    for other in [&post, &new_bank_token] {
        harness.start(other);
        harness.start(other);
        assert_eq!(harness.ask_hub(other, start()), refusal);
    }
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_published(&harness.publish(&bank, &first, &[end]));
    harness.start(&bank);
    assert_eq!(harness.ask_hub(&bank, start()), refusal);
}

/// The principal of everybody who has no token, and the members of a request that starts a session of this agent.
fn local_agent(agent_id: &str) -> (Principal, String) {
    let members =
        format!(r#""producer":{{"agent_id":"{agent_id}"}},"localization_hints":{{"primary_language":"en"}}"#);
    (Principal::local(), members)
}

#[test]
fn without_tokens_the_sessions_of_one_agent_are_limited_and_those_of_a_part_of_the_program_are_not() {
    let limits = HubLimits { sessions_per_principal: 2, ..HubLimits::default() };
    let mut harness = harness_with(&limits);
    let ((local, bank), (_, post)) = (local_agent("bank"), local_agent("post"));
    let started = |reply: HubReply| match reply {
        HubReply::SessionStarted { session_id } => Some(session_id),
        refusal => {
            assert_eq!(refusal, LimitReached::SessionsPerAgent { max: 2 }.into());
            None
        }
    };
    let first = started(harness.ask_hub(&local, start_command(&bank))).unwrap();
    assert!(started(harness.ask_hub(&local, start_command(&post))).is_some());
    assert!(started(harness.ask_hub(&local, start_command(&bank))).is_some());
    assert!(started(harness.ask_hub(&local, start_command(&bank))).is_none());
    // A restart does not change whose sessions are counted.
    harness.crash_and_start_with(&limits);
    assert!(started(harness.ask_hub(&local, start_command(&bank))).is_none());
    assert!(started(harness.ask_hub(&local, start_command(&post))).is_some());
    assert!(started(harness.ask_hub(&local, start_command(&post))).is_none());
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert_published(&harness.publish(&local, first.as_str(), &[end]));
    assert!(started(harness.ask_hub(&local, start_command(&bank))).is_some());

    let program = Principal { naming: hub::AgentNaming::InProcess, ..agent("program") };
    for _ in 0..5 {
        harness.start(&program);
    }
}

#[test]
fn without_tokens_the_bytes_of_one_agent_are_limited_and_those_of_a_part_of_the_program_are_not() {
    let mut harness = harness_with(&HubLimits { bytes_per_minute: 4_096, ..HubLimits::default() });
    let ((local, bank), (_, post)) = (local_agent("bank"), local_agent("post"));
    let mut start =
        |principal: &Principal, members: &str| match harness.ask_hub(principal, start_command(members)) {
            HubReply::SessionStarted { session_id } => session_id.as_str().to_owned(),
            refusal => panic!("{refusal:?}"),
        };
    let (first, second, other) = (start(&local, &bank), start(&local, &bank), start(&local, &post));
    let refusal: HubReply = LimitReached::AgentBytesPerMinute { max: 4_096 }.into();
    let is_refused = |reply: &HubReply| *reply == refusal;
    assert!((0..20).any(|_| is_refused(&harness.publish(&local, &first, &[PROGRESS]))));
    assert!(is_refused(&harness.publish(&local, &second, &[PROGRESS])), "another session of the agent");
    assert!(is_refused(&harness.ask_hub(&local, start_command(&bank))), "a new session of the agent");
    assert_published(&harness.publish(&local, &other, &[PROGRESS]));
    assert!(!is_refused(&harness.ask_hub(&local, start_command(&post))));

    let program = Principal { naming: hub::AgentNaming::InProcess, ..agent("program") };
    let session = harness.start(&program);
    for _ in 0..20 {
        assert_published(&harness.publish(&program, &session, &[PROGRESS]));
    }
}

/// Starts a session for a person and returns its id.
fn start_for(harness: &mut HubHarness, principal: &Principal, person: &str) -> String {
    let members =
        format!(r#""requested_by":"user:{person}","localization_hints":{{"primary_language":"en"}}"#);
    text_member(&reply_json(harness.ask_hub(principal, start_command(&members))), "session_id")
}

#[test]
fn questions_and_critical_events_are_limited_for_each_person() {
    let limits = HubLimits {
        questions_per_minute: 1,
        total_questions_per_minute: 2,
        criticals_per_minute: 1,
        ..HubLimits::default()
    };
    let mut harness = harness_with(&limits);
    let agents = [agent("bank"), agent("post"), agent("shop")];
    for person in ["marisol", "jonas"] {
        harness.connect_listener(&listener(person, &[&format!("person:{person}")]), REPLY_CAPABILITIES);
    }
    let shout = r#"{"type":"aaep:agent.progress.updated","urgency":"critical","progress":{"percent":5},"summary_normal":"Look!"}"#;
    for person in ["marisol", "jonas"] {
        for (index, agent) in agents.iter().enumerate() {
            let session = start_for(&mut harness, agent, person);
            assert_published(&harness.publish(agent, &session, &[shout]));
            let refused = harness.publish(agent, &session, &[shout]);
            assert_eq!(refused, LimitReached::CriticalsPerMinute { max: 1 }.into());
            let reply = harness.confirm(agent, &session, TRANSFER);
            if index < 2 {
                assert!(matches!(reply, HubReply::QuestionOpened { .. }), "{reply:?} for {person}");
                let second = harness.confirm(agent, &session, &TRANSFER.replace("500", "600"));
                // The second agent's second question exceeds both limits.
                let refusal = match index {
                    0 => LimitReached::QuestionsPerMinute { max: 1 },
                    _ => LimitReached::TotalQuestionsPerMinute { max: 2 },
                };
                assert_eq!(second, refusal.into());
            } else {
                assert_eq!(reply, LimitReached::TotalQuestionsPerMinute { max: 2 }.into());
            }
        }
    }
}
