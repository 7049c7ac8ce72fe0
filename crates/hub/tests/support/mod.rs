//! A test harness for the hub. The test sets the time, the journal is in memory, and listeners collect what they
//! receive.

mod faulty_journal;
mod fixtures;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use aaep::event::Producer;
use hub::command::{AgentNotice, HubCommand, HubReply, Request, RequestId, TurnOutput};
use hub::delivery::{Cursor, DeliveryLimits, DeliveryQueue, Frame, NextFrame};
use hub::{AgentConnectionId, Core, DeliveryGroupId, HubLimits, ListenerId, Principal};
use seal::UnixMillis;

use testing::random;

pub(crate) use faulty_journal::{FaultyJournal, RecordedEntry};
pub(crate) use fixtures::{
    REPLY_CAPABILITIES, THINK, TRANSFER, agent, event_types, id, listener, observer, reply_json,
    send_message, subscribe, text_member, tool_invoked,
};

pub(crate) const START: UnixMillis = UnixMillis::new(1_767_603_600_000);

/// The hub with its journal and its listeners.
pub(crate) struct HubHarness {
    pub(crate) core: Core,
    pub(crate) disk: FaultyJournal,
    pub(crate) now: UnixMillis,
    request_count: u64,
    listener_count: u64,
    queues: HashMap<DeliveryGroupId, DeliveryQueue>,
    connections: BTreeMap<ListenerId, HarnessListener>,
    replies: HashMap<RequestId, HubReply>,
    notices: Vec<(AgentConnectionId, AgentNotice)>,
    /// Whether the hub's own events may be rejected, as happens in a year that no timestamp can express.
    pub(crate) allows_rejected_hub_events: bool,
    seed: u64,
}

struct HarnessListener {
    group: DeliveryGroupId,
    cursor: Cursor,
    events: Vec<Arc<Frame>>,
    messages: Vec<String>,
    last_event_id: Option<String>,
    is_closed: bool,
}

impl HubHarness {
    pub(crate) fn new() -> Self {
        Self::with(&HubLimits::default(), FaultyJournal::default(), START)
    }

    pub(crate) fn with(limits: &HubLimits, disk: FaultyJournal, now: UnixMillis) -> Self {
        let core = Core::new(
            Box::new(disk.clone()),
            Producer::new("hub"),
            *limits,
            random::seeded_byte_source(7),
            now,
        )
        .unwrap();
        Self {
            core,
            disk,
            now,
            request_count: 0,
            listener_count: 0,
            queues: HashMap::new(),
            connections: BTreeMap::new(),
            replies: HashMap::new(),
            notices: Vec::new(),
            allows_rejected_hub_events: false,
            seed: 7,
        }
    }

    /// Replaces the hub with a new one on the same journal, as after a crash. The new hub has the default limits.
    pub(crate) fn crash(&mut self) {
        self.crash_and_start_with(&HubLimits::default());
    }

