//! Disputes about accepted commitments (D28): filed by the agent's program, decided by the rules where the transcript is enough, and
//! otherwise by a person through the agent's program.

use std::sync::Arc;

use asp::dispute::{
    Decision, Dispute, DisputeFiling, DisputeReason, Resolution, Resolver, Severity, Verdict,
};
use asp::escrow::EscrowId;
use asp::{CommitmentId, DisputeId, MessageId, SessionId};
use seal::json::{Tape, write_object};
use seal::{SystemRandom, Timestamp};
use wire::unix_now;

use crate::NodeError;
use crate::node::Node;
use crate::records::NodeRecord;

/// A complaint of the agent's program.
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
        let commitment =
            agreed_commitment(record).ok_or_else(|| refuse("the session has no agreement".to_owned()))?;
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
        let mut records = vec![NodeRecord::Dispute { record: filed_json(&dispute) }];
        if let Decision::Decided(resolution) = decision {
            records.extend(resolution_records(&dispute, &resolution));
        }
        drop(state);
        self.append_node_records(records).await?;
        self.peers().dispute_to_json(&id).ok_or(NodeError::UnknownSession)
    }

    /// Records how a person decided a dispute, or that the complaint was taken back. Returns the dispute as JSON.
    pub(crate) async fn resolve_dispute(
        self: &Arc<Self>,
        id: &DisputeId,
        verdict: Verdict,
        explanation: String,
    ) -> Result<String, NodeError> {
        let refuse =
            |reason: String| NodeError::Refused(asp::Refusal::new(asp::RejectCode::PolicyViolation, reason));
        let dispute = self.peers().open_dispute(id).map_err(|error| refuse(error.to_string()))?;
        let resolved_by = match verdict {
            Verdict::Settled | Verdict::Withdrawn => Resolver::Parties,
            Verdict::Upheld(_) | Verdict::Dismissed => Resolver::Person("operator".to_owned()),
        };
        let resolved_at = Timestamp::from_unix_millis(unix_now()).ok_or(NodeError::Stopping)?;
        let resolution =
            Resolution { dispute_id: id.clone(), verdict, resolved_by, explanation, resolved_at };
        self.peers().check_resolution(&resolution).map_err(|error| refuse(error.to_string()))?;
        self.append_node_records(resolution_records(&dispute, &resolution)).await?;
        self.peers().dispute_to_json(id).ok_or(NodeError::UnknownSession)
    }
}

/// Returns the commitment that was accepted in a session, open or ended.
fn agreed_commitment(record: &asp::SessionRecord) -> Option<CommitmentId> {
    let session = record.session();
    let ended = session.outcome().and_then(|outcome| outcome.commitment.as_ref());
    session.commitment().or(ended).map(|commitment| commitment.commit().commitment_id.clone())
}

/// Returns the facts of a resolution: the resolution itself, and what it means for trust.
fn resolution_records(dispute: &Dispute, resolution: &Resolution) -> Vec<NodeRecord> {
    let resolved = write_object(|writer| writer.key("resolved").raw(&resolution.to_json()));
    let mut records = vec![NodeRecord::Dispute { record: resolved }];
    records.extend(resolution.trust_event(dispute).map(|event| NodeRecord::Trust { event: event.to_json() }));
    records
}

fn filed_json(dispute: &Dispute) -> String {
    write_object(|writer| writer.key("filed").raw(&dispute.to_json()))
}

/// A stored fact about a dispute.
pub(crate) enum DisputeRecord {
    Filed(Box<Dispute>),
    Resolved(Resolution),
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
            _ => None,
        }
    }
}
