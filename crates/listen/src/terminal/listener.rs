//! A terminal listener: handles events, typed lines and announcements.

use std::io::Write;
use std::process::ExitStatus;
use std::time::{Duration, SystemTime};

use aaep::event::{Decision, ResponseKind, Urgency};
use aaep::message::Message;
use aaep::{SessionId, SubscriptionId};
use seal::UnixMillis;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::braille_output::BrailleOutput;
use super::history::{History, local_time};
use super::input_handler::{self, InputContext, TerminalAction};
use super::reconnect::{CatchUp, open_question_notes};
use super::speech_output::SpeechOutput;
use super::violation_log::ViolationLog;
use super::{
    AutoAnswerMode, SHUTDOWN_TIMEOUT, TerminalError, TerminalExit, TerminalHooks, TerminalSettings,
    announcement_format, subscription_terms,
};
use crate::braille::BrailleEvent;
use crate::client::{self, ConnectionEvent, ConnectionLoss};
use crate::{Announcement, AnnouncementKind, ManifestStatus, Phrases, Preferences, QuestionBody, Subscriber};

/// How often to check whether the synthesizer is idle.
const SPEECH_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long speaking the reason for quitting may take.
const FINAL_SPEECH_TIMEOUT: Duration = Duration::from_secs(20);

/// The outcome of a send: the question that it answered, and the result.
pub(super) type SendOutcome = (Option<u32>, Result<(), client::SendError>);

pub(super) struct TerminalListener<W> {
    subscriber: Subscriber,
    speech: SpeechOutput,
    braille: BrailleOutput,
    requests: Option<mpsc::Sender<String>>,
    is_known_request: Option<fn(&str) -> bool>,
    ready: Option<oneshot::Sender<()>>,
    subscription_id: Option<SubscriptionId>,
    has_hub: bool,
    /// The rate that the hub was asked for, in events per second.
    requested_rate: Option<u64>,
    /// Whether the connection is lost. The person was informed.
    is_disconnected: bool,
    /// The catch-up phase, for a short time after a reconnect.
    catch_up: Option<CatchUp>,
    /// Questions whose answers may have been lost with the connection.
    unconfirmed_answers: Vec<u32>,
    /// The session whose end makes the listener quit.
    pub(super) quit_after: Option<SessionId>,
    /// Waiters for the end of a session, or for its next question.
    pub(super) session_waiters: Vec<(SessionId, oneshot::Sender<bool>)>,
    pub(super) session_end_waiters: Vec<(SessionId, oneshot::Sender<()>)>,
    pub(super) is_over: bool,
    /// How listening ended, once it is over.
    pub(super) exit: TerminalExit,
    /// Whether a stream was ever open.
    was_open: bool,
    diagnostics: Option<fn(&str)>,
    violations: Option<ViolationLog>,
    pub(super) pending_sends: JoinSet<SendOutcome>,
    preference_updates: watch::Sender<Preferences>,
    history: History,
    /// A notice that the preferred language is not available, until it is announced.
    language_notice: Option<String>,
    settings: TerminalSettings,
    output: W,
}

impl<W: Write> TerminalListener<W> {
    pub(super) fn new(
        settings: TerminalSettings,
        hooks: TerminalHooks,
        preference_updates: watch::Sender<Preferences>,
        output: W,
    ) -> Self {
        let subscriber = Subscriber::new(settings.preferences.clone(), settings.limits);
        Self {
            speech: SpeechOutput::new(
                hooks.synthesizer,
                settings.limits.queued_announcements,
                subscriber.phrases(),
            ),
            braille: BrailleOutput::new(hooks.braille),
            subscriber,
            requests: hooks.requests,
            is_known_request: hooks.is_known_request,
            ready: hooks.ready,
            subscription_id: None,
            has_hub: true,
            requested_rate: settings.preferences.max_events_per_second,
            is_disconnected: false,
            catch_up: None,
            unconfirmed_answers: Vec::new(),
            quit_after: None,
            session_waiters: Vec::new(),
            session_end_waiters: Vec::new(),
            is_over: false,
            exit: TerminalExit::Quit,
            was_open: false,
            diagnostics: hooks.diagnostics,
            violations: hooks.violations.map(ViolationLog::new),
            pending_sends: JoinSet::new(),
            preference_updates,
            history: History::new(&settings.limits),
            language_notice: Phrases::describe_unavailable(&settings.preferences.languages),
            settings,
            output,
        }
    }

