//! Limits for what one token, one request and one turn may use.
//!
//! An agent could evade limits that depend on values it chooses itself: its producer, its `requested_by` and its
//! idempotency keys. So these limits count what the hub observes: the token that sent a request, the listeners that
//! receive a question, and the bytes that a turn writes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::SessionId;
use aaep::json::{JsonKind, JsonValue};
use aaep::shaping::ShapingTerms;

use super::producers::SessionRole;
use super::sessions::{KeyedRequest, LiveSession};
use super::{Core, OwnedEntry, TurnContext};
use crate::command::{HubReply, LimitReached, MalformedRequest};
use crate::shards::{CountGuard, CountKind, CountRequest};
use crate::{AgentNaming, Principal};

impl Core {
    /// Starts to count the bytes of an agent's request in a session. Returns the account that they count for, or a reply if
    /// the request must not be executed: its idempotency key is too long or was used before, or its account has published
    /// too much in this minute.
    pub(super) fn begin_request(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        keyed_request: Option<&KeyedRequest<'_>>,
        context: &TurnContext,
    ) -> Result<UsageAccount, HubReply> {
        if let Some(reply) = self.begin_keyed_request(principal, keyed_request) {
            return Err(reply);
        }
        let agent = self.sessions.get(session).map_or("", |live| &live.agent);
        let account = UsageAccount::of(principal, agent);
        self.check_byte_rate(&account, context)?;
        Ok(account)
    }

    /// Starts to count the bytes of an agent's request. Returns a reply if its idempotency key is too long or was used before.
    pub(super) fn begin_keyed_request(
        &mut self,
        principal: &Principal,
        keyed_request: Option<&KeyedRequest<'_>>,
    ) -> Option<HubReply> {
        self.staged.bytes_before_request = self.staged.bytes;
        let max = self.limits.idempotency_key_chars;
        if keyed_request.is_some_and(|(key, _)| key.chars().count() > max) {
            return Some(MalformedRequest::IdempotencyKeyTooLong { max }.into());
        }
        // A repeated request publishes nothing, so it gets its reply even if too much was published.
        self.idempotent_reply(principal, keyed_request)
    }

    /// Refuses a request if its account has published too much in this minute.
    pub(super) fn check_byte_rate(
        &self,
        account: &UsageAccount,
        context: &TurnContext,
    ) -> Result<(), LimitReached> {
        let max = self.limits.bytes_per_minute;
        match account.key() {
            Some(key) if !self.shard.limits.bytes.allows(&key, 1, max, context.now) => Err(match account {
                UsageAccount::Agent(_) => LimitReached::AgentBytesPerMinute { max },
                _ => LimitReached::BytesPerMinute { max },
            }),
            _ => Ok(()),
        }
    }

    /// Stores the reply to an agent's request under its idempotency key, and counts the bytes that the request writes.
    pub(super) fn finish_request(
        &mut self,
        principal: &Principal,
        account: &UsageAccount,
        keyed_request: Option<&KeyedRequest<'_>>,
        reply: &HubReply,
        context: &TurnContext,
    ) {
        if let Some((key, request)) = keyed_request
            && let Some(response) = reply.to_json()
        {
            self.staged.bytes += key.len() + response.len();
            self.staged.writes.push(OwnedEntry::ResponseStored {
                principal: principal.owner().into(),
                key: (*key).into(),
                request: request.as_bytes().to_vec(),
                response,
                at: context.now,
            });
        }
        if let Some(key) = account.key() {
            let bytes = self.staged.bytes.saturating_sub(self.staged.bytes_before_request);
            self.shard.limits.bytes.record(&key, bytes, context.now);
        }
    }

    /// Refuses a request whose events are too large. An event with its envelope can be much larger than what the agent
    /// sent, so a limit on the size of the request itself is not enough.
    pub(super) fn check_request_bytes(&self) -> Result<(), MalformedRequest> {
        let max = self.limits.bytes_per_request;
        if self.staged.bytes.saturating_sub(self.staged.bytes_before_request) > max {
            return Err(MalformedRequest::ComposedTooLarge { max });
        }
        Ok(())
    }

