//! A client for the agent's own ASP node (feature `asp`): two agents negotiate and make commitments.
//!
//! The node is a `sayso asp serve`. It has the agent's keys, signs every message, stores and delivers it, and asks a person
//! before a commitment binds. The agent's program decides what to say:
//!
//! - [`Node`]: the node. It opens sessions with other agents and lists them.
//! - [`AspSession`]: one session: send messages, wait for what happens next, and get the transcript.
//! - [`SessionView`], [`SessionMessage`]: what the node knows about a session, and one message of it.
//! - [`NewMessage`]: a message with constraints on its answer, or with the tokens that it used.
//! - [`Complaint`], [`DisputeView`]: disputes about an agreement.
//! - [`NodeError`]: why a request failed.
//! - [`message`]: the bodies of messages, such as [`message::Propose`] and [`message::Commit`].
//!
//! ```
//! use sayso::asp::message::Close;
//! use sayso::asp::{Node, State};
//!
//! # testing::asp_example!(url, peer, {
//! let node = Node::connect(url).open()?;
//! let mut session = node.invite(&peer, "40 menus in braille").await?;
//! # accept_invitation(&peer).await;
//! loop {
//!     let change = session.next_change().await?;
//!     for message in &change.messages {
//!         println!("{} from {}", message.performative(), message.sender());
//!     }
//!     match change.state {
//!         // Both sides have introduced themselves. A real agent would make a proposal now.
//!         State::Introduced => drop(session.send(Close::new("nothing to buy")).await?),
//!         State::Closed | State::Failed => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(session.transcript().await?.lines().count(), 5);
//! # });
//! ```

mod connection;
mod dispute_view;
mod error;
mod session;
mod view;

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use http::Method;
use seal::json::{JsonKind, JsonValue, Tape, write_object};

pub use ::asp::dispute;
pub use ::asp::message;
pub use ::asp::state_machine::State;
pub use ::asp::{AgentUri, DisputeId, MessageId, Performative, SessionId};
use connection::Connection;
pub use dispute_view::{Complaint, DisputeView};
pub use error::NodeError;
pub use seal::Timestamp;
pub use session::{AspSession, NewMessage, SendStatus};
pub use view::{
    AwaitedResponse, ConsentStatus, ObligationResult, PeerRefusal, SessionMessage, SessionOutcome,
    SessionSummary, SessionView, WaitingFor,
};

/// Where `sayso asp serve` listens by default.
const DEFAULT_URL: &str = "http://127.0.0.1:8788";

/// The agent's own ASP node.
///
/// ```
/// # testing::asp_example!(url, peer, {
/// let node = sayso::asp::Node::connect(url).open()?;
/// assert!(node.sessions().await?.is_empty());
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    connection: Connection,
}

/// A builder for a [`Node`].
///
/// ```
/// let node = sayso::asp::Node::connect("https://node.example").token("sayso_1").open()?;
/// # Ok::<(), sayso::asp::NodeError>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing can be sent until `open` is called"]
pub struct NodeBuilder {
    url: String,
    token: Option<String>,
    ca_file: Option<PathBuf>,
}

debug_tuple!(NodeBuilder, url);

/// An invitation to a session.
///
/// ```
/// use sayso::asp::SessionInvitation;
/// let invitation = SessionInvitation::new("agent://press.example/orders", "40 menus").terms(r#"{"copies":40}"#);
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until the invitation is passed to `send_invitation`"]
pub struct SessionInvitation {
    peer: String,
    subject: String,
    terms: String,
    valid_until: Option<Timestamp>,
}

impl SessionInvitation {
    /// Invites a peer to a session about a subject. The peer is an agent URI, or the address of the agent's card.
    pub fn new(peer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self { peer: peer.into(), subject: subject.into(), terms: "{}".to_owned(), valid_until: None }
    }

    setters! {
        /// Sets the terms, a JSON object.
        terms(json: impl Into<String>) => terms = json.into();

        /// Sets when the invitation expires. The default is 30 seconds after it is sent.
        valid_until(time: Timestamp) => valid_until = Some(time);
    }

    fn to_json(&self) -> Result<String, NodeError> {
        let terms = object(&self.terms, "terms")?;
        Ok(write_object(|writer| {
            writer.text_members([("peer", &*self.peer), ("subject", &self.subject)]);
            writer.key("terms").raw(terms);
            if let Some(time) = &self.valid_until {
                writer.key("validUntil").text(&time.to_string());
            }
        }))
    }
}

impl NodeBuilder {
    setters! {
        /// Sets the token that `sayso token new --role agent` created for the node.
        token(token: impl Into<String>) => token = Some(token.into());

        /// Also trusts the certificates in this PEM file.
        ca_file(file: impl Into<PathBuf>) => ca_file = Some(file.into());
    }

    /// Checks the settings. The node is contacted with the first request.
    pub fn open(self) -> Result<Node, NodeError> {
        let connection = Connection::new(&self.url, self.token.as_deref(), self.ca_file.as_deref())?;
        Ok(Node { connection })
    }
}

impl Node {
    /// Uses the node at this address, such as `http://127.0.0.1:8788`.
    pub fn connect(url: impl Into<String>) -> NodeBuilder {
        NodeBuilder { url: url.into(), token: None, ca_file: None }
    }

