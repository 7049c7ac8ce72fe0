//! Chooses the shard of a new session.

use aaep::SessionId;
use aaep::json::Tape;

use super::ShardMap;
use crate::Principal;
use crate::command::RequestBody;
use crate::core::{read_producer, requested_by};

/// The agent of a session that names none, from a caller without an agent.
pub(crate) const DEFAULT_AGENT: &str = "local";

/// The shard of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRoute {
    /// The shard of the session.
    pub shard: u16,
    /// The parent session and its shard, if that is another one.
    pub foreign_parent: Option<(u16, SessionId)>,
}

impl StartRoute {
    /// Finds the shard for a request that starts a session: its person's shard; without a person, its parent's; and
    /// without a parent, its agent's. A malformed request belongs to shard 0, which refuses it.
    pub fn find(map: ShardMap, principal: &Principal, body: &RequestBody) -> Self {
        let nowhere = Self { shard: 0, foreign_parent: None };
        if map.is_single() {
            return nowhere;
        }
        let mut tape = Tape::default();
        let Ok(doc) = body.doc(&mut tape) else { return nowhere };
        let root = doc.root();
        let parent = root.member("parent").and_then(|id| SessionId::parse(&id.text()?).ok());
        let parent = parent.map(|parent| (map.of_session(&parent), parent));
        let shard = if root.member("requested_by").is_some() {
            requested_by(&root).map_or(0, |person| map.of_person(&person))
        } else if let Some((shard, _)) = &parent {
            *shard
        } else {
            let producer = read_producer(&root, principal, DEFAULT_AGENT);
            producer.map_or(0, |(agent, _)| map.of_agent(&agent))
        };
        Self { shard, foreign_parent: parent.filter(|(of_parent, _)| *of_parent != shard) }
    }
}
