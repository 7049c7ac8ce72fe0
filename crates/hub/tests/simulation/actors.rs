//! Random actions of agents and listeners.

use hub::ListenerId;
use hub::command::HubCommand;

use crate::simulation::listener::SimulatedListener;
use crate::simulation::world::{LIMITS, Purpose, SimulatedAgent, SimulatedWorld};
use crate::support::{agent, id, listener, observer, send_message, subscribe};

const PEOPLE: [&str; 2] = ["marisol", "jonas"];
const SCOPES: [&[&str]; 4] =
    [&[], &["agent:agent-0"], &["person:marisol"], &["agent:agent-1", "person:jonas"]];

/// Capabilities of listeners. The first three receive events without delay, the others at a limited rate.
pub(crate) const CAPABILITIES: [&str; 5] = [
    r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3]}"#,
    r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3],"coalesce_boundaries":["none"]}"#,
    "{}",
    r#"{"max_events_per_second":2}"#,
    r#"{"supports_confirmation_reply":true,"supported_conformance_levels":[1,2,3],"max_events_per_second":5}"#,
];
/// Capabilities for renegotiations. None of them changes which events a listener receives.
const RENEGOTIATIONS: [&str; 4] = [
    r#"{"preferred_verbosity":"terse"}"#,
    r#"{"coalesce_boundaries":["paragraph","completion"]}"#,
    r#"{"coalesce_boundaries":["none"]}"#,
    r#"{"coalesce_boundaries":["sentence","completion"],"preferred_verbosity":"normal"}"#,
];
/// Index of the first entry of `CAPABILITIES` with a rate limit.
pub(crate) const FIRST_RATE_LIMITED: usize = 3;
/// Indexes of the entries of `CAPABILITIES` that include replies to all questions, without a rate limit.
pub(crate) const ANSWERING_CAPABILITIES: [usize; 2] = [0, 1];

impl SimulatedWorld {
    pub(crate) fn create_actors(&mut self, agents: usize, listeners: usize) {
        for number in 0..agents {
            let principal = agent(&format!("agent-{number}"));
            self.agents.push(SimulatedAgent { principal, sessions: Vec::new(), calls: 0 });
        }
        for number in 0..listeners {
            let name = format!("listener-{number}");
            let scope = SCOPES[self.random.below(SCOPES.len())];
            let principal = if self.random.one_in(8) { observer(&name) } else { listener(&name, scope) };
            let capabilities_index = self.random.below(CAPABILITIES.len());
            let reads_immediately = self.random.one_in(2);
            self.listeners.push(SimulatedListener::new(principal, capabilities_index, reads_immediately));
        }
    }

