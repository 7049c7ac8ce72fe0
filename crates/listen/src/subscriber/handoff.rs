//! Hand-offs (§4.4.3): what people hear about them, and how somebody takes over.

use aaep::event::{Event, HandoffRequested, RiskLevel};
use aaep::json::{JsonKind, Tape};
use aaep::message::{HandoffAcknowledge, HandoffReject, Message};
use aaep::{ReplyToken, SessionId, Timestamp, UnixMillis};
use seal::Digest;

use super::announce::event_announcement;
use super::{AnswerError, Subscriber, read_hub_extension, wording};
use crate::announcement_text::TextPart::{Agent, Sayso};
use crate::{Announcement, AnnouncementKind, AnnouncementText, sanitize};

/// A hand-off that waits until somebody takes over.
#[derive(Clone, Debug)]
pub struct ListenerHandoff {
    /// The number by which the person refers to it. Numbers are not reused.
    pub number: u32,
    /// The agent's display name, with its id if nobody confirms the name.
    pub agent_name: String,
    /// The agent's reason, sanitized.
    pub reason: String,
    /// The context for the person who takes over, sanitized, one member per line.
    pub context: Vec<String>,
    /// Whether the person has answered it and the outcome is not known yet.
    pub is_answered: bool,
    reply_token: ReplyToken,
    session_id: SessionId,
    deadline: UnixMillis,
    /// How far the local clock is ahead of the hub's, in milliseconds.
    clock_skew_ms: i64,
}

/// The hub's report of a hand-off's outcome.
struct HandoffOutcome {
    token: String,
    outcome: String,
    note: Option<String>,
    /// The hash of the subscription that answered.
    replier: Option<String>,
}

impl Subscriber {
    /// Sets whether the hub lets this person take over from agents.
    pub fn set_takes_handoffs(&mut self, takes_handoffs: bool) {
        self.takes_handoffs = takes_handoffs;
    }

    /// Whether the person may take over from agents.
    pub fn takes_handoffs(&self) -> bool {
        self.takes_handoffs
    }

    /// Returns the open hand-offs, the most urgent first.
    pub fn handoffs(&self) -> impl Iterator<Item = &ListenerHandoff> {
        self.handoffs.iter().map(|(_, handoff)| handoff)
    }

    /// Returns the message that takes over from an agent, or refuses to.
    pub fn answer_handoff(
        &mut self,
        number: u32,
        is_acknowledged: bool,
        note: Option<&str>,
        now: UnixMillis,
    ) -> Result<String, AnswerError> {
        self.ensure_trusted()?;
        let subscription = self.subscription_id.clone().ok_or(AnswerError::NotConnected)?;
        let mut handoffs = self.handoffs.iter_mut().map(|(_, handoff)| handoff);
        let handoff = handoffs.find(|handoff| handoff.number == number).ok_or(AnswerError::NotOpen)?;
        if handoff.is_answered {
            return Err(AnswerError::AlreadyAnswered);
        }
        let sent_at = now.saturating_sub(handoff.clock_skew_ms);
        let timestamp = Timestamp::from_unix_millis(sent_at).ok_or(AnswerError::NotOpen)?;
        handoff.is_answered = true;
        let token = handoff.reply_token.clone();
        let note = note.map(|note| note.chars().take(MAX_NOTE_CHARS).collect());
        Ok(if is_acknowledged {
            let mut message = HandoffAcknowledge::new(token, subscription, timestamp);
            message.note = note;
            Message::HandoffAcknowledge(message).to_json()
        } else {
            let mut message = HandoffReject::new(token, subscription, timestamp);
            message.note = note;
            Message::HandoffReject(message).to_json()
        })
    }

    /// Describes an open hand-off in one sentence, with the time that is left.
    pub fn describe_handoff(&self, handoff: &ListenerHandoff, now: UnixMillis) -> AnnouncementText {
        let left = wording::duration_text(self.phrases, handoff.deadline.millis_since(now).max(0));
        let label = self.phrases.handoff_is_open(handoff.number, &handoff.agent_name, &left);
        wording::join_sentences(&[Sayso(&label), Sayso(self.phrases.reason_label), Agent(&handoff.reason)])
    }

    /// Announces that an agent asks somebody to take over.
    pub(super) fn announce_handoff(
        &mut self,
        event: &Event,
        request: &HandoffRequested,
        summary: &str,
        now: UnixMillis,
    ) {
        let phrases = self.phrases;
        let agent = self.identify_agent(event).label(phrases);
        let reason = sanitize(&request.reason, true);
        let handoff = wording::handoff_text(phrases, &agent, request);
        let summary = if summary == reason { "" } else { summary };
        let is_urgent = request.urgency_for_handoff == Some(RiskLevel::High);
        let mut text = wording::join_sentences(&[
            Sayso(&handoff),
            Sayso(if is_urgent { phrases.handoff_urgent } else { "" }),
            Agent(summary),
            Sayso(phrases.reason_label),
            Agent(&reason),
        ]);
        if let Some(number) = self.open_handoff(event, request, &agent, &reason, now)
            && self.takes_handoffs
        {
            text.push_line(&AnnouncementText::from(phrases.handoff_instructions(number).as_str()));
        }
        self.announce(event_announcement(event, AnnouncementKind::Handoff, text));
    }

