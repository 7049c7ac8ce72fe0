//! The producers of a session (§A.9, pattern 1): which agents speak in it, and which token may speak as which of them.
//!
//! A session has one main producer, which is the agent of the token that started it. The owner can list more producers
//! and speak as them itself, or invite another token. From the moment of the invitation, the owner no longer speaks as
//! that producer. A token that joins speaks only as the producer that its invitation names.

use std::sync::Arc;

use aaep::SessionId;
use aaep::check::CheckedDocument;
use aaep::json::{JsonKind, JsonValue, JsonWriter, OwnedDoc, Tape};
use aaep::rule::{Findings, Rule, Severity, ValidationMode};
use seal::{Digest, UnixMillis};

use super::questions::violation;
use super::sessions::{LiveSession, read_producer};
use super::{Core, OwnedEntry, TurnContext};
use crate::command::{HubReply, MalformedRequest, RequestBody};
use crate::{AgentNaming, Principal};

/// An agent that speaks in a session.
pub(super) struct SessionProducer {
    pub(super) id: Arc<str>,
    /// The member `producer` of its events.
    pub(super) envelope: OwnedDoc,
    /// Whether somebody other than the agent vouches for its name.
    pub(super) has_verified_name: bool,
    speaker: Speaker,
}

/// Who may speak as a producer.
enum Speaker {
    /// The owner of the session.
    Owner,
    /// The token that redeems the invitation; nobody before that. `None` if the invitation was voided.
    Invited(Option<Invitation>),
    /// The token that joined, as [`Principal::owner`].
    Joined(Arc<str>),
}

/// An invitation that nobody has redeemed yet. Only the hash of its secret is stored.
struct Invitation {
    secret_digest: Digest,
    expires_at: UnixMillis,
}

/// The producers of one session.
pub(super) struct SessionProducers {
    main: SessionProducer,
    others: Vec<SessionProducer>,
}

/// The role of a principal in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionRole {
    /// It started the session. It speaks as every producer that no other token was invited for.
    Owner,
    /// It joined the session and speaks as this producer.
    Joined(Arc<str>),
}

impl SessionProducer {
    /// Creates a producer that the session's owner speaks as.
    pub(super) fn of_owner(id: Arc<str>, envelope: OwnedDoc, has_verified_name: bool) -> Self {
        Self { id, envelope, has_verified_name, speaker: Speaker::Owner }
    }

    fn write(&self, writer: &mut JsonWriter) {
        writer.open_object();
        writer.key("producer").raw(self.envelope.source());
        writer.key("verified_name").boolean(self.has_verified_name);
        match &self.speaker {
            Speaker::Owner => {}
            Speaker::Invited(invitation) => {
                writer.key("invited").boolean(true);
                if let Some(invitation) = invitation {
                    writer.key("invitation").text(&invitation.secret_digest.to_string());
                    writer.key("expires_at").integer(invitation.expires_at.get());
                }
            }
            Speaker::Joined(owner) => writer.key("joined").text(owner),
        }
        writer.close_object();
    }

    fn read(stored: &JsonValue<'_>) -> Option<Self> {
        let envelope = OwnedDoc::read(stored.member("producer")?.source()).ok()?;
        let id = Arc::from(&*envelope.doc().root().member("agent_id")?.text()?);
        let speaker = if let Some(owner) = stored.member("joined") {
            Speaker::Joined(Arc::from(&*owner.text()?))
        } else if stored.member("invited").is_some() {
            Speaker::Invited(match stored.member("invitation") {
                Some(digest) => Some(Invitation {
                    secret_digest: Digest::parse(&digest.text()?)?,
                    expires_at: UnixMillis::new(stored.member("expires_at")?.as_number()?.as_i64()?),
                }),
                None => None,
            })
        } else {
            Speaker::Owner
        };
        Some(Self { id, envelope, has_verified_name: stored.member("verified_name")?.as_bool()?, speaker })
    }
}

impl SessionProducers {
    pub(super) fn new(main: SessionProducer, others: Vec<SessionProducer>) -> Self {
        Self { main, others }
    }

    pub(super) fn main(&self) -> &SessionProducer {
        &self.main
    }

    pub(super) fn get(&self, id: &str) -> Option<&SessionProducer> {
        self.iter().find(|producer| *producer.id == *id)
    }