    /// Like [`Self::crash`], with these limits.
    pub(crate) fn crash_and_start_with(&mut self, limits: &HubLimits) {
        self.seed += 1;
        let random = random::seeded_byte_source(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.core =
            Core::new(Box::new(self.disk.clone()), Producer::new("hub"), *limits, random, self.now).unwrap();
        self.queues.clear();
        self.connections.clear();
        self.replies.clear();
        self.notices.clear();
    }

    /// Sends a command on an agent connection and returns the reply.
    pub(crate) fn ask_on_connection(
        &mut self,
        principal: &Principal,
        connection: AgentConnectionId,
        command: HubCommand,
    ) -> HubReply {
        self.ask_hub(principal, HubCommand::OnConnection { connection, command: Box::new(command) })
    }

    /// Takes the notices that a connection received since the last call.
    pub(crate) fn take_notices(&mut self, connection: AgentConnectionId) -> Vec<AgentNotice> {
        self.notices.extract_if(.., |(to, _)| *to == connection).map(|(_, notice)| notice).collect()
    }

    /// Sends a command and returns the reply.
    pub(crate) fn ask_hub(&mut self, principal: &Principal, command: HubCommand) -> HubReply {
        let id = self.send(principal, command);
        self.turn();
        self.replies.remove(&id).expect("a reply")
    }

    /// Sends a command that has no reply.
    pub(crate) fn send_without_reply(&mut self, principal: &Principal, command: HubCommand) {
        let id = self.send(principal, command);
        assert_eq!(self.take_reply(id), None);
    }

    /// Sends a command without waiting for the reply.
    pub(crate) fn send(&mut self, principal: &Principal, command: HubCommand) -> RequestId {
        self.request_count += 1;
        let id = RequestId(self.request_count);
        let outputs =
            self.core.run_turn(vec![Request { id, principal: principal.clone(), command }], self.now);
        self.perform(outputs);
        id
    }

    /// Runs two requests in one turn.
    pub(crate) fn ask_both_in_one_turn(
        &mut self,
        first_principal: &Principal,
        first: HubCommand,
        second_principal: &Principal,
        second: HubCommand,
    ) -> [HubReply; 2] {
        let replies = self.ask_all_in_one_turn([(first_principal, first), (second_principal, second)]);
        replies.try_into().unwrap()
    }

    /// Runs requests in one turn. What that turn defers is handled in further turns at the same time.
    pub(crate) fn ask_all_in_one_turn<'p>(
        &mut self,
        commands: impl IntoIterator<Item = (&'p Principal, HubCommand)>,
    ) -> Vec<HubReply> {
        let mut requests = Vec::new();
        for (principal, command) in commands {
            self.request_count += 1;
            let id = RequestId(self.request_count);
            requests.push(Request { id, principal: principal.clone(), command });
        }
        let ids: Vec<_> = requests.iter().map(|request| request.id).collect();
        let outputs = self.core.run_turn(requests, self.now);
        self.perform(outputs);
        while self.core.has_queued_requests() {
            self.turn();
        }
        ids.iter().map(|id| self.replies.remove(id).expect("a reply")).collect()
    }

    pub(crate) fn take_reply(&mut self, id: RequestId) -> Option<HubReply> {
        self.replies.remove(&id)
    }

    pub(crate) fn turn(&mut self) {
        let outputs = self.core.run_turn(Vec::new(), self.now);
        self.perform(outputs);
    }

    /// Advances the time, and runs a turn at every deadline and at the end.
    pub(crate) fn advance_time(&mut self, millis: i64) {
        let until = self.now + millis;
        while let Some(at) = self.core.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.turn();
        }
        self.now = until;
        self.turn();
    }

    pub(crate) fn perform(&mut self, outputs: Vec<TurnOutput>) {
        for output in outputs {
            match output {
                TurnOutput::Reply(id, reply) => {
                    assert!(self.replies.insert(id, reply).is_none(), "a request gets one reply");
                }
                TurnOutput::Notify(connection, notice) => self.notices.push((connection, notice)),
                TurnOutput::Frame(group, frame) => self.queue(group).push(frame),
                TurnOutput::Join { listener, group, private_frames, resume_position, .. } => {
                    let mut cursor = Cursor::at_end(self.queue(group)).with_origin(resume_position);
                    for frame in private_frames {
                        cursor.push_private(frame);
                    }
                    let (events, messages, last_event_id) = (Vec::new(), Vec::new(), None);
                    self.connections.insert(
                        listener,
                        HarnessListener { group, cursor, events, messages, last_event_id, is_closed: false },
                    );
                }
                TurnOutput::Move(listener, group) => {
                    self.queue(group);
                    if let Some(connection) = self.connections.get_mut(&listener)
                        && let (Some(from), Some(to)) =
                            (self.queues.get(&connection.group), self.queues.get(&group))
                    {
                        connection.cursor.move_to(from, to);
                        connection.group = group;
                    }
                }
                TurnOutput::Send(listener, frame) => {
                    if let Some(connection) = self.connections.get_mut(&listener) {
                        connection.cursor.push_private(frame);
                    }
                }
                TurnOutput::Close(listener) => {
                    self.deliver_frames();
                    if let Some(connection) = self.connections.get_mut(&listener) {
                        connection.is_closed = true;
                    }
                }
                TurnOutput::Log(hub::telemetry::LogEvent::HubEventRejected { session, rules })
                    if !self.allows_rejected_hub_events =>
                {
                    panic!("an event of the hub was rejected in {session}: {rules:?}");
                }
                _ => {}
            }
        }
        self.deliver_frames();
    }

    fn queue(&mut self, id: DeliveryGroupId) -> &mut DeliveryQueue {
        self.queues.entry(id).or_insert_with(|| DeliveryQueue::new(DeliveryLimits::default()))
    }

