// These tests hold wherever the shards run. `start_hub_with` comes from the module that includes this file.

use std::collections::BTreeSet;

use aaep::SessionId;
use aaep::message::Message;
use hub::command::{HubCommand, HubReply, LimitReached, SubscriberMessage};
use hub::{Principal, Role};
use journal::MemoryJournal;
use seal::UnixMillis;
use tokio::sync::mpsc;
use wire::fanout::ListenerSink;

use support::{
    Listener, NoSubscriptions, SHARDS, memory_journals, next_chunk, output, people, principal, start, start_body,
    subscribe, summary, testing_question,
};

#[tokio::test]
async fn sessions_of_different_people_are_in_different_shards_and_every_request_finds_its_session() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let agent = principal("bank", Role::Agent, &[]);
    let mut shards = BTreeSet::new();
    for person in people() {
        let session = start(&hub, &agent, &person).await;
        shards.insert(hub.shards().of_session(&session));
        output(&hub, &agent, &session, "Working").await;
        let body = testing_question();
        let ask = HubCommand::Ask {
            session: session.clone(),
            body: body.into(),
            is_clarification: false,
            idempotency_key: None,
        };
        let HubReply::QuestionOpened { reply_token: token, .. } = hub.ask(agent.clone(), ask).await else {
            panic!()
        };
        assert_eq!(hub.shards().of_reply_token(&token), hub.shards().of_session(&session));
        let wait = HubCommand::Wait { session, token, until: UnixMillis::MIN };
        let reply = hub.ask(agent.clone(), wait).await;
        assert!(matches!(reply, HubReply::QuestionResolved(_)), "nobody can answer: {reply:?}");
    }
    assert_eq!(shards, (0..SHARDS).collect());
    let unknown = SessionId::parse("sess_12345678x99").unwrap();
    assert_eq!(hub.ask(agent, HubCommand::Follow { session: unknown }).await, HubReply::NotFound);
}

#[tokio::test]
async fn a_listener_of_all_shards_resumes_without_losing_or_repeating_an_event() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
    let mut sessions = Vec::new();
    for person in people() {
        sessions.push(start(&hub, &agent, &person).await);
    }
    let id = subscribe(&hub, &ada, None).await;
    let mut listener = Listener::attach(&hub, &ada, &id, None).await;
    // The snapshot has the state of each session.
    let mut states = BTreeSet::new();
    for _ in &sessions {
        let json: serde_json::Value = serde_json::from_str(&listener.next_text().await).unwrap();
        states.insert(json["session_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(states, sessions.iter().map(ToString::to_string).collect());
    let mut seen = Vec::new();
    let mut expected = Vec::new();
    let mut number = 0;
    for round in 0..6 {
        for session in &sessions {
            number += 1;
            let text = format!("n{number}");
            output(&hub, &agent, session, &text).await;
            expected.push((session.to_string(), text));
        }
        if round % 2 == 0 {
            // Two of the three events arrive before the connection is lost. The third one is in the channel or in the hub.
            for _ in 0..2 {
                seen.push(next_chunk(&mut listener).await);
            }
            let last_id = listener.last_id.clone().unwrap();
            drop(listener);
            listener = Listener::attach(&hub, &ada, &id, Some(&last_id)).await;
        }
    }
    while seen.len() < expected.len() {
        seen.push(next_chunk(&mut listener).await);
    }
    for session in &sessions {
        let of_session = |all: &[(String, String)]| -> Vec<String> {
            all.iter().filter(|(of, _)| of == session.as_str()).map(|(_, text)| text.clone()).collect()
        };
        assert_eq!(of_session(&seen), of_session(&expected), "in order, once each");
    }
    // A new subscription resumes in all shards, too.
    let last_id = listener.last_id.clone().unwrap();
    drop(listener);
    for session in &sessions {
        output(&hub, &agent, session, "later").await;
    }
    let id = subscribe(&hub, &ada, Some(&last_id)).await;
    let mut listener = Listener::attach(&hub, &ada, &id, None).await;
    let mut later = BTreeSet::new();
    for _ in &sessions {
        later.insert(next_chunk(&mut listener).await);
    }
    assert_eq!(later, sessions.iter().map(|session| (session.to_string(), "later".to_owned())).collect());
}

#[tokio::test]
async fn a_cursor_of_another_hub_is_answered_with_one_gap_message() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let ada = principal("ada", Role::Listener, &[]);
    let id = subscribe(&hub, &ada, Some("cur_0e12-1e34-2e56")).await;
    let mut listener = Listener::attach(&hub, &ada, &id, None).await;
    assert_eq!(summary(&listener.next_text().await), "sayso:gap");
    let agent = principal("bank", Role::Agent, &[]);
    let session = start(&hub, &agent, "anybody").await;
    let next = listener.next_text().await;
    assert!(next.contains(session.as_str()) && next.contains("session.started"), "{next}");
}

#[tokio::test]
async fn a_listener_for_one_person_hears_one_shard_and_has_event_ids() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let person = &people()[2];
    let scope = format!("person:{person}");
    let ada = principal("ada", Role::Listener, &[&scope]);
    let agent = principal("bank", Role::Agent, &[]);
    let id = subscribe(&hub, &ada, None).await;
    let mut listener = Listener::attach(&hub, &ada, &id, None).await;
    start(&hub, &agent, &people()[0]).await;
    let session = start(&hub, &agent, person).await;
    let first = listener.next().await.unwrap();
    assert!(first.json().contains(session.as_str()));
    assert!(first.id().unwrap().starts_with("evt_") && first.id().unwrap().ends_with("x2"));
}

