//! A hub on a stage: time is an argument, the journal is in memory, listeners are lists.

#![allow(dead_code, clippy::cast_possible_truncation, reason = "not every test file needs all of it")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use aaep::event::Producer;
use hub::command::{Answer, Command, Notice, Output, Request, RequestId};
use hub::delivery::{Cursor, Frame, Lane, LaneLimits, Next};
use hub::{Core, LaneId, Limits, LineId, ListenerId, Principal, Role, Scope};
use journal::stored::{Alive, Remembered, StoredDecision, StoredEvent, StoredSession};
use journal::{Entry, Error, Journal, Memory, Position, Retention, Trimmed};

pub(crate) const START: i64 = 1_767_603_600_000;

/// A journal that outlives the hub, and can be told to fail.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Inner>>);

struct Inner {
    memory: Box<dyn Journal>,
    full: bool,
    unreadable: bool,
    seen: Vec<Seen>,
    calls: Vec<&'static str>,
}

impl Inner {
    /// A call of the journal.
    fn called(&mut self, name: &'static str) -> &mut dyn Journal {
        self.calls.push(name);
        &mut *self.memory
    }
}

impl Default for Inner {
    fn default() -> Self {
        let memory = Box::new(Memory::default());
        Self { memory, full: false, unreadable: false, seen: Vec::new(), calls: Vec::new() }
    }
}

/// What was written, for whoever watches the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Event {
        position: u64,
        id: String,
        body: String,
    },
    Asked {
        token: String,
        deadline: i64,
    },
    Moved {
        token: String,
        deadline: i64,
    },
    Decided {
        token: String,
        decision: String,
        by: String,
    },
    Spent {
        token: String,
        call: String,
    },
    Attempt {
        what: String,
    },
    /// A batch was whole.
    Batch,
}

impl Seen {
    fn of(entry: &Entry<'_>) -> Option<Self> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Some(match *entry {
            Entry::Event { position, event_id, body, .. } => {
                Self::Event { position: position.get(), id: event_id.into(), body: text(body) }
            }
            Entry::QuestionOpened { token, deadline, .. } => Self::Asked { token: token.into(), deadline },
            Entry::DeadlineMoved { token, deadline } => Self::Moved { token: token.into(), deadline },
            Entry::Decided { token, decision, by, .. } => {
                Self::Decided { token: token.into(), decision: decision.into(), by: by.into() }
            }
            Entry::Spent { token, call, .. } => Self::Spent { token: token.into(), call: text(call) },
            Entry::Attempt { what, .. } => Self::Attempt { what: text(what) },
            _ => return None,
        })
    }
}

impl Disk {
    /// Over another journal than one in memory.
    pub(crate) fn over(journal: Box<dyn Journal>) -> Self {
        Self(Arc::new(Mutex::new(Inner { memory: journal, ..Inner::default() })))
    }

    pub(crate) fn fill(&self, full: bool) {
        self.0.lock().unwrap().full = full;
    }

    /// Nothing can be read either.
    pub(crate) fn fail(&self, unreadable: bool) {
        self.0.lock().unwrap().unreadable = unreadable;
    }

    /// What was written since this was last asked.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.0.lock().unwrap().seen)
    }

    /// Which calls the hub made since this was last asked.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    pub(crate) fn position_of(&self, event_id: &str) -> Option<u64> {
        self.0.lock().unwrap().memory.position_of(event_id).unwrap().map(Position::get)
    }

    pub(crate) fn decision(&self, token: &str) -> Option<StoredDecision> {
        self.0.lock().unwrap().memory.decision(token).unwrap()
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.lock().unwrap().memory.size().unwrap()
    }

    pub(crate) fn events(&self) -> Vec<StoredEvent> {
        self.0.lock().unwrap().memory.events(Position::START, 100_000).unwrap()
    }
}