    /// Returns the producers, the main one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SessionProducer> {
        std::iter::once(&self.main).chain(&self.others)
    }

    /// Whether the session has more than its main producer.
    pub(super) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// Writes the producers other than the main one into an open object.
    pub(super) fn write_others(&self, writer: &mut JsonWriter) {
        if self.has_others() {
            writer.key("producers").array(|writer| {
                for producer in &self.others {
                    producer.write(writer);
                }
            });
        }
    }

    /// Reads the producers from the record of a session. `main` is the session's agent.
    pub(super) fn read(record: &JsonValue<'_>, main: Arc<str>) -> Option<Self> {
        let main = SessionProducer {
            id: main,
            envelope: OwnedDoc::read(record.member("producer")?.source()).ok()?,
            has_verified_name: record.member("verified_name").and_then(|verified| verified.as_bool())
                == Some(true),
            speaker: Speaker::Owner,
        };
        let others = record.member("producers");
        let others = others.iter().flat_map(JsonValue::items).map(|stored| SessionProducer::read(&stored));
        Some(Self { main, others: others.collect::<Option<_>>()? })
    }

    /// Voids the invitations that nobody has redeemed. Returns whether there were any.
    fn void_invitations(&mut self) -> bool {
        let mut is_changed = false;
        for producer in &mut self.others {
            if let Speaker::Invited(invitation) = &mut producer.speaker {
                is_changed |= invitation.take().is_some();
            }
        }
        is_changed
    }
}

impl LiveSession {
    /// Returns what the principal may do in the session; `None` if it has nothing to do with it.
    pub(super) fn role_of(&self, principal: &Principal) -> Option<SessionRole> {
        if !principal.can_publish() {
            return None;
        }
        if principal.is_owner(&self.owner) {
            return Some(SessionRole::Owner);
        }
        let mut others = self.producers.others.iter();
        let joined = others.find(|producer| match &producer.speaker {
            Speaker::Joined(owner) => principal.is_owner(owner),
            Speaker::Owner | Speaker::Invited(_) => false,
        });
        joined.map(|producer| SessionRole::Joined(producer.id.clone()))
    }

    /// Whether a principal with this role speaks as the producer. Only such a principal learns the answers to the
    /// producer's questions.
    pub(super) fn speaks_as(&self, role: &SessionRole, agent_id: &str) -> bool {
        match role {
            SessionRole::Joined(id) => **id == *agent_id,
            SessionRole::Owner => self
                .producers
                .get(agent_id)
                .is_some_and(|producer| matches!(producer.speaker, Speaker::Owner)),
        }
    }

    /// Returns the owner and the agent whose limits apply. Everything that the owner says counts as said by the main
    /// producer, so that an agent cannot evade a limit by listing more producers.
    pub(super) fn accountable(&self, role: &SessionRole) -> (&str, &str) {
        let producer = match role {
            SessionRole::Owner => None,
            SessionRole::Joined(id) => self.producers.get(id),
        };
        match producer {
            Some(SessionProducer { id, speaker: Speaker::Joined(owner), .. }) => (owner, id),
            _ => (&self.owner, &self.agent),
        }
    }
}

impl Core {
    /// Returns the producer that an agent's request names, or else the one that speaks by default: the main producer for
    /// the session's owner, and its own producer for a token that joined.
    pub(super) fn resolve_producer(
        &self,
        session: &SessionId,
        role: &SessionRole,
        given: Option<&JsonValue<'_>>,
    ) -> Result<Arc<str>, HubReply> {
        let id = match given {
            None => None,
            Some(given) => Some(read_producer_id(given).ok_or_else(|| {
                let found = "an agent names its producer with a text, or an object with only agent_id";
                producer_refusal("/producer", found.to_owned())
            })?),
        };
        self.resolve_producer_id(session, role, id.as_deref())
    }