    /// Whether the turn has staged so much that further requests must wait for the next turn.
    pub(super) fn is_turn_full(&self) -> bool {
        self.staged.bytes >= self.limits.bytes_per_turn
    }

    /// Checks the size of an object that is copied into every event of a session. `name` is its name in the request.
    pub(super) fn check_shared_object(
        &self,
        name: &'static str,
        object: Option<&JsonValue<'_>>,
    ) -> Result<(), MalformedRequest> {
        let Some(object) = object else { return Ok(()) };
        let max = self.limits.shared_member_chars;
        let is_too_long = |value: &JsonValue<'_>| match value.kind() {
            JsonKind::Text => value.text().is_none_or(|text| text.chars().count() > max),
            _ => value.source().chars().count() > max,
        };
        if object.members().any(|(key, value)| is_too_long(&key) || is_too_long(&value)) {
            return Err(MalformedRequest::SharedMemberTooLong { object: name, max });
        }
        let max = self.limits.shared_object_bytes;
        if object.source().len() > max {
            return Err(MalformedRequest::SharedObjectTooLarge { object: name, max });
        }
        Ok(())
    }

    /// Checks the limits on open sessions, and counts a new session together with those of the other shards.
    pub(super) fn count_session(
        &self,
        principal: &Principal,
        account: &UsageAccount,
    ) -> Result<Option<CountGuard>, LimitReached> {
        let (max, max_total) = (self.limits.sessions_per_principal, self.limits.sessions);
        if self.sessions.len() >= max_total {
            return Err(LimitReached::Sessions);
        }
        let (agent, max, refusal) = match account {
            UsageAccount::Token(_) => (None, max, LimitReached::SessionsPerPrincipal { max }),
            UsageAccount::Agent(agent) => (Some(&**agent), max, LimitReached::SessionsPerAgent { max }),
            UsageAccount::Unlimited => (None, usize::MAX, LimitReached::Sessions),
        };
        let is_own = |live: &&LiveSession| {
            principal.is_owner(&live.owner) && agent.is_none_or(|agent| *live.agent == *agent)
        };
        // If there are fewer than `max` sessions in total, they need not be counted.
        if self.sessions.len() >= max && self.sessions.values().filter(is_own).count() >= max {
            return Err(refusal);
        }
        self.count_session_of(&principal.owner(), agent, max, max_total).map_err(|kind| match kind {
            CountKind::Sessions => LimitReached::Sessions,
            _ => refusal,
        })
    }

    /// Counts a session together with those of the other shards. `agent` is the agent of an owner without a token.
    pub(super) fn count_session_of(
        &self,
        owner: &str,
        agent: Option<&str>,
        max: usize,
        max_total: usize,
    ) -> Result<Option<CountGuard>, CountKind> {
        let key = match agent {
            Some(agent) => Cow::from(format!("{owner}{SEPARATOR}{agent}")),
            None => Cow::from(owner),
        };
        let requests = [
            CountRequest { kind: CountKind::Sessions, key: "", max: max_total },
            CountRequest { kind: CountKind::SessionsOfOwner, key: &key, max },
        ];
        self.count_with_other_shards(&requests)
    }

    /// Returns the rate limits that apply to a question of a session: for each person that it reaches, one for this agent
    /// and one for all agents together. Each principal counts as one person, whatever the session's `requested_by` says.
    pub(super) fn question_limits(
        &self,
        session: &SessionId,
        role: &SessionRole,
        is_clarification: bool,
    ) -> Vec<RateLimit> {
        let Some(live) = self.sessions.get(session) else { return Vec::new() };
        let (max, max_total) = (self.limits.questions_per_minute, self.limits.total_questions_per_minute);
        let principals = self.principals_in_scope(live, |terms| {
            if is_clarification { terms.answers_clarifications } else { terms.answers_confirmations }
        });
        let refusal = LimitReached::TotalQuestionsPerMinute { max: max_total };
        let mut limits = total_limits(&principals, max_total, &refusal);
        limits.extend(agent_limits(
            live.accountable(role),
            &principals,
            max,
            &LimitReached::QuestionsPerMinute { max },
        ));
        limits
    }

    /// Returns the rate limits that apply to the critical events of a session, hand-offs among them: for each person that hears
    /// them, one for this agent and one for all agents together.
    pub(super) fn critical_limits(&self, session: &SessionId, role: &SessionRole) -> Vec<RateLimit> {
        let Some(live) = self.sessions.get(session) else { return Vec::new() };
        let (max, max_total) = (self.limits.criticals_per_minute, self.limits.total_criticals_per_minute);
        let principals = self.principals_in_scope(live, |_| true);
        let refusal = LimitReached::TotalCriticalsPerMinute { max: max_total };
        let mut limits = total_limits(&principals, max_total, &refusal);
        let refusal = LimitReached::CriticalsPerMinute { max };
        limits.extend(agent_limits(live.accountable(role), &principals, max, &refusal));
        limits
    }

    /// Returns the principals of the subscriptions whose scope covers a session and whose terms satisfy `is_affected`.
    fn principals_in_scope(
        &self,
        live: &LiveSession,
        is_affected: impl Fn(&ShapingTerms) -> bool,
    ) -> BTreeSet<&str> {
        self.subscriptions
            .values()
            .filter(|subscription| subscription.scope.covers(&live.agent, live.person.as_deref()))
            .filter(|subscription| is_affected(&subscription.shaping_terms))
            .map(|subscription| &*subscription.principal)
            .collect()
    }
}