    /// Uses the node in `SAYSO_ASP_URL` (by default `http://127.0.0.1:8788`) with the token in `SAYSO_TOKEN`.
    pub fn from_env() -> NodeBuilder {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// A value that is not UTF-8 is kept in part, so that it is refused and not ignored.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> NodeBuilder {
        let read = |name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(value.to_string_lossy().into_owned())
        };
        let url = read("SAYSO_ASP_URL").unwrap_or_else(|| DEFAULT_URL.to_owned());
        NodeBuilder { token: read("SAYSO_TOKEN"), ..Self::connect(url) }
    }

    /// Invites a peer: an agent URI, or the address of the agent's card. Returns as soon as the invitation is stored; the node
    /// delivers it.
    pub async fn invite(
        &self,
        peer: impl Into<String>,
        subject: impl Into<String>,
    ) -> Result<AspSession, NodeError> {
        self.send_invitation(&SessionInvitation::new(peer, subject)).await
    }

    /// Like [`Self::invite`], with terms or an expiry.
    pub async fn send_invitation(&self, invitation: &SessionInvitation) -> Result<AspSession, NodeError> {
        let body = invitation.to_json()?;
        let response =
            self.connection.request(Method::POST, "/agent/v1/asp/sessions", Some(body), None).await?;
        let mut tape = Tape::default();
        let doc = tape.read(&response).map_err(|error| NodeError::UnexpectedResponse(error.to_string()))?;
        let id = doc.root().member("sessionId").and_then(|id| SessionId::parse(&id.text()?).ok());
        let id = id.ok_or_else(|| NodeError::UnexpectedResponse("it has no session id".to_owned()))?;
        Ok(AspSession::new(self.connection.clone(), id))
    }

    /// Returns a session by its id, for example one that a peer opened. It is not checked whether the node has it.
    pub fn session(&self, id: &str) -> Result<AspSession, NodeError> {
        let id = SessionId::parse(id).map_err(|error| NodeError::Malformed(error.to_string()))?;
        Ok(AspSession::new(self.connection.clone(), id))
    }

    /// Returns the open sessions, the oldest first.
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>, NodeError> {
        let response = self.connection.request(Method::GET, "/agent/v1/asp/sessions", None, None).await?;
        SessionSummary::parse_list(&response)
    }

    /// Returns ended sessions, the latest first: at most 200, or those that ended before the given one. The node
    /// lists as many as `limits.listed_ended_sessions` of its policy says.
    pub async fn ended_sessions(&self, before: Option<SessionId>) -> Result<Vec<SessionSummary>, NodeError> {
        let before = before.map(|id| format!("&before={id}")).unwrap_or_default();
        let path = format!("/agent/v1/asp/sessions?ended=true{before}");
        SessionSummary::parse_list(&self.connection.request(Method::GET, &path, None, None).await?)
    }

    /// Returns how much the node trusts an agent, and why, as JSON: the score, its components with their weights, and the events
    /// that they come from.
    pub async fn trust_report(&self, agent: &AgentUri) -> Result<String, NodeError> {
        let path = format!("/agent/v1/asp/trust?agent={}", encode_query_value(agent.as_str()));
        self.connection.request(Method::GET, &path, None, None).await
    }
}

/// Percent-encodes a value of a query.
fn encode_query_value(value: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn text(value: &JsonValue<'_>, name: &str) -> Option<String> {
    value.member(name)?.text().map(std::borrow::Cow::into_owned)
}

/// Checks that a text is a JSON object.
fn object<'t>(text: &'t str, name: &str) -> Result<&'t str, NodeError> {
    let mut tape = Tape::default();
    match tape.read(text) {
        Ok(doc) if doc.root().kind() == JsonKind::Object => Ok(text),
        Ok(_) => Err(NodeError::Malformed(format!("{name} must be a JSON object"))),
        Err(error) => Err(NodeError::Malformed(format!("{name} is not JSON: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_node_and_the_token() {
        for (url, token, expected_url, expected_token) in [
            (None, None, DEFAULT_URL, None),
            (Some(""), Some(""), DEFAULT_URL, None),
            (Some("https://node.example"), Some("sayso_1"), "https://node.example", Some("sayso_1")),
        ] {
            let builder = Node::from_variables(|name| match name {
                "SAYSO_ASP_URL" => url.map(Into::into),
                "SAYSO_TOKEN" => token.map(Into::into),
                _ => None,
            });
            assert_eq!((builder.url.as_str(), builder.token.as_deref()), (expected_url, expected_token));
        }
    }

    #[test]
    fn terms_must_be_an_object_and_are_sent_unchanged() {
        let invitation = SessionInvitation::new("agent://a.example/b", "\"x\"").terms("{\"n\": 1.50}");
        let json = invitation.to_json().unwrap_or_default();
        assert_eq!(json, r#"{"peer":"agent://a.example/b","subject":"\"x\"","terms":{"n": 1.50}}"#);
        for terms in ["[]", "", "{}{}"] {
            let error = SessionInvitation::new("a", "b").terms(terms).to_json();
            assert!(matches!(error, Err(NodeError::Malformed(_))), "{terms}");
        }
    }

    #[test]
    fn query_values_are_encoded() {
        assert_eq!(encode_query_value("agent://a.b:1/c&d=e"), "agent%3A%2F%2Fa.b%3A1%2Fc%26d%3De");
    }
}
