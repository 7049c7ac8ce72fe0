//! Shards: several cores that share the work of one hub.
//!
//! A session belongs to one shard. The shard follows from the session's person, or from its agent if it names nobody. Ids
//! that a shard creates end in its number, so that a request finds its shard without a table:
//! `sess_01a2…f0x3` belongs to shard 3. A hub with one shard creates ids without a number.
//!
//! A listener hears the shards that can hold sessions in its scope. Its subscription exists in each of them, under the same
//! id. The first of these shards is its *home*: it decides about the subscription and counts it; the others have replicas.
//!
//! - [`ShardMap`]: which shard an id, a person or a scope belongs to.
//! - [`ResumeCursor`]: where a listener of several shards resumes.
//! - [`SharedLimits`]: limits that hold for all shards of a hub together.
//! - [`StartRoute`]: which shard a new session belongs to.

mod resume_cursor;
mod shared_limits;
mod start_route;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aaep::{ReplyToken, SessionId};
use seal::Digest;

use crate::Scope;

pub use resume_cursor::ResumeCursor;
pub(crate) use resume_cursor::{UNKNOWN_ID, is_log_position};
pub use shared_limits::SharedLimits;
pub(crate) use shared_limits::{CountGuard, CountKind, CountRequest};
pub(crate) use start_route::DEFAULT_AGENT;
pub use start_route::StartRoute;

/// The character before the number of the shard in an id. The rest of a generated id is hexadecimal.
const MARK: char = 'x';

/// Maximum number of digits of a shard's number in an id.
const MAX_DIGITS: usize = 3;

/// The shards of a hub, and what belongs to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardMap {
    count: u16,
    was_single: bool,
}

impl Default for ShardMap {
    fn default() -> Self {
        Self::new(1)
    }
}

impl ShardMap {
    /// Maximum number of shards.
    pub const MAX_COUNT: u16 = 256;

    /// Creates the map of a hub with this many shards, at least 1 and at most [`MAX_COUNT`](Self::MAX_COUNT).
    pub fn new(count: u16) -> Self {
        Self { count: count.clamp(1, Self::MAX_COUNT), was_single: false }
    }

    /// States whether the hub once had a single shard. The records from that time are in shard 0, whichever person they belong to.
    #[must_use]
    pub fn with_former_single(self, was_single: bool) -> Self {
        Self { was_single, ..self }
    }

    /// Returns the number of shards.
    pub fn count(self) -> u16 {
        self.count
    }

    /// Whether there is only one shard.
    pub fn is_single(self) -> bool {
        self.count == 1
    }

    /// Whether shard 0 holds what the hub stored when it had a single shard.
    pub fn was_single(self) -> bool {
        self.was_single && !self.is_single()
    }

    /// Returns the shards, in order.
    pub fn all(self) -> Vec<u16> {
        (0..self.count).collect()
    }

    /// Returns the shard of a session.
    pub fn of_session(self, session: &SessionId) -> u16 {
        self.of_id(session.as_str())
    }

    /// Returns the shard of a question or a hand-off.
    pub fn of_reply_token(self, token: &ReplyToken) -> u16 {
        self.of_id(token.as_str())
    }

    /// Returns the shard whose number an id ends in. Ids without a number, and ids with a number that does not exist, belong
    /// to shard 0.
    pub fn of_id(self, id: &str) -> u16 {
        shard_number(id).filter(|number| *number < self.count).unwrap_or(0)
    }

    /// Returns the shard of new sessions for this person.
    pub fn of_person(self, person: &str) -> u16 {
        self.of_hash("person", person)
    }

    /// Returns the shard of new sessions that this agent starts for nobody in particular.
    pub fn of_agent(self, agent: &str) -> u16 {
        self.of_hash("agent", agent)
    }

    /// Returns the shards that can hold sessions in this scope, in order. The first is the home of a subscription with this
    /// scope.
    pub fn of_scope(self, scope: &Scope) -> Vec<u16> {
        if self.is_single() {
            return vec![0];
        }
        // A scope that names people covers only sessions that name one of them.
        let mut shards: Vec<u16> = scope.people().map(|person| self.of_person(person)).collect();
        if shards.is_empty() {
            return self.all();
        }
        if self.was_single() {
            shards.push(0);
        }
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// Returns the home of a subscription with this scope.
    pub fn home_of(self, scope: &Scope) -> u16 {
        self.of_scope(scope).first().copied().unwrap_or(0)
    }

    fn of_hash(self, kind: &str, name: &str) -> u16 {
        if self.is_single() {
            return 0;
        }
        let digest = Digest::of_parts([kind.as_bytes(), &[0], name.as_bytes()]);
        let first = digest.as_bytes().first_chunk().copied().unwrap_or_default();
        u16::try_from(u64::from_be_bytes(first) % u64::from(self.count)).unwrap_or(0)
    }
}

/// Whether an id ends in the number of a shard.
pub(crate) fn has_shard_number(id: &str) -> bool {
    shard_number(id).is_some()
}

/// Returns the number of the shard that an id ends in.
fn shard_number(id: &str) -> Option<u16> {
    let (start, number) = id.rsplit_once(MARK)?;
    let is_number = (1..=MAX_DIGITS).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (number == "0" || !number.starts_with('0'));
    (is_number && !start.is_empty()).then(|| number.parse().ok())?
}

/// The place of a core among the shards of its hub.
#[derive(Clone, Debug, Default)]
pub struct Shard {
    /// The number of the shard.
    pub index: u16,
    /// All shards.
    pub map: ShardMap,
    /// The limits that hold for all shards together.
    pub limits: Arc<SharedLimits>,
}

impl Shard {
    /// Returns the shards of a hub in this process.
    pub fn all_of(map: ShardMap) -> Vec<Self> {
        let limits = Arc::new(SharedLimits::default());
        map.all().into_iter().map(|index| Self { index, map, limits: limits.clone() }).collect()
    }

    /// Returns what ends the ids that this shard creates; empty if it is the only one.
    pub(crate) fn id_suffix(&self) -> String {
        if self.map.is_single() { String::new() } else { format!("{MARK}{}", self.index) }
    }
}
