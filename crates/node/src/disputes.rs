//! Disputes about accepted commitments (D28): filed by the agent's program, decided by the rules where the transcript is enough, and
//! otherwise by a person through the hub. Without a hub, the agent's program reports what a person decided.

use std::sync::Arc;

use asp::dispute::{
    Decision, Dispute, DisputeFiling, DisputeReason, Resolution, Resolver, Severity, Verdict,
};
use asp::escrow::EscrowId;
use asp::{DisputeId, MessageId, SessionId};
use seal::json::{Tape, write_object};
use seal::{SystemRandom, Timestamp, UnixMillis};
use wire::unix_now;

use crate::NodeError;
use crate::dispute_questions::{OpenQuestion, agreed_commitment};
use crate::node::Node;
use crate::records::NodeRecord;

/// A complaint from the agent's program.
#[derive(Clone, Debug)]
pub(crate) struct DisputeRequest {
    pub(crate) reason: DisputeReason,
    pub(crate) severity: Severity,
    pub(crate) statement: Option<String>,
    /// Messages that support the complaint.
    pub(crate) messages: Vec<MessageId>,
}

impl Node {
    /// Files a dispute about the agreement of a session, and decides it if the rules can. Returns it as JSON.
    pub(crate) async fn file_dispute(
        self: &Arc<Self>,
        session: SessionId,
        request: DisputeRequest,
    ) -> Result<String, NodeError> {
        let handle = self.session(session).await?;
        let state = self.lock(&handle).await?;
        let refuse =
            |reason: String| NodeError::Refused(asp::Refusal::new(asp::RejectCode::PolicyViolation, reason));
        let record = state.participant.record().ok_or(NodeError::UnknownSession)?;
        let commitment = agreed_commitment(record.session())
            .map(|commitment| commitment.commit().commitment_id.clone())
            .ok_or_else(|| refuse("the session has no agreement".to_owned()))?;
        let now = Timestamp::from_unix_millis(unix_now()).ok_or(NodeError::Stopping)?;
        let id = DisputeId::parse(&format!("dsp_{}", MessageId::generate(unix_now(), &mut SystemRandom)))
            .map_err(|error| refuse(error.to_string()))?;
        let filing = DisputeFiling {
            dispute_id: id.clone(),
            commitment_id: commitment.clone(),
            filed_by: handle.info.own.agent_id().clone(),
            reason: request.reason,
            severity: request.severity,
            statement: request.statement,
            messages: request.messages,
            filed_at: now,
        };
        let dispute = Dispute::file(filing, record).map_err(|error| refuse(error.to_string()))?;
        let escrow_id = EscrowId { session_id: session, commitment_id: commitment };
        let escrow = self.peers().escrow.status(&escrow_id);
        let decision = dispute.decide(record, escrow, now).map_err(|error| refuse(error.to_string()))?;
        self.peers().check_dispute(&dispute).map_err(|error| refuse(error.to_string()))?;
        let record = DisputeRecord::Filed(Box::new(dispute.clone())).to_json();
        let mut records = vec![NodeRecord::Dispute { record }];
        let needs_person = match decision {
            Decision::Decided(resolution) => {
                records.extend(resolution_records(&dispute, &resolution));
                false
            }
            Decision::NeedsPerson => true,
        };
        drop(state);
        self.append_node_records(records).await?;
        if needs_person {
            self.start_dispute_question(id.clone());
        }
        self.peers().dispute_to_json(&id).ok_or(NodeError::UnknownSession)
    }

    /// Records how a person decided a dispute, or that the complaint was withdrawn. Returns the dispute as JSON.
    pub(crate) async fn resolve_dispute(
        self: &Arc<Self>,
        id: &DisputeId,
        verdict: Verdict,
        explanation: String,
    ) -> Result<String, NodeError> {
        let refuse =
            |reason: String| NodeError::Refused(asp::Refusal::new(asp::RejectCode::PolicyViolation, reason));
        let is_decision = matches!(verdict, Verdict::Upheld(_) | Verdict::Dismissed);
        if is_decision && self.asks_about_disputes() {
            return Err(refuse("the person decides this dispute through the hub".to_owned()));
        }
        let _resolving = self.resolving.lock().await;
        let dispute = self.peers().open_dispute(id).map_err(|error| refuse(error.to_string()))?;
        let resolved_by = match verdict {
            Verdict::Settled | Verdict::Withdrawn => Resolver::Parties,
            Verdict::Upheld(_) | Verdict::Dismissed => Resolver::Person("operator".to_owned()),
        };
        let explanation = if explanation.trim().is_empty() {
            // A stored resolution always has an explanation.
            let default = match verdict {
                Verdict::Upheld(_) => "a person upheld the complaint",
                Verdict::Dismissed => "a person dismissed the complaint",
                Verdict::Settled => "the parties agreed",
                Verdict::Withdrawn => "the complaint was taken back",
            };
            default.to_owned()
        } else {
            explanation
        };
        let resolved_at = Timestamp::from_unix_millis(unix_now()).ok_or(NodeError::Stopping)?;
        let resolution =
            Resolution { dispute_id: id.clone(), verdict, resolved_by, explanation, resolved_at };
        self.peers().check_resolution(&resolution).map_err(|error| refuse(error.to_string()))?;
        self.append_node_records(resolution_records(&dispute, &resolution)).await?;
        self.disputes_changed.notify_waiters();
        self.peers().dispute_to_json(id).ok_or(NodeError::UnknownSession)
    }