    pub(super) fn handle_event(&mut self, event: ConnectionEvent) -> Option<TerminalError> {
        let phrases = self.subscriber.phrases();
        match event {
            ConnectionEvent::Open { subscription, notes, resumed } => {
                match &subscription {
                    Some(subscription) => self.subscriber.set_subscription(subscription.clone()),
                    // The producer has no subscriptions, but a reply must name one.
                    None => {
                        self.subscriber.set_subscription(SubscriptionId::generate(&mut seal::SystemRandom));
                    }
                }
                if subscription.is_none() {
                    self.settings.address = self.settings.address.clone().without_hub();
                }
                self.was_open = true;
                self.has_hub = subscription.is_some();
                self.subscriber.set_has_hub(self.has_hub);
                self.subscription_id = subscription;
                if self.is_disconnected {
                    self.catch_up = Some(CatchUp::new(resumed, &self.subscriber)).filter(|_| self.has_hub);
                }
                if self.is_disconnected && !resumed && self.has_hub {
                    self.subscriber.begin_gap_recovery(now());
                }
                let url = match &self.settings.address {
                    address if address.is_personal() => phrases.personal_hub.to_owned(),
                    address => address.url(),
                };
                // The address takes long to speak, so it is only printed.
                let (text, spoken) = match (std::mem::take(&mut self.is_disconnected), resumed) {
                    (false, _) if self.settings.auto_answer != AutoAnswerMode::Off => {
                        (phrases.listening_only(&url), phrases.connected_only)
                    }
                    (false, _) => (phrases.listening(&url), phrases.connected),
                    (true, true) => (phrases.reconnected.to_owned(), phrases.reconnected),
                    (true, false) => {
                        (phrases.reconnected_with_loss.to_owned(), phrases.reconnected_with_loss)
                    }
                };
                self.print(&Announcement::new(AnnouncementKind::Notice, text));
                self.present(&Announcement::new(AnnouncementKind::Notice, spoken));
                if let Some(page) = self.settings.personal_page.take() {
                    let text = phrases.personal_hub_started(&page);
                    self.announce(&Announcement::new(AnnouncementKind::Notice, text));
                }
                if let Some(notice) = self.language_notice.take() {
                    self.announce(&Announcement::new(AnnouncementKind::Notice, notice));
                }
                if let Some(notes) = notes {
                    self.announce(&Announcement::new(
                        AnnouncementKind::Notice,
                        phrases.hub_says(&crate::sanitize(&notes, true)),
                    ));
                }
                if self.settings.address.is_unencrypted() {
                    self.announce(&Announcement::new(
                        AnnouncementKind::Notice,
                        phrases.connection_unencrypted,
                    ));
                }
                if !self.has_hub {
                    self.announce(&Announcement::new(AnnouncementKind::Notice, phrases.producer_without_hub));
                }
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(());
                }
            }
            ConnectionEvent::Subscribed { request, accepted } => self.apply_terms(&request, &accepted),
            ConnectionEvent::ManifestChecked(status) => self.apply_manifest_status(status),
            ConnectionEvent::RequestReduced(reason) => {
                let text = format!("{} {}", reason.describe(phrases), phrases.smaller_request_sent);
                self.announce(&Announcement::new(AnnouncementKind::Notice, text));
            }
            ConnectionEvent::Text(text) => {
                if let Some(catch_up) = &mut self.catch_up {
                    catch_up.receive(&text);
                }
                if let Some(log) = &mut self.violations {
                    log.check(&text);
                }
                self.subscriber.receive(&text, now());
            }
            ConnectionEvent::Diagnostic(line) => {
                if let Some(print) = self.diagnostics {
                    print(&line);
                }
            }
            ConnectionEvent::MessageTooLong => {
                self.announce(&Announcement::new(AnnouncementKind::Error, phrases.message_too_long));
            }
            ConnectionEvent::Lost(loss) => {
                self.catch_up = None;
                self.subscriber.suspend_held();
                if !self.settings.address.can_resume() {
                    self.unconfirmed_answers.extend(self.subscriber.undo_unconfirmed_answers());
                }
                if !std::mem::replace(&mut self.is_disconnected, true) {
                    let reason = loss.error().describe(phrases);
                    let text = phrases.connection_lost(&reason);
                    self.announce(&Announcement::new(AnnouncementKind::Notice, text));
                }
            }
            ConnectionEvent::Ended(ConnectionLoss::ProgramEnded(status)) => {
                let text = describe_program_end(status, phrases);
                if !self.was_open {
                    return Some(TerminalError(format!("{}: {text}", self.settings.address.url())));
                }
                self.end_with_program(status, text);
            }
            ConnectionEvent::Ended(ConnectionLoss::Refused(reason)) => {
                return Some(TerminalError(reason.describe(phrases)));
            }
            ConnectionEvent::Ended(ConnectionLoss::Unreachable(reason)) => {
                return Some(TerminalError(
                    phrases.cannot_reach(&self.settings.address.url(), &reason.describe(phrases)),
                ));
            }
        }
        None
    }

    /// Announces what is still held and that the program has ended, and stops listening.
    fn end_with_program(&mut self, status: Option<ExitStatus>, text: String) {
        self.subscriber.release_held(now());
        self.announce_pending();
        let phrases = self.subscriber.phrases();
        let has_open_question = self.subscriber.questions().next().is_some();
        let text = if has_open_question { format!("{text} {}", phrases.questions_lost) } else { text };
        let mut announcement = Announcement::new(AnnouncementKind::Notice, text);
        announcement.urgency = Urgency::Critical;
        self.announce(&announcement);
        self.exit = TerminalExit::ProgramEnded { is_success: status.is_some_and(|status| status.success()) };
        self.is_over = true;
        // The program has ended, so the subscription need not be closed.
        self.subscription_id = None;
    }

    /// Stores the requested rate and announces how the hub's terms differ from the person's preferences.
    fn apply_terms(&mut self, request: &str, accepted: &str) {
        if let Some(Message::SubscriptionAccepted(accepted)) = Message::parse(accepted) {
            self.subscriber.set_takes_handoffs(client::grants_handoffs(&accepted));
        }
        let summary = subscription_terms::summarize_terms(
            request,
            accepted,
            self.subscriber.preferences(),
            self.subscriber.phrases(),
        );
        self.requested_rate = summary.requested_rate;
        for text in summary.notices {
            self.announce(&Announcement::new(AnnouncementKind::Notice, text));
        }
    }

    /// Reports whether the hub is verified. Without a trusted key, the person did not ask for a check, so the status is printed but not
    /// spoken. An invalid manifest is always announced.
    fn apply_manifest_status(&mut self, status: ManifestStatus) {
        let has_trusted_keys =
            self.settings.manifest_policy.as_ref().is_some_and(|policy| policy.trusted_keys.is_some());
        let sentence = status.describe(self.subscriber.phrases());
        if status.is_invalid() {
            self.announce(&Announcement::new(AnnouncementKind::Error, sentence));
        } else if has_trusted_keys {
            self.announce(&Announcement::new(AnnouncementKind::Notice, sentence));
        } else {
            self.print(&Announcement::new(AnnouncementKind::Notice, sentence));
        }
        self.subscriber.set_manifest_status(status);
    }

    /// Handles what a braille display reports. An answer is handled like typed words.
    pub(super) fn handle_braille_event(&mut self, event: BrailleEvent) {
        match event {
            BrailleEvent::Command(line) => self.handle_line(&line),
            BrailleEvent::Notice(text) => self.announce(&Announcement::new(AnnouncementKind::Notice, text)),
            BrailleEvent::Error(text) => self.announce(&Announcement::new(AnnouncementKind::Error, text)),
        }
    }

    pub(super) fn handle_line(&mut self, line: &str) {
        // An empty line stops speech. If nothing is being spoken, the person hears that an empty line does not answer a question.
        if line.trim().is_empty() && self.speech.stop_current() {
            return;
        }
        // Somebody is typing, so reconnect now.
        if self.is_disconnected {
            self.settings.address.retry_now();
        }
        let context = InputContext {
            request_filter: self.requests.as_ref().map(|_| self.is_known_request.unwrap_or(|_| true)),
            has_speech: self.speech.has_synthesizer(),
            has_hub: self.has_hub,
            is_disconnected: self.is_disconnected,
        };
        let actions = input_handler::handle_line(&mut self.subscriber, line, context, now());
        for action in actions {
            match action {
                TerminalAction::Request(text) => {
                    if let Some(requests) = &self.requests
                        && requests.try_send(text).is_err()
                    {
                        self.announce(&Announcement::new(
                            AnnouncementKind::Error,
                            self.subscriber.phrases().too_many_requests,
                        ));
                    }
                }
                action => self.perform(action),
            }
        }
    }

    fn perform(&mut self, action: TerminalAction) {
        let phrases = self.subscriber.phrases();
        match action {
            TerminalAction::Say(announcement) => {
                // A reply to a command is not what the agents said last, so `repeat` and `history` leave it out.
                self.announce_reply(&announcement);
            }
            TerminalAction::RepeatLast => self.repeat_last(),
            TerminalAction::Recall(count) => {
                let recalled = self.history.recall(count, phrases);
                self.announce_reply(&recalled);
            }
            TerminalAction::Send { message, question } => {
                if let Some(number) =
                    question.filter(|_| self.settings.auto_answer == AutoAnswerMode::LetExpire)
                {
                    self.subscriber.undo_answer(number);
                    return self.announce(&Announcement::new(
                        AnnouncementKind::Error,
                        phrases.auto_none_sends_nothing,
                    ));
                }
                if let Some(number) = question {
                    self.speech.cancel_question(number);
                }
                let address = self.settings.address.clone();
                self.pending_sends.spawn(async move { (question, client::send(&address, &message).await) });
            }
            TerminalAction::SetPreferences(preferences) => {
                if let Some(subscription) = &self.subscription_id {
                    // A rate that was too high is not requested again.
                    let requested =
                        Preferences { max_events_per_second: self.requested_rate, ..preferences.clone() };
                    let message = client::renegotiate_message(subscription, &requested);
                    self.perform(TerminalAction::Send { message, question: None });
                }
                let _ = self.preference_updates.send(preferences.clone());
                self.subscriber.set_preferences(preferences);
            }
            TerminalAction::Hush => {
                let text = self.speech.stop_and_clear(phrases);
                self.print(&Announcement::new(AnnouncementKind::Status, text));
            }
            TerminalAction::ChangeRate { faster } => {
                let text = match self.speech.change_rate(faster) {
                    Some(rate) => phrases.speech_rate_is(&rate.to_string()),
                    None if self.speech.has_synthesizer() => phrases.speech_rate_at_limit.to_owned(),
                    None => phrases.speech_off.to_owned(),
                };
                self.announce_reply(&Announcement::new(AnnouncementKind::Status, text));
            }
            TerminalAction::Quit => self.quit(),
            TerminalAction::Request(_) => {}
        }
    }

    /// Repeats the latest announcement. If it was about a question, reads the open questions instead, with the
    /// time that is left now. Otherwise, adds that they are open.
    fn repeat_last(&mut self) {
        let open: Vec<u32> = self
            .subscriber
            .questions()
            .filter(|question| !question.is_answered)
            .map(|question| question.number)
            .collect();
        let repeated = match self.history.last() {
            Some(last) if last.kind == AnnouncementKind::Ask && !open.is_empty() => {
                open.iter().filter_map(|number| self.subscriber.repeat_question(*number, now())).collect()
            }
            Some(last) => {
                let mut repeated = vec![last.clone()];
                repeated.extend(open_question_notes(
                    &self.subscriber,
                    |number| open.contains(&number),
                    now(),
                ));
                repeated
            }
            None => vec![self.history.recall(1, self.subscriber.phrases())],
        };
        for announcement in repeated {
            self.announce_reply(&announcement);
        }
    }

    pub(super) fn handle_send_outcome(&mut self, (question, result): SendOutcome) {
        let Err(client::SendError(reason)) = result else { return };
        let reason = reason.describe(self.subscriber.phrases());
        let text = if let Some(number) = question {
            self.subscriber.undo_answer(number);
            self.subscriber.phrases().answer_not_sent(number, &reason)
        } else {
            self.subscriber.clear_pending_requests();
            self.subscriber.phrases().request_not_sent(&reason)
        };
        self.announce(&Announcement::new(AnnouncementKind::Error, text));
    }

    /// Speaks the reason for quitting. The caller prints it.
    pub(super) async fn speak_failure(&mut self, reason: &str) {
        let mut announcement = Announcement::new(AnnouncementKind::Error, reason);
        announcement.urgency = Urgency::Critical;
        self.speech.enqueue(&announcement);
        self.drain_speech().await;
    }

    /// Waits until everything is spoken, for a limited time.
    pub(super) async fn drain_speech(&mut self) {
        let speech_done = async {
            while self.speech.is_busy() {
                self.speech.poll();
                sleep(SPEECH_POLL_INTERVAL).await;
            }
        };
        let _ = timeout(FINAL_SPEECH_TIMEOUT, speech_done).await;
    }

    /// Quits, and tells the person what continues.
    pub(super) fn quit(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        // A program that accepts requests exits together with its listener, and announces that itself.
        let announces_stop = self.requests.is_none();
        let text = input_handler::goodbye_text(&self.subscriber, announces_stop);
        if !text.is_empty() {
            self.print(&Announcement::new(AnnouncementKind::Notice, text));
        }
    }

    /// Waits for pending sends, then closes the subscription.
    pub(super) async fn close_subscription(&mut self) {
        self.speech.stop_current();
        let deliver = async {
            while let Some(outcome) = self.pending_sends.join_next().await {
                if let Ok(outcome) = outcome {
                    self.handle_send_outcome(outcome);
                }
            }
        };
        let _ = timeout(SHUTDOWN_TIMEOUT, deliver).await;
        if let Some(subscription) = self.subscription_id.take() {
            let unsubscribe = client::unsubscribe(&self.settings.address, &subscription);
            let _ = timeout(SHUTDOWN_TIMEOUT, unsubscribe).await;
        }
    }

    /// Waits until speech is idle, for a limited time.
    pub(super) async fn finish_speech(&mut self) {
        let fall_silent = async {
            while !self.speech.is_idle() {
                sleep(SPEECH_POLL_INTERVAL).await;
            }
        };
        let _ = timeout(SHUTDOWN_TIMEOUT, fall_silent).await;
    }

    /// Returns when to poll next if nothing arrives.
    pub(super) fn next_poll(&mut self) -> Instant {
        let hour = Duration::from_hours(1);
        let due_ms = self.subscriber.next_deadline().map(|at| at.millis_since(now()).max(0));
        let wait = due_ms.map_or(hour, |millis| Duration::from_millis(millis.unsigned_abs()).min(hour));
        let poll_at =
            Instant::now() + if self.speech.is_busy() { wait.min(SPEECH_POLL_INTERVAL) } else { wait };
        self.catch_up.as_ref().map_or(poll_at, |catch_up| poll_at.min(catch_up.due_at()))
    }

    pub(super) fn poll(&mut self) {
        self.announce_pending();
        if self.catch_up.as_ref().is_some_and(|catch_up| catch_up.due_at() <= Instant::now()) {
            self.finish_catch_up();
        }
        if let Some(session) = &self.quit_after
            && self.subscriber.has_ended(session)
        {
            self.is_over = true;
        }
        let subscriber = &self.subscriber;
        let has_question = |session: &SessionId| {
            subscriber.questions().any(|question| question.session_id == *session && !question.is_answered)
        };
        let due_waiters = self
            .session_waiters
            .extract_if(.., |(session, _)| subscriber.has_ended(session) || has_question(session));
        for (session, waiter) in due_waiters {
            let _ = waiter.send(subscriber.has_ended(&session));
        }
        for (_, waiter) in
            self.session_end_waiters.extract_if(.., |(session, _)| subscriber.has_ended(session))
        {
            let _ = waiter.send(());
        }
        while let Some(notice) = self.speech.take_notice() {
            self.announce(&Announcement::new(AnnouncementKind::Notice, notice));
        }
        self.speech.poll();
        self.braille.update_questions(&self.subscriber, now());
    }

    fn announce_pending(&mut self) {
        while let Some(announcement) = self.subscriber.next_announcement(now()) {
            if let Some(introduction) = self
                .catch_up
                .as_mut()
                .and_then(|catch_up| catch_up.take_introduction(self.subscriber.phrases()))
            {
                self.announce(&introduction);
            }
            self.announce(&announcement);
            if announcement.kind == AnnouncementKind::Ask
                && let Some(number) = announcement.question_number
            {
                self.auto_answer(number);
            }
        }
    }

    /// Finishes catching up. All missed events were received, so held announcements that remain are still true.
    fn finish_catch_up(&mut self) {
        if self.catch_up.as_ref().is_some_and(CatchUp::has_received) {
            self.subscriber.release_held(now());
        }
        self.subscriber.finish_gap_recovery(now());
        self.announce_pending();
        let Some(catch_up) = self.catch_up.take() else { return };
        for announcement in catch_up.finish(&self.subscriber, now()) {
            self.announce(&announcement);
        }
        self.subscriber.release_held(now());
        self.announce_pending();
        for number in std::mem::take(&mut self.unconfirmed_answers) {
            self.auto_answer(number);
        }
    }

    /// Answers a question automatically, if `--auto` is set.
    fn auto_answer(&mut self, number: u32) {
        let decision = match self.settings.auto_answer {
            AutoAnswerMode::Off | AutoAnswerMode::LetExpire => return,
            AutoAnswerMode::Accept => Decision::Accept,
            AutoAnswerMode::Reject => Decision::Reject,
        };
        let is_accept = decision == Decision::Accept;
        let phrases = self.subscriber.phrases();
        let yes_or_no = if is_accept { phrases.yes } else { phrases.no };
        let Some(question) = self.subscriber.questions().find(|question| question.number == number) else {
            return;
        };
        if question.is_answered {
            return;
        }
        let (message, answer) = match &question.body {
            QuestionBody::Confirmation { .. } => {
                (self.subscriber.answer_confirmation(number, decision, now()), yes_or_no.to_owned())
            }
            QuestionBody::Clarification { choices, default_response: default, .. } => {
                let answer = match choices.first() {
                    Some((_, label)) if is_accept => label.clone(),
                    _ if question.accepts(&ResponseKind::YesNo) => yes_or_no.to_owned(),
                    _ => default.clone().unwrap_or_default(),
                };
                (self.subscriber.answer_clarification(number, &answer, now()), answer)
            }
        };
        if let Ok(message) = message {
            let text = phrases.auto_answered(number, &answer);
            self.announce(&Announcement::new(AnnouncementKind::Answer, text));
            self.perform(TerminalAction::Send { message, question: Some(number) });
        } else {
            let text = phrases.auto_not_answered(number);
            self.announce(&Announcement::new(AnnouncementKind::Answer, text));
        }
    }

    pub(super) fn announce(&mut self, announcement: &Announcement) {
        self.print(announcement);
        self.present(announcement);
    }

    /// Announces without printing.
    fn present(&mut self, announcement: &Announcement) {
        self.history.record(announcement, now());
        self.speech.enqueue(announcement);
        self.braille.show(announcement, &self.subscriber);
    }

    fn announce_reply(&mut self, announcement: &Announcement) {
        self.print(announcement);
        self.speech.enqueue_requested(announcement);
        self.braille.show(announcement, &self.subscriber);
    }

    fn print(&mut self, announcement: &Announcement) {
        let text = if self.settings.json {
            announcement_format::format_json(announcement, &self.subscriber, now())
        } else {
            let time = self.settings.times.then(|| local_time(now()));
            announcement_format::format_lines(announcement, self.subscriber.phrases(), time.as_deref())
        };
        // A write fails if the reader has closed the output.
        if self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()).is_err() {
            self.is_over = true;
        }
    }
}

fn describe_program_end(status: Option<ExitStatus>, phrases: &Phrases) -> String {
    match status {
        Some(status) if status.success() => phrases.program_ended.to_owned(),
        Some(status) => match status.code() {
            Some(code) => phrases.program_failed(code.into()),
            None => phrases.program_killed.to_owned(),
        },
        None => phrases.program_hung_up.to_owned(),
    }
}

fn now() -> UnixMillis {
    SystemTime::now().into()
}
