//! The hub through which a person is asked and hears what happens.
//!
//! - [`Person`]: the hub's agent API.
//! - `hub_client`, `hub_socket`: requests, and the WebSocket that keeps sessions alive.
//! - `hub_session`: the hub's session that belongs to an ASP session, and the events that wait to be announced in it.
//! - `questions`: the texts of questions about messages. `dispute_question`: the text of a question about a dispute. `phrases`: the languages.

mod dispute_question;
mod hub_client;
mod hub_session;
mod hub_socket;
pub(crate) mod phrases;
mod questions;

use std::sync::Arc;
use std::time::Duration;

use asp::message::{Commit, Escalate, TrustScore};
use asp::trust::TrustLevel;
use asp::{AgentCard, AgentUri};
use client::{Backoff, HttpClient, TrustRoots, Url};
use seal::json::{JsonValue, Tape, write_object};
use seal::{Jwk, Timestamp, UnixMillis, es256};
use tokio::sync::OnceCell;
use wire::unix_now;

pub(crate) use dispute_question::DisputeQuestion;
pub(crate) use hub_client::HubError;
use hub_client::{ANSWER_TIMEOUT, HubClient};
pub(crate) use hub_session::{EventKind, HubSession, HubSessionState, NarrationEvent};
use hub_socket::HubSocket;
use phrases::LocalizedText;
use questions::CLARIFICATIONS;
pub(crate) use questions::{PeerName, one_line};

use crate::records::ConsentRequest;

/// How long one request waits for an answer.
const REPLY_WAIT: Duration = Duration::from_secs(25);
/// The delays between attempts to reach the hub.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
/// How often a call is announced to a hub that does not answer. The session is locked during that time.
const CALL_ATTEMPTS: u32 = 3;

/// Where the person is asked.
#[derive(Clone, Debug)]
pub struct PersonConfig {
    /// The hub's address.
    pub hub: Url,
    /// The token of an agent of that hub.
    pub token: Option<String>,
    /// The trusted TLS certificates of the hub.
    pub trust_roots: TrustRoots,
}

/// The hub through which a person is asked.
#[derive(Debug)]
pub struct Person {
    client: HubClient,
    socket: HubSocket,
    /// The hub's key when the process first needed it. Receipts with another key are not accepted.
    receipt_key: OnceCell<es256::VerifyingKey>,
}

/// A question to a person.
#[derive(Clone, Debug)]
pub(crate) struct PersonQuestion {
    pub(crate) subject: String,
    pub(crate) own_agent: AgentUri,
    pub(crate) peer: Arc<AgentCard>,
    /// Whether the operator pinned the peer's card. Otherwise, it was pinned on first contact.
    pub(crate) is_pinned_by_operator: bool,
    /// Our own trust in the peer.
    pub(crate) score: TrustScore,
    pub(crate) level: TrustLevel,
    pub(crate) kind: QuestionKind,
    /// The call to which the answer is bound. An escalation has none.
    pub(crate) call: Option<BoundCall>,
    pub(crate) timeout: Duration,
}

/// The call to which an answer is bound: for the hub, sending a message is a tool call.
#[derive(Clone, Debug)]
pub(crate) struct BoundCall {
    pub(crate) tool: &'static str,
    /// Canonical JSON.
    pub(crate) arguments: String,
}

/// The kinds of questions.
#[derive(Clone, Debug)]
pub(crate) enum QuestionKind {
    /// Our agent wants to make this commitment.
    Commit(Commit),
    /// Our agent wants to accept this commitment of the peer.
    Accept(Commit),
    /// Our agent wants somebody to decide.
    Escalation(Escalate),
}

impl QuestionKind {
    /// Returns the commitment that would be accepted.
    pub(crate) fn accepted_commitment(&self) -> Option<&Commit> {
        match self {
            Self::Accept(commit) => Some(commit),
            _ => None,
        }
    }
}

/// A question that the hub has accepted.
#[derive(Clone, Debug)]
pub(crate) struct AskedQuestion {
    pub(crate) hub_session: String,
    pub(crate) reply_token: String,
    /// When it counts as refused, unless the person asks for more time.
    pub(crate) deadline: UnixMillis,
}

/// The person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PersonAnswer {
    Accepted { receipt: String, signature: String },
    Answered { response: String, receipt: String, signature: String },
    Refused { reason: String },
}

