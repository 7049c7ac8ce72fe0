//! What a core does as one of several shards, and what it leaves out as the only one.

use crate::support::*;
use aaep::consent::{AskError, LimitScope};
use aaep::event::Producer;
use hub::command::{HubCommand, HubReply, LimitReached, Request, RequestId, TurnOutput};
use hub::delivery::FrameKind;
use hub::{Core, HubLimits, ListenerId, Principal, ResumeCursor, Shard, ShardMap};
use testing::random;

/// Replaces the hub of a harness by one of several shards.
fn harness_in(shard: Shard, limits: &HubLimits) -> HubHarness {
    let mut harness = HubHarness::new();
    start_core(&mut harness, shard, limits);
    harness
}

/// Starts the core of a shard on the journal of a harness.
fn start_core(harness: &mut HubHarness, shard: Shard, limits: &HubLimits) {
    let random = random::seeded_byte_source(u64::from(shard.index) + 9);
    harness.core =
        Core::in_shard(shard, Box::new(harness.disk.clone()), Producer::new("hub"), *limits, random, START)
            .unwrap();
}

/// Where a new connection begins.
#[derive(Debug, PartialEq)]
struct JoinedAt {
    /// The id from which the listener resumes if it receives nothing.
    origin_id: Option<String>,
    /// The position in the log, if the listener has no id.
    position: Option<u64>,
    frames: usize,
    /// The id of the last frame, if it is only a place to resume from.
    place: Option<String>,
}

/// Attaches a listener, and returns where it begins.
fn join(
    harness: &mut HubHarness,
    principal: &Principal,
    subscription: &str,
    last_event_id: Option<&str>,
) -> JoinedAt {
    let command = HubCommand::Attach {
        subscription: id(subscription),
        last_event_id: last_event_id.map(str::to_owned),
        listener: ListenerId(77),
    };
    let request = Request { id: RequestId(1_000_000), principal: principal.clone(), command };
    let outputs = harness.core.run_turn(vec![request], harness.now);
    let joined = outputs.into_iter().find_map(|output| match output {
        TurnOutput::Join { private_frames, resume_position, origin_id, .. } => Some(JoinedAt {
            origin_id: origin_id.map(|id| id.to_string()),
            position: resume_position,
            frames: private_frames.len(),
            place: private_frames
                .last()
                .filter(|frame| frame.kind() == FrameKind::ResumePosition)
                .and_then(|frame| frame.id().map(str::to_owned)),
        }),
        _ => None,
    });
    joined.expect("the listener joins a group")
}

fn start_and_end_session(harness: &mut HubHarness, agent: &Principal) -> String {
    let session = harness.start(agent);
    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let HubReply::EventsPublished { event_ids, .. } = harness.publish(agent, &session, &[end]) else {
        panic!("the session ends")
    };
    event_ids.last().unwrap().to_string()
}

#[test]
fn a_listener_of_several_shards_gets_an_id_to_resume_from_and_a_listener_of_one_does_not() {
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    for shards in [1, 2] {
        let shard = Shard::all_of(ShardMap::new(shards)).remove(0);
        let mut harness = harness_in(shard, &HubLimits::default());
        let subscription = harness.subscribe(&ada, "{}");
        let joined = |harness: &mut HubHarness, last: Option<&str>| join(harness, &ada, &subscription, last);
        let origin = |id: &str| (shards > 1).then(|| id.to_owned());

        let first_id = start_and_end_session(&mut harness, &bank);
        let last_id = start_and_end_session(&mut harness, &bank);
        // Nothing was missed: the id of the last event is the place to resume from.
        let at_the_end = joined(&mut harness, None);
        assert_eq!((&at_the_end.origin_id, at_the_end.frames), (&origin(&last_id), 0));
        assert!(at_the_end.position.is_some());
        // The listener knows its place, so that place stays valid until it receives more.
        let resumed = joined(&mut harness, Some(&last_id));
        assert_eq!(resumed, JoinedAt { origin_id: origin(&last_id), position: None, frames: 0, place: None });
        let replayed = joined(&mut harness, Some(&first_id));
        assert_eq!((&replayed.origin_id, replayed.position), (&origin(&first_id), None));
        assert_eq!(replayed.frames, 2, "the second session began and ended");
        // The hub does not know this place. The listener gets a gap message and must get it again if it disconnects.
        let gap = joined(&mut harness, Some("evt_00000000000000000000000000000000"));
        assert_eq!((&gap.origin_id, gap.position), (&origin("behind"), None));
        assert!(gap.frames > 0);
        // The same for the state of a session that is still open.
        harness.start(&bank);
        let state = joined(&mut harness, None);
        assert_eq!((&state.origin_id, state.position), (&origin("behind"), None));
        // Positions in the log mean nothing to the other shards.
        let place = state.place.unwrap();
        assert_eq!(place.starts_with("evt_"), shards > 1, "{place}");
    }
}

