//! The text of a question about a dispute.

use std::sync::Arc;
use std::time::Duration;

use asp::AgentCard;
use asp::dispute::DisputeReason;
use seal::json::write_object;
use seal::{Timestamp, UnixMillis};

use super::phrases::{LocalizedText, Phrases, spoken_time};
use super::questions::{MAX_SUBJECT_CHARS, check_length, foreign_text, write_timeout};
use super::{PeerName, one_line};
use crate::dispute_questions::{JUSTIFIED, NOT_JUSTIFIED};

/// Maximum length of the agent's name that the hub accepts, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Maximum length of what our agent says about its complaint, in characters.
const MAX_STATEMENT_CHARS: usize = 1_000;

/// A question about a complaint of our agent.
#[derive(Clone, Debug)]
pub(crate) struct DisputeQuestion {
    pub(crate) own_name: String,
    pub(crate) peer: Arc<AgentCard>,
    pub(crate) subject: String,
    pub(crate) reason: DisputeReason,
    /// What our agent says about it.
    pub(crate) statement: Option<String>,
    /// What the other side promised, and until when.
    pub(crate) promises: Vec<(String, Timestamp)>,
    pub(crate) timeout: Duration,
}

impl DisputeQuestion {
    /// Returns the body of the request that starts the hub's session.
    pub(crate) fn session_start(&self) -> String {
        let summary = self.summary();
        write_object(|writer| {
            summary.write(writer, "summary_normal");
            writer.key("producer").object(|writer| {
                writer.key("agent_name").text(&one_line(&self.own_name, MAX_NAME_CHARS));
            });
            writer.key("localization_hints").object(|writer| writer.key("primary_language").text("en"));
        })
    }

    /// Returns the body of the request that asks the question, or why it cannot be put to a person.
    pub(super) fn to_json(&self, now: UnixMillis) -> Result<String, String> {
        let question = LocalizedText::new(|phrases| self.question(phrases, now));
        check_length(&question)?;
        let name = PeerName::of(&self.peer).name;
        let context = LocalizedText::new(|phrases| phrases.dispute_consequence(&name));
        let summary = self.summary();
        Ok(write_object(|writer| {
            question.write(writer, "question");
            context.write(writer, "context");
            summary.write(writer, "summary_normal");
            writer.key("accepted_response_kinds").array(|writer| writer.text("multiple_choice"));
            for (suffix, phrases) in LocalizedText::languages() {
                writer.key(&format!("choices{suffix}")).array(|writer| {
                    let [justified, not_justified] = phrases.dispute_choices();
                    for (value, label) in [(JUSTIFIED, justified), (NOT_JUSTIFIED, not_justified)] {
                        writer.object(|writer| writer.text_members([("value", value), ("label", label)]));
                    }
                });
            }
            write_timeout(self.timeout, writer);
        }))
    }

    fn summary(&self) -> LocalizedText {
        let name = PeerName::of(&self.peer).name;
        LocalizedText::new(|phrases| phrases.dispute_summary(&name))
    }

    /// Who is accused of what, what it promised, and what our agent says.
    fn question(&self, phrases: &dyn Phrases, now: UnixMillis) -> String {
        let peer = PeerName::of(&self.peer);
        let subject = foreign_text(&one_line(&self.subject, MAX_SUBJECT_CHARS));
        let mut sentences = vec![phrases.dispute(&peer.in_full(phrases), &subject)];
        sentences.push(phrases.dispute_reason(self.reason, &peer.name));
        for (action, deadline) in &self.promises {
            let deadline = spoken_time(phrases, deadline, now);
            sentences.push(phrases.promised(&peer.name, &foreign_text(action), &deadline));
        }
        if let Some(statement) = &self.statement {
            let statement = foreign_text(&one_line(statement, MAX_STATEMENT_CHARS));
            sentences.push(phrases.dispute_statement(&statement));
        }
        sentences.push(phrases.dispute_question().to_owned());
        sentences.join(" ")
    }
}
