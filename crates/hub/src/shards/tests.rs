//! Tests of the routing.

use proptest::prelude::*;

use super::*;
use crate::Principal;

fn scope(entries: &[String]) -> Scope {
    let mut scope = Scope::default();
    for entry in entries {
        scope.add(entry).unwrap();
    }
    scope
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9:@._ é]{1,24}"
}

proptest! {
    #[test]
    fn an_id_belongs_to_the_shard_that_created_it(count in 1..=ShardMap::MAX_COUNT, index: u16, digits in "[0-9a-f]{32}") {
        let map = ShardMap::new(count);
        let index = index % count;
        let shard = Shard { index, map, limits: Arc::default() };
        let suffix = shard.id_suffix();
        let session = SessionId::parse(&format!("sess_{digits}{suffix}")).unwrap();
        let token = ReplyToken::parse(&format!("rpl_{digits}{suffix}")).unwrap();
        prop_assert_eq!((map.of_session(&session), map.of_reply_token(&token)), (index, index));
        prop_assert_eq!(suffix.is_empty(), count == 1);
        // An id that was created before there were several shards.
        let old = SessionId::parse(&format!("sess_{digits}")).unwrap();
        prop_assert_eq!(map.of_session(&old), 0);
    }

    #[test]
    fn any_id_belongs_to_an_existing_shard(count in 1..=ShardMap::MAX_COUNT, id in "sess_[A-Za-z0-9]{1,64}") {
        let map = ShardMap::new(count);
        prop_assert!(map.of_id(&id) < count);
    }

    #[test]
    fn a_listener_hears_the_shard_of_every_session_in_its_scope(
        count in 1..=ShardMap::MAX_COUNT,
        was_single: bool,
        people in prop::collection::vec(text(), 0..4),
        agents in prop::collection::vec(text(), 0..3),
        person in prop::option::of(text()),
        agent in text(),
        pick: prop::sample::Index,
    ) {
        let map = ShardMap::new(count).with_former_single(was_single);
        let entries: Vec<_> = people.iter().map(|name| format!("person:{name}"))
            .chain(agents.iter().map(|name| format!("agent:{name}"))).collect();
        let scope = scope(&entries);
        let person = if people.is_empty() { person } else { Some(pick.get(&people).clone()) };
        let agent = agents.first().unwrap_or(&agent);
        prop_assert!(scope.covers(agent, person.as_deref()));
        let shard = person.as_deref().map_or_else(|| map.of_agent(agent), |person| map.of_person(person));
        let shards = map.of_scope(&scope);
        prop_assert!(shards.contains(&shard));
        prop_assert!(!was_single || shards.contains(&0), "what was stored before is in shard 0");
        prop_assert!(shards.is_sorted_by(|a, b| a < b) && shards.iter().all(|shard| *shard < count));
        prop_assert_eq!(map.home_of(&scope), shards[0]);
    }

    #[test]
    fn a_start_goes_to_the_shard_of_its_person(count in 2..=ShardMap::MAX_COUNT, person in "[a-z]{1,12}", agent in "[a-z]{1,12}", with_prefix: bool) {
        let map = ShardMap::new(count);
        let prefix = if with_prefix { "user:" } else { "" };
        let body = format!(r#"{{"producer":{{"agent_id":"{agent}"}},"requested_by":"{prefix}{person}"}}"#);
        let route = StartRoute::find(map, &Principal::local(), &body.into());
        prop_assert_eq!(route, StartRoute { shard: map.of_person(&person), foreign_parent: None });
        let body = format!(r#"{{"producer":{{"agent_id":"{agent}"}}}}"#);
        prop_assert_eq!(StartRoute::find(map, &Principal::local(), &body.into()).shard, map.of_agent(&agent));
    }

    #[test]
    fn a_cursor_survives_its_text(ids in prop::collection::btree_map(0..ShardMap::MAX_COUNT, prop_oneof![
        "[0-9a-f]{32}".prop_map(|digits| (true, format!("evt_{digits}"))),
        "evt_[A-Za-z0-9]{1,60}".prop_map(|id| (false, id)),
        any::<u64>().prop_map(|position| (false, crate::delivery::position_to_id(position))),
        Just((false, "behind".to_owned())),
    ], 1..20)) {
        let ids: Vec<_> = ids.into_iter().map(|(shard, (is_marked, id))| (shard, if is_marked { format!("{id}x{shard}") } else { id })).collect();
        let mut cursor = ResumeCursor::default();
        for (shard, id) in &ids {
            cursor.set(*shard, id);
        }
        let parsed = ResumeCursor::parse(&cursor.to_string()).unwrap();
        prop_assert_eq!(&parsed, &cursor);
        for (shard, id) in &ids {
            let found = parsed.get(*shard);
            prop_assert_eq!(found.as_deref(), Some(id.as_str()));
        }
    }

    #[test]
    fn any_text_can_be_parsed_as_a_cursor(text in "(cur_)?[0-9a-z_-]{0,40}") {
        let _ = ResumeCursor::parse(&text);
    }
}

#[test]
fn the_hash_never_changes() {
    // Sessions of stored hubs would be looked for in other shards.
    let map = ShardMap::new(256);
    let shards = ["marisol", "anna", "", "user:anna"].map(|name| (map.of_person(name), map.of_agent(name)));
    assert_eq!(shards, [(29, 95), (244, 96), (181, 67), (110, 208)]);
}

#[test]
fn a_session_without_a_person_stays_with_its_parent() {
    let map = ShardMap::new(4);
    let route = |body: &str| StartRoute::find(map, &Principal::local(), &body.into());
    assert_eq!(route(r#"{"parent":"sess_1x3"}"#), StartRoute { shard: 3, foreign_parent: None });
    let person = (0..100).map(|n| format!("p{n}")).find(|person| map.of_person(person) == 1).unwrap();
    let foreign = route(&format!(r#"{{"parent":"sess_1x3","requested_by":"{person}"}}"#));
    let parent = SessionId::parse("sess_1x3").unwrap();
    assert_eq!(foreign, StartRoute { shard: 1, foreign_parent: Some((3, parent)) });
}

#[test]
fn a_cursor_advances_only_to_what_another_subscription_can_use() {
    let mut cursor = ResumeCursor::parse("cur_0e12-1a0").unwrap();
    cursor.advance_to(&ResumeCursor::parse("cur_0a7-1e34-2a9").unwrap());
    assert_eq!(cursor.to_string(), "cur_0e12-1e34-2b");
}
