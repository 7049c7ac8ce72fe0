//! The typed commands about hand-offs: `handoffs`, `take` and `decline`.

use seal::UnixMillis;

use super::input_handler::{TerminalAction, say};
use crate::phrases::HandoffInput;
use crate::{AnnouncementKind, AnnouncementText, AnswerError, Subscriber};

/// Handles a line that is about hand-offs. Returns `None` for any other line.
pub(super) fn handle_line(
    subscriber: &mut Subscriber,
    line: &str,
    now: UnixMillis,
) -> Option<Vec<TerminalAction>> {
    match subscriber.phrases().parse_handoff_command(line)? {
        HandoffInput::List(None) => Some(list(subscriber, now)),
        HandoffInput::List(Some(number)) => {
            let phrases = subscriber.phrases();
            let details = subscriber.handoff_details(number, now).map(TerminalAction::Say);
            Some(vec![
                details.unwrap_or_else(|| say(AnnouncementKind::Error, phrases.handoff_not_open(number))),
            ])
        }
        // `take` and `decline` are ordinary words, so they are commands only if there is a hand-off to take, or if a number follows and
        // no question is open.
        HandoffInput::Answer { number: Some(number), note: None, .. }
            if subscriber.handoffs().next().is_none() && subscriber.questions().next().is_none() =>
        {
            Some(vec![say(AnnouncementKind::Error, subscriber.phrases().handoff_not_open(number))])
        }
        HandoffInput::Answer { .. } if subscriber.handoffs().next().is_none() => None,
        HandoffInput::Answer { is_acknowledged, number, note } => {
            Some(answer(subscriber, is_acknowledged, number, note, now))
        }
    }
}

fn list(subscriber: &Subscriber, now: UnixMillis) -> Vec<TerminalAction> {
    let phrases = subscriber.phrases();
    let mut lines = AnnouncementText::default();
    for handoff in subscriber.handoffs() {
        lines.push_line(&subscriber.describe_handoff(handoff, now));
    }
    if lines.is_empty() {
        return vec![say(AnnouncementKind::Handoff, phrases.no_open_handoff)];
    }
    let hint = if subscriber.takes_handoffs() { phrases.how_to_take } else { phrases.cannot_take_handoffs };
    lines.push_line(&AnnouncementText::from(hint));
    vec![say(AnnouncementKind::Handoff, lines)]
}

fn answer(
    subscriber: &mut Subscriber,
    is_acknowledged: bool,
    number: Option<u32>,
    note: Option<&str>,
    now: UnixMillis,
) -> Vec<TerminalAction> {
    let phrases = subscriber.phrases();
    if !subscriber.takes_handoffs() {
        return vec![say(AnnouncementKind::Error, phrases.cannot_take_handoffs)];
    }
    // The number is always required, because several hand-offs can be open and taking one commits the person to work.
    let Some(number) = number else { return vec![say(AnnouncementKind::Error, phrases.which_handoff)] };
    match subscriber.answer_handoff(number, is_acknowledged, note, now) {
        Ok(message) => {
            let text = if is_acknowledged {
                phrases.you_take_handoff(number)
            } else {
                phrases.you_decline_handoff(number)
            };
            vec![say(AnnouncementKind::Answer, text), TerminalAction::Send { message, question: None }]
        }
        Err(AnswerError::NotOpen) => vec![say(AnnouncementKind::Error, phrases.handoff_not_open(number))],
        Err(error) => vec![say(AnnouncementKind::Error, error.describe(phrases))],
    }
}