#[tokio::test]
async fn a_question_overtakes_output_of_another_shard() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let (agent, ada) = (principal("bank", Role::Agent, &[]), principal("ada", Role::Listener, &[]));
    let people = people();
    let (first, second) = (start(&hub, &agent, &people[0]).await, start(&hub, &agent, &people[1]).await);
    let id = subscribe(&hub, &ada, None).await;
    let listener = hub.new_listener_id();
    let attach = HubCommand::Attach { subscription: id, last_event_id: None, listener };
    assert_eq!(hub.ask(ada, attach).await, HubReply::Done);
    // More than what a listener may receive in one write, so that critical events go first.
    for number in 0..20 {
        output(&hub, &agent, &first, &format!("n{number}{}", "a".repeat(4000))).await;
    }
    let ask = HubCommand::Ask {
        session: second.clone(),
        body: testing_question().into(),
        is_clarification: false,
        idempotency_key: None,
    };
    assert!(matches!(hub.ask(agent.clone(), ask).await, HubReply::QuestionOpened { .. }));
    // A reply can arrive before the frames of its turn. The next turn of the shard starts only after them.
    let follow = HubCommand::Follow { session: second };
    assert!(matches!(hub.ask(agent, follow).await, HubReply::SessionFollowed { .. }));
    let (sender, frames) = mpsc::channel(1_000);
    hub.connect_listener(listener, ListenerSink::Channel(sender));
    let mut listener = Listener { frames, last_id: None };
    let mut chunks = 0;
    loop {
        let json = listener.next_text().await;
        if json.contains("awaiting.confirmation") {
            break;
        }
        chunks += usize::from(json.contains("output.streaming"));
    }
    assert!(chunks < 10, "{chunks} chunks came before the question");
}