#[test]
fn a_shard_resumes_from_its_own_entry_of_a_cursor() {
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let shard = Shard::all_of(ShardMap::new(2)).remove(1);
    let mut harness = harness_in(shard, &HubLimits::default());
    let subscription = harness.subscribe(&ada, "{}");
    let first_id = start_and_end_session(&mut harness, &bank);
    start_and_end_session(&mut harness, &bank);
    let mut cursor = ResumeCursor::default();
    cursor.set(0, "evt_00x0");
    let without_entry = cursor.to_string();
    cursor.set(1, &first_id);
    let mut frames = |last: &str| join(&mut harness, &ada, &subscription, Some(last)).frames;
    assert_eq!(frames(&cursor.to_string()), 2);
    assert_eq!(frames(&first_id), 2);
    assert!(frames(&without_entry) > 0, "a gap message");
    // A single shard knows no cursors.
    let mut single = HubHarness::new();
    let subscription = single.subscribe(&ada, "{}");
    start_and_end_session(&mut single, &bank);
    let unknown = join(&mut single, &ada, &subscription, Some("cur_0a1"));
    let gap = join(&mut single, &ada, &subscription, Some("unknown"));
    assert_eq!(unknown, gap);
    let text = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{"sayso":{"after":"cur_0a1"}}}"#;
    assert!(!reply_json(single.ask_hub(&ada, subscribe(text))).contains("cur_0a1"));
    assert!(reply_json(harness.ask_hub(&ada, subscribe(text))).contains("cur_0a1"));
}

#[test]
fn a_place_from_before_there_were_several_shards_means_the_start_of_the_other_shards() {
    let ada = listener("ada", &[]);
    for (index, was_single, is_gap) in [(0, true, true), (1, true, false), (1, false, true)] {
        let map = ShardMap::new(2).with_former_single(was_single);
        let shard = Shard::all_of(map).remove(index);
        let mut harness = harness_in(shard, &HubLimits::default());
        let subscription = harness.subscribe(&ada, "{}");
        // An event of the single shard, which shard 0 no longer has. The other shards had no events then.
        let old = join(&mut harness, &ada, &subscription, Some("evt_00000000000000000000000000000000"));
        assert_eq!(old.frames > 0, is_gap, "shard {index}, {was_single}: {old:?}");
        // An event of the new shards, and something that is no event.
        for other in ["evt_00000000000000000000000000000000x1", "behind"] {
            let unknown = join(&mut harness, &ada, &subscription, Some(other));
            assert!(unknown.frames > 0, "{other} in shard {index}: {unknown:?}");
        }
    }
}

