//! One terminal that listens: what is heard, typed and said.

use std::io::Write;
use std::time::{Duration, SystemTime};

use aaep::event::{Decision, ResponseKind, Urgency};
use aaep::{SessionId, SubscriptionId};
use seal::UnixMillis;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::aloud::Aloud;
use super::back::Back;
use super::conversation::{self, Act, Around};
use super::{Auto, Failure, Hooks, Settings, printed, terms};
use crate::client::{self, Heard, Lost};
use crate::{Announcement, Ear, Kind, Standing, Subject, Tastes};

/// Between two looks at whether a voice is free.
const VOICE: Duration = Duration::from_millis(50);
/// For a voice to say why it ends.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// For what is under way, and to say good-bye.
const FAREWELL: Duration = Duration::from_secs(2);

/// What became of a message: the question that it answered, and why it did not arrive.
pub(super) type Sent = (Option<u32>, Result<(), client::NotSent>);

pub(super) struct Talk<W> {
    ear: Ear,
    aloud: Aloud,
    requests: Option<mpsc::Sender<String>>,
    understood: Option<fn(&str) -> bool>,
    ready: Option<oneshot::Sender<()>>,
    subscription: Option<SubscriptionId>,
    has_hub: bool,
    /// The rate that the hub was asked for.
    rate: Option<u64>,
    /// The connection is lost, and that was said.
    lost: bool,
    /// It was lost, and is there again a moment ago.
    back: Option<Back>,
    /// It ends with this session.
    pub(super) until: Option<SessionId>,
    /// Who wants to know when a session was told to its end, or to a question.
    pub(super) told_after: Vec<(SessionId, oneshot::Sender<bool>)>,
    pub(super) is_over: bool,
    pub(super) sends: JoinSet<Sent>,
    wishes: watch::Sender<Tastes>,
    settings: Settings,
    out: W,
}

impl<W: Write> Talk<W> {
    pub(super) fn new(settings: Settings, hooks: Hooks, wishes: watch::Sender<Tastes>, out: W) -> Self {
        let ear = Ear::new(settings.tastes.clone(), settings.limits);
        Self {
            aloud: Aloud::new(hooks.voice, settings.limits.waiting, ear.phrases()),
            ear,
            requests: hooks.requests,
            understood: hooks.understood,
            ready: hooks.ready,
            subscription: None,
            has_hub: true,
            rate: settings.tastes.rate,
            lost: false,
            back: None,
            until: None,
            told_after: Vec::new(),
            is_over: false,
            sends: JoinSet::new(),
            wishes,
            settings,
            out,
        }
    }