    /// Adds a hand-off to the list, if the hub says that somebody can take over. Returns its number.
    fn open_handoff(
        &mut self,
        event: &Event,
        request: &HandoffRequested,
        agent: &str,
        reason: &str,
        now: UnixMillis,
    ) -> Option<u32> {
        if !self.has_hub || self.is_replay {
            return None;
        }
        let (reply_token, deadline) = read_hub_extension(event, |sayso| {
            let handoff = sayso.member("handoff")?;
            let token = ReplyToken::parse(&handoff.member("reply_token")?.text()?).ok()?;
            Some((token, Timestamp::parse(&handoff.member("deadline")?.text()?).ok()?.unix_millis()))
        })?;
        if let Some((_, known)) = self.handoffs.iter().find(|(_, known)| known.reply_token == reply_token) {
            return Some(known.number);
        }
        let sent_at = event.envelope.timestamp.unix_millis();
        let is_local_clock_off = now >= deadline || now.millis_since(sent_at) < -CLOCK_TOLERANCE_MS;
        let clock_skew_ms = if is_local_clock_off { now.millis_since(sent_at) } else { 0 };
        self.last_handoff_number += 1;
        let number = self.last_handoff_number;
        let urgency = request.urgency_for_handoff.as_ref().map_or("", |urgency| urgency.as_str());
        let rank = ["high", "medium", "low"].iter().position(|known| *known == urgency).unwrap_or(1);
        let handoff = ListenerHandoff {
            number,
            agent_name: agent.to_owned(),
            reason: reason.to_owned(),
            context: request
                .packaged_context
                .as_ref()
                .map(|json| context_lines(json.as_str()))
                .unwrap_or_default(),
            is_answered: false,
            reply_token,
            session_id: event.envelope.session_id.clone(),
            deadline: deadline.saturating_add(clock_skew_ms),
            clock_skew_ms,
        };
        self.handoffs.push((rank, handoff));
        // The sort is stable, so hand-offs of the same urgency stay in order of arrival.
        self.handoffs.sort_by_key(|(rank, _)| *rank);
        self.handoffs.truncate(self.limits.open_handoffs);
        self.handoffs.iter().any(|(_, listed)| listed.number == number).then_some(number)
    }

    /// Announces the outcome of a hand-off. Returns whether the event reports one.
    pub(super) fn handle_handoff_outcome(&mut self, event: &Event) -> bool {
        let Some(HandoffOutcome { token, outcome, note, replier }) = self.read_handoff_outcome(event) else {
            return false;
        };
        let index = self.handoffs.iter().position(|(_, known)| known.reply_token.as_str() == token);
        let handoff = index.map(|index| self.handoffs.remove(index).1);
        let phrases = self.phrases;
        let agent = handoff
            .as_ref()
            .map_or_else(|| self.identify_agent(event).label(phrases), |handoff| handoff.agent_name.clone());
        let own = self.subscription_id.as_ref().map(|id| Digest::of(id.as_str().as_bytes()).to_string());
        let is_own = replier.is_some() && replier == own;
        let text = match (outcome.as_str(), is_own) {
            ("acknowledged", true) => phrases.you_took_over(&agent),
            ("acknowledged", false) => phrases.somebody_took_over(&agent),
            ("rejected", true) => phrases.you_declined_handoff(&agent),
            ("rejected", false) => phrases.somebody_declined_handoff(&agent),
            ("timeout", _) => phrases.nobody_took_over(&agent),
            ("unreachable", _) => phrases.nobody_to_take_over(&agent),
            _ => phrases.handoff_withdrawn(&agent),
        };
        let note = note.filter(|_| !is_own).map(|note| sanitize(&note, true)).unwrap_or_default();
        let label = if note.is_empty() { "" } else { phrases.handoff_note_label };
        let text = wording::join_sentences(&[Sayso(&text), Sayso(label), Agent(&note)]);
        self.announce(event_announcement(event, AnnouncementKind::Handoff, text));
        true
    }

    /// Forgets the hand-offs of a session that has ended.
    pub(super) fn close_session_handoffs(&mut self, session: &SessionId) {
        self.handoffs.retain(|(_, handoff)| handoff.session_id != *session);
    }

    fn read_handoff_outcome(&self, event: &Event) -> Option<HandoffOutcome> {
        if !self.has_hub {
            return None;
        }
        read_hub_extension(event, |sayso| {
            let handoff = sayso.member("handoff")?;
            let text = |name| handoff.member(name).and_then(|value| Some(value.text()?.into_owned()));
            Some(HandoffOutcome {
                token: text("reply_token")?,
                outcome: text("outcome")?,
                note: text("note"),
                replier: text("replier"),
            })
        })
    }
}

/// Maximum length of a note, in characters; the hub refuses a longer one.
const MAX_NOTE_CHARS: usize = 1024;
/// Differences between two clocks below this are ignored, in milliseconds.
const CLOCK_TOLERANCE_MS: i64 = 2000;
/// Maximum number of lines of a context that are kept, and of characters of each.
const MAX_CONTEXT_LINES: usize = 64;
const MAX_CONTEXT_LINE_CHARS: usize = 1000;

