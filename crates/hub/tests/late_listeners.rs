//! Listeners that join late: what they receive from the log, and what the hub keeps for them.

use crate::support::*;
use hub::command::{HubCommand, HubReply};
use hub::{HubLimits, ListenerId, Principal};
use journal::Journal as _;

const RATED: &str = r#"{"max_events_per_second":1}"#;

fn attach_from_start(
    harness: &mut HubHarness,
    principal: &Principal,
    subscription: &str,
    number: u64,
) -> Vec<String> {
    let listener = ListenerId(number);
    let command = HubCommand::AttachFromStart { subscription: id(subscription), listener };
    assert_eq!(harness.ask_hub(principal, command), HubReply::Done);
    harness.take_events(listener)
}

fn to_state(state: &str) -> String {
    format!(r#"{{"type":"aaep:agent.state.changed","to_state":"{state}"}}"#)
}

fn end(harness: &mut HubHarness, principal: &Principal, session: &str) {
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert!(matches!(harness.publish(principal, session, &[end]), HubReply::EventsPublished { .. }));
}

#[test]
fn a_listener_from_the_start_receives_the_open_sessions_in_its_scope() {
    let mut harness = HubHarness::new();
    let (bank, post, ada) = (agent("bank"), agent("post"), listener("ada", &["agent:bank"]));
    let ended = harness.start(&bank);
    let open = harness.start(&bank);
    harness.start(&post);
    harness.publish(&bank, &open, &[&to_state("thinking")]);
    harness.publish(&bank, &ended, &[&to_state("thinking")]);
    end(&mut harness, &bank, &ended);
    let subscription = harness.subscribe(&ada, REPLY_CAPABILITIES);
    let events = attach_from_start(&mut harness, &ada, &subscription, 50);
    assert_eq!(event_types(&events), ["session.started", "state.changed"]);
    assert!(events.iter().all(|event| text_member(event, "session_id") == open), "{events:?}");
    // Later events follow once.
    harness.publish(&bank, &open, &[&to_state("deciding")]);
    assert_eq!(harness.take_events(ListenerId(50)).len(), 1);
}

#[test]
fn a_listener_from_the_start_receives_the_state_if_there_are_too_many_events() {
    for (max_replay_events, is_replayed) in [(3, true), (2, false)] {
        let limits = HubLimits { max_replay_events, ..HubLimits::default() };
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let (bank, ada) = (agent("bank"), listener("ada", &[]));
        let session = harness.start(&bank);
        harness.publish(&bank, &session, &[&to_state("thinking"), &to_state("deciding")]);
        let subscription = harness.subscribe(&ada, REPLY_CAPABILITIES);
        let events = attach_from_start(&mut harness, &ada, &subscription, 50);
        let expected: &[&str] = if is_replayed {
            &["session.started", "state.changed", "state.changed"]
        } else {
            &["state.changed"]
        };
        assert_eq!(event_types(&events), expected);
        if !is_replayed {
            assert!(events[0].contains("Moving money."), "it says what the session is about: {}", events[0]);
        }
    }
}

/// Lets a listener miss 20 large events, with this limit. Returns whether they were replayed, to a listener that resumes and to one
/// from the start, and the size of all events in the log.
fn replay_of_large_events(max_replay_bytes: usize) -> ([bool; 2], usize) {
    let limits = HubLimits { max_replay_bytes, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let session = harness.start(&bank);
    let (subscription, connection) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    harness.publish(&bank, &session, &[&to_state("thinking")]);
    harness.take_events(connection);
    let last = harness.disk.events().last().unwrap().event_id.clone();
    // More events than one page of the journal has.
    for number in 0..20 {
        let large = format!(
            r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:acme:context:v1"],"type":"aaep:agent.progress.updated","progress":{{"percent":{number}}},"summary_normal":"Working.","extensions":{{"acme":{{"note":"{}"}}}}}}"#,
            "n".repeat(20_000)
        );
        let reply = harness.publish(&bank, &session, &[&large]);
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    }
    let connection = harness.attach(&ada, &subscription, Some(&last));
    let resumed = event_types(&harness.take_events(connection)) == vec!["progress.updated"; 20];
    let has_gap = harness.take_messages(connection).iter().any(|message| message.contains("sayso:gap"));
    assert_ne!(resumed, has_gap);
    let subscription = harness.subscribe(&ada, REPLY_CAPABILITIES);
    let from_start = attach_from_start(&mut harness, &ada, &subscription, 77).len();
    assert!([1, 22].contains(&from_start), "{from_start}");
    let total = harness.disk.events().iter().map(|event| event.body.len()).sum();
    ([resumed, from_start == 22], total)
}

#[test]
fn a_listener_receives_the_state_if_the_missed_events_are_too_large() {
    let (is_replayed, total) = replay_of_large_events(HubLimits::default().max_replay_bytes);
    assert_eq!(is_replayed, [true; 2]);
    assert_eq!(replay_of_large_events(total), ([true; 2], total));
    assert_eq!(replay_of_large_events(total - 1), ([false; 2], total));
}

#[test]
fn the_state_that_a_late_listener_receives_says_what_the_session_is_about() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let session = harness.start(&bank);
    harness.publish(&bank, &session, &[&to_state("thinking")]);
    let (_, connection) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let events = harness.take_events(connection);
    let [state] = events.as_slice() else { panic!("{events:?}") };
    assert!(state.contains(r#""about":"Moving money.""#), "{state}");
    assert!(state.contains("The agent is thinking.") && !state.contains(r#""gap""#), "{state}");
}

#[test]
fn a_new_subscription_resumes_after_an_event_that_is_still_stored() {
    let limits = HubLimits { max_replay_events: 3, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let session = harness.start(&bank);
    let states = ["thinking", "deciding", "thinking", "deciding"].map(to_state);
    let published = harness.publish(&bank, &session, &states.each_ref().map(String::as_str));
    let HubReply::EventsPublished { event_ids, .. } = published else { panic!("{published:?}") };
    let started = harness.disk.events()[0].event_id.clone();
    for (after, missed) in
        [(&*event_ids[0], Some(3)), (&event_ids[2], Some(1)), (&started, None), ("evt_x", None)]
    {
        let capabilities = format!(r#"{{"sayso":{{"after":"{after}"}}}}"#);
        let text = format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{capabilities}}}"#
        );
        let accepted = reply_json(harness.ask_hub(&ada, subscribe(&text)));
        assert_eq!(accepted.contains(after), missed.is_some(), "{accepted}");
        let subscription = text_member(&accepted, "subscription_id");
        let connection = harness.attach(&ada, &subscription, None);
        let events = harness.take_events(connection);
        // Without a place to resume, the listener receives the current state.
        assert_eq!(events.len(), missed.unwrap_or(1), "{after}: {events:#?}");
        assert!(harness.take_messages(connection).is_empty());
    }
}

/// Asserts that a listener with these capabilities that resumes after an event gets exactly what follows it.
fn assert_later_events_are_replayed(capabilities: &str) {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &["agent:bank"]));
    let (subscription, _) = harness.connect_listener(&ada, capabilities);
    let session = harness.start(&bank);
    let mut ids = Vec::new();
    for number in 0..300 {
        harness.advance_time(2_000);
        let state = to_state(if number % 2 == 0 { "thinking" } else { "deciding" });
        let published = harness.publish(&bank, &session, &[&state]);
        let HubReply::EventsPublished { event_ids, .. } = published else { panic!("{published:?}") };
        ids.extend(event_ids);
    }
    for missed in [0, 1, 2, 290] {
        let last = ids[ids.len() - 1 - missed].to_string();
        let connection = harness.attach(&ada, &subscription, Some(&last));
        harness.advance_time(2_000);
        let received: Vec<_> =
            harness.take_events(connection).iter().map(|event| text_member(event, "event_id")).collect();
        if capabilities == RATED {
            // State changes are merged, so the last one is enough.
            assert_eq!(received.last().is_some(), missed > 0, "{missed}");
            assert!(missed == 0 || received.last().map(String::as_str) == ids.last().map(|id| &**id));
        } else {
            let expected: Vec<_> = ids[ids.len() - missed..].iter().map(ToString::to_string).collect();
            assert_eq!(received, expected, "{capabilities} {missed}");
        }
    }
}

#[test]
fn only_the_events_after_the_last_one_are_replayed() {
    assert_later_events_are_replayed("{}");
}

#[test]
fn only_the_sentences_after_the_last_event_are_replayed() {
    assert_later_events_are_replayed(r#"{"coalesce_boundaries":["sentence"]}"#);
}

#[test]
fn only_the_merged_events_after_the_last_event_are_replayed() {
    assert_later_events_are_replayed(RATED);
}

/// Returns a number that the hub's debug output gives for a field.
fn debug_count(harness: &HubHarness, field: &str) -> usize {
    let text = format!("{:?}", harness.core);
    let (_, rest) = text.split_once(&format!("{field}: ")).unwrap();
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn listeners_with_the_same_terms_and_scope_share_a_group_until_the_last_one_leaves() {
    let mut harness = HubHarness::new();
    let groups = |harness: &HubHarness| debug_count(harness, "delivery_groups");
    assert_eq!(groups(&harness), 0);
    let (ada, ben) = (listener("ada", &[]), listener("ben", &[]));
    let (_, first) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let (_, second) = harness.connect_listener(&ben, REPLY_CAPABILITIES);
    assert_eq!(groups(&harness), 1);
    let (_, rated) = harness.connect_listener(&ada, RATED);
    let (_, scoped) = harness.connect_listener(&listener("cy", &["agent:bank"]), REPLY_CAPABILITIES);
    assert_eq!(groups(&harness), 3);
    for (listener, expected) in [(first, 3), (rated, 2), (second, 1), (scoped, 0)] {
        harness.send_without_reply(&ada, HubCommand::Detach { listener, is_too_slow: false });
        assert_eq!(groups(&harness), expected);
    }
    // A group that holds text back is not shared with a listener that has not heard the earlier text.
    let bank = agent("bank");
    let session = harness.start(&bank);
    harness.connect_listener(&ada, RATED);
    harness.publish(&bank, &session, &[&to_state("thinking"), &to_state("deciding")]);
    harness.connect_listener(&ben, RATED);
    assert_eq!(groups(&harness), 2);
    harness.disk.fail_writes(true);
    harness.publish(&bank, &session, &[&to_state("thinking")]);
    assert_eq!(groups(&harness), 0, "a failed write disconnects everybody");
}

#[test]
fn a_connection_counts_as_one_until_it_closes_or_its_turn_is_discarded() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let connections = |harness: &HubHarness| debug_count(harness, "agent_connections");
    assert_eq!(connections(&harness), 0);
    let sessions = [harness.start(&bank), harness.start(&bank)];
    for (number, session) in (1..).zip(&sessions) {
        let connection = hub::AgentConnectionId(number);
        harness.ask_on_connection(&bank, connection, HubCommand::Follow { session: id(session) });
    }
    assert_eq!(connections(&harness), 2);
    harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection: hub::AgentConnectionId(1) });
    assert_eq!(connections(&harness), 1);
    // A session that was not stored is not followed.
    harness.disk.fail_writes(true);
    let start = HubCommand::Start { body: r#"{"summary_normal":"Hello."}"#.into(), idempotency_key: None };
    let reply = harness.ask_on_connection(&bank, hub::AgentConnectionId(3), start);
    assert!(matches!(reply, HubReply::Unavailable(_)), "{reply:?}");
    harness.disk.fail_writes(false);
    harness.advance_time(2_000);
    harness.turn();
    assert_eq!(connections(&harness), 1);
}

#[test]
fn a_late_listener_may_answer_only_the_questions_that_it_can_hear_and_reply_to() {
    const CLARIFY: &str = r#"{"question":"Which Ben?","accepted_response_kinds":["freetext"],"timeout_seconds":60,"summary_normal":"Which Ben?"}"#;
    let confirms = r#"{"supports_confirmation_reply":true,"supported_conformance_levels":[1,2,3]}"#;
    let clarifies = r#"{"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3]}"#;
    for (is_clarification, capabilities, scope, counts) in [
        (false, confirms, "agent:bank", true),
        (false, clarifies, "agent:bank", false),
        (true, clarifies, "agent:bank", true),
        (true, confirms, "agent:bank", false),
        (false, confirms, "agent:post", false),
    ] {
        let mut harness = HubHarness::new();
        let bank = agent("bank");
        harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let body = if is_clarification { CLARIFY } else { TRANSFER };
        let ask = HubCommand::Ask {
            session: id(&session),
            body: body.into(),
            is_clarification,
            idempotency_key: None,
        };
        let token = text_member(&reply_json(harness.ask_hub(&bank, ask)), "reply_token");
        let late = listener("late", &[scope]);
        let (subscription, _) = harness.connect_listener(&late, capabilities);
        let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
        let answer = if is_clarification {
            r#""type":"clarification.reply","response":"The short one.""#
        } else {
            r#""type":"confirmation.reply","decision":"accept""#
        };
        let text = format!(
            r#"{{{answer},"reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
        );
        assert_eq!(harness.ask_hub(&late, send_message(&text)), HubReply::Done);
        let status = harness.status(&bank, &session, &token);
        assert_eq!(
            matches!(status, HubReply::QuestionResolved(_)),
            counts,
            "{capabilities} {scope}: {status:?}"
        );
    }
}

#[test]
fn a_late_listener_resumes_from_the_end_of_the_log_if_it_received_a_state() {
    let mut harness = HubHarness::new();
    let ada = listener("ada", &[]);
    let (_, connection) = harness.connect_listener(&ada, "{}");
    assert_eq!(harness.last_id(connection), None, "it received nothing");
    harness.start(&agent("bank"));
    let (subscription, connection) = harness.connect_listener(&ada, "{}");
    let events = harness.take_events(connection);
    assert!(events[0].contains(r#""text_by":"hub""#), "the hub wrote the text: {}", events[0]);
    let last = harness.last_id(connection).unwrap();
    let again = harness.attach(&ada, &subscription, Some(&last));
    assert_eq!((harness.take_events(again).len(), harness.take_messages(again).len()), (0, 0));
}

#[test]
fn a_replaced_connection_is_closed_even_if_the_turn_cannot_be_stored() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, first) = harness.connect_listener(&ada, "{}");
    harness.disk.fail_writes(true);
    let attach =
        HubCommand::Attach { subscription: id(&subscription), last_event_id: None, listener: ListenerId(70) };
    let start = HubCommand::Start { body: r#"{"summary_normal":"Hello."}"#.into(), idempotency_key: None };
    harness.ask_both_in_one_turn(&ada, attach, &bank, start);
    assert!(harness.is_closed(first));
}

#[test]
fn a_subscriber_learns_the_address_of_the_hubs_manifest() {
    let limits = HubLimits { sessions: 7, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    assert_eq!(harness.core.limits().sessions, 7);
    let uri = "https://hub.example/.well-known/aaep-manifest.json";
    let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{}}"#;
    for is_set in [false, true] {
        if is_set {
            harness.core.set_hub_manifest(Some(uri.to_owned()), "signed".to_owned());
        }
        let accepted = reply_json(harness.ask_hub(&listener("ada", &[]), subscribe(request)));
        assert_eq!(accepted.contains(uri), is_set, "{accepted}");
    }
}

/// Returns how many earlier terms are stored with the only subscription.
fn stored_earlier_terms(harness: &HubHarness) -> usize {
    let stored = harness.disk.clone().restore().unwrap().subscriptions;
    String::from_utf8(stored[0].record.clone()).unwrap().matches(r#""until":"#).count()
}

#[test]
fn earlier_terms_are_stored_while_their_events_can_be_replayed_and_at_most_four() {
    let renegotiate = |harness: &mut HubHarness, subscription: &str, number: usize| {
        let text = format!(
            r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{{"max_events_per_second":{number}}}}}"#
        );
        harness.ask_hub(&listener("ada", &[]), send_message(&text));
    };
    let mut harness = HubHarness::new();
    let (subscription, _) = harness.connect_listener(&listener("ada", &[]), "{}");
    for number in 1..=6 {
        renegotiate(&mut harness, &subscription, number);
        assert_eq!(stored_earlier_terms(&harness), number.min(4));
    }
    for (events, expected) in [(0, 2), (1, 2), (2, 1), (3, 1)] {
        let limits = HubLimits { max_replay_events: 2, ..HubLimits::default() };
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let (subscription, _) = harness.connect_listener(&listener("ada", &[]), "{}");
        renegotiate(&mut harness, &subscription, 1);
        for _ in 0..events {
            harness.start(&agent("bank"));
        }
        renegotiate(&mut harness, &subscription, 2);
        assert_eq!(stored_earlier_terms(&harness), expected, "{events}");
    }
}

/// Streams text of an output that continues.
fn stream(harness: &mut HubHarness, agent: &Principal, session: &str, text: &str) {
    let command = HubCommand::StreamOutput {
        session: id(session),
        output_id: None,
        producer: None,
        text: text.to_owned(),
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: false,
        agent_reports_next_state: false,
        idempotency_key: None,
    };
    let reply = harness.ask_hub(agent, command);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
}

#[test]
fn a_late_listener_hears_the_rest_of_a_sentence_as_the_others_do() {
    const SENTENCES: &str = r#"{"coalesce_boundaries":["sentence"]}"#;
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    let (early_subscription, early) = harness.connect_listener(&listener("ada", &[]), SENTENCES);
    let session = harness.start(&bank);
    stream(&mut harness, &bank, &session, "One. Two");
    harness.take_events(early);
    // The scope is different, so this listener gets a group of its own, in the middle of a sentence.
    let (_, late) = harness.connect_listener(&listener("ben", &["agent:bank"]), SENTENCES);
    harness.take_events(late);
    stream(&mut harness, &bank, &session, " three. Four");
    let heard_by_all = harness.take_events(early);
    assert!(!heard_by_all.is_empty());
    assert_eq!(harness.take_events(late), heard_by_all);
    // The merged sentence has an id of its own, after which both resume.
    let last = harness.last_id(early).unwrap();
    let scope_of_all = listener("ada", &[]);
    let early = harness.attach(&scope_of_all, &early_subscription, Some(&last));
    stream(&mut harness, &bank, &session, " five. Six");
    let heard_after = harness.take_events(early);
    assert!(heard_after.iter().all(|event| !heard_by_all.contains(event)), "{heard_after:?}");
    assert_eq!(harness.take_events(late), heard_after);
}

/// The terms of a listener that hears no progress.
const WITHOUT_PROGRESS: &str = r#"{"coalesce_boundaries":["sentence"],"event_filters":{"include":["aaep:agent.*"],"exclude":["aaep:agent.progress.updated"]}}"#;

/// Asserts that a listener that changes its terms to these while it is away gets no progress from then on.
fn assert_terms_apply_from_their_change(new_terms: &str) {
    let ada = listener("ada", &[]);
    let bank = agent("bank");
    for (before, after) in [(0, 0), (0, 2), (1, 0), (2, 2)] {
        let mut harness = HubHarness::new();
        let (subscription, connection) = harness.connect_listener(&ada, "{}");
        let session = harness.start(&bank);
        let last = harness.last_id(connection).unwrap();
        harness.send_without_reply(&ada, HubCommand::Detach { listener: connection, is_too_slow: false });
        let publish_progress = |harness: &mut HubHarness, percent: usize| {
            let progress = format!(
                r#"{{"type":"aaep:agent.progress.updated","progress":{{"percent":{percent}}},"summary_normal":"{percent} percent."}}"#
            );
            harness.publish(&bank, &session, &[&progress]);
        };
        (0..before).for_each(|number| publish_progress(&mut harness, number));
        let change = format!(
            r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{new_terms}}}"#
        );
        harness.ask_hub(&ada, send_message(&change));
        (0..after).for_each(|number| publish_progress(&mut harness, 50 + number));
        let connection = harness.attach(&ada, &subscription, Some(&last));
        harness.advance_time(5_000);
        let missed = harness.take_events(connection);
        assert_eq!(event_types(&missed), vec!["progress.updated"; before], "{before} and {after}");
        publish_progress(&mut harness, 99);
        harness.advance_time(5_000);
        assert_eq!(harness.take_events(connection), [""; 0], "{before} and {after}");
    }
}