impl Journal for Disk {
    fn commit(&mut self, batch: &[Entry<'_>]) -> Result<(), Error> {
        let mut inner = self.0.lock().unwrap();
        inner.calls.push("commit");
        if inner.full {
            return Err(Error::Full);
        }
        inner.memory.commit(batch)?;
        inner.seen.extend(batch.iter().filter_map(Seen::of));
        inner.seen.push(Seen::Batch);
        Ok(())
    }
    fn restore(&mut self) -> Result<Alive, Error> {
        let mut inner = self.0.lock().unwrap();
        inner.calls.push("restore");
        if inner.unreadable { Err(Error::Full) } else { inner.memory.restore() }
    }
    fn events(&mut self, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.0.lock().unwrap().called("events").events(after, limit)
    }
    fn events_of(&mut self, session: &str, after: Position, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        self.0.lock().unwrap().called("events_of").events_of(session, after, limit)
    }
    fn position_of(&mut self, event_id: &str) -> Result<Option<Position>, Error> {
        self.0.lock().unwrap().called("position_of").position_of(event_id)
    }
    fn session(&mut self, id: &str) -> Result<Option<StoredSession>, Error> {
        self.0.lock().unwrap().memory.session(id)
    }
    fn idempotent(&mut self, principal: &str, key: &str) -> Result<Option<Remembered>, Error> {
        self.0.lock().unwrap().called("idempotent").idempotent(principal, key)
    }
    fn decision(&mut self, token: &str) -> Result<Option<StoredDecision>, Error> {
        self.0.lock().unwrap().called("decision").decision(token)
    }
    fn trim(&mut self, keep: &Retention, now: i64) -> Result<Trimmed, Error> {
        self.0.lock().unwrap().called("trim").trim(keep, now)
    }
    fn size(&mut self) -> Result<u64, Error> {
        self.0.lock().unwrap().called("size").size()
    }
}

/// The hub, its disk, and everybody who listens.
pub(crate) struct Stage {
    pub(crate) core: Core,
    pub(crate) disk: Disk,
    pub(crate) now: i64,
    requests: u64,
    listeners: u64,
    lanes: HashMap<LaneId, Lane>,
    ears: BTreeMap<ListenerId, Ear>,
    answers: HashMap<RequestId, Answer>,
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