    fn deliver_frames(&mut self) {
        for connection in self.connections.values_mut().filter(|connection| !connection.is_closed) {
            if let Some(group) = self.queues.get(&connection.group) {
                while let NextFrame::Frame(frame) = connection.cursor.take(group) {
                    connection.last_event_id =
                        frame.id().map(str::to_owned).or(connection.last_event_id.take());
                    match frame.json() {
                        "" => {}
                        event if event.contains("\"session_id\"") => connection.events.push(frame),
                        message => connection.messages.push(message.to_owned()),
                    }
                }
            }
        }
    }

    /// Takes the events that a listener received since the last call, as JSON.
    pub(crate) fn take_events(&mut self, listener: ListenerId) -> Vec<String> {
        let events =
            self.connections.get_mut(&listener).map(|connection| std::mem::take(&mut connection.events));
        events.unwrap_or_default().iter().map(|frame| frame.json().to_owned()).collect()
    }

    /// Takes the messages other than events that a listener received since the last call.
    pub(crate) fn take_messages(&mut self, listener: ListenerId) -> Vec<String> {
        self.connections
            .get_mut(&listener)
            .map(|connection| std::mem::take(&mut connection.messages))
            .unwrap_or_default()
    }

    /// Returns the id from which a browser would resume.
    pub(crate) fn last_id(&self, listener: ListenerId) -> Option<String> {
        self.connections.get(&listener)?.last_event_id.clone()
    }

    pub(crate) fn is_closed(&self, listener: ListenerId) -> bool {
        self.connections.get(&listener).is_none_or(|connection| connection.is_closed)
    }

    /// Subscribes and attaches. Returns the ids of the subscription and of the listener.
    pub(crate) fn connect_listener(
        &mut self,
        principal: &Principal,
        capabilities: &str,
    ) -> (String, ListenerId) {
        let subscription = self.subscribe(principal, capabilities);
        let listener = self.attach(principal, &subscription, None);
        (subscription, listener)
    }

    pub(crate) fn subscribe(&mut self, principal: &Principal, capabilities: &str) -> String {
        let text = format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{capabilities}}}"#
        );
        let accepted = reply_json(self.ask_hub(principal, subscribe(&text)));
        text_member(&accepted, "subscription_id")
    }

    pub(crate) fn attach(
        &mut self,
        principal: &Principal,
        subscription: &str,
        last_event_id: Option<&str>,
    ) -> ListenerId {
        self.listener_count += 1;
        let listener = ListenerId(self.listener_count);
        let command = HubCommand::Attach {
            subscription: id(subscription),
            last_event_id: last_event_id.map(str::to_owned),
            listener,
        };
        assert_eq!(self.ask_hub(principal, command), HubReply::Done);
        listener
    }

    /// Starts a session for the person `marisol` and returns its id.
    pub(crate) fn start(&mut self, principal: &Principal) -> String {
        let text = r#"{"summary_normal":"Moving money.","requested_by":"user:marisol","localization_hints":{"primary_language":"en"}}"#;
        let started = reply_json(
            self.ask_hub(principal, HubCommand::Start { body: text.into(), idempotency_key: None }),
        );
        text_member(&started, "session_id")
    }

    pub(crate) fn publish(&mut self, principal: &Principal, session: &str, events: &[&str]) -> HubReply {
        let events = events.iter().map(|event| (*event).into()).collect();
        self.ask_hub(principal, HubCommand::Publish { session: id(session), events, idempotency_key: None })
    }

    pub(crate) fn confirm(&mut self, principal: &Principal, session: &str, text: &str) -> HubReply {
        let command = HubCommand::Ask {
            session: id(session),
            body: text.into(),
            is_clarification: false,
            idempotency_key: None,
        };
        self.ask_hub(principal, command)
    }

    /// Replies to a confirmation.
    pub(crate) fn reply(&mut self, principal: &Principal, subscription: &str, token: &str, decision: &str) {
        let at = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
        );
        assert_eq!(
            self.ask_hub(principal, send_message(&text)),
            HubReply::Done,
            "every reply gets the same response"
        );
    }

    /// Queries the state of a question without waiting.
    pub(crate) fn status(&mut self, principal: &Principal, session: &str, token: &str) -> HubReply {
        let command = HubCommand::Wait { session: id(session), token: id(token), until: self.now };
        self.ask_hub(principal, command)
    }
}
