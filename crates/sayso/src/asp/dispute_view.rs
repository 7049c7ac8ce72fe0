//! Disputes about the agreement of a session.

use ::asp::dispute::{Dispute, DisputeReason, Resolution, Severity, Verdict};
use ::asp::{DisputeId, MessageId};
use http::Method;
use seal::json::{JsonValue, Tape, write_object};

use super::error::NodeError;
use super::session::AspSession;
use super::{Node, text};

/// A complaint about the agreement of a session. The node collects the evidence from the transcript.
///
/// ```
/// use sayso::asp::Complaint;
/// use sayso::asp::dispute::{DisputeReason, Severity};
/// let complaint = Complaint::new(DisputeReason::NonDelivery)
///     .severity(Severity::SERIOUS)
///     .statement("Half of the menus are missing.");
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is filed until the complaint is passed to `file_dispute`"]
pub struct Complaint {
    reason: DisputeReason,
    severity: Severity,
    statement: Option<String>,
    messages: Vec<MessageId>,
}

/// A dispute as the node has recorded it.
///
/// ```
/// # async fn show(session: &sayso::asp::AspSession) -> Result<(), sayso::asp::NodeError> {
/// for dispute in session.disputes().await? {
///     match &dispute.resolution {
///         Some(resolution) => println!("{}: {}", dispute.dispute.dispute_id, resolution.explanation),
///         None => println!("{} waits for a person.", dispute.dispute.dispute_id),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisputeView {
    /// The complaint, with its evidence.
    pub dispute: Dispute,
    /// How it ended. `None` while a person has to decide it.
    pub resolution: Option<Resolution>,
    /// Identifies the question, while a person is asked.
    pub reply_token: Option<String>,
    /// Why the last question to a person was not answered. [`Node::ask_again_about_dispute`] asks again.
    pub unanswered: Option<String>,
    json: String,
}

impl Complaint {
    /// Complains for this reason, with the severity 3 (moderate).
    pub fn new(reason: DisputeReason) -> Self {
        Self { reason, severity: Severity::MODERATE, statement: None, messages: Vec::new() }
    }

    setters! {
        /// Sets the severity. The decision is never more severe.
        severity(severity: Severity) => severity = severity;

        /// Sets an explanation for the person who decides.
        statement(text: impl Into<String>) => statement = Some(text.into());

        /// Names messages that support the complaint, besides the COMMIT, its ACCEPT and the result.
        messages(ids: impl IntoIterator<Item = MessageId>) => messages = ids.into_iter().collect();
    }

    fn to_json(&self) -> String {
        write_object(|writer| {
            writer.key("reason").text(self.reason.as_str());
            writer.key("severity").integer(self.severity.get().into());
            if let Some(statement) = &self.statement {
                writer.key("statement").text(statement);
            }
            writer.key("messages").array(|writer| {
                self.messages.iter().for_each(|id| writer.text(&id.to_string()));
            });
        })
    }
}

impl DisputeView {
    /// Returns the dispute as the JSON that the node sent.
    pub fn as_json(&self) -> &str {
        &self.json
    }

    fn parse(json: &str) -> Result<Self, NodeError> {
        let mut tape = Tape::default();
        let view = tape.read(json).ok().and_then(|doc| Self::read(&doc.root()));
        view.ok_or_else(|| NodeError::UnexpectedResponse("the dispute cannot be read".to_owned()))
    }

    fn read(value: &JsonValue<'_>) -> Option<Self> {
        let resolution = value.member("resolution").map(|resolution| Resolution::parse(resolution.source()));
        Some(Self {
            dispute: Dispute::parse(value.member("dispute")?.source()).ok()?,
            resolution: resolution.transpose().ok()?,
            reply_token: text(value, "reply_token"),
            unanswered: text(value, "unanswered"),
            json: value.source().to_owned(),
        })
    }
}

impl AspSession {
    /// Files a dispute about the agreement of this session. The node decides it at once if the rules can.
    pub async fn file_dispute(&self, complaint: &Complaint) -> Result<DisputeView, NodeError> {
        let path = format!("{}/disputes", self.path());
        let response = self.connection.request(Method::POST, &path, Some(complaint.to_json()), None).await?;
        DisputeView::parse(&response)
    }

    /// Returns the disputes about this session that the node has recorded.
    pub async fn disputes(&self) -> Result<Vec<DisputeView>, NodeError> {
        let path = format!("{}/disputes", self.path());
        let response = self.connection.request(Method::GET, &path, None, None).await?;
        let mut tape = Tape::default();
        let disputes = tape.read(&response).ok().and_then(|doc| {
            let disputes = doc.root().member("disputes")?;
            disputes.items().map(|dispute| DisputeView::read(&dispute)).collect()
        });
        disputes.ok_or_else(|| NodeError::UnexpectedResponse("the disputes cannot be read".to_owned()))
    }
}

impl Node {
    /// Returns a dispute.
    pub async fn dispute(&self, id: &DisputeId) -> Result<DisputeView, NodeError> {
        let path = format!("/agent/v1/asp/disputes/{id}");
        DisputeView::parse(&self.connection.request(Method::GET, &path, None, None).await?)
    }

    /// Ends a dispute. If the node has a hub, its person decides, and the program can only settle or withdraw the dispute.
    pub async fn resolve_dispute(
        &self,
        id: &DisputeId,
        verdict: Verdict,
        explanation: &str,
    ) -> Result<DisputeView, NodeError> {
        let (name, severity) = match verdict {
            Verdict::Upheld(severity) => ("upheld", Some(severity)),
            Verdict::Dismissed => ("dismissed", None),
            Verdict::Settled => ("settled", None),
            Verdict::Withdrawn => ("withdrawn", None),
        };
        let request = write_object(|writer| {
            writer.key("verdict").text(name);
            if let Some(severity) = severity {
                writer.key("severity").integer(severity.get().into());
            }
            writer.key("explanation").text(explanation);
        });
        self.post_verdict(id, request).await
    }

    /// Asks the person again about a dispute after a question that was not answered.
    pub async fn ask_again_about_dispute(&self, id: &DisputeId) -> Result<DisputeView, NodeError> {
        let request = write_object(|writer| writer.key("verdict").text("ask_again"));
        self.post_verdict(id, request).await
    }

    async fn post_verdict(&self, id: &DisputeId, request: String) -> Result<DisputeView, NodeError> {
        let path = format!("/agent/v1/asp/disputes/{id}");
        DisputeView::parse(&self.connection.request(Method::POST, &path, Some(request), None).await?)
    }
}