    /// Like [`resolve_producer`](Self::resolve_producer), for an id.
    pub(super) fn resolve_producer_id(
        &self,
        session: &SessionId,
        role: &SessionRole,
        id: Option<&str>,
    ) -> Result<Arc<str>, HubReply> {
        let Some(live) = self.sessions.get(session) else { return Err(HubReply::NotFound) };
        let refuse = |found: String| Err(producer_refusal("/producer", found));
        let Some(id) = id else {
            return Ok(match role {
                SessionRole::Owner => live.agent.clone(),
                SessionRole::Joined(id) => id.clone(),
            });
        };
        let Some(producer) = live.producers.get(id) else {
            let known: Vec<_> = live.producers.iter().map(|producer| &*producer.id).collect();
            let suggestion = match seal::closest_name(id, known.iter().copied()) {
                Some(name) => format!("did you mean {name:?}?"),
                None => format!("it has {}", known.join(", ")),
            };
            return refuse(format!("the session has no producer {id:?}; {suggestion}"));
        };
        let is_of_other_token =
            *role == SessionRole::Owner && *producer.id != *live.agent && self.tokens.has_agent(&producer.id);
        if !live.speaks_as(role, &producer.id) || is_of_other_token {
            return refuse(match role {
                SessionRole::Joined(own) => format!("this token speaks only as {own:?} in this session"),
                SessionRole::Owner => {
                    format!("only the token that joins by an invitation speaks as {id:?}")
                }
            });
        }
        Ok(producer.id.clone())
    }

    /// Reads the member `producers` of a request that starts a session.
    pub(super) fn read_producers(
        &self,
        root: &JsonValue<'_>,
        principal: &Principal,
        main: &str,
    ) -> Result<Vec<SessionProducer>, HubReply> {
        let Some(list) = root.member("producers") else { return Ok(Vec::new()) };
        let refuse = |pointer: &str, found: String| Err(producer_refusal(pointer, found));
        if list.kind() != JsonKind::Array {
            return refuse("/producers", "producers must be a list".to_owned());
        }
        let mut producers: Vec<SessionProducer> = Vec::new();
        for (index, item) in list.items().enumerate() {
            self.check_producer_count(1 + producers.len())?;
            let pointer = format!("/producers/{index}");
            self.check_shared_object("an entry of producers", Some(&item))?;
            self.check_producer(item.source(), &pointer)?;
            let id: Arc<str> = item.member("agent_id").and_then(|id| id.text()).unwrap_or_default().into();
            // The list may repeat the main producer.
            if *id == *main {
                continue;
            }
            let pointer = format!("{pointer}/agent_id");
            if producers.iter().any(|listed| listed.id == id) {
                return refuse(&pointer, format!("{id:?} is listed twice"));
            }
            self.refuse_hub_id(&id, &pointer)?;
            let envelope = OwnedDoc::read(item.source())?;
            let has_verified_name = principal.naming == AgentNaming::InProcess;
            producers.push(SessionProducer::of_owner(id, envelope, has_verified_name));
        }
        Ok(producers)
    }

    /// Handles `POST /agent/v1/sessions/{id}/invitations`.
    pub(super) fn invite(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        body: &RequestBody,
        key: Option<&str>,
        context: &TurnContext,
    ) -> HubReply {
        let keyed_request = key.map(|key| {
            (key, Digest::of_parts([session.as_str().as_bytes(), body.source().as_bytes(), b"invitation"]))
        });
        let account = match self.begin_request(principal, session, keyed_request.as_ref(), context) {
            Ok(account) => account,
            Err(reply) => return reply,
        };
        match self.session_role(principal, session) {
            Some(SessionRole::Owner) => {}
            Some(SessionRole::Joined(_)) => return HubReply::Forbidden,
            None => return self.missing_session(principal, session),
        }
        match self.stage_invitation(session, body, context) {
            Ok(reply) => {
                self.finish_request(principal, &account, keyed_request.as_ref(), &reply, context);
                reply
            }
            Err(refusal) => refusal,
        }
    }