impl Person {
    /// Creates the connection to a hub.
    pub fn new(config: PersonConfig) -> Result<Self, String> {
        let mut http = HttpClient::new(config.hub).with_trust_roots(config.trust_roots);
        if let Some(token) = &config.token {
            http = http.with_token(token).map_err(|error| error.to_string())?;
        }
        let socket = HubSocket::new(http.clone());
        Ok(Self { client: HubClient::new(http), socket, receipt_key: OnceCell::new() })
    }

    /// Starts a session of the hub.
    pub(crate) async fn start_session(&self, body: &str, key: &str) -> Result<String, HubError> {
        let response = self.post_or_repeat("/agent/v1/sessions", body, key).await?;
        let id = read_member(&response, "session_id")?;
        self.socket.follow(&id);
        Ok(id)
    }

    /// Keeps a session of the hub alive.
    pub(crate) fn follow(&self, hub_session: &str) {
        self.socket.follow(hub_session);
    }

    /// Stops following a session of the hub that has ended.
    pub(crate) fn unfollow(&self, hub_session: &str) {
        self.socket.unfollow(hub_session);
    }

    /// Returns whether the person stopped a session that has ended.
    pub(crate) async fn has_stopped(&self, hub_session: &str) -> bool {
        self.socket.end_reason(hub_session).await.as_deref() == Some("user")
    }

    /// Reports an event. Repeating it has no effect.
    pub(crate) async fn report(&self, hub_session: &str, event: &str, key: &str) -> Result<(), HubError> {
        let path = format!("/agent/v1/sessions/{hub_session}/events");
        match self.client.post(&path, event, key).await {
            // The event was reported before a restart, with a different text.
            Err(error) if error.is_conflict() => Ok(()),
            result => result.map(drop),
        }
    }

    /// Asks a question in a session of the hub. The hub's receipt key is known from then on.
    pub(crate) async fn ask(
        &self,
        hub_session: &str,
        question: &PersonQuestion,
        key: &str,
    ) -> Result<AskedQuestion, HubError> {
        let refuse = |title| HubError::Refused { status: 422, title };
        let body = question.to_json(unix_now()).map_err(refuse)?;
        self.ask_question(hub_session, question.path(), &body, question.timeout, key).await
    }

    /// Asks a question about a dispute in a session of the hub.
    pub(crate) async fn ask_about_dispute(
        &self,
        hub_session: &str,
        question: &DisputeQuestion,
        key: &str,
    ) -> Result<AskedQuestion, HubError> {
        let refuse = |title| HubError::Refused { status: 422, title };
        let body = question.to_json(unix_now()).map_err(refuse)?;
        self.ask_question(hub_session, CLARIFICATIONS, &body, question.timeout, key).await
    }

    async fn ask_question(
        &self,
        hub_session: &str,
        kind: &str,
        body: &str,
        timeout: Duration,
        key: &str,
    ) -> Result<AskedQuestion, HubError> {
        self.check_receipt_key().await?;
        let path = format!("/agent/v1/sessions/{hub_session}/{kind}");
        let response = self.post_or_repeat(&path, body, key).await?;
        let deadline = read_member(&response, "deadline")?;
        let deadline = Timestamp::parse_rfc3339(&deadline).map(|at| at.unix_millis());
        Ok(AskedQuestion {
            hub_session: hub_session.to_owned(),
            reply_token: read_member(&response, "reply_token")?,
            deadline: deadline.unwrap_or_else(|_| deadline_after(timeout)),
        })
    }

    /// Sends a request. If its key was used for another body, for example because the trust in the peer has changed since a
    /// crash, sends it with another key.
    async fn post_or_repeat(&self, path: &str, body: &str, key: &str) -> Result<String, HubError> {
        match self.client.post(path, body, key).await {
            Err(error) if error.is_conflict() => {
                let id = asp::MessageId::generate(unix_now(), &mut seal::SystemRandom);
                self.client.post(path, body, &format!("{key}-{id}")).await
            }
            result => result,
        }
    }

