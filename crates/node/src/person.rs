//! The hub through which a person is asked and hears what happens.

use std::sync::Arc;
use std::time::Duration;

use asp::message::{Commit, Escalate, TrustScore};
use asp::trust::TrustLevel;
use asp::{AgentCard, AgentUri, SessionId};
use client::{TrustRoots, Url};

use crate::records::ConsentRequest;

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
    config: PersonConfig,
}

/// A question to a person.
#[derive(Clone, Debug)]
pub(crate) struct PersonQuestion {
    pub(crate) session: SessionId,
    pub(crate) subject: String,
    pub(crate) own_agent: AgentUri,
    pub(crate) peer: Arc<AgentCard>,
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

/// What a question is about.
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
}

/// The person's answer.
#[derive(Clone, Debug)]
pub(crate) enum PersonAnswer {
    Accepted { receipt: String, signature: String },
    Answered { response: String, receipt: String, signature: String },
    Refused { reason: String },
}

impl Person {
    /// Creates the connection to a hub.
    pub fn new(config: PersonConfig) -> Result<Self, String> {
        Ok(Self { config })
    }

    pub(crate) async fn ask(&self, question: &PersonQuestion) -> Result<AskedQuestion, String> {
        let _ = (question, &self.config);
        Err("not implemented".to_owned())
    }

    pub(crate) async fn wait(&self, hub_session: &str, reply_token: &str) -> PersonAnswer {
        let _ = (hub_session, reply_token);
        PersonAnswer::Refused { reason: "not implemented".to_owned() }
    }

    pub(crate) async fn receipt_key(&self) -> Result<seal::es256::VerifyingKey, String> {
        Err("not implemented".to_owned())
    }

    pub(crate) async fn begin_call(
        &self,
        request: &ConsentRequest,
        question: &PersonQuestion,
    ) -> Result<(), String> {
        let _ = (request, question);
        Err("not implemented".to_owned())
    }

    pub(crate) async fn end_call(&self, request: &ConsentRequest, question: &PersonQuestion, is_done: bool) {
        let _ = (request, question, is_done);
    }
}