/// Separates the parts of a key. It occurs neither in the name of a token nor in an agent id.
const SEPARATOR: char = '\u{1f}';

/// The party that the limits on open sessions and published bytes apply to.
#[derive(Debug)]
pub(super) enum UsageAccount {
    /// A token, by its name.
    Token(Arc<str>),
    /// An agent without a token. All callers without a token are one principal, so the hub has only the id that the agent
    /// gives itself. This stops a faulty agent, but not one that keeps changing its id.
    Agent(Box<str>),
    /// An agent in the hub's own process, which shares the memory of the hub anyway.
    Unlimited,
}

impl UsageAccount {
    /// Returns the account of a principal that publishes as this agent.
    pub(super) fn of(principal: &Principal, agent: &str) -> Self {
        if principal.has_token() {
            Self::Token(principal.name.clone())
        } else if principal.naming == AgentNaming::InProcess {
            Self::Unlimited
        } else {
            Self::Agent(agent.into())
        }
    }

    /// Returns the key under which the bytes are counted.
    fn key(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Token(name) => Some(Cow::from(&**name)),
            Self::Agent(agent) => Some(Cow::from(format!("{SEPARATOR}{agent}"))),
            Self::Unlimited => None,
        }
    }
}

/// A limit for one key of a [`PerMinuteLimiter`](super::rate_limit::PerMinuteLimiter).
#[derive(Debug)]
pub(crate) struct RateLimit {
    pub(crate) key: String,
    pub(crate) max: usize,
    /// The reply if the limit is reached.
    pub(crate) refusal: LimitReached,
}

/// Returns the limits of all agents together, one for each principal that listens.
fn total_limits(principals: &BTreeSet<&str>, max: usize, refusal: &LimitReached) -> Vec<RateLimit> {
    let limit = |principal: &&str| RateLimit {
        key: format!("{SEPARATOR}{principal}"),
        max,
        refusal: refusal.clone(),
    };
    principals.iter().map(limit).collect()
}

/// Returns the limits of an agent, one for each principal that listens. If nobody listens, there is a single limit.
fn agent_limits<'r>(
    (owner, agent): (&'r str, &'r str),
    principals: &'r BTreeSet<&str>,
    max: usize,
    refusal: &'r LimitReached,
) -> impl Iterator<Item = RateLimit> + 'r {
    let nobody = principals.is_empty().then_some("");
    principals.iter().copied().chain(nobody).map(move |principal| RateLimit {
        key: format!("{owner}{SEPARATOR}{agent}{SEPARATOR}{principal}"),
        max,
        refusal: refusal.clone(),
    })
}
