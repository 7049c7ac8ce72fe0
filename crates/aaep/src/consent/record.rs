//! Questions as plain text, so that they outlive a crash.

use seal::{Digest, UnixMillis};

use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::json::{Kind, Tape, Value, Writer, object};
use crate::message::Response;
use crate::record::Part;
use crate::session::terms::Kinds;

use super::question::About;
use super::{Question, Status};

impl Question {
    /// Its record: one line of JSON, to be stored under its token.
    pub fn to_record(&self) -> String {
        object(|writer| {
            text(writer, "token", self.token.as_str());
            text(writer, "session", self.session.as_str());
            text(writer, "agent", &self.agent);
            text(writer, "event", self.event.as_str());
            self.timeout_seconds.write_member("timeout_seconds", writer);
            let times =
                [("asked", Some(self.asked)), ("deadline", Some(self.deadline)), ("grace", self.grace)];
            for (name, time) in times {
                if let Some(time) = time {
                    writer.key(name).integer(time.get());
                }
            }
            text(writer, "status", status_word(self.status));
            self.repliers.write_member("repliers", writer);
            Vec::from(self.told).write_member("told", writer);
            match &self.about {
                About::Action {
                    key,
                    accept_by_default,
                    irreversible,
                    may_accept,
                    may_reject,
                    tool,
                    call,
                    digest,
                } => {
                    text(writer, "key", &key.to_string());
                    accept_by_default.write_member("accept_by_default", writer);
                    may_accept.write_member("may_accept", writer);
                    may_reject.write_member("may_reject", writer);
                    if let Some(irreversible) = irreversible {
                        irreversible.write_member("irreversible", writer);
                    }
                    let digest = digest.map(|digest| digest.to_string());
                    for (name, value) in
                        [("tool", tool.as_deref()), ("call", call.as_deref()), ("digest", digest.as_deref())]
                    {
                        if let Some(value) = value {
                            text(writer, name, value);
                        }
                    }
                }
                About::Meaning { kinds, default } => {
                    kinds.free_text.write_member("free_text", writer);
                    kinds.yes_no.write_member("yes_no", writer);
                    kinds.numeric.write_member("numeric", writer);
                    if let Some(choices) = &kinds.choices {
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

    /// Reads a record; nothing if it is none.
    pub fn parse_record(record: &str) -> Option<Self> {
        let mut tape = Tape::default();
        let doc = tape.read(record).ok()?;
        let root = doc.root();
        (root.kind() == Kind::Object).then(|| Members(root).question()).flatten()
    }
}

struct Members<'d>(Value<'d>);

impl Members<'_> {
    fn question(&self) -> Option<Question> {
        Some(Question {
            token: self.part::<ReplyToken>("token")?,
            session: self.part::<SessionId>("session")?,
            agent: self.part::<String>("agent")?.into(),
            event: self.part::<EventId>("event")?,
            asked: self.time("asked")?,
            timeout_seconds: self.part("timeout_seconds")?,
            deadline: self.time("deadline")?,
            status: status_of(&self.part::<String>("status")?)?,
            about: self.about()?,
            repliers: self.part::<Vec<SubscriptionId>>("repliers")?,
            grace: self.time("grace"),
            told: self.part::<Vec<bool>>("told")?.try_into().ok()?,
        })
    }

    fn about(&self) -> Option<About> {
        let Some(key) = self.part::<String>("key") else {
            let choices = self.part::<Vec<String>>("choices");
            let kinds = Kinds {
                free_text: self.part("free_text")?,
                yes_no: self.part("yes_no")?,
                numeric: self.part("numeric")?,
                choices: choices.map(|values| values.into_iter().map(Into::into).collect()),
            };
            return Some(About::Meaning { kinds, default: self.part::<Response>("default") });
        };
        let digest = match self.part::<String>("digest") {
            Some(digest) => Some(Digest::parse(&digest)?),
            None => None,
        };
        Some(About::Action {
            key: Digest::parse(&key)?,
            accept_by_default: self.part("accept_by_default")?,
            irreversible: self.part("irreversible"),
            may_accept: self.part("may_accept")?,
            may_reject: self.part("may_reject")?,
            tool: self.part::<String>("tool").map(Into::into),
            call: self.part::<String>("call").map(Into::into),
            digest,
        })
    }

    fn part<T: Part>(&self, name: &str) -> Option<T> {
        self.0.member(name).and_then(T::read)
    }

    fn time(&self, name: &str) -> Option<UnixMillis> {
        self.0.member(name)?.number()?.as_i64().map(UnixMillis::new)
    }
}

fn text(writer: &mut Writer, name: &str, value: &str) {
    writer.key(name).text(value);
}

const STATUSES: [(Status, &str); 7] = [
    (Status::Open, "open"),
    (Status::Accepted { silent: false }, "accepted"),
    (Status::Accepted { silent: true }, "accepted_silently"),
    (Status::Spent, "spent"),
    (Status::Refused { modified: false }, "refused"),
    (Status::Refused { modified: true }, "refused_for_another"),
    (Status::Answered, "answered"),
];

fn status_word(status: Status) -> &'static str {
    STATUSES.iter().find(|(one, _)| *one == status).map_or("refused", |(_, word)| word)
}

fn status_of(word: &str) -> Option<Status> {
    STATUSES.iter().find(|(_, one)| *one == word).map(|(status, _)| *status)
}