    /// Waits for the answer to a question. While the hub does not answer, retries until the deadline. Anything but a
    /// person's answer counts as a no.
    pub(crate) async fn wait(
        &self,
        hub_session: &str,
        reply_token: &str,
        deadline: UnixMillis,
    ) -> PersonAnswer {
        let path = reply_path(hub_session, reply_token);
        let path = format!("{path}?wait={}", REPLY_WAIT.as_secs());
        let mut backoff = BACKOFF;
        loop {
            match self.client.get(&path, REPLY_WAIT).await {
                Ok(response) => {
                    backoff = BACKOFF;
                    if let Some(answer) = read_answer(&response) {
                        return answer;
                    }
                }
                Err(error) if error.is_not_found() => {
                    return PersonAnswer::Refused {
                        reason: "the hub no longer knows the question".to_owned(),
                    };
                }
                Err(error) if !error.is_temporary() || unix_now() >= deadline => {
                    return PersonAnswer::Refused { reason: format!("there is no answer: {error}") };
                }
                Err(_) => {
                    tokio::time::sleep(backoff.delay()).await;
                    backoff.grow();
                }
            }
        }
    }

    /// Withdraws a question.
    pub(crate) async fn withdraw(&self, hub_session: &str, reply_token: &str) {
        if let Err(error) = self.client.delete(&reply_path(hub_session, reply_token)).await {
            tracing::debug!(target: "sayso::log", kind = "asp.hub_failed", %error);
        }
    }

    /// Returns the key with which the hub signs receipts. It is fetched once and then stays the same.
    pub(crate) async fn receipt_key(&self) -> Result<&es256::VerifyingKey, HubError> {
        self.receipt_key.get_or_try_init(|| self.fetch_receipt_key()).await
    }

    /// Checks before a question is asked that the hub still has the key with which its answer will be verified. Otherwise, a
    /// person would be asked in vain.
    async fn check_receipt_key(&self) -> Result<(), HubError> {
        if self.receipt_key.get().is_none() {
            return self.receipt_key().await.map(drop);
        }
        if self.fetch_receipt_key().await? == *self.receipt_key().await? {
            return Ok(());
        }
        tracing::error!(
            target: "sayso::log",
            kind = "asp.hub_key_changed",
            "The hub's receipt key has changed. Nobody is asked until the node is restarted."
        );
        Err(HubError::KeyChanged)
    }

    async fn fetch_receipt_key(&self) -> Result<es256::VerifyingKey, HubError> {
        let text = self.client.get("/.well-known/sayso-receipt-key.json", Duration::ZERO).await?;
        let mut tape = Tape::default();
        let key = tape.read(&text).ok().and_then(|doc| Jwk::read(&doc.root()).ok());
        match key {
            Some(Jwk::P256(key)) => Ok(key),
            _ => Err(HubError::Unreachable("its receipt key cannot be read".to_owned())),
        }
    }

    /// Checks that the hub signed this answer to this question, and that a person gave it.
    pub(crate) async fn check_answer(
        &self,
        reply_token: &str,
        response: &str,
        receipt: &str,
        signature: &str,
    ) -> Result<(), String> {
        let key = Jwk::P256(self.receipt_key().await.map_err(|error| error.to_string())?.clone());
        let mut tape = Tape::default();
        let doc = tape.read(receipt).map_err(|_| "the receipt is not JSON")?;
        let receipt = doc.root();
        let canonical = seal::canonicalize(&receipt).map_err(|_| "the receipt has no canonical form")?;
        seal::jws::verify_detached(signature, canonical.as_bytes(), &key)
            .map_err(|error| format!("the receipt's signature is invalid: the JWS {error}"))?;
        for (name, expected) in
            [("type", "sayso:receipt"), ("by", "reply"), ("reply_token", reply_token), ("response", response)]
        {
            if receipt.member(name).is_none_or(|value| value.text().as_deref() != Some(expected)) {
                return Err(format!("the member {name} of the receipt is missing or wrong"));
            }
        }
        Ok(())
    }

    /// Announces the call to which the person said yes. The hub accepts it only if the yes is for exactly this call, still
    /// valid and not used. Repeating it after a crash has no effect.
    pub(crate) async fn begin_call(
        &self,
        request: &ConsentRequest,
        question: &PersonQuestion,
    ) -> Result<(), HubError> {
        let Some(call) = &question.call else { return Ok(()) };
        let name = PeerName::of(&question.peer).name;
        let summary = LocalizedText::new(|phrases| match &question.kind {
            QuestionKind::Accept(_) => phrases.accepting(&name),
            _ => phrases.sending(&name),
        });
        let event = write_object(|writer| {
            writer.text_members([
                ("type", "aaep:agent.tool.invoked"),
                ("tool", call.tool),
                ("tool_call_id", &*request.id),
                ("risk_level", "high"),
            ]);
            writer.key("irreversible").boolean(true);
            summary.write(writer, "summary_normal");
            writer.key("arguments").raw(&call.arguments);
        });
        let path = format!("/agent/v1/sessions/{}/events", request.hub_session);
        let key = format!("asp-call-{}", request.id);
        let mut backoff = BACKOFF;
        for _ in 1..CALL_ATTEMPTS {
            match self.client.post(&path, &event, &key).await {
                Err(error) if error.is_temporary() => {}
                result => return result.map(drop),
            }
            tokio::time::sleep(backoff.delay()).await;
            backoff.grow();
        }
        self.client.post(&path, &event, &key).await.map(drop)
    }
}