#[test]
fn open_questions_are_counted_in_all_shards_together() {
    let (bank, post, ada) = (agent("bank"), agent("post"), listener("ada", &[]));
    for (per_agent, total) in [(1, 10), (10, 1)] {
        let mut limits = HubLimits::default();
        (limits.questions.max_open_per_agent, limits.questions.max_open_total) = (per_agent, total);
        let mut shards = Shard::all_of(ShardMap::new(2))
            .into_iter()
            .map(|shard| harness_in(shard, &limits))
            .collect::<Vec<_>>();
        for harness in &mut shards {
            harness.connect_listener(&ada, REPLY_CAPABILITIES);
        }
        let ask = |harness: &mut HubHarness, agent: &Principal| {
            let session = harness.start(agent);
            harness.confirm(agent, &session, TRANSFER)
        };
        let [first, second] = &mut shards[..] else { panic!("two shards") };
        assert!(matches!(ask(first, &bank), HubReply::QuestionOpened { .. }));
        // The refusal is the same as if one shard had both questions.
        let refusal = ask(first, &bank);
        let scope = if total > 1 { LimitScope::Agent } else { LimitScope::Total };
        assert_eq!(refusal, LimitReached::Questions(AskError::TooMany(scope)).into());
        assert_eq!(ask(second, &bank), refusal);
        let of_other_agent = ask(second, &post);
        assert_eq!(
            matches!(of_other_agent, HubReply::QuestionOpened { .. }),
            total > 1,
            "{of_other_agent:?}"
        );
    }
}

#[test]
fn after_a_restart_the_sessions_of_a_token_or_of_an_agent_count_in_all_shards() {
    let limits = HubLimits { sessions_per_principal: 1, ..HubLimits::default() };
    let with_token =
        |name: &str| Principal { token_digest: Some(seal::Digest::of(name.as_bytes())), ..agent(name) };
    let start = |agent: &str| {
        let body = format!(r#"{{"summary_normal":"Work.","producer":{{"agent_id":"{agent}"}}}}"#);
        HubCommand::Start { body: body.into(), idempotency_key: None }
    };
    let of_agent: HubReply = LimitReached::SessionsPerAgent { max: 1 }.into();
    let of_token: HubReply = LimitReached::SessionsPerPrincipal { max: 1 }.into();
    for (principal, other, refusal) in [
        (Principal::local(), Principal::local(), of_agent),
        (with_token("bank"), with_token("post"), of_token),
    ] {
        let shards = || Shard::all_of(ShardMap::new(2));
        let mut first = harness_in(shards().remove(0), &limits);
        assert!(matches!(first.ask_hub(&principal, start("bank")), HubReply::SessionStarted { .. }));
        // The new process counts from the beginning.
        let mut restarted = shards();
        let mut second = harness_in(restarted.remove(1), &limits);
        start_core(&mut first, restarted.remove(0), &limits);
        assert_eq!(second.ask_hub(&principal, start("bank")), refusal);
        assert!(matches!(second.ask_hub(&other, start("post")), HubReply::SessionStarted { .. }));
    }
}

const HANDOFF_CAPABILITIES: &str = r#"{"supported_conformance_levels":[1,2,3],"sayso":{"handoffs":true}}"#;

/// Starts a session and asks for somebody to take over. Returns the session and the reply.
fn hand_off(harness: &mut HubHarness, agent: &Principal) -> (String, HubReply) {
    let session = harness.start(agent);
    let body = r#"{"reason":"A person is needed.","target_kind":"escalation_queue","summary_normal":"I need a person."}"#;
    let command = HubCommand::HandOff { session: id(&session), body: body.into(), idempotency_key: None };
    let reply = harness.ask_hub(agent, command);
    (session, reply)
}

/// Starts two shards on journals without entries, each with a receiver.
fn two_shards(limits: &HubLimits) -> [HubHarness; 2] {
    let receiver = Principal { role: hub::Role::Receiver, ..listener("ada", &[]) };
    let shards = Shard::all_of(ShardMap::new(2)).into_iter().map(|shard| {
        let mut harness = harness_in(shard, limits);
        harness.connect_listener(&receiver, HANDOFF_CAPABILITIES);
        harness
    });
    shards.collect::<Vec<_>>().try_into().ok().unwrap()
}

fn restart(shards: &mut [HubHarness; 2], limits: &HubLimits) {
    for (harness, shard) in shards.iter_mut().zip(Shard::all_of(ShardMap::new(2))) {
        start_core(harness, shard, limits);
    }
}

#[test]
fn open_handoffs_are_counted_in_all_shards_together_even_after_a_restart() {
    let bank = agent("bank");
    let mut generous = HubLimits::default();
    (generous.handoffs.max_open_per_agent, generous.handoffs.max_open_total) = (10, 10);
    for (per_agent, total) in [(1, 10), (10, 1)] {
        let mut limits = HubLimits::default();
        (limits.handoffs.max_open_per_agent, limits.handoffs.max_open_total) = (per_agent, total);
        let refusal: HubReply = if per_agent == 1 {
            LimitReached::HandoffsPerAgent { max: 1 }.into()
        } else {
            LimitReached::Handoffs.into()
        };
        let mut shards = two_shards(&limits);
        let (_, opened) = hand_off(&mut shards[0], &bank);
        assert!(!matches!(opened, HubReply::LimitReached(_)), "{opened:?}");
        assert_eq!(hand_off(&mut shards[1], &bank).1, refusal);
        // Stored hand-offs count, even if there are more than the limit now permits, and whichever of them ends.
        for ended in [0, 1] {
            let mut shards = two_shards(&generous);
            let sessions = [(); 2].map(|()| hand_off(&mut shards[0], &bank).0);
            restart(&mut shards, &limits);
            let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
            let reply = shards[0].publish(&bank, &sessions[ended], &[end]);
            assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
            assert_eq!(hand_off(&mut shards[1], &bank).1, refusal);
        }
    }
}

#[test]
fn subscriptions_are_counted_in_all_shards_together_even_after_a_restart() {
    let limits = HubLimits { subscriptions: 1, ..HubLimits::default() };
    let map = ShardMap::new(2);
    let person =
        (0..100).map(|number| format!("p{number}")).find(|person| map.of_person(person) == 1).unwrap();
    let (everything, one_person) = (listener("ada", &[]), listener("ben", &[&format!("person:{person}")]));
    let shards = Shard::all_of(map).into_iter().map(|shard| harness_in(shard, &limits));
    let mut shards: [HubHarness; 2] = shards.collect::<Vec<_>>().try_into().ok().unwrap();
    shards[0].subscribe(&everything, "{}");
    let request = || {
        subscribe(
            r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{}}"#,
        )
    };
    for _ in 0..2 {
        let reply = shards[1].ask_hub(&one_person, request());
        assert!(!matches!(reply, HubReply::Subscribed { .. }), "{reply:?}");
        for (harness, shard) in shards.iter_mut().zip(Shard::all_of(map)) {
            start_core(harness, shard, &limits);
        }
    }
}