    /// Asks the person again about a dispute after a question that was not answered. Returns the dispute as JSON.
    pub(crate) async fn ask_again_about_dispute(
        self: &Arc<Self>,
        id: &DisputeId,
    ) -> Result<String, NodeError> {
        let refuse =
            |reason: &str| NodeError::Refused(asp::Refusal::new(asp::RejectCode::PolicyViolation, reason));
        if !self.asks_about_disputes() {
            return Err(refuse("the node has no hub, or its policy does not ask about disputes"));
        }
        let _resolving = self.resolving.lock().await;
        self.peers().open_dispute(id).map_err(|error| refuse(&error.to_string()))?;
        if self.peers().dispute_question(id).unanswered.is_none() {
            return Err(refuse("the person is being asked"));
        }
        let record = DisputeRecord::AskAgain { id: id.clone() };
        self.append_node_records(vec![NodeRecord::Dispute { record: record.to_json() }]).await?;
        self.start_dispute_question(id.clone());
        self.peers().dispute_to_json(id).ok_or(NodeError::UnknownSession)
    }
}

/// Returns the facts of a resolution: the resolution itself, and its effects on trust.
pub(crate) fn resolution_records(dispute: &Dispute, resolution: &Resolution) -> Vec<NodeRecord> {
    let record = DisputeRecord::Resolved(resolution.clone()).to_json();
    let mut records = vec![NodeRecord::Dispute { record }];
    records.extend(resolution.trust_event(dispute).map(|event| NodeRecord::Trust { event: event.to_json() }));
    records
}

/// A stored fact about a dispute.
pub(crate) enum DisputeRecord {
    Filed(Box<Dispute>),
    Resolved(Resolution),
    /// A person is asked.
    Asked {
        id: DisputeId,
        question: OpenQuestion,
    },
    /// The question was not answered.
    Unanswered {
        id: DisputeId,
        reason: String,
    },
    /// The person must be asked again.
    AskAgain {
        id: DisputeId,
    },
    /// The person answered. The resolution follows.
    Answered {
        id: DisputeId,
        receipt: String,
        signature: String,
    },
}

impl DisputeRecord {
    pub(crate) fn parse(json: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(json).ok()?;
        let (kind, value) = doc.root().members().next()?;
        match kind.text().as_deref() {
            Some("filed") => {
                Dispute::parse(value.source()).ok().map(|dispute| Self::Filed(Box::new(dispute)))
            }
            Some("resolved") => Resolution::parse(value.source()).ok().map(Self::Resolved),
            Some(kind) => {
                let text = |name: &str| Some(value.member(name)?.text()?.into_owned());
                let id = DisputeId::parse(&text("disputeId")?).ok()?;
                Some(match kind {
                    "asked" => Self::Asked {
                        id,
                        question: OpenQuestion {
                            hub_session: text("hub_session")?,
                            reply_token: text("reply_token")?,
                            deadline: UnixMillis::new(value.member("deadline")?.as_number()?.as_i64()?),
                        },
                    },
                    "unanswered" => Self::Unanswered { id, reason: text("reason")? },
                    "ask_again" => Self::AskAgain { id },
                    "answered" => Self::Answered {
                        id,
                        receipt: value.member("receipt")?.source().to_owned(),
                        signature: text("signature")?,
                    },
                    _ => return None,
                })
            }
            None => None,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        write_object(|writer| match self {
            Self::Filed(dispute) => writer.key("filed").raw(&dispute.to_json()),
            Self::Resolved(resolution) => writer.key("resolved").raw(&resolution.to_json()),
            Self::Asked { id, question } => writer.key("asked").object(|writer| {
                writer.text_members([
                    ("disputeId", id.as_str()),
                    ("hub_session", &question.hub_session),
                    ("reply_token", &question.reply_token),
                ]);
                writer.key("deadline").integer(question.deadline.get());
            }),
            Self::Unanswered { id, reason } => writer.key("unanswered").object(|writer| {
                writer.text_members([("disputeId", id.as_str()), ("reason", reason)]);
            }),
            Self::AskAgain { id } => {
                writer.key("ask_again").object(|writer| writer.key("disputeId").text(id.as_str()));
            }
            Self::Answered { id, receipt, signature } => writer.key("answered").object(|writer| {
                writer.text_members([("disputeId", id.as_str()), ("signature", signature)]);
                writer.key("receipt").raw(receipt);
            }),
        })
    }
}