    pub(crate) fn act_as_listener(&mut self) {
        let listener_index = self.random.below(self.listeners.len());
        let subscriber = &mut self.listeners[listener_index];
        let principal = subscriber.principal.clone();
        let Some(subscription) = subscriber.subscription.clone() else {
            let capabilities = CAPABILITIES[subscriber.capabilities_index];
            let text = format!(
                r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"listener","capabilities":{capabilities}}}"#
            );
            self.queue_request(&principal, subscribe(&text), Purpose::Subscribe(listener_index));
            return;
        };
        let Some(connection) = subscriber.connection.as_ref().map(|connection| connection.id) else {
            let last_event_id = subscriber.last_id.clone();
            let listener = ListenerId(self.next_number());
            let command = HubCommand::Attach { subscription: id(&subscription), last_event_id, listener };
            self.queue_request(&principal, command, Purpose::Attach(listener_index, listener));
            return;
        };
        match self.random.below(12) {
            0 => {
                let subscriber = &mut self.listeners[listener_index];
                (subscriber.connection, subscriber.lost_at) = (None, self.now);
                self.queue_request(
                    &principal,
                    HubCommand::Detach { listener: connection, is_too_slow: false },
                    Purpose::Other,
                );
            }
            1 => {
                self.listeners[listener_index].is_stalled = !self.listeners[listener_index].is_stalled
                    && !self.listeners[listener_index].reads_immediately;
            }
            2 => {
                // The listener opens a second connection while the first is still open.
                let (listener, last_event_id) =
                    (ListenerId(self.next_number()), self.listeners[listener_index].last_id.clone());
                let command = HubCommand::Attach { subscription: id(&subscription), last_event_id, listener };
                self.queue_request(&principal, command, Purpose::Attach(listener_index, listener));
            }
            3 if self.random.one_in(4) => {
                self.listeners[listener_index].is_closing = true;
                let text = format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#);
                self.queue_request(&principal, send_message(&text), Purpose::Close(listener_index));
            }
            4 => self.extend_deadline(listener_index, &subscription),
            6 => {
                let capabilities = RENEGOTIATIONS[self.random.below(RENEGOTIATIONS.len())];
                let text = format!(
                    r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{capabilities}}}"#
                );
                self.queue_request(&principal, send_message(&text), Purpose::Other);
            }
            5 if self.random.one_in(6) => self.stop_session(listener_index, &subscription),
            _ => self.send_reply(listener_index, &subscription),
        }
    }

    fn may_answer(&self, listener_index: usize, session_id: &str) -> bool {
        let subscriber = &self.listeners[listener_index];
        let session = self.agents.iter().find_map(|agent| {
            let session = agent.sessions.iter().find(|session| session.id == session_id)?;
            Some((agent.principal.agent_id.clone()?, session.person.clone()))
        });
        subscriber.principal.role.can_answer()
            && (ANSWERING_CAPABILITIES.contains(&subscriber.capabilities_index)
                || subscriber.capabilities_index == 4)
            && session.is_some_and(|(agent, person)| subscriber.principal.scope.covers(&agent, Some(&person)))
    }

    /// Replies to a random question. The reply may be sent twice, be late, concern another person's question, or name
    /// another listener's subscription.
    fn send_reply(&mut self, listener_index: usize, subscription: &str) {
        let tokens: Vec<String> = {
            let mut tokens: Vec<_> = self.ledger.questions.keys().cloned().collect();
            tokens.sort();
            tokens
        };
        let Some(token) = self.random.choose(&tokens).cloned() else { return };
        let question = &self.ledger.questions[&token];
        let (session, deadline) = (question.session.clone(), question.deadline);
        let mut named_subscription = subscription.to_owned();
        let tries_other_subscription = self.random.one_in(6);
        if tries_other_subscription {
            let other = self.random.below(self.listeners.len());
            if let Some(other_subscription) =
                self.listeners[other].subscription.clone().filter(|_| other != listener_index)
            {
                named_subscription = other_subscription;
            }
        }
        let decision = if self.random.one_in(3) { "reject" } else { "accept" };
        if decision == "accept"
            && named_subscription == subscription
            && self.now < deadline
            && self.may_answer(listener_index, &session)
        {
            self.ledger.accepts.insert(token.clone());
        }
        let timestamp = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = if self.random.one_in(5) {
            format!(
                r#"{{"type":"clarification.reply","reply_token":"{token}","response":"the blue one","subscription_id":"{named_subscription}","timestamp":"{timestamp}"}}"#
            )
        } else {
            format!(
                r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{named_subscription}","timestamp":"{timestamp}"}}"#
            )
        };
        let principal = self.listeners[listener_index].principal.clone();
        if self.random.one_in(4) {
            self.queue_request(&principal, send_message(&text), Purpose::Other);
        }
        self.queue_request(&principal, send_message(&text), Purpose::Other);
    }

    fn extend_deadline(&mut self, listener_index: usize, subscription: &str) {
        let mut tokens: Vec<_> = self.ledger.questions.keys().cloned().collect();
        tokens.sort();
        let Some(token) = self.random.choose(&tokens).cloned() else { return };
        let timestamp = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = format!(
            r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{timestamp}"}}"#
        );
        let principal = self.listeners[listener_index].principal.clone();
        self.queue_request(&principal, send_message(&text), Purpose::Other);
    }

    fn stop_session(&mut self, listener_index: usize, subscription: &str) {
        let agent = self.random.below(self.agents.len());
        let session = self.random.choose(&self.agents[agent].sessions).cloned();
        let Some(session) = session else { return };
        let timestamp = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = format!(
            r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{subscription}","timestamp":"{timestamp}"}}"#,
            session.id
        );
        let principal = self.listeners[listener_index].principal.clone();
        self.queue_request(&principal, send_message(&text), Purpose::Other);
    }

    pub(crate) fn act_as_agent(&mut self) {
        let agent_index = self.random.below(self.agents.len());
        let principal = self.agents[agent_index].principal.clone();
        let first_recent = self.agents[agent_index].sessions.len().saturating_sub(3);
        let current = self.random.choose(&self.agents[agent_index].sessions[first_recent..]).cloned();
        let key = self.random.one_in(6).then(|| format!("key-{}", self.random.below(6)));
        let Some(current) = current.filter(|_| !self.random.one_in(25)) else {
            let person = PEOPLE[self.random.below(PEOPLE.len())].to_owned();
            let text = format!(
                r#"{{"summary_normal":"Moving money.","requested_by":"user:{person}","localization_hints":{{"primary_language":"en"}}}}"#
            );
            self.queue_request(
                &principal,
                HubCommand::Start { body: text.into(), idempotency_key: None },
                Purpose::Start(agent_index, person),
            );
            return;
        };
        let session = current.id.clone();
        match self.random.below(12) {
            0..3 => {
                let texts =
                    ["Your bal", "ance is 12.50 euros. ", "Noth", "ing else is due. ", "Good day.\n\n"];
                let text = texts[self.random.below(texts.len())].to_owned();
                let output_id = self.random.one_in(3).then(|| format!("out-{}", self.random.below(3)));
                let complete = self.random.one_in(4);
                let command = HubCommand::StreamOutput {
                    session: id(&session),
                    output_id,
                    producer: None,
                    text,
                    language: None,
                    content_type: None,
                    coalesce_hint: None,
                    complete,
                    agent_reports_next_state: false,
                    idempotency_key: key,
                };
                self.queue_request(&principal, command, Purpose::Publish);
            }
            3..5 => {
                let amount = format!("{}.00", self.random.below(20));
                let text = crate::support::TRANSFER
                    .replace("500 euros", &format!("{amount} euros"))
                    .replace("500.00", &amount)
                    .replace("180", &format!("{}", 30 + self.random.below(60)));
                let purpose = Purpose::Ask(agent_index, session.clone(), amount);
                self.queue_request(
                    &principal,
                    HubCommand::Ask {
                        session: id(&session),
                        body: text.into(),
                        is_clarification: false,
                        idempotency_key: None,
                    },
                    purpose,
                );
            }
            5 if self.random.one_in(2) => {
                let text = r#"{"question":"Which account?","timeout_seconds":60,"response_types":["free_text"],"summary_normal":"Which account?"}"#.to_owned();
                let purpose = Purpose::Ask(agent_index, session.clone(), String::new());
                self.queue_request(
                    &principal,
                    HubCommand::Ask {
                        session: id(&session),
                        body: text.into(),
                        is_clarification: true,
                        idempotency_key: None,
                    },
                    purpose,
                );
            }
            6..8 => {
                let Some((token, _)) = self.random.choose(&current.questions).cloned() else { return };
                if self.random.one_in(4) {
                    return self.queue_request(
                        &principal,
                        HubCommand::Withdraw { session: id(&session), token: id(&token) },
                        Purpose::Other,
                    );
                }
                let until = self.now + 1 + i64::try_from(self.random.below(20_000)).unwrap();
                self.queue_request(
                    &principal,
                    HubCommand::Wait { session: id(&session), token: id(&token), until },
                    Purpose::Other,
                );
            }
            8 => {
                let Some((token, mut amount)) = self.random.choose(&current.questions).cloned() else {
                    return;
                };
                if self.random.one_in(4) {
                    amount.push('0');
                }
                self.agents[agent_index].calls += 1;
                let call = format!("call_{}", self.agents[agent_index].calls);
                let mut invoked = crate::support::tool_invoked(&token, &amount).replace("call_1", &call);
                if self.random.one_in(4) {
                    invoked = invoked.replace(&format!(r#""reply_token":"{token}","#), "");
                }
                let done = format!(
                    r#"{{"type":"aaep:agent.tool.completed","tool":"transfer","tool_call_id":"{call}","status":"success","summary_normal":"Done."}}"#
                );
                let mut events = vec![invoked];
                if !self.random.one_in(3) {
                    events.push(done);
                }
                let events = events.into_iter().map(Into::into).collect();
                self.queue_request(
                    &principal,
                    HubCommand::Publish { session: id(&session), events, idempotency_key: key },
                    Purpose::Publish,
                );
            }
            _ => {
                let events = self.random_events().into_iter().map(Into::into).collect();
                self.queue_request(
                    &principal,
                    HubCommand::Publish { session: id(&session), events, idempotency_key: key },
                    Purpose::Publish,
                );
            }
        }
    }

    fn random_events(&mut self) -> Vec<String> {
        let kinds = [
            r#"{"type":"aaep:agent.state.changed","to_state":"thinking"}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"calling_tool"}"#,
            r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#,
            r#"{"type":"aaep:agent.progress.updated","progress":{"description":"Looking."},"summary_normal":"Looking."}"#,
            r#"{"type":"aaep:agent.progress.updated","urgency":"critical","progress":{"description":"Hot."},"summary_normal":"Hot."}"#,
            r#"{"type":"aaep:agent.tool.invoked","tool":"look","tool_call_id":"call_look","risk_level":"low","summary_normal":"Looking."}"#,
            r#"{"type":"aaep:agent.tool.completed","tool":"look","tool_call_id":"call_look","status":"success","summary_normal":"Looked."}"#,
            r#"{"type":"aaep:agent.tool.completed","tool":"never","status":"success","summary_normal":"x"}"#,
        ];
        let ends = [
            r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#,
            r#"{"type":"aaep:agent.session.errored","error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost."}"#,
        ];
        let mut events = Vec::new();
        for _ in 0..=self.random.below(2) {
            events.push(kinds[self.random.below(kinds.len())].to_owned());
        }
        if self.random.one_in(12) {
            events = vec![ends[self.random.below(2)].to_owned()];
        }
        events
    }

    /// Makes every listener that is not stalled read.
    pub(crate) fn read_all(&mut self) {
        for listener_index in 0..self.listeners.len() {
            let max_frames = self.random.below(6);
            let subscriber = &mut self.listeners[listener_index];
            let max_frames = if subscriber.reads_immediately { usize::MAX } else { max_frames };
            if subscriber.is_stalled || !subscriber.read_frames(max_frames, &self.queues) {
                continue;
            }
            // The listener could not keep up. Its subscription is closed, and the listener knows that.
            if let Some(connection) = subscriber.connection.take() {
                (subscriber.subscription, subscriber.last_id, subscriber.complete_from) = (None, None, None);
                let principal = subscriber.principal.clone();
                self.queue_request(
                    &principal,
                    HubCommand::Detach { listener: connection.id, is_too_slow: true },
                    Purpose::Other,
                );
            }
        }
    }

    /// Makes every connected listener read everything, and waits until held events have been sent.
    pub(crate) fn catch_up(&mut self) {
        self.turn();
        for _ in 0..400 {
            for subscriber in &mut self.listeners {
                if subscriber.read_frames(usize::MAX, &self.queues) {
                    subscriber.connection = None;
                }
            }
            self.advance_time(LIMITS.lease_ms / 20);
        }
    }
}