    pub(super) fn hear(&mut self, heard: Heard) -> Option<Failure> {
        let phrases = self.ear.phrases();
        match heard {
            Heard::Open { subscription, notes, resumed } => {
                match &subscription {
                    Some(subscription) => self.ear.subscribe(subscription.clone()),
                    // Nobody knows it; but an answer must name one.
                    None => self.ear.subscribe(SubscriptionId::generate(&mut seal::SystemRandom)),
                }
                if subscription.is_none() {
                    self.settings.address = self.settings.address.clone().without_hub();
                }
                self.has_hub = subscription.is_some();
                self.subscription = subscription;
                if self.lost {
                    self.back = Some(Back::new(resumed, &self.ear)).filter(|_| self.has_hub);
                }
                if self.lost && !resumed && self.has_hub {
                    self.ear.begin_anew(now());
                }
                let text = match (std::mem::take(&mut self.lost), resumed) {
                    (false, _) if self.settings.auto != Auto::Off => {
                        phrases.listening_only(&self.settings.address.url())
                    }
                    (false, _) => phrases.listening(&self.settings.address.url()),
                    (true, true) => phrases.again_resumed.to_owned(),
                    (true, false) => phrases.again_not_kept.to_owned(),
                };
                self.say(&Announcement::own(Kind::Notice, text));
                if let Some(notes) = notes {
                    self.say(&Announcement::own(Kind::Notice, phrases.hub_says(&crate::plain(&notes, true))));
                }
                if self.settings.address.is_in_the_clear() {
                    self.say(&Announcement::own(Kind::Notice, phrases.in_the_clear));
                }
                if !self.has_hub {
                    self.say(&Announcement::own(Kind::Notice, phrases.no_hub));
                }
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(());
                }
            }
            Heard::Terms { request, accepted } => self.agree(&request, &accepted),
            Heard::Manifest(standing) => self.learn(standing),
            Heard::AskedForLess(why) => {
                let text = format!("{} {}", why.in_words(phrases), phrases.asked_for_less);
                self.say(&Announcement::own(Kind::Notice, text));
            }
            Heard::Text(text) => {
                if let Some(back) = &mut self.back {
                    back.hears(&text);
                }
                self.ear.hear(&text, now());
            }
            Heard::TooLong => {
                self.say(&Announcement::own(Kind::Error, phrases.too_long));
            }
            Heard::Lost(lost) => {
                self.back = None;
                self.ear.set_aside();
                if !std::mem::replace(&mut self.lost, true) {
                    let why = lost.why().in_words(phrases);
                    let text = phrases.lost(&why);
                    self.say(&Announcement::own(Kind::Notice, text));
                }
            }
            Heard::Over(Lost::Refused(why)) => return Some(Failure(why.in_words(phrases))),
            Heard::Over(Lost::Unreachable(why)) => {
                return Some(Failure(
                    phrases.cannot_reach(&self.settings.address.url(), &why.in_words(phrases)),
                ));
            }
        }
        None
    }

    /// The terms that hold now, whatever was asked for.
    fn agree(&mut self, request: &str, accepted: &str) {
        let told = terms::told(request, accepted, self.ear.tastes(), self.ear.phrases());
        self.rate = told.rate;
        for text in told.notices {
            self.say(&Announcement::own(Kind::Notice, text));
        }
    }

    /// Who the hub is. Who gave no key did not ask, and is not kept waiting for it by a voice; a lie is told to everybody.
    fn learn(&mut self, standing: Standing) {
        let asked = self.settings.checks.as_ref().is_some_and(|checks| checks.trusted.is_some());
        let sentence = standing.sentence(self.ear.phrases());
        if standing.is_wrong() {
            self.say(&Announcement::own(Kind::Error, sentence));
        } else if asked {
            self.say(&Announcement::own(Kind::Notice, sentence));
        } else {
            self.print(&Announcement::own(Kind::Notice, sentence));
        }
        self.ear.set_standing(standing);
    }

    pub(super) fn typed(&mut self, line: &str) {
        // Enter alone is the key that stops speech; only in silence is it told what Enter does not do.
        if line.trim().is_empty() && self.aloud.silence() {
            return;
        }
        // Who is there to type is not kept waiting for the next attempt.
        if self.lost {
            self.settings.address.try_now();
        }
        let around = Around {
            requests: self.requests.as_ref().map(|_| self.understood.unwrap_or(|_| true)),
            speech: self.aloud.has_voice(),
            hub: self.has_hub,
            lost: self.lost,
        };
        let acts = conversation::take(&mut self.ear, line, around, now());
        for act in acts {
            match act {
                Act::Request(text) => {
                    if let Some(requests) = &self.requests
                        && requests.try_send(text).is_err()
                    {
                        self.say(&Announcement::own(Kind::Error, self.ear.phrases().asked_too_much));
                    }
                }
                act => self.act(act),
            }
        }
    }

    fn act(&mut self, act: Act) {
        let phrases = self.ear.phrases();
        match act {
            Act::Say(announcement) => self.reply(&announcement),
            Act::Send { message, question } => {
                if let Some(number) = question.filter(|_| self.settings.auto == Auto::None) {
                    self.ear.not_sent(number);
                    return self.say(&Announcement::own(Kind::Error, phrases.auto_none));
                }
                if let Some(number) = question {
                    self.aloud.answered(number);
                }
                let to = self.settings.address.clone();
                self.sends.spawn(async move { (question, client::send(&to, &message).await) });
            }
            Act::Retune(tastes) => {
                if let Some(subscription) = &self.subscription {
                    // A rate that was too much is not asked for again.
                    let wish = Tastes { rate: self.rate, ..tastes.clone() };
                    let message = client::renegotiation(subscription, &wish);
                    self.act(Act::Send { message, question: None });
                }
                let _ = self.wishes.send(tastes.clone());
                self.ear.set_tastes(tastes);
            }
            Act::Hush => {
                let text = self.aloud.hush(phrases);
                self.print(&Announcement::own(Kind::Status, text));
            }
            Act::Pace { faster } => {
                let text = match self.aloud.change_pace(faster) {
                    Some(pace) => phrases.pace(&pace.to_string()),
                    None if self.aloud.has_voice() => phrases.pace_ends.to_owned(),
                    None => phrases.nothing_spoken.to_owned(),
                };
                self.reply(&Announcement::own(Kind::Status, text));
            }
            Act::Quit => self.quit(),
            Act::Request(_) => {}
        }
    }

    pub(super) fn was_sent(&mut self, (question, result): Sent) {
        let Err(client::NotSent(why)) = result else { return };
        let why = why.in_words(self.ear.phrases());
        let text = if let Some(number) = question {
            self.ear.not_sent(number);
            self.ear.phrases().answer_not_sent(number, &why)
        } else {
            self.ear.wish_not_sent();
            self.ear.phrases().wish_not_sent(&why)
        };
        self.say(&Announcement::own(Kind::Error, text));
    }

    /// Why nothing more is heard is said aloud, too; whoever called prints it.
    pub(super) async fn last_words(&mut self, why: &str) {
        let mut announcement = Announcement::own(Kind::Error, why);
        announcement.urgency = Urgency::Critical;
        self.aloud.say(&announcement);
        let said = async {
            while self.aloud.is_busy() {
                self.aloud.speak();
                sleep(VOICE).await;
            }
        };
        let _ = timeout(LAST_WORDS, said).await;
    }

    /// The person leaves, and is told what goes on without them.
    pub(super) fn quit(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        // Whoever takes requests ends with its listener, and says so itself.
        let leaves = self.requests.is_none();
        let text = conversation::goodbye(&self.ear, leaves);
        if !text.is_empty() {
            self.print(&Announcement::own(Kind::Notice, text));
        }
    }

    /// What is under way arrives first, then it is said that nobody listens any more.
    pub(super) async fn leave(&mut self) {
        self.aloud.silence();
        let arrive = async {
            while let Some(sent) = self.sends.join_next().await {
                if let Ok(sent) = sent {
                    self.was_sent(sent);
                }
            }
        };
        let _ = timeout(FAREWELL, arrive).await;
        if let Some(subscription) = self.subscription.take() {
            let message = client::farewell(&subscription);
            let _ = timeout(FAREWELL, client::send(&self.settings.address, &message)).await;
        }
        let silent = async {
            while !self.aloud.is_silent() {
                sleep(VOICE).await;
            }
        };
        let _ = timeout(FAREWELL, silent).await;
    }

    /// When to look again, should nothing come.
    pub(super) fn next_look(&mut self) -> Instant {
        let hour = Duration::from_hours(1);
        let due = self.ear.next_deadline().map(|at| at.millis_since(now()).max(0));
        let due = due.map_or(hour, |millis| Duration::from_millis(millis.unsigned_abs()).min(hour));
        let look = Instant::now() + if self.aloud.is_busy() { due.min(VOICE) } else { due };
        self.back.as_ref().map_or(look, |back| look.min(back.due()))
    }

    pub(super) fn look(&mut self) {
        self.say_all();
        if self.back.as_ref().is_some_and(|back| back.due() <= Instant::now()) {
            self.catch_up();
        }
        if let Some(until) = &self.until
            && self.ear.has_ended(until)
        {
            self.is_over = true;
        }
        let ear = &self.ear;
        let asks = |session: &SessionId| {
            ear.questions().any(|question| question.session == *session && !question.is_answered)
        };
        let told = self.told_after.extract_if(.., |(session, _)| ear.has_ended(session) || asks(session));
        for (session, who) in told {
            let _ = who.send(ear.has_ended(&session));
        }
        while let Some(news) = self.aloud.news() {
            self.say(&Announcement::own(Kind::Notice, news));
        }
        self.aloud.speak();
    }

    fn say_all(&mut self) {
        while let Some(announcement) = self.ear.next(now()) {
            if let Some(leads) = self.back.as_mut().and_then(|back| back.leads(self.ear.phrases())) {
                self.say(&leads);
            }
            self.say(&announcement);
            if announcement.kind == Kind::Ask
                && let Some(number) = announcement.question
            {
                self.answer_by_itself(number);
            }
        }
    }

    /// All that was said meanwhile was heard: what of it, or from before, is held by now holds.
    fn catch_up(&mut self) {
        if self.back.as_ref().is_some_and(Back::has_heard) {
            self.ear.let_go(now());
            self.say_all();
        }
        let Some(back) = self.back.take() else { return };
        for announcement in back.ends(&self.ear, now()) {
            self.say(&announcement);
        }
        self.ear.let_go(now());
        self.say_all();
    }

    /// With `--auto`, nobody is waited for.
    fn answer_by_itself(&mut self, number: u32) {
        let decision = match self.settings.auto {
            Auto::Off | Auto::None => return,
            Auto::Accept => Decision::Accept,
            Auto::Reject => Decision::Reject,
        };
        let accepts = decision == Decision::Accept;
        let phrases = self.ear.phrases();
        let yes_or_no = if accepts { phrases.yes } else { phrases.no };
        let Some(question) = self.ear.questions().find(|question| question.number == number) else { return };
        if question.is_answered {
            return;
        }
        let (message, word) = match &question.subject {
            Subject::Confirmation { .. } => (self.ear.decide(number, decision, now()), yes_or_no.to_owned()),
            Subject::Clarification { choices, default, .. } => {
                let word = match choices.first() {
                    Some((_, label)) if accepts => label.clone(),
                    _ if question.takes(&ResponseKind::YesNo) => yes_or_no.to_owned(),
                    _ => default.clone().unwrap_or_default(),
                };
                (self.ear.respond(number, &word, now()), word)
            }
        };
        if let Ok(message) = message {
            let text = phrases.auto_answered(number, &word);
            self.say(&Announcement::own(Kind::Answer, text));
            self.act(Act::Send { message, question: Some(number) });
        } else {
            let text = phrases.auto_not_answered(number);
            self.say(&Announcement::own(Kind::Answer, text));
        }
    }

    pub(super) fn say(&mut self, announcement: &Announcement) {
        self.print(announcement);
        self.aloud.say(announcement);
    }

    fn reply(&mut self, announcement: &Announcement) {
        self.print(announcement);
        self.aloud.reply(announcement);
    }

    fn print(&mut self, announcement: &Announcement) {
        let text = if self.settings.json {
            printed::json(announcement, &self.ear)
        } else {
            printed::lines(announcement)
        };
        // Whoever read this has gone: nobody listens any more.
        if self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err() {
            self.is_over = true;
        }
    }
}

fn now() -> UnixMillis {
    SystemTime::now().into()
}
