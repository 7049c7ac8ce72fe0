//! A hub on a stage: time is an argument, the journal is in memory, listeners are lists.
//!
//! - `disk`: the journal; `cast`: who speaks and listens, and their words.

mod cast;
mod disk;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use aaep::event::Producer;
use hub::command::{Command, Notice, Output, Reply, Request, RequestId};
use hub::delivery::{Cursor, Frame, Lane, LaneLimits, Next};
use hub::{Core, LaneId, Limits, LineId, ListenerId, Principal};
use seal::UnixMillis;

use testing::random;

pub(crate) use cast::{
    REPLIES, THINK, TRANSFER, agent, call, id, json, listener, observer, say, subscribe, text_of, types,
};
pub(crate) use disk::{Disk, Seen};

pub(crate) const START: UnixMillis = UnixMillis::new(1_767_603_600_000);

/// The hub, its disk, and everybody who listens.
pub(crate) struct Stage {
    pub(crate) core: Core,
    pub(crate) disk: Disk,
    pub(crate) now: UnixMillis,
    requests: u64,
    listeners: u64,
    lanes: HashMap<LaneId, Lane>,
    ears: BTreeMap<ListenerId, Ear>,
    answers: HashMap<RequestId, Reply>,
    notices: Vec<(LineId, Notice)>,
    /// Whether the hub may be without words: in a year that no timestamp has.
    pub(crate) beyond_time: bool,
    seed: u64,
}