    pub(crate) fn with(limits: &Limits, disk: Disk, now: i64) -> Self {
        let mut state = 7_u64;
        let random = move |bytes: &mut [u8]| {
            for byte in bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 33) as u8;
            }
        };
        let core = Core::new(Box::new(disk.clone()), Producer::new("hub"), *limits, random, now).unwrap();
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
        let mut state = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let random = move |bytes: &mut [u8]| {
            for byte in bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 33) as u8;
            }
        };
        self.core =
            Core::new(Box::new(self.disk.clone()), Producer::new("hub"), Limits::default(), random, self.now)
                .unwrap();
        self.lanes.clear();
        self.ears.clear();
        self.answers.clear();
        self.notices.clear();
    }

    /// Asks on a line.
    pub(crate) fn on(&mut self, who: &Principal, line: LineId, command: Command) -> Answer {
        self.ask_hub(who, Command::On { line, command: Box::new(command) })
    }

    /// What was told on a line since this was last asked.
    pub(crate) fn notices(&mut self, line: LineId) -> Vec<Notice> {
        self.notices.extract_if(.., |(to, _)| *to == line).map(|(_, notice)| notice).collect()
    }

    pub(crate) fn ask_hub(&mut self, who: &Principal, command: Command) -> Answer {
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
    ) -> [Answer; 2] {
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

    pub(crate) fn answer(&mut self, id: RequestId) -> Option<Answer> {
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

    fn perform(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Answer(id, answer) => {
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
        let Answer::Accepted(accepted) = self.ask_hub(who, Command::Subscribe { text }) else {
            panic!("not accepted");
        };
        text_of(&accepted, "subscription_id")
    }

    pub(crate) fn attach(&mut self, who: &Principal, subscription: &str, last: Option<&str>) -> ListenerId {
        self.listeners += 1;
        let listener = ListenerId(self.listeners);
        let command = Command::Attach {
            subscription: subscription.to_owned(),
            last_event_id: last.map(str::to_owned),
            listener,
        };
        assert_eq!(self.ask_hub(who, command), Answer::Done);
        listener
    }

    pub(crate) fn start(&mut self, who: &Principal) -> String {
        let text = r#"{"summary_normal":"Moving money.","requested_by":"user:marisol","localization_hints":{"primary_language":"en"}}"#;
        let Answer::Made(made) = self.ask_hub(who, Command::Start { text: text.to_owned(), key: None })
        else {
            panic!("not started");
        };
        text_of(&made, "session_id")
    }

    pub(crate) fn publish(&mut self, who: &Principal, session: &str, events: &[&str]) -> Answer {
        let events = events.iter().map(|event| (*event).to_owned()).collect();
        self.ask_hub(who, Command::Publish { session: session.to_owned(), events, key: None })
    }

    pub(crate) fn confirm(&mut self, who: &Principal, session: &str, text: &str) -> Answer {
        let command = Command::Ask { session: session.into(), text: text.into(), clarify: false, key: None };
        self.ask_hub(who, command)
    }

    pub(crate) fn reply(&mut self, who: &Principal, subscription: &str, token: &str, decision: &str) {
        let at = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
        );
        assert_eq!(self.ask_hub(who, Command::Say { text }), Answer::Done, "every reply is answered alike");
    }

    pub(crate) fn status(&mut self, who: &Principal, session: &str, token: &str) -> Answer {
        let command = Command::Wait { session: session.into(), token: token.into(), until: self.now };
        self.ask_hub(who, command)
    }
}

pub(crate) fn agent(name: &str) -> Principal {
    Principal {
        name: name.into(),
        role: Role::Agent,
        agent_id: Some(name.into()),
        scope: Arc::default(),
        open: false,
        token: None,
    }
}

pub(crate) fn listener(name: &str, scope: &[&str]) -> Principal {
    let mut covered = Scope::default();
    for part in scope {
        covered.add(part).unwrap();
    }
    Principal {
        name: name.into(),
        role: Role::Listener,
        agent_id: None,
        scope: Arc::new(covered),
        open: false,
        token: None,
    }
}

pub(crate) fn observer(name: &str) -> Principal {
    Principal { role: Role::Observer, ..listener(name, &[]) }
}

/// The text of a member.
pub(crate) fn text_of(json: &str, name: &str) -> String {
    let mut tape = aaep::json::Tape::default();
    let doc = tape.read(json).unwrap();
    doc.root()
        .member(name)
        .and_then(|member| member.text())
        .unwrap_or_else(|| panic!("no {name} in {json}"))
        .into()
}

/// The types of events, without their beginning.
pub(crate) fn types(events: &[String]) -> Vec<String> {
    events.iter().map(|event| text_of(event, "type").replace("aaep:agent.", "")).collect()
}

pub(crate) const REPLIES: &str = r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3]}"#;

pub(crate) const TRANSFER: &str = r#"{"action":"Transfer 500 euro to Ben.","consequence":"It cannot be undone.","irreversible":true,"risk_level":"high","timeout_seconds":180,"default_decision":"reject","summary_normal":"May I transfer 500 euro to Ben?","tool":"transfer","arguments":{"amount":"500.00","to":"Ben"}}"#;

pub(crate) const THINK: &str =
    r#"{"type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking"}"#;

pub(crate) fn call(token: &str, amount: &str) -> String {
    format!(
        r#"{{"type":"aaep:agent.tool.invoked","tool":"transfer","tool_call_id":"call_1","risk_level":"high","irreversible":true,"summary_normal":"Transferring.","reply_token":"{token}","arguments":{{"amount":"{amount}","to":"Ben"}}}}"#
    )
}