#[tokio::test]
async fn a_part_of_a_task_can_be_for_somebody_in_another_shard() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let (agent, other) = (principal("bank", Role::Agent, &[]), principal("post", Role::Agent, &[]));
    let people = people();
    let parent = start(&hub, &agent, &people[0]).await;
    let start_part = |person: Option<&str>| {
        let person = person.map(|person| format!(r#","requested_by":"{person}""#)).unwrap_or_default();
        let body = format!(r#"{{"summary_normal":"Part.","parent":"{parent}"{person}}}"#);
        HubCommand::Start { body: body.into(), idempotency_key: None }
    };
    for (person, shard) in [(None, 0), (Some(&*people[1]), 1), (Some(&*people[2]), 2)] {
        let reply = hub.ask(agent.clone(), start_part(person)).await;
        let HubReply::SessionStarted { session_id } = reply else { panic!("{reply:?}") };
        assert_eq!(hub.shards().of_session(&session_id), shard);
        // Another token has no such session, whatever the shard.
        assert_eq!(hub.ask(other.clone(), start_part(person)).await, HubReply::NotFound);
    }
}

#[tokio::test]
async fn limits_hold_for_all_shards_together() {
    let limits =
        HubLimits { sessions: 5, sessions_per_principal: 3, subscriptions: 2, ..HubLimits::default() };
    let hub = start_hub_with(&limits, memory_journals()).await;
    let people = people();
    let start_for = |agent: &Principal, person: &str| {
        let command = HubCommand::Start { body: start_body(person).into(), idempotency_key: None };
        hub.ask(agent.clone(), command)
    };
    let (bank, post) = (principal("bank", Role::Agent, &[]), principal("post", Role::Agent, &[]));
    let mut first = None;
    for person in &people {
        first = Some(start(&hub, &bank, person).await);
    }
    let refusal = HubReply::LimitReached(LimitReached::SessionsPerPrincipal { max: 3 });
    assert_eq!(start_for(&bank, "anybody").await, refusal);
    for person in people.iter().take(2) {
        start(&hub, &post, person).await;
    }
    assert_eq!(start_for(&post, &people[2]).await, HubReply::LimitReached(LimitReached::Sessions));
    // A session that has ended no longer counts.
    let session = first.unwrap();
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let publish = HubCommand::Publish { session, events: vec![end.into()], idempotency_key: None };
    let ended = hub.ask(bank.clone(), publish).await;
    assert!(matches!(ended, HubReply::EventsPublished { .. }), "{ended:?}");
    start(&hub, &post, &people[2]).await;
    // A subscription in three shards counts once.
    for name in ["ada", "ben"] {
        subscribe(&hub, &principal(name, Role::Listener, &[]), None).await;
    }
    let eve = principal("eve", Role::Listener, &[]);
    let request =
        r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{}}"#;
    let reply = hub.ask(eve, HubCommand::subscribe(Message::parse(request))).await;
    assert_eq!(reply, HubReply::LimitReached(LimitReached::Subscriptions));
}

#[tokio::test]
async fn a_token_cannot_publish_more_bytes_by_using_several_shards() {
    let hub = start_hub_with(&HubLimits { bytes_per_minute: 4_096, ..HubLimits::default() }, memory_journals()).await;
    let agent = principal("bank", Role::Agent, &[]);
    let mut refused = 0;
    for person in people().iter().cycle().take(30) {
        let command = HubCommand::Start { body: start_body(person).into(), idempotency_key: None };
        refused += usize::from(matches!(hub.ask(agent.clone(), command).await, HubReply::LimitReached(_)));
    }
    assert!(refused > 10, "only {refused} of 30 requests were refused");
}

#[tokio::test]
async fn closing_a_subscription_closes_it_in_every_shard() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let ada = principal("ada", Role::Listener, &[]);
    let id = subscribe(&hub, &ada, None).await;
    let mut listener = Listener::attach(&hub, &ada, &id, None).await;
    let close = HubCommand::SendMessage { message: SubscriberMessage::Close(id.clone()) };
    assert_eq!(hub.ask(ada.clone(), close.clone()).await, HubReply::Done);
    assert!(listener.next().await.is_none());
    assert_eq!(hub.ask(ada.clone(), close).await, HubReply::NotFound);
    let attach =
        HubCommand::Attach { subscription: id, last_event_id: None, listener: hub.new_listener_id() };
    assert_eq!(hub.ask(ada, attach).await, HubReply::NotFound);
}

#[tokio::test]
async fn a_manifest_is_known_in_every_shard() {
    let hub = start_hub_with(&HubLimits::default(), memory_journals()).await;
    let agent = principal("bank", Role::Agent, &[]);
    let document = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","agent_name":"Bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"],"extensions":{"sayso":{"states":[{"state":"auditing","words":{"en":"checking the books"}}]}}}"#;
    let publish = HubCommand::PublishManifest { document: document.to_owned() };
    let reply = hub.ask(agent.clone(), publish).await;
    assert!(matches!(reply, HubReply::ManifestPublished { .. }), "{reply:?}");
    let ada = principal("ada", Role::Listener, &[]);
    let id = subscribe(&hub, &ada, None).await;
    let mut listener = Listener::attach(&hub, &ada, &id, None).await;
    let audit = r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"auditing"}"#;
    for has_manifest in [true, false] {
        for person in people() {
            let session = start(&hub, &agent, &person).await;
            let publish = HubCommand::Publish { session, events: vec![audit.into()], idempotency_key: None };
            let reply = hub.ask(agent.clone(), publish).await;
            assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
            while !listener.next_text().await.contains("session.started") {}
            assert_eq!(listener.next_text().await.contains("checking the books"), has_manifest);
        }
        assert_eq!(hub.ask(agent.clone(), HubCommand::DeleteManifest).await, HubReply::Done);
    }
}

#[tokio::test]
async fn a_subscription_that_one_shard_cannot_store_is_refused_and_closed_in_the_others() {
    let journals = (0..SHARDS).map(|shard| -> Box<dyn Journal> {
        if shard == 1 {
            Box::new(NoSubscriptions(MemoryJournal::default()))
        } else {
            Box::new(MemoryJournal::default())
        }
    });
    let hub = start_hub_with(&HubLimits { subscriptions: 1, ..HubLimits::default() }, journals).await;
    let request =
        r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{}}"#;
    let all = principal("ada", Role::Listener, &[]);
    let reply = hub.ask(all, HubCommand::subscribe(Message::parse(request))).await;
    assert!(matches!(reply, HubReply::Unavailable(_)), "{reply:?}");
    // It no longer counts. The request is repeated because the shards close it after the reply.
    let scope = format!("person:{}", people()[0]);
    let one = principal("ben", Role::Listener, &[&scope]);
    loop {
        match hub.ask(one.clone(), HubCommand::subscribe(Message::parse(request))).await {
            HubReply::Subscribed { .. } => return,
            HubReply::LimitReached(_) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}