struct Ear {
    lane: LaneId,
    cursor: Cursor,
    heard: Vec<Arc<Frame>>,
    told: Vec<String>,
    last: Option<String>,
    closed: bool,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(&Limits::default(), Disk::default(), START)
    }

    pub(crate) fn with(limits: &Limits, disk: Disk, now: UnixMillis) -> Self {
        let core =
            Core::new(Box::new(disk.clone()), Producer::new("hub"), *limits, random::bytes(7), now).unwrap();
        Self {
            core,
            disk,
            now,
            requests: 0,
            listeners: 0,
            lanes: HashMap::new(),
            ears: BTreeMap::new(),
            answers: HashMap::new(),
            notices: Vec::new(),
            beyond_time: false,
            seed: 7,
        }
    }

    /// The hub is gone and starts again, on the same disk.
    pub(crate) fn crash(&mut self) {
        self.seed += 1;
        let random = random::bytes(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.core =
            Core::new(Box::new(self.disk.clone()), Producer::new("hub"), Limits::default(), random, self.now)
                .unwrap();
        self.lanes.clear();
        self.ears.clear();
        self.answers.clear();
        self.notices.clear();
    }

    /// Asks on a line.
    pub(crate) fn on(&mut self, who: &Principal, line: LineId, command: Command) -> Reply {
        self.ask_hub(who, Command::On { line, command: Box::new(command) })
    }

    /// What was told on a line since this was last asked.
    pub(crate) fn notices(&mut self, line: LineId) -> Vec<Notice> {
        self.notices.extract_if(.., |(to, _)| *to == line).map(|(_, notice)| notice).collect()
    }

    pub(crate) fn ask_hub(&mut self, who: &Principal, command: Command) -> Reply {
        let id = self.send(who, command);
        self.turn();
        self.answers.remove(&id).expect("an answer")
    }

    /// Tells the hub something that it does not answer.
    pub(crate) fn ask_hub_quietly(&mut self, who: &Principal, command: Command) {
        let id = self.send(who, command);
        assert_eq!(self.answer(id), None);
    }

    /// Asks, and does not wait for the answer.
    pub(crate) fn send(&mut self, who: &Principal, command: Command) -> RequestId {
        self.requests += 1;
        let id = RequestId(self.requests);
        let outputs = self.core.turn(vec![Request { id, who: who.clone(), command }], self.now);
        self.perform(outputs);
        id
    }

    /// Two requests in one turn.
    pub(crate) fn both(
        &mut self,
        one: &Principal,
        first: Command,
        other: &Principal,
        second: Command,
    ) -> [Reply; 2] {
        let ids = [RequestId(self.requests + 1), RequestId(self.requests + 2)];
        self.requests += 2;
        let requests = vec![
            Request { id: ids[0], who: one.clone(), command: first },
            Request { id: ids[1], who: other.clone(), command: second },
        ];
        let outputs = self.core.turn(requests, self.now);
        self.perform(outputs);
        ids.map(|id| self.answers.remove(&id).expect("an answer"))
    }

    pub(crate) fn answer(&mut self, id: RequestId) -> Option<Reply> {
        self.answers.remove(&id)
    }

    pub(crate) fn turn(&mut self) {
        let outputs = self.core.turn(Vec::new(), self.now);
        self.perform(outputs);
    }

    pub(crate) fn wait(&mut self, millis: i64) {
        let until = self.now + millis;
        while let Some(at) = self.core.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.turn();
        }
        self.now = until;
        self.turn();
    }

    pub(crate) fn perform(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Reply(id, answer) => {
                    assert!(self.answers.insert(id, answer).is_none(), "one answer to a request");
                }
                Output::Notice(line, notice) => self.notices.push((line, notice)),
                Output::Frame(lane, frame) => self.lane(lane).push(frame),
                Output::Join { listener, lane, own, from } => {
                    let mut cursor = Cursor::at_end(self.lane(lane)).from(from);
                    for frame in own {
                        cursor.give(frame);
                    }
                    let (heard, told, last) = (Vec::new(), Vec::new(), None);
                    self.ears.insert(listener, Ear { lane, cursor, heard, told, last, closed: false });
                }
                Output::Move(listener, lane) => {
                    self.lane(lane);
                    if let Some(ear) = self.ears.get_mut(&listener)
                        && let (Some(from), Some(to)) = (self.lanes.get(&ear.lane), self.lanes.get(&lane))
                    {
                        ear.cursor.go_over(from, to);
                        ear.lane = lane;
                    }
                }
                Output::Give(listener, frame) => {
                    if let Some(ear) = self.ears.get_mut(&listener) {
                        ear.cursor.give(frame);
                    }
                }
                Output::Close(listener) => {
                    self.listen();
                    if let Some(ear) = self.ears.get_mut(&listener) {
                        ear.closed = true;
                    }
                }
                Output::Note(hub::watch::Note::Unsaid { session, rules }) if !self.beyond_time => {
                    panic!("the hub's own words were refused in {session}: {rules:?}");
                }
                _ => {}
            }
        }
        self.listen();
    }

    fn lane(&mut self, id: LaneId) -> &mut Lane {
        self.lanes.entry(id).or_insert_with(|| Lane::new(LaneLimits::default()))
    }

    fn listen(&mut self) {
        for ear in self.ears.values_mut().filter(|ear| !ear.closed) {
            if let Some(lane) = self.lanes.get(&ear.lane) {
                while let Next::Frame(frame) = ear.cursor.take(lane) {
                    ear.last = frame.id().map(str::to_owned).or(ear.last.take());
                    match frame.json() {
                        "" => {}
                        event if event.contains("\"session_id\"") => ear.heard.push(frame),
                        message => ear.told.push(message.to_owned()),
                    }
                }
            }
        }
    }

    /// What a listener has heard since it was last asked, as JSON texts.
    pub(crate) fn heard(&mut self, listener: ListenerId) -> Vec<String> {
        let heard = self.ears.get_mut(&listener).map(|ear| std::mem::take(&mut ear.heard));
        heard.unwrap_or_default().iter().map(|frame| frame.json().to_owned()).collect()
    }

    /// Messages that are no events, which a listener was told since it was last asked.
    pub(crate) fn told(&mut self, listener: ListenerId) -> Vec<String> {
        self.ears.get_mut(&listener).map(|ear| std::mem::take(&mut ear.told)).unwrap_or_default()
    }

    /// From where a browser would resume.
    pub(crate) fn last_id(&self, listener: ListenerId) -> Option<String> {
        self.ears.get(&listener)?.last.clone()
    }

    pub(crate) fn is_closed(&self, listener: ListenerId) -> bool {
        self.ears.get(&listener).is_none_or(|ear| ear.closed)
    }

    /// Subscribes and listens; returns the subscription and the connection.
    pub(crate) fn listener(&mut self, who: &Principal, capabilities: &str) -> (String, ListenerId) {
        let subscription = self.subscribe(who, capabilities);
        let listener = self.attach(who, &subscription, None);
        (subscription, listener)
    }

    pub(crate) fn subscribe(&mut self, who: &Principal, capabilities: &str) -> String {
        let text = format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"ear","capabilities":{capabilities}}}"#
        );
        let accepted = json(self.ask_hub(who, subscribe(&text)));
        text_of(&accepted, "subscription_id")
    }

    pub(crate) fn attach(&mut self, who: &Principal, subscription: &str, last: Option<&str>) -> ListenerId {
        self.listeners += 1;
        let listener = ListenerId(self.listeners);
        let command = Command::Attach {
            subscription: id(subscription),
            last_event_id: last.map(str::to_owned),
            listener,
        };
        assert_eq!(self.ask_hub(who, command), Reply::Done);
        listener
    }

    pub(crate) fn start(&mut self, who: &Principal) -> String {
        let text = r#"{"summary_normal":"Moving money.","requested_by":"user:marisol","localization_hints":{"primary_language":"en"}}"#;
        let made = json(self.ask_hub(who, Command::Start { body: text.into(), key: None }));
        text_of(&made, "session_id")
    }

    pub(crate) fn publish(&mut self, who: &Principal, session: &str, events: &[&str]) -> Reply {
        let events = events.iter().map(|event| (*event).into()).collect();
        self.ask_hub(who, Command::Publish { session: id(session), events, key: None })
    }

    pub(crate) fn confirm(&mut self, who: &Principal, session: &str, text: &str) -> Reply {
        let command = Command::Ask { session: id(session), body: text.into(), clarify: false, key: None };
        self.ask_hub(who, command)
    }

    pub(crate) fn reply(&mut self, who: &Principal, subscription: &str, token: &str, decision: &str) {
        let at = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
        );
        assert_eq!(self.ask_hub(who, say(&text)), Reply::Done, "every reply is answered alike");
    }

    pub(crate) fn status(&mut self, who: &Principal, session: &str, token: &str) -> Reply {
        let command = Command::Wait { session: id(session), token: id(token), until: self.now };
        self.ask_hub(who, command)
    }
}