    fn stage_invitation(
        &mut self,
        session: &SessionId,
        body: &RequestBody,
        context: &TurnContext,
    ) -> Result<HubReply, HubReply> {
        let mut tape = Tape::default();
        let doc = body.doc(&mut tape)?;
        let root = doc.root();
        let refuse = |found: String| Err(producer_refusal("/producer", found));
        let Some(id) = root.member("producer").and_then(|given| read_producer_id(&given)) else {
            return refuse("producer must be the agent_id of the agent to invite".to_owned());
        };
        let lifetime_ms = self.invitation_lifetime_ms(&root)?;
        let Some(live) = self.sessions.get(session) else { return Err(HubReply::NotFound) };
        if *id == *live.agent {
            return refuse(format!("{id:?} is the main producer of the session"));
        }
        match live.producers.get(&id) {
            // The owner may have asked something in this producer's name, and the answer must not cover what another
            // token does.
            Some(SessionProducer { speaker: Speaker::Owner, .. }) if live.machine.state_of(&id).is_some() => {
                return refuse(format!("{id:?} has already spoken in this session"));
            }
            Some(SessionProducer { speaker: Speaker::Joined(_), .. }) => {
                return refuse(format!("{id:?} has already joined"));
            }
            Some(_) => {}
            None => {
                self.check_producer_count(live.producers.iter().count())?;
                self.refuse_hub_id(&id, "/producer")?;
            }
        }
        let envelope = OwnedDoc::read(&seal::json::write_object(|writer| {
            writer.key("agent_id").text(&id);
        }))?;
        self.check_shared_object("producer", Some(&envelope.doc().root()))?;
        self.check_producer(envelope.source(), "/producer")?;
        let mut random = [0; 16];
        self.fill_random(&mut random);
        let secret = format!("inv_{:032x}", u128::from_be_bytes(random));
        let expires_at = context.now.saturating_add(lifetime_ms);
        let invitation = Invitation { secret_digest: Digest::of(secret.as_bytes()), expires_at };
        let Some(live) = self.sessions.get_mut(session) else { return Err(HubReply::NotFound) };
        let speaker = Speaker::Invited(Some(invitation));
        match live.producers.others.iter_mut().find(|producer| *producer.id == *id) {
            // A new invitation replaces an earlier one that was not redeemed.
            Some(producer) => producer.speaker = speaker,
            None => live.producers.others.push(SessionProducer {
                id: Arc::from(&*id),
                envelope,
                has_verified_name: false,
                speaker,
            }),
        }
        self.stage_session_record(session);
        Ok(HubReply::InvitationCreated {
            session_id: session.clone(),
            producer: id.into(),
            secret: secret.into(),
            expires_at,
        })
    }

    /// Handles `POST /agent/v1/sessions/{id}/join`. Every invitation that cannot be redeemed gets the same reply, so
    /// that nobody learns about other principals' sessions.
    pub(super) fn join(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        body: &RequestBody,
        key: Option<&str>,
        context: &TurnContext,
    ) -> HubReply {
        if !principal.can_publish() {
            return HubReply::Forbidden;
        }
        let keyed_request = key.map(|key| {
            (key, Digest::of_parts([session.as_str().as_bytes(), body.source().as_bytes(), b"join"]))
        });
        let account = match self.begin_request(principal, session, keyed_request.as_ref(), context) {
            Ok(account) => account,
            Err(reply) => return reply,
        };
        match self.redeem_invitation(principal, session, body, context) {
            Ok(reply) => {
                self.finish_request(principal, &account, keyed_request.as_ref(), &reply, context);
                reply
            }
            Err(refusal) => refusal,
        }
    }

    fn redeem_invitation(
        &mut self,
        principal: &Principal,
        session: &SessionId,
        body: &RequestBody,
        context: &TurnContext,
    ) -> Result<HubReply, HubReply> {
        let mut tape = Tape::default();
        let doc = body.doc(&mut tape)?;
        let root = doc.root();
        let secret = root.member("invitation").and_then(|secret| secret.text());
        let secret = secret.ok_or(MalformedRequest::NoInvitation)?;
        let secret_digest = Digest::of(secret.as_bytes());
        let is_redeemable = |producer: &&SessionProducer| {
            matches!(&producer.speaker, Speaker::Invited(Some(invitation))
                if invitation.secret_digest == secret_digest && context.now < invitation.expires_at)
                && principal.agent_id.as_ref().is_none_or(|token_agent| *token_agent == producer.id)
        };
        let Some(live) = self.sessions.get(session) else { return Err(HubReply::InvitationNotFound) };
        let Some(producer) = live.producers.others.iter().find(is_redeemable) else {
            return Err(HubReply::InvitationNotFound);
        };
        let id = producer.id.clone();
        let speaker = if principal.is_owner(&live.owner) {
            Speaker::Owner
        } else {
            Speaker::Joined(principal.owner().into())
        };
        let Some((agent, envelope)) = read_producer(&root, principal, &id) else {
            return Err(MalformedRequest::InvalidProducer.into());
        };
        if agent != id {
            return Err(MalformedRequest::InvalidProducer.into());
        }
        self.check_shared_object("producer", Some(&envelope.doc().root()))?;
        self.check_producer(envelope.source(), "/producer")?;
        let (envelope, verification) = self.identify_producer(principal, &id, envelope);
        let has_verified_name = verification.has_verified_name;
        let Some(live) = self.sessions.get_mut(session) else { return Err(HubReply::InvitationNotFound) };
        live.renew_lease(context.now);
        if let Some(producer) = live.producers.others.iter_mut().find(|producer| producer.id == id) {
            *producer = SessionProducer { id: id.clone(), envelope, has_verified_name, speaker };
        }
        self.stage_session_record(session);
        Ok(HubReply::SessionJoined { session_id: session.clone(), producer: (&*id).into() })
    }

