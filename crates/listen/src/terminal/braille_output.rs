//! Shows what is printed on a braille display, if one is configured.

use std::collections::BTreeMap;

use aaep::event::ResponseKind;
use seal::UnixMillis;

use crate::braille::{BrailleAnswer, BrailleDisplay, BrailleMessage, BrailleQuestion};
use crate::{Announcement, AnnouncementKind, ListenerQuestion, Phrases, QuestionBody, Subscriber};

/// A braille display and the questions that it has received.
pub(super) struct BrailleOutput {
    display: Option<BrailleDisplay>,
    /// The questions on the display, and whether they are open.
    questions: BTreeMap<u32, bool>,
}

impl BrailleOutput {
    pub(super) fn new(display: Option<BrailleDisplay>) -> Self {
        Self { display, questions: BTreeMap::new() }
    }

    /// Shows an announcement. The first announcement of a question opens the question.
    pub(super) fn show(&mut self, announcement: &Announcement, subscriber: &Subscriber) {
        let Some(display) = &self.display else { return };
        let new_question = announcement
            .question_number
            .filter(|number| {
                announcement.kind == AnnouncementKind::Ask && !self.questions.contains_key(number)
            })
            .and_then(|number| find_open_question(subscriber, number));
        let Some(question) = new_question else {
            let paragraphs = paragraphs(announcement, subscriber.phrases());
            return display.send(BrailleMessage::Announcement(paragraphs));
        };
        display.send(BrailleMessage::OpenQuestion(shown_question(
            announcement,
            question,
            subscriber.phrases(),
        )));
        self.questions.insert(question.number, true);
    }

    /// Removes questions that were answered or closed, and shows again those whose answer could not be sent.
    pub(super) fn update_questions(&mut self, subscriber: &Subscriber, now: UnixMillis) {
        let Some(display) = &self.display else { return };
        for (number, was_open) in &mut self.questions {
            let open = find_open_question(subscriber, *number);
            match open.filter(|_| !*was_open).zip(subscriber.repeat_question(*number, now)) {
                Some((question, text)) => {
                    display.send(BrailleMessage::OpenQuestion(shown_question(
                        &text,
                        question,
                        subscriber.phrases(),
                    )));
                }
                None if *was_open && open.is_none() => display.send(BrailleMessage::CloseQuestion(*number)),
                None => {}
            }
            *was_open = open.is_some();
        }
        self.questions.retain(|number, _| subscriber.questions().any(|question| question.number == *number));
    }
}

fn find_open_question(subscriber: &Subscriber, number: u32) -> Option<&ListenerQuestion> {
    subscriber.questions().find(|question| question.number == number && !question.is_answered)
}

/// Returns the lines of an announcement. Only the first one has a label, because a display has few cells.
fn paragraphs(announcement: &Announcement, phrases: &Phrases) -> Vec<String> {
    let mut lines: Vec<String> = announcement.text.lines().map(str::to_owned).collect();
    if let Some(first) = lines.first_mut() {
        *first = format!("{}: {first}", phrases.kind_label(announcement.kind));
    }
    lines
}

fn shown_question(
    announcement: &Announcement,
    question: &ListenerQuestion,
    phrases: &Phrases,
) -> BrailleQuestion {
    let number = question.number;
    let decision = |word: &str| (word.to_owned(), format!("{word} {number}"));
    let answers: Vec<(String, String)> = match &question.body {
        QuestionBody::Confirmation { may_accept, may_reject, .. } => {
            let offered = [(phrases.yes, *may_accept), (phrases.no, *may_reject)];
            offered
                .into_iter()
                .filter(|(_, is_allowed)| *is_allowed)
                .map(|(word, _)| decision(word))
                .collect()
        }
        QuestionBody::Clarification { choices, .. } if !choices.is_empty() => (1..=choices.len())
            .map(|choice| (choice.to_string(), format!("answer {number} {choice}")))
            .collect(),
        QuestionBody::Clarification { .. } if question.accepts(&ResponseKind::YesNo) => {
            vec![decision(phrases.yes), decision(phrases.no)]
        }
        QuestionBody::Clarification { .. } => Vec::new(),
    };
    let answers = answers.into_iter().map(|(label, command)| BrailleAnswer {
        confirm_hint: phrases.braille_confirm_hint(&label),
        label,
        command,
    });
    BrailleQuestion {
        number,
        paragraphs: paragraphs(announcement, phrases),
        answers: answers.collect(),
        hint: phrases.braille_answer_hint.to_owned(),
        cancel: phrases.braille_cancel.to_owned(),
    }
}
