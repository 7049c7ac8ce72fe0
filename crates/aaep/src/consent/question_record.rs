//! The stored form of questions, so that questions survive a crash. Member names and status names are
//! part of the stored format, so they stay the same when a Rust name changes.

use seal::{Digest, UnixMillis};

use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::json::{JsonKind, JsonValue, JsonWriter, Tape, write_object};
use crate::message::ClarificationResponse;
use crate::record::FieldValue;
use crate::session::question_rules::AcceptedResponses;

use super::question::QuestionSubject;
use super::{Question, QuestionStatus};

impl Question {
    /// Returns the record: one line of JSON, stored under the token.
    pub fn to_record(&self) -> String {
        write_object(|writer| {
            write_text(writer, "token", self.token.as_str());
            write_text(writer, "session", self.session_id.as_str());
            write_text(writer, "agent", &self.agent_id);
            write_text(writer, "event", self.event_id.as_str());
            self.timeout_seconds.write_member("timeout_seconds", writer);
            let times = [
                ("asked", Some(self.asked_at)),
                ("deadline", Some(self.deadline)),
                ("grace", self.grace_until),
                ("resolved", self.resolved_at),
            ];
            for (name, time) in times {
                if let Some(time) = time {
                    writer.key(name).integer(time.get());
                }
            }
            write_text(writer, "status", status_name(self.status));
            self.replier_ids.write_member("repliers", writer);
            Vec::from(self.reminders_sent).write_member("reminders_sent", writer);
            match &self.subject {
                QuestionSubject::Confirmation {
                    key,
                    accept_by_default,
                    irreversible,
                    high_risk,
                    may_accept,
                    may_reject,
                    tool,
                    call_id: call,
                    digest,
                } => {
                    write_text(writer, "key", &key.to_string());
                    accept_by_default.write_member("accept_by_default", writer);
                    may_accept.write_member("may_accept", writer);
                    may_reject.write_member("may_reject", writer);
                    if let Some(irreversible) = irreversible {
                        irreversible.write_member("irreversible", writer);
                    }
                    high_risk.write_member("high_risk", writer);
                    let digest = digest.map(|digest| digest.to_string());
                    for (name, value) in
                        [("tool", tool.as_deref()), ("call", call.as_deref()), ("digest", digest.as_deref())]
                    {
                        if let Some(value) = value {
                            write_text(writer, name, value);
                        }
                    }
                }
                QuestionSubject::Clarification { accepted, default } => {
                    accepted.accepts_free_text.write_member("free_text", writer);
                    accepted.accepts_yes_no.write_member("yes_no", writer);
                    accepted.accepts_number.write_member("numeric", writer);
                    if let Some(choices) = &accepted.choices {
                        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
                        choices.write_member("choices", writer);
                    }
                    if let Some(default) = default {
                        default.write_member("default", writer);
                    }
                }
            }
        })
    }

    /// Parses a record. Returns `None` if it is invalid.
    pub fn parse_record(record: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(record).ok()?;
        let root = doc.root();
        (root.kind() == JsonKind::Object).then(|| RecordMembers(root).read_question()).flatten()
    }
}

struct RecordMembers<'d>(JsonValue<'d>);

impl RecordMembers<'_> {
    fn read_question(&self) -> Option<Question> {
        Some(Question {
            token: self.read::<ReplyToken>("token")?,
            session_id: self.read::<SessionId>("session")?,
            agent_id: self.read::<String>("agent")?.into(),
            event_id: self.read::<EventId>("event")?,
            asked_at: self.read_time("asked")?,
            timeout_seconds: self.read("timeout_seconds")?,
            deadline: self.read_time("deadline")?,
            status: parse_status(&self.read::<String>("status")?)?,
            resolved_at: self.read_time("resolved"),
            subject: self.read_subject()?,
            replier_ids: self.read::<Vec<SubscriptionId>>("repliers")?,
            grace_until: self.read_time("grace"),
            // Before version 0.2 the member was called `told`.
            reminders_sent: self
                .read::<Vec<bool>>("reminders_sent")
                .or_else(|| self.read("told"))?
                .try_into()
                .ok()?,
        })
    }

    fn read_subject(&self) -> Option<QuestionSubject> {
        let Some(key) = self.read::<String>("key") else {
            let choices = self.read::<Vec<String>>("choices");
            let accepted = AcceptedResponses {
                accepts_free_text: self.read("free_text")?,
                accepts_yes_no: self.read("yes_no")?,
                accepts_number: self.read("numeric")?,
                choices: choices.map(|values| values.into_iter().map(Into::into).collect()),
            };
            return Some(QuestionSubject::Clarification {
                accepted,
                default: self.read::<ClarificationResponse>("default"),
            });
        };
        let digest = match self.read::<String>("digest") {
            Some(digest) => Some(Digest::parse(&digest)?),
            None => None,
        };
        Some(QuestionSubject::Confirmation {
            key: Digest::parse(&key)?,
            accept_by_default: self.read("accept_by_default")?,
            irreversible: self.read("irreversible"),
            // Earlier versions did not store this member.
            high_risk: self.read("high_risk").unwrap_or(false),
            may_accept: self.read("may_accept")?,
            may_reject: self.read("may_reject")?,
            tool: self.read::<String>("tool").map(Into::into),
            call_id: self.read::<String>("call").map(Into::into),
            digest,
        })
    }

    fn read<T: FieldValue>(&self, name: &str) -> Option<T> {
        self.0.member(name).and_then(T::read)
    }

    fn read_time(&self, name: &str) -> Option<UnixMillis> {
        self.0.member(name)?.as_number()?.as_i64().map(UnixMillis::new)
    }
}

fn write_text(writer: &mut JsonWriter, name: &str, value: &str) {
    writer.key(name).text(value);
}

const STATUSES: [(QuestionStatus, &str); 7] = [
    (QuestionStatus::Open, "open"),
    (QuestionStatus::Accepted { by_default: false }, "accepted"),
    (QuestionStatus::Accepted { by_default: true }, "accepted_silently"),
    (QuestionStatus::Spent, "spent"),
    (QuestionStatus::Refused { modified: false }, "refused"),
    (QuestionStatus::Refused { modified: true }, "refused_for_another"),
    (QuestionStatus::Closed, "answered"),
];

fn status_name(status: QuestionStatus) -> &'static str {
    STATUSES.iter().find(|(known, _)| *known == status).map_or("refused", |(_, name)| name)
}

fn parse_status(name: &str) -> Option<QuestionStatus> {
    STATUSES.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
}