/// Returns the members of a context, one per line.
fn context_lines(json: &str) -> Vec<String> {
    let mut tape = Tape::default();
    let Ok(doc) = tape.read(json) else { return Vec::new() };
    let line = |(name, value): (aaep::json::JsonValue<'_>, aaep::json::JsonValue<'_>)| {
        let name = name.text().unwrap_or_default();
        let text = match value.kind() {
            JsonKind::Text => value.text().unwrap_or_default(),
            _ => value.source().into(),
        };
        let line: String = format!("{name}: {text}").chars().take(MAX_CONTEXT_LINE_CHARS).collect();
        sanitize(&line, true)
    };
    doc.root().members().take(MAX_CONTEXT_LINES).map(line).collect()
}

impl Subscriber {
    /// Returns an announcement of a hand-off with the context for the person who takes over.
    pub fn handoff_details(&self, number: u32, now: UnixMillis) -> Option<Announcement> {
        let handoff = self.handoffs().find(|handoff| handoff.number == number)?;
        let mut text = self.describe_handoff(handoff, now);
        for line in &handoff.context {
            text.push_line(&AnnouncementText::from_agent(line.clone()));
        }
        if self.takes_handoffs {
            text.push_line(&AnnouncementText::from(self.phrases.handoff_instructions(number).as_str()));
        }
        Some(Announcement::new(AnnouncementKind::Handoff, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Preferences, SubscriberLimits};

    const NOW: UnixMillis = UnixMillis::new(1_767_603_600_000);

    fn request(number: u32, urgency: &str, context: &str) -> String {
        format!(
            r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"],"type":"aaep:agent.handoff.requested","event_id":"evt_{number}","session_id":"sess_1","timestamp":"2026-01-05T09:00:00.000Z","producer":{{"agent_id":"bank"}},"urgency":"critical","reason":"Stuck.","target_kind":"human","urgency_for_handoff":"{urgency}","packaged_context":{context},"extensions":{{"sayso":{{"handoff":{{"reply_token":"rpl_{number}","deadline":"2026-01-05T09:10:00.000Z"}}}}}}}}"#
        )
    }

    fn subscriber(open_handoffs: usize) -> Subscriber {
        let limits = SubscriberLimits { open_handoffs, ..SubscriberLimits::default() };
        let mut subscriber = Subscriber::new(Preferences::default(), limits);
        subscriber.set_subscription(aaep::SubscriptionId::parse("sub_1").unwrap());
        subscriber.set_takes_handoffs(true);
        subscriber
    }

    #[test]
    fn the_most_urgent_hand_offs_are_listed_first_and_the_least_urgent_is_left_out() {
        let mut subscriber = subscriber(3);
        for (number, urgency) in [(1, "low"), (2, "high"), (3, "medium"), (4, "high"), (5, "low")] {
            subscriber.receive(&request(number, urgency, "{}"), NOW);
        }
        let listed: Vec<_> = subscriber.handoffs().map(|handoff| handoff.number).collect();
        assert_eq!(listed, [2, 4, 3]);
        let mut texts = Vec::new();
        while let Some(announcement) = subscriber.next_announcement(NOW) {
            texts.push(announcement.text.to_string());
        }
        assert_eq!(texts.len(), 5, "everything is announced: {texts:#?}");
        assert!(texts[3].contains("take 4") && !texts[4].contains("take 5"), "{texts:#?}");
        assert_eq!(subscriber.answer_handoff(1, true, None, NOW), Err(AnswerError::NotOpen));
        let message = subscriber.answer_handoff(4, true, Some("Hello."), NOW).unwrap();
        let expected = r#"{"type":"sayso:handoff.acknowledge","reply_token":"rpl_4","subscription_id":"sub_1","timestamp":"2026-01-05T09:00:00.000Z","note":"Hello."}"#;
        assert_eq!(message, expected);
        assert_eq!(subscriber.answer_handoff(4, false, None, NOW), Err(AnswerError::AlreadyAnswered));
    }

    #[test]
    fn a_context_is_sanitized_and_shortened() {
        let members: Vec<_> = (0..70).map(|number| format!(r#""k{number}":"v""#)).collect();
        let mut subscriber = subscriber(3);
        subscriber.receive(&request(1, "low", &format!("{{{}}}", members.join(","))), NOW);
        let hostile = format!(r#"{{"ask":"a\u001b[2J\nb","long":"{}","list":[1,2]}}"#, "x".repeat(2000));
        subscriber.receive(&request(2, "high", &hostile), NOW);
        let contexts: Vec<_> = subscriber.handoffs().map(|handoff| handoff.context.clone()).collect();
        assert_eq!(contexts[1].len(), MAX_CONTEXT_LINES);
        assert_eq!(contexts[0][0], "ask : a\\u{1b}[2J b");
        assert_eq!(contexts[0][1].chars().count(), MAX_CONTEXT_LINE_CHARS);
        assert_eq!(contexts[0][2], "list: [1,2]");
    }
}