#[test]
fn a_shard_adopts_the_manifests_of_another_and_keeps_them_after_a_restart() {
    let manifest_of = |agent: &str, name: &str| {
        let document = format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"{agent}","agent_name":"{name}","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1,2,3],"transports_supported":["sse"],"contact":"help@bank.example"}}"#
        );
        HubCommand::PublishManifest { document }
    };
    let mut shards = two_shards(&HubLimits::default());
    for (shard, agent_id, name) in [
        (0, "bank", "New"),
        (0, "shop", "Shop"),
        (0, "post", "Post"),
        (1, "bank", "Old"),
        (1, "gone", "Gone"),
        (1, "post", "Post"),
    ] {
        let reply = shards[shard].ask_hub(&agent(agent_id), manifest_of(agent_id, name));
        assert!(matches!(reply, HubReply::ManifestPublished { .. }), "{reply:?}");
    }
    let documents = |harness: &HubHarness| {
        let mut documents = harness.core.documents_of_agents();
        documents.sort();
        documents
    };
    let expected = documents(&shards[0]);
    assert_eq!(expected.len(), 3);
    let adopted = shards[0].core.documents_of_agents();
    shards[1].core.adopt_documents_of_agents(&adopted).unwrap();
    assert_eq!(documents(&shards[1]), expected);
    restart(&mut shards, &HubLimits::default());
    assert_eq!(documents(&shards[1]), expected);
}