/// Returns when a question that is asked now expires.
pub(crate) fn deadline_after(timeout: Duration) -> UnixMillis {
    unix_now().saturating_add(i64::try_from((timeout + ANSWER_TIMEOUT).as_millis()).unwrap_or(i64::MAX))
}

fn reply_path(hub_session: &str, reply_token: &str) -> String {
    format!("/agent/v1/sessions/{hub_session}/replies/{reply_token}")
}

fn read_member(response: &str, name: &str) -> Result<String, HubError> {
    let mut tape = Tape::default();
    let value = tape.read(response).ok().and_then(|doc| member(&doc.root(), name));
    value.ok_or_else(|| HubError::Unreachable(format!("its answer has no {name}")))
}

fn member(value: &JsonValue<'_>, name: &str) -> Option<String> {
    Some(value.member(name)?.text()?.into_owned())
}

/// Reads the answer to a question; `None` while there is none.
fn read_answer(response: &str) -> Option<PersonAnswer> {
    let refuse = |reason: &str| Some(PersonAnswer::Refused { reason: reason.to_owned() });
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(response) else { return refuse("the hub's answer cannot be read") };
    let root = doc.root();
    match member(&root, "status").as_deref() {
        Some("pending") => return None,
        Some("resolved") => {}
        Some("stopped") => return refuse("the person stopped the session"),
        _ => return refuse("the hub's answer cannot be read"),
    }
    match member(&root, "by").as_deref() {
        Some("reply") => {}
        Some("timeout") => return refuse("the person did not answer in time"),
        Some("closure") => return refuse("the person has left without an answer"),
        Some("unreachable") => return refuse("nobody is connected to the hub who could be asked"),
        Some("cancelled") => return refuse("the question was withdrawn"),
        Some("stopped") => return refuse("the person stopped the session"),
        _ => return refuse("nobody answered"),
    }
    let receipt = root.member("receipt").map(|receipt| receipt.source().to_owned());
    let (Some(receipt), Some(signature)) = (receipt, member(&root, "receipt_signature")) else {
        return refuse("the hub's answer has no signed receipt");
    };
    if let Some(response) = member(&root, "response") {
        return Some(PersonAnswer::Answered { response, receipt, signature });
    }
    match member(&root, "decision").as_deref() {
        Some("accept") => Some(PersonAnswer::Accepted { receipt, signature }),
        _ => refuse("the person said no"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reply_of_a_person_is_an_answer() {
        let read =
            |members: &str| read_answer(&format!(r#"{{"receipt":{{}},"receipt_signature":"s",{members}}}"#));
        let accepted = read(r#""status":"resolved","decision":"accept","by":"reply""#);
        assert_eq!(
            accepted,
            Some(PersonAnswer::Accepted { receipt: "{}".to_owned(), signature: "s".to_owned() })
        );
        assert_eq!(read(r#""status":"pending""#), None);
        for members in [
            r#""status":"resolved","decision":"reject","by":"reply""#,
            r#""status":"resolved","decision":"accept","by":"timeout""#,
            r#""status":"resolved","decision":"accept","by":"closure""#,
            r#""status":"resolved","decision":"accept","by":"unreachable""#,
            r#""status":"resolved","decision":"accept","by":"cancelled""#,
            r#""status":"resolved","decision":"accept""#,
            r#""status":"resolved","by":"reply""#,
            r#""status":"stopped","decision":"accept","by":"reply""#,
            r#""decision":"accept","by":"reply""#,
        ] {
            assert!(matches!(read(members), Some(PersonAnswer::Refused { .. })), "{members}");
        }
        for response in ["", "[]", r#"{"status":"resolved","decision":"accept","by":"reply"}"#] {
            assert!(matches!(read_answer(response), Some(PersonAnswer::Refused { .. })), "{response}");
        }
    }
}