    /// Stages the new record of a session whose producers have changed.
    fn stage_session_record(&mut self, session: &SessionId) {
        let Some(live) = self.sessions.get(session) else { return };
        let record = live.to_record();
        self.staged.bytes += record.len();
        self.staged.writes.push(OwnedEntry::SessionTouched {
            id: session.clone(),
            lease_expires_at: live.lease_until,
            record,
        });
    }

    /// Voids all invitations, because the journal was restored from a backup or has lost entries. An invitation that
    /// looks unused may have been redeemed.
    pub(super) fn void_invitations(&mut self) {
        let changed: Vec<_> = self
            .sessions
            .iter_mut()
            .filter_map(|(id, live)| live.producers.void_invitations().then(|| id.clone()))
            .collect();
        for session in changed {
            self.stage_session_record(&session);
        }
    }

    fn check_producer_count(&self, count: usize) -> Result<(), MalformedRequest> {
        let max = self.limits.producers_per_session;
        if count >= max { Err(MalformedRequest::TooManyProducers { max }) } else { Ok(()) }
    }

    /// Refuses the id of the hub itself, because listeners trust what the hub says.
    fn refuse_hub_id(&self, id: &str, pointer: &str) -> Result<(), HubReply> {
        if *id != *self.offer.producer.agent_id {
            return Ok(());
        }
        let found = format!("{id:?} is reserved for the hub");
        Err(producer_refusal(pointer, found))
    }

    /// Checks a producer by the rules for events, because it becomes a part of events only later.
    fn check_producer(&self, producer: &str, pointer: &str) -> Result<(), HubReply> {
        let event = format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.state.changed","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-01-01T00:00:00Z","producer":{producer},"localization_hints":{{"primary_language":"en"}},"from_state":"idle","to_state":"thinking","summary_normal":"Thinking."}}"#
        );
        let mut tape = Tape::default();
        let doc = tape.read(&event)?;
        let mut findings = Findings::new(ValidationMode::Strict);
        let CheckedDocument::Event(_) = self.validator.check(&doc, &mut findings) else {
            return Err(MalformedRequest::InvalidProducer.into());
        };
        let mut found = findings.take();
        found.retain(|finding| finding.severity == Severity::Error);
        for finding in &mut found {
            if let Some(rest) = finding.pointer.strip_prefix("/producer") {
                finding.pointer = format!("{pointer}{rest}");
            }
        }
        if found.is_empty() { Ok(()) } else { Err(HubReply::RuleViolations(found)) }
    }

    /// Returns how long an invitation is valid: as long as the request says, but not longer than the limit.
    fn invitation_lifetime_ms(&self, root: &JsonValue<'_>) -> Result<i64, HubReply> {
        let max_ms = self.limits.invitation_lifetime_ms;
        let Some(seconds) = root.member("expires_in_seconds") else { return Ok(max_ms) };
        let seconds = seconds.as_number().and_then(|seconds| seconds.as_i64()).filter(|seconds| *seconds > 0);
        let seconds = seconds.ok_or(MalformedRequest::InvalidLifetime)?;
        Ok(seconds.saturating_mul(1000).min(max_ms))
    }
}

/// Refuses a request because of its producer.
pub(super) fn producer_refusal(pointer: &str, found: String) -> HubReply {
    HubReply::RuleViolations(vec![violation(Rule::PRODUCER, pointer, found)])
}

/// Returns the id in a text, or in an object that has only the member `agent_id`.
fn read_producer_id(given: &JsonValue<'_>) -> Option<String> {
    let id = match given.kind() {
        JsonKind::Object if given.members().count() == 1 => given.member("agent_id")?.text()?,
        _ => given.text()?,
    };
    (!id.is_empty()).then(|| id.into_owned())
}
