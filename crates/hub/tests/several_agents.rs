//! Agents that share a session: what survives a restart, when an invitation expires, and who is notified.

use crate::support::*;
use hub::command::{HubCommand, HubReply, MalformedRequest};
use hub::{AgentConnectionId, HubLimits, Principal};

const BANK_CONNECTION: AgentConnectionId = AgentConnectionId(1);
const HELPER_CONNECTION: AgentConnectionId = AgentConnectionId(2);

fn invite(harness: &mut HubHarness, principal: &Principal, session: &str, producer: &str) -> HubReply {
    let body = format!(r#"{{"producer":"{producer}"}}"#).into();
    harness.ask_hub(principal, HubCommand::Invite { session: id(session), body, idempotency_key: None })
}

fn secret(reply: HubReply) -> String {
    text_member(&reply_json(reply), "invitation")
}

fn join(session: &str, secret: &str) -> HubCommand {
    let body = format!(r#"{{"invitation":"{secret}"}}"#).into();
    HubCommand::Join { session: id(session), body, idempotency_key: None }
}

fn is_joined(reply: &HubReply) -> bool {
    match reply {
        HubReply::SessionJoined { .. } => true,
        HubReply::InvitationNotFound => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invitation_expires_at_the_moment_that_it_names() {
    for (wait_ms, expected) in [
        (HubLimits::default().invitation_lifetime_ms - 1, true),
        (HubLimits::default().invitation_lifetime_ms, false),
    ] {
        let limits = HubLimits { lease_ms: i64::MAX / 4, ..HubLimits::default() };
        let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
        let (bank, helper) = (agent("bank"), agent("helper"));
        let session = harness.start(&bank);
        let secret = secret(invite(&mut harness, &bank, &session, "helper"));
        harness.advance_time(wait_ms);
        assert_eq!(is_joined(&harness.ask_hub(&helper, join(&session, &secret))), expected, "{wait_ms}");
    }
}

#[test]
fn a_restart_keeps_invitations_and_members_but_a_used_invitation_stays_used() {
    let mut harness = HubHarness::new();
    let (bank, helper) = (agent("bank"), agent("helper"));
    let session = harness.start(&bank);
    let secret = secret(invite(&mut harness, &bank, &session, "helper"));
    harness.crash();
    assert!(is_joined(&harness.ask_hub(&helper, join(&session, &secret))));
    harness.crash();
    assert!(!is_joined(&harness.ask_hub(&helper, join(&session, &secret))));
    let published = harness.publish(&helper, &session, &[THINK]);
    assert!(matches!(published, HubReply::EventsPublished { .. }), "{published:?}");
}

#[test]
fn a_failed_write_uses_up_no_invitation_and_lets_nobody_in() {
    let mut harness = HubHarness::new();
    let (bank, helper) = (agent("bank"), agent("helper"));
    let session = harness.start(&bank);
    let secret = secret(invite(&mut harness, &bank, &session, "helper"));
    harness.disk.fail_writes(true);
    let reply = harness.ask_hub(&helper, join(&session, &secret));
    assert!(matches!(reply, HubReply::Unavailable(_)), "{reply:?}");
    harness.disk.fail_writes(false);
    harness.advance_time(2000);
    assert_eq!(harness.publish(&helper, &session, &[THINK]), HubReply::NotFound);
    assert!(is_joined(&harness.ask_hub(&helper, join(&session, &secret))));
}

#[test]
fn a_restored_backup_voids_every_invitation() {
    let mut harness = HubHarness::new();
    let (bank, helper) = (agent("bank"), agent("helper"));
    let session = harness.start(&bank);
    let old = secret(invite(&mut harness, &bank, &session, "helper"));
    harness.disk.alter_restored(Some(|state| state.must_void_consents = true));
    harness.crash();
    harness.disk.alter_restored(None);
    harness.crash();
    assert!(!is_joined(&harness.ask_hub(&helper, join(&session, &old))), "it may have been used before");
    let new = secret(invite(&mut harness, &bank, &session, "helper"));
    assert!(is_joined(&harness.ask_hub(&helper, join(&session, &new))));
}

#[test]
fn a_connection_learns_only_the_answers_to_its_own_agents_questions() {
    let mut harness = HubHarness::new();
    let (bank, helper, ada) = (agent("bank"), agent("helper"), listener("ada", &[]));
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let secret = secret(invite(&mut harness, &bank, &session, "helper"));
    harness.ask_on_connection(&bank, BANK_CONNECTION, HubCommand::Follow { session: id(&session) });
    harness.ask_on_connection(&helper, HELPER_CONNECTION, join(&session, &secret));
    let mut tokens = Vec::new();
    for (principal, connection) in [(&bank, BANK_CONNECTION), (&helper, HELPER_CONNECTION)] {
        let ask = HubCommand::Ask {
            session: id(&session),
            body: TRANSFER.into(),
            is_clarification: false,
            idempotency_key: None,
        };
        let opened = reply_json(harness.ask_on_connection(principal, connection, ask));
        tokens.push(text_member(&opened, "reply_token"));
    }
    for token in &tokens {
        harness.reply(&ada, &subscription, token, "accept");
    }
    // Both connections also get only their own answers when they connect again.
    for connection in [BANK_CONNECTION, HELPER_CONNECTION] {
        let own = usize::from(connection == HELPER_CONNECTION);
        let notices = format!("{:?}", harness.take_notices(connection));
        assert!(notices.contains(&tokens[own]) && !notices.contains(&tokens[1 - own]), "{notices}");
        harness.send_without_reply(&bank, HubCommand::DisconnectAgent { connection });
    }
    for (principal, own) in [(&bank, 0), (&helper, 1)] {
        let connection = AgentConnectionId(10 + own as u64);
        harness.ask_on_connection(principal, connection, HubCommand::Follow { session: id(&session) });
        let notices = format!("{:?}", harness.take_notices(connection));
        assert!(notices.contains(&tokens[own]) && !notices.contains(&tokens[1 - own]), "{notices}");
        assert!(matches!(harness.status(principal, &session, &tokens[own]), HubReply::QuestionResolved(_)));
        assert_eq!(harness.status(principal, &session, &tokens[1 - own]), HubReply::QuestionNotFound);
    }
}

#[test]
fn listing_producers_gives_an_agent_no_more_questions_per_minute() {
    let limits = HubLimits { questions_per_minute: 2, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let (bank, helper) = (agent("bank"), agent("helper"));
    let body = r#"{"summary_normal":"Paying.","producers":[{"agent_id":"a"},{"agent_id":"b"}]}"#;
    let start = HubCommand::Start { body: body.into(), idempotency_key: None };
    let session = text_member(&reply_json(harness.ask_hub(&bank, start)), "session_id");
    let secret = secret(invite(&mut harness, &bank, &session, "helper"));
    assert!(is_joined(&harness.ask_hub(&helper, join(&session, &secret))));
    let mut ask_as = |principal: &Principal, producer: &str| {
        let body = TRANSFER.replacen('{', &format!(r#"{{"producer":"{producer}","#), 1);
        matches!(harness.confirm(principal, &session, &body), HubReply::QuestionOpened { .. })
    };
    assert_eq!([ask_as(&bank, "a"), ask_as(&bank, "b"), ask_as(&bank, "bank")], [true, true, false]);
    assert!(ask_as(&helper, "helper"), "another token has limits of its own");
}

/// A session of the bank with the producers `a` and `helper`; the helper has joined with its own token.
fn shared_session() -> (HubHarness, Principal, Principal, String) {
    let mut harness = HubHarness::new();
    let (bank, helper) = (agent("bank"), agent("helper"));
    let body = r#"{"summary_normal":"Paying.","producers":[{"agent_id":"a"}]}"#;
    let start = HubCommand::Start { body: body.into(), idempotency_key: None };
    let session = text_member(&reply_json(harness.ask_hub(&bank, start)), "session_id");
    let secret = secret(invite(&mut harness, &bank, &session, "helper"));
    assert!(is_joined(&harness.ask_hub(&helper, join(&session, &secret))));
    (harness, bank, helper, session)
}

fn named(producer: &str, event: &str) -> String {
    event.replacen('{', &format!(r#"{{"producer":"{producer}","#), 1)
}

/// Returns the finding about a request that breaks one rule.
fn violation(reply: HubReply) -> String {
    let HubReply::RuleViolations(findings) = reply else { panic!("{reply:?}") };
    findings[0].actual.clone()
}

#[test]
fn a_token_speaks_only_as_the_producers_that_it_may() {
    let (mut harness, bank, helper, session) = shared_session();
    for (principal, producer, is_permitted) in [
        (&bank, "bank", true),
        (&bank, "a", true),
        (&bank, "helper", false),
        (&helper, "helper", true),
        (&helper, "bank", false),
        (&helper, "a", false),
    ] {
        let reply = harness.publish(principal, &session, &[&named(producer, THINK)]);
        let is_published = matches!(reply, HubReply::EventsPublished { .. });
        assert_eq!(is_published, is_permitted, "{} as {producer}: {reply:?}", principal.name);
    }
    // The owner must not speak as the agent of a token that was created later either.
    let digest = Some(seal::Digest::of(b"a"));
    let other = Principal { token_digest: digest, ..agent("a") };
    harness.ask_hub(&bank, HubCommand::SetValidTokens { principals: vec![other] });
    let deciding = r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#;
    assert!(violation(harness.publish(&bank, &session, &[&named("a", deciding)])).contains("invitation"));
    assert!(matches!(harness.publish(&bank, &session, &[deciding]), HubReply::EventsPublished { .. }));
}

#[test]
fn only_the_producer_that_began_a_call_or_an_output_ends_it() {
    let (mut harness, bank, helper, session) = shared_session();
    let begin = r#"{"type":"aaep:agent.tool.invoked","tool":"look","summary_normal":"Looking."}"#;
    let end =
        r#"{"type":"aaep:agent.tool.completed","tool":"look","status":"success","summary_normal":"Found."}"#;
    let with_id = |event: &str| event.replacen('{', r#"{"tool_call_id":"call_1","#, 1);
    for (begin, end) in [(begin.to_owned(), end.to_owned()), (with_id(begin), with_id(end))] {
        assert!(matches!(harness.publish(&bank, &session, &[&begin]), HubReply::EventsPublished { .. }));
        assert!(violation(harness.publish(&helper, &session, &[&end])).contains(r#""bank" made this call"#));
        assert!(matches!(harness.publish(&bank, &session, &[&end]), HubReply::EventsPublished { .. }));
    }
    let chunk = |text: &str| HubCommand::StreamOutput {
        session: id(&session),
        output_id: Some("out_1".to_owned()),
        producer: None,
        text: text.to_owned(),
        language: None,
        content_type: None,
        coalesce_hint: None,
        complete: false,
        agent_reports_next_state: false,
        idempotency_key: None,
    };
    assert!(matches!(harness.ask_hub(&helper, chunk("Pay ")), HubReply::EventsPublished { .. }));
    assert!(violation(harness.ask_hub(&bank, chunk("Eve."))).contains(r#""helper" writes this output"#));
    assert!(matches!(harness.ask_hub(&helper, chunk("Ben.")), HubReply::EventsPublished { .. }));
    let session_end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert!(violation(harness.publish(&helper, &session, &[session_end])).contains("only the main producer"));
    assert!(matches!(harness.publish(&bank, &session, &[session_end]), HubReply::EventsPublished { .. }));
}

#[test]
fn the_state_after_an_answer_belongs_to_the_producer_that_asked() {
    let (mut harness, bank, helper, session) = shared_session();
    let ada = listener("ada", &["agent:bank"]);
    let (subscription, connection) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let call = r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_9","summary_normal":"Looking."}"#;
    assert!(matches!(harness.publish(&bank, &session, &[call]), HubReply::EventsPublished { .. }));
    harness.confirm(&bank, &session, &TRANSFER.replace("500", "600"));
    let token = text_member(&reply_json(harness.confirm(&helper, &session, TRANSFER)), "reply_token");
    harness.take_events(connection);
    harness.reply(&ada, &subscription, &token, "accept");
    let events = harness.take_events(connection);
    let [resolved] = events.as_slice() else { panic!("{events:#?}") };
    // The bank still waits for its own answer, and its tool still runs.
    assert!(resolved.contains(r#""producer":{"agent_id":"helper"}"#), "{resolved}");
    assert_eq!(text_member(resolved, "to_state"), "thinking");
    // The helper's answer covers the helper's call only.
    let refused = violation(harness.publish(&bank, &session, &[&tool_invoked(&token, "500.00")]));
    assert!(refused.contains("nobody was asked"), "{refused}");
    let done = harness.publish(&helper, &session, &[&tool_invoked(&token, "500.00")]);
    assert!(matches!(done, HubReply::EventsPublished { .. }), "{done:?}");
}

#[test]
fn missed_events_of_a_producer_are_replayed_by_the_scope_of_the_main_producer() {
    let (mut harness, bank, helper, session) = shared_session();
    let first = harness.publish(&bank, &session, &[THINK]);
    let HubReply::EventsPublished { event_ids, .. } = first else { panic!("{first:?}") };
    let deciding = r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#;
    harness.publish(&helper, &session, &[deciding]);
    for (scope, expected) in [("agent:bank", 1), ("agent:helper", 0)] {
        let person = listener(scope, &[scope]);
        let subscription = harness.subscribe(&person, REPLY_CAPABILITIES);
        let connection = harness.attach(&person, &subscription, Some(&event_ids[0]));
        assert_eq!(harness.take_events(connection).len(), expected, "{scope}");
    }
    // A listener that joins late receives the state of each producer that has spoken.
    let (_, connection) = harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let states = harness.take_events(connection);
    assert_eq!(states.len(), 2, "{states:#?}");
    assert!(states[1].contains(r#""main_producer":"bank""#), "{}", states[1]);
}

#[test]
fn the_owner_speaks_as_its_own_agent_even_if_that_agent_has_a_token() {
    let (mut harness, bank, _, session) = shared_session();
    let own = Principal { token_digest: Some(seal::Digest::of(b"bank")), ..agent("bank") };
    harness.ask_hub(&bank, HubCommand::SetValidTokens { principals: vec![own] });
    let reply = harness.publish(&bank, &session, &[&named("bank", THINK)]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
}

fn start_with_producers(harness: &mut HubHarness, producers: &str) -> HubReply {
    let body = format!(r#"{{"summary_normal":"Paying.","producers":{producers}}}"#);
    harness.ask_hub(&agent("bank"), HubCommand::Start { body: body.into(), idempotency_key: None })
}

#[test]
fn the_list_of_producers_is_checked() {
    let limits = HubLimits { producers_per_session: 3, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let is_started = |reply: &HubReply| matches!(reply, HubReply::SessionStarted { .. });
    let entries = |ids: &[&str]| {
        let entries: Vec<_> = ids.iter().map(|id| format!(r#"{{"agent_id":"{id}"}}"#)).collect();
        format!("[{}]", entries.join(","))
    };
    assert!(
        is_started(&start_with_producers(&mut harness, &entries(&["a", "b"]))),
        "three with the main one"
    );
    assert!(is_started(&start_with_producers(&mut harness, &entries(&["bank", "a", "b"]))));
    let too_many = start_with_producers(&mut harness, &entries(&["a", "b", "c"]));
    assert_eq!(too_many, HubReply::Malformed(MalformedRequest::TooManyProducers { max: 3 }));
    let twice = violation(start_with_producers(&mut harness, &entries(&["a", "a"])));
    assert!(twice.contains("listed twice"), "{twice}");
    let hub = violation(start_with_producers(&mut harness, &entries(&["hub"])));
    assert!(hub.contains("reserved for the hub"), "{hub}");
    let list = violation(start_with_producers(&mut harness, r#"{"agent_id":"a"}"#));
    assert!(list.contains("must be a list"), "{list}");
    // An entry is checked like the producer of an event.
    let reply = start_with_producers(&mut harness, r#"[{"agent_id":"a","agent_name":7}]"#);
    let HubReply::RuleViolations(findings) = &reply else { panic!("{reply:?}") };
    assert_eq!(findings[0].pointer, "/producers/0/agent_name");
}

#[test]
fn an_invitation_is_checked() {
    let limits = HubLimits { producers_per_session: 3, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let bank = agent("bank");
    let started = start_with_producers(&mut harness, r#"[{"agent_id":"a"}]"#);
    let session = text_member(&reply_json(started), "session_id");
    let mut invite_with = |body: &str| {
        let invite = HubCommand::Invite { session: id(&session), body: body.into(), idempotency_key: None };
        harness.ask_hub(&bank, invite)
    };
    for (body, expected) in [
        ("{}", "must be the agent_id"),
        (r#"{"producer":""}"#, "must be the agent_id"),
        (r#"{"producer":{"agent_id":"helper","agent_name":"H"}}"#, "must be the agent_id"),
        (r#"{"producer":"bank"}"#, "is the main producer"),
        (r#"{"producer":"hub"}"#, "reserved for the hub"),
    ] {
        let found = violation(invite_with(body));
        assert!(found.contains(expected), "{body}: {found}");
    }
    for seconds in ["0", "-1", "1.5", r#""60""#] {
        let reply = invite_with(&format!(r#"{{"producer":"helper","expires_in_seconds":{seconds}}}"#));
        assert_eq!(reply, HubReply::Malformed(MalformedRequest::InvalidLifetime), "{seconds}");
    }
    let expires_at = |reply: HubReply| match reply {
        HubReply::InvitationCreated { expires_at, .. } => expires_at,
        other => panic!("{other:?}"),
    };
    let short = invite_with(r#"{"producer":{"agent_id":"helper"},"expires_in_seconds":1}"#);
    assert_eq!(expires_at(short), START + 1_000);
    let long = invite_with(r#"{"producer":"helper","expires_in_seconds":999999999}"#);
    assert_eq!(expires_at(long), START + limits.invitation_lifetime_ms);
    let full = invite_with(r#"{"producer":"more"}"#);
    assert_eq!(full, HubReply::Malformed(MalformedRequest::TooManyProducers { max: 3 }));
    let too_long =
        invite_with(&format!(r#"{{"producer":"{}"}}"#, "x".repeat(limits.shared_member_chars + 1)));
    assert!(!matches!(too_long, HubReply::InvitationCreated { .. }), "{too_long:?}");
}

#[test]
fn a_producer_that_has_spoken_cannot_be_given_to_another_token() {
    let (mut harness, bank, _, session) = shared_session();
    assert!(matches!(invite(&mut harness, &bank, &session, "a"), HubReply::InvitationCreated { .. }));
    let (mut harness, bank, _, session) = shared_session();
    harness.publish(&bank, &session, &[&named("a", THINK)]);
    let found = violation(invite(&mut harness, &bank, &session, "a"));
    assert!(found.contains("already spoken"), "{found}");
    let found = violation(invite(&mut harness, &bank, &session, "helper"));
    assert!(found.contains("already joined"), "{found}");
}

#[test]
fn outputs_without_an_id_belong_to_their_producers() {
    let (mut harness, bank, helper, session) = shared_session();
    let output = |text: &str| HubCommand::StreamOutput {
        session: id(&session),
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
    for (principal, text) in [(&bank, "abc"), (&helper, "de"), (&bank, "f"), (&helper, "g")] {
        let reply = harness.ask_hub(principal, output(text));
        assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    }
    let chunks: Vec<String> = harness
        .disk
        .events()
        .into_iter()
        .map(|event| String::from_utf8(event.body).unwrap())
        .filter(|event| event.contains("output.streaming"))
        .collect();
    for (chunk, expected) in chunks.iter().zip([0, 0, 3, 2]) {
        assert!(chunk.contains(&format!(r#""position":{expected},"#)), "{expected}: {chunk}");
    }
}

#[test]
fn after_the_end_each_agent_still_learns_only_the_outcomes_of_its_own_requests() {
    const HANDOFF: &str = r#"{"reason":"It needs a person.","target_kind":"escalation_queue","summary_normal":"I need a person."}"#;
    let (mut harness, bank, helper, session) = shared_session();
    let ada = Principal { role: hub::Role::Receiver, ..listener("ada", &[]) };
    let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
    let hand_off = HubCommand::HandOff { session: id(&session), body: HANDOFF.into(), idempotency_key: None };
    let handoff = text_member(&reply_json(harness.ask_hub(&bank, hand_off)), "reply_token");
    let tokens = [&bank, &helper].map(|principal| {
        let token = text_member(&reply_json(harness.confirm(principal, &session, TRANSFER)), "reply_token");
        harness.reply(&ada, &subscription, &token, "reject");
        token
    });
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    assert!(matches!(harness.publish(&bank, &session, &[end]), HubReply::EventsPublished { .. }));
    for after_crash in [false, true] {
        if after_crash {
            harness.crash();
        }
        for (principal, token, is_known) in [
            (&bank, &tokens[0], true),
            (&helper, &tokens[1], true),
            (&bank, &tokens[1], false),
            (&helper, &tokens[0], false),
            (&bank, &handoff, true),
            (&helper, &handoff, false),
        ] {
            let reply = harness.status(principal, &session, token);
            let is_outcome = matches!(reply, HubReply::QuestionResolved(_) | HubReply::HandoffResolved(_));
            assert_eq!(is_outcome, is_known, "{} {token}: {reply:?}", principal.name);
            assert!(is_outcome || reply == HubReply::QuestionNotFound, "{reply:?}");
        }
    }
}

#[test]
fn every_producer_of_a_program_that_runs_the_hub_has_a_verified_name() {
    for (naming, is_verified) in
        [(hub::AgentNaming::InProcess, true), (hub::AgentNaming::SelfDeclared, false)]
    {
        let mut harness = HubHarness::new();
        let bank = Principal { naming, ..agent("bank") };
        let body = r#"{"summary_normal":"Paying.","producers":[{"agent_id":"a"}]}"#;
        let start = HubCommand::Start { body: body.into(), idempotency_key: None };
        let session = text_member(&reply_json(harness.ask_hub(&bank, start)), "session_id");
        harness.publish(&bank, &session, &[&named("a", THINK)]);
        let event = String::from_utf8(harness.disk.events().pop().unwrap().body).unwrap();
        assert_eq!(event.contains(r#""verified_name":true"#), is_verified, "{event}");
    }
}

#[test]
fn the_bytes_of_invitations_count_for_the_rate_of_their_token() {
    let limits = HubLimits { bytes_per_minute: 900, ..HubLimits::default() };
    let mut harness = HubHarness::with(&limits, FaultyJournal::default(), START);
    let bank = Principal { token_digest: Some(seal::Digest::of(b"bank")), ..agent("bank") };
    let session = harness.start(&bank);
    let mut invite = || invite(&mut harness, &bank, &session, "helper");
    let refused =
        (0..20).map(|_| invite()).find(|reply| !matches!(reply, HubReply::InvitationCreated { .. }));
    let limit = hub::command::LimitReached::BytesPerMinute { max: 900 };
    assert_eq!(refused, Some(HubReply::LimitReached(limit)));
}

#[test]
fn after_a_gap_the_state_of_every_producer_says_so() {
    let (mut harness, bank, helper, session) = shared_session();
    harness.publish(&bank, &session, &[THINK]);
    harness.publish(&helper, &session, &[THINK]);
    let ada = listener("ada", &[]);
    let subscription = harness.subscribe(&ada, REPLY_CAPABILITIES);
    let connection = harness.attach(&ada, &subscription, Some("evt_never"));
    let states = harness.take_events(connection);
    assert_eq!(states.len(), 2, "{states:?}");
    assert!(states.iter().all(|state| state.contains(r#""gap":true"#)), "{states:?}");
}
