//! Several agents in one session (AAEP appendix A.9).

use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use aaep::{SessionId, ToolCallId, UnixMillis};
use seal::json::TapeWriter;

use super::{EventOptions, Session};
use crate::dispatcher::{OpenSession, SpeakerKey};
use crate::error::{Error, MalformedInput};
use crate::hub::Hub;
use crate::member;
use crate::transport::CallReply;

/// An agent that speaks in a session besides the one that starts it, for [`SessionBuilder::producer`](crate::SessionBuilder::producer).
///
/// ```
/// let scout = sayso::Producer::new("scout").name("Scout").version("2.1.0").model("small-1");
/// let same_without_details: sayso::Producer = "scout".into();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a producer has no effect until it is passed to `SessionBuilder::producer`"]
pub struct Producer {
    id: String,
    name: Option<String>,
    version: Option<String>,
    model: Option<String>,
    manifest_uri: Option<String>,
}

impl Producer {
    /// Creates an agent with this id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), name: None, version: None, model: None, manifest_uri: None }
    }

    setters! {
        /// Sets the display name, which people hear.
        name(name: impl Into<String>) => name = Some(name.into());

        /// Sets the agent's version.
        version(version: impl Into<String>) => version = Some(version.into());

        /// Sets the name of the model that the agent uses.
        model(model: impl Into<String>) => model = Some(model.into());

        /// Sets the URI of the agent's manifest.
        manifest_uri(uri: impl Into<String>) => manifest_uri = Some(uri.into());
    }

    pub(super) fn write(&self, out: &mut TapeWriter) {
        member::text(out, "agent_id", &self.id);
        member::optional_text(out, "agent_name", self.name.as_deref());
        member::optional_text(out, "agent_version", self.version.as_deref());
        member::optional_text(out, "model", self.model.as_deref());
        member::optional_text(out, "manifest_uri", self.manifest_uri.as_deref());
    }
}

impl<T: Into<String>> From<T> for Producer {
    fn from(id: T) -> Self {
        Self::new(id)
    }
}

/// A session in which this agent speaks as one of several producers. It can do everything that a [`Session`] can, except end it:
/// only the main producer does that. When the last clone is dropped, the tools and outputs that this producer left open are
/// closed.
///
/// [`Session::producer`] returns one for an agent in the same program. [`Hub::join`] returns one for a session that another
/// token started.
///
/// ```
/// # testing::run_example!(hub, {
/// let session = hub.session("Plan a trip.").producer("scout").start().await?;
/// let scout: sayso::ProducerSession = session.producer("scout");
/// let search = scout.tool("trains").says("Looking for trains.").start().await?;
/// search.succeed("There is one at nine.").await?;
/// session.finish("You leave at nine.").await?;
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct ProducerSession(Arc<Session>);

impl Deref for ProducerSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

/// An invitation to a session, for one other agent. It can be used once, until it expires.
///
/// Send it to the other agent as text. Only a token of the agent that was invited can use it. [`Debug`](std::fmt::Debug) does
/// not show the secret.
///
/// ```
/// # testing::run_example!({
/// # let hub = sayso::Hub::embedded().agent("planner").listen("127.0.0.1:0").open()?;
/// # let url = format!("http://{}", hub.address().unwrap());
/// let session = hub.session("Plan a trip.").start().await?;
/// let invitation: sayso::Invitation = session.invite("scout").await?;
/// let text = invitation.to_string();
///
/// // The other agent, in another program and with a token of its own:
/// let other = sayso::Hub::connect(url).open().await?;
/// let scout = other.join(&text.parse()?).await?;
/// scout.output("There is a train at nine.").await?;
/// # drop(scout);
/// # other.close().await;
/// session.finish("You leave at nine.").await?;
/// # });
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    session: SessionId,
    secret: String,
    expires_at: UnixMillis,
}

impl Invitation {
    /// Returns the id of the session.
    pub fn session_id(&self) -> &str {
        self.session.as_str()
    }

    /// Returns when the invitation expires; `None` if it was parsed from text, which does not contain the time.
    pub fn expires_at(&self) -> Option<SystemTime> {
        let millis = u64::try_from(self.expires_at.get()).ok().filter(|_| self.expires_at != UnixMillis::MAX);
        millis.and_then(|millis| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)))
    }
}