#[test]
fn missed_events_have_the_terms_of_their_time_and_later_events_the_new_terms() {
    assert_terms_apply_from_their_change(WITHOUT_PROGRESS);
    // With a rate, the hub replays exactly from the last event.
    assert_terms_apply_from_their_change(&WITHOUT_PROGRESS.replacen(
        '{',
        r#"{"max_events_per_second":100,"#,
        1,
    ));
}

#[test]
fn text_that_is_held_because_of_earlier_terms_concerns_only_its_listener() {
    let (ada, ben, bank) = (listener("ada", &[]), listener("ben", &[]), agent("bank"));
    let groups = |harness: &HubHarness| debug_count(harness, "delivery_groups");
    for is_renegotiated in [false, true] {
        let mut harness = HubHarness::new();
        let old_terms = r#"{"coalesce_boundaries":["sentence"]}"#;
        let (subscription, connection) = harness.connect_listener(&ada, old_terms);
        let new_terms = if is_renegotiated { WITHOUT_PROGRESS } else { old_terms };
        harness.connect_listener(&ben, new_terms);
        let session = harness.start(&bank);
        stream(&mut harness, &bank, &session, "One. Two");
        let last = harness.last_id(connection).unwrap();
        harness.send_without_reply(&ada, HubCommand::Detach { listener: connection, is_too_slow: false });
        if is_renegotiated {
            let change = format!(
                r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{new_terms}}}"#
            );
            harness.ask_hub(&ada, send_message(&change));
        }
        assert_eq!(groups(&harness), 1);
        harness.attach(&ada, &subscription, Some(&last));
        assert_eq!(groups(&harness), 1 + usize::from(is_renegotiated));
    }
}

#[test]
fn a_late_listener_with_a_rate_hears_no_earlier_events_again() {
    let mut harness = HubHarness::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let session = harness.start(&bank);
    harness.publish(&bank, &session, &[&to_state("thinking"), &to_state("deciding")]);
    let (_, late) = harness.connect_listener(&ada, RATED);
    let state = harness.take_events(late).len();
    harness.advance_time(5_000);
    assert_eq!(harness.take_events(late), [""; 0], "after the state of {state} events");
}