impl std::fmt::Display for Invitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.session, self.secret)
    }
}

impl FromStr for Invitation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (session, secret) = text.split_once('.').unwrap_or((text, ""));
        match SessionId::parse(session) {
            Ok(session) if secret.starts_with("inv_") => {
                Ok(Self { session, secret: secret.to_owned(), expires_at: UnixMillis::MAX })
            }
            _ => Err(Error::Malformed(MalformedInput::Invitation)),
        }
    }
}

impl std::fmt::Debug for Invitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invitation").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Session {
    /// Returns a handle that speaks as another producer of this session, which [`SessionBuilder::producer`](crate::SessionBuilder::producer)
    /// has added. Each producer has its own state, tools, outputs and questions, and a yes to one producer's question permits
    /// no call by another.
    pub fn producer(&self, id: impl Into<String>) -> ProducerSession {
        let handle = self.non_owning();
        let key = SpeakerKey { session: handle.inner.key.session.clone(), producer: Some(id.into().into()) };
        let OpenSession { stop, commands, started_at, .. } = &handle.inner;
        let inner = OpenSession {
            key,
            stop: stop.clone(),
            commands: commands.clone(),
            started_at: *started_at,
            is_ended: false,
        };
        ProducerSession(Arc::new(Self { inner, ..handle }))
    }

    /// Invites another agent to speak in this session. From then on, only that agent speaks as the producer with this id.
    pub async fn invite(&self, producer: impl Into<String>) -> Result<Invitation, Error> {
        self.send_invitation(producer.into(), None).await
    }

    /// Like [`invite`](Self::invite), with a lifetime. The hub may shorten it.
    pub async fn invite_for(
        &self,
        producer: impl Into<String>,
        lifetime: Duration,
    ) -> Result<Invitation, Error> {
        self.send_invitation(producer.into(), Some(lifetime)).await
    }

    async fn send_invitation(
        &self,
        producer: String,
        lifetime: Option<Duration>,
    ) -> Result<Invitation, Error> {
        let session = self.inner.key.session.clone();
        let body = member::object(|out| {
            member::text(out, "producer", &producer);
            if let Some(lifetime) = lifetime {
                member::count(out, "expires_in_seconds", lifetime.as_secs().max(1));
            }
        });
        match self.inner.commands.invite(session.clone(), body).await? {
            CallReply::Invited { secret, expires_at } => Ok(Invitation { session, secret, expires_at }),
            other => {
                Err(Error::Malformed(MalformedInput::Hub(format!("the hub sent no invitation: {other:?}"))))
            }
        }
    }

    /// Returns an id for a tool call, unique within the session.
    pub(super) fn new_call_id(&self) -> ToolCallId {
        let number = self.tool_call_count.fetch_add(1, Ordering::Relaxed) + 1;
        // Another program may number the calls of its own producer.
        let producer = self.inner.key.producer.as_deref();
        producer
            .and_then(|producer| ToolCallId::from_foreign(&format!("{producer} {number}")))
            .unwrap_or_else(|| ToolCallId::from_number(number))
    }
}

impl Hub {
    /// Joins a session that another agent started, with its invitation. This agent speaks as the producer that the invitation
    /// names, under the name and id of its own token.
    ///
    /// Returns [`Error::AccessDenied`] if the invitation was used before, has expired, or is for another agent.
    pub async fn join(&self, invitation: &Invitation) -> Result<ProducerSession, Error> {
        let redactor = self.redactor.for_session();
        let options = EventOptions::default().render(&redactor)?;
        let members = self.producer.members();
        let body = member::object(|out| {
            member::text(out, "invitation", &invitation.secret);
            if members.iter().any(|(_, text)| text.is_some()) {
                out.key("producer").object(|out| {
                    for (name, text) in members {
                        member::optional_text(out, name, text);
                    }
                });
            }
        });
        let joined = self.commands.join(invitation.session.clone(), body, redactor.clone()).await;
        // The hub's reply does not distinguish a session that has ended from an invalid invitation.
        let joined = joined.map_err(|error| match error {
            Error::Stopped(_) => Error::AccessDenied,
            error => error,
        })?;
        Ok(ProducerSession(Arc::new(Session::new(joined, redactor, options, &self.language))))
    }
}
