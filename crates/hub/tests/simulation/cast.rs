//! What agents and listeners do when chance tells them to do something.

use hub::ListenerId;
use hub::command::Command;

use crate::simulation::ear::Ear;
use crate::simulation::world::{Agent, LIMITS, Purpose, World};
use crate::support::{agent, id, listener, observer, say, subscribe};

const PEOPLE: [&str; 2] = ["marisol", "jonas"];
const SCOPES: [&[&str]; 4] =
    [&[], &["agent:agent-0"], &["person:marisol"], &["agent:agent-1", "person:jonas"]];

/// What listeners ask for. The first three hear everything as it is said, the others at a rate.
pub(crate) const CAPABILITIES: [&str; 5] = [
    r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3]}"#,
    r#"{"supports_confirmation_reply":true,"supports_clarification_reply":true,"supported_conformance_levels":[1,2,3],"coalesce_boundaries":["none"]}"#,
    "{}",
    r#"{"max_events_per_second":2}"#,
    r#"{"supports_confirmation_reply":true,"supported_conformance_levels":[1,2,3],"max_events_per_second":5}"#,
];
/// What they ask for later: nothing that changes which events they hear.
const WISHES: [&str; 4] = [
    r#"{"preferred_verbosity":"terse"}"#,
    r#"{"coalesce_boundaries":["paragraph","completion"]}"#,
    r#"{"coalesce_boundaries":["none"]}"#,
    r#"{"coalesce_boundaries":["sentence","completion"],"preferred_verbosity":"normal"}"#,
];
pub(crate) const AT_RATE: usize = 3;
const ANSWERS: [usize; 2] = [0, 1];

impl World {
    pub(crate) fn gather(&mut self, agents: usize, ears: usize) {
        for number in 0..agents {
            let who = agent(&format!("agent-{number}"));
            self.agents.push(Agent { who, sessions: Vec::new(), calls: 0 });
        }
        for number in 0..ears {
            let name = format!("ear-{number}");
            let scope = SCOPES[self.chance.below(SCOPES.len())];
            let who = if self.chance.one_in(8) { observer(&name) } else { listener(&name, scope) };
            let capabilities = self.chance.below(CAPABILITIES.len());
            let is_prompt = self.chance.one_in(2);
            self.ears.push(Ear::new(who, capabilities, is_prompt));
        }
    }

    pub(crate) fn an_ear_acts(&mut self) {
        let at = self.chance.below(self.ears.len());
        let ear = &mut self.ears[at];
        let who = ear.who.clone();
        let Some(subscription) = ear.subscription.clone() else {
            let capabilities = CAPABILITIES[ear.capabilities];
            let text = format!(
                r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"ear","capabilities":{capabilities}}}"#
            );
            self.ask(&who, subscribe(&text), Purpose::Subscribe(at));
            return;
        };
        let Some(line) = ear.line.as_ref().map(|line| line.id) else {
            let last_event_id = ear.last.clone();
            let listener = ListenerId(self.number());
            let command = Command::Attach { subscription: id(&subscription), last_event_id, listener };
            self.ask(&who, command, Purpose::Attach(at, listener));
            return;
        };
        match self.chance.below(12) {
            0 => {
                let ear = &mut self.ears[at];
                (ear.line, ear.lost_at) = (None, self.now);
                self.ask(&who, Command::Detached { listener: line, too_slow: false }, Purpose::Other);
            }
            1 => self.ears[at].stalls = !self.ears[at].stalls && !self.ears[at].is_prompt,
            2 => {
                // A second connection, while the first is there.
                let (listener, last_event_id) = (ListenerId(self.number()), self.ears[at].last.clone());
                let command = Command::Attach { subscription: id(&subscription), last_event_id, listener };
                self.ask(&who, command, Purpose::Attach(at, listener));
            }
            3 if self.chance.one_in(4) => {
                self.ears[at].closes = true;
                let text = format!(r#"{{"type":"subscription.close","subscription_id":"{subscription}"}}"#);
                self.ask(&who, say(&text), Purpose::Close(at));
            }
            4 => self.extends(at, &subscription),
            6 => {
                let wish = WISHES[self.chance.below(WISHES.len())];
                let text = format!(
                    r#"{{"type":"subscription.renegotiate","subscription_id":"{subscription}","capabilities":{wish}}}"#
                );
                self.ask(&who, say(&text), Purpose::Other);
            }
            5 if self.chance.one_in(6) => self.stops(at, &subscription),
            _ => self.replies(at, &subscription),
        }
    }

    fn entitled(&self, at: usize, session: &str) -> bool {
        let ear = &self.ears[at];
        let talk = self.agents.iter().find_map(|agent| {
            let talk = agent.sessions.iter().find(|talk| talk.id == session)?;
            Some((agent.who.agent_id.clone()?, talk.person.clone()))
        });
        ear.who.role.answers()
            && (ANSWERS.contains(&ear.capabilities) || ear.capabilities == 4)
            && talk.is_some_and(|(agent, person)| ear.who.scope.covers(&agent, Some(&person)))
    }

    /// Answers a question: perhaps twice, late, somebody else's, or as somebody else.
    fn replies(&mut self, at: usize, subscription: &str) {
        let tokens: Vec<String> = {
            let mut tokens: Vec<_> = self.ledger.questions.keys().cloned().collect();
            tokens.sort();
            tokens
        };
        let Some(token) = self.chance.choose(&tokens).cloned() else { return };
        let asked = &self.ledger.questions[&token];
        let (session, deadline) = (asked.session.clone(), asked.deadline);
        let mut named = subscription.to_owned();
        let forged = self.chance.one_in(6);
        if forged {
            let other = self.chance.below(self.ears.len());
            if let Some(others) = self.ears[other].subscription.clone().filter(|_| other != at) {
                named = others;
            }
        }
        let decision = if self.chance.one_in(3) { "reject" } else { "accept" };
        if decision == "accept" && named == subscription && self.now < deadline && self.entitled(at, &session)
        {
            self.ledger.accepts.insert(token.clone());
        }
        let stamp = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = if self.chance.one_in(5) {
            format!(
                r#"{{"type":"clarification.reply","reply_token":"{token}","response":"the blue one","subscription_id":"{named}","timestamp":"{stamp}"}}"#
            )
        } else {
            format!(
                r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{named}","timestamp":"{stamp}"}}"#
            )
        };
        let who = self.ears[at].who.clone();
        if self.chance.one_in(4) {
            self.ask(&who, say(&text), Purpose::Other);
        }
        self.ask(&who, say(&text), Purpose::Other);
    }

    fn extends(&mut self, at: usize, subscription: &str) {
        let mut tokens: Vec<_> = self.ledger.questions.keys().cloned().collect();
        tokens.sort();
        let Some(token) = self.chance.choose(&tokens).cloned() else { return };
        let stamp = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = format!(
            r#"{{"type":"sayso:deadline.extend","reply_token":"{token}","subscription_id":"{subscription}","timestamp":"{stamp}"}}"#
        );
        let who = self.ears[at].who.clone();
        self.ask(&who, say(&text), Purpose::Other);
    }

    fn stops(&mut self, at: usize, subscription: &str) {
        let agent = self.chance.below(self.agents.len());
        let talk = self.chance.choose(&self.agents[agent].sessions).cloned();
        let Some(talk) = talk else { return };
        let stamp = aaep::Timestamp::from_unix_millis(self.now).unwrap();
        let text = format!(
            r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{subscription}","timestamp":"{stamp}"}}"#,
            talk.id
        );
        let who = self.ears[at].who.clone();
        self.ask(&who, say(&text), Purpose::Other);
    }

    pub(crate) fn an_agent_acts(&mut self) {
        let at = self.chance.below(self.agents.len());
        let who = self.agents[at].who.clone();
        let recent = self.agents[at].sessions.len().saturating_sub(3);
        let talk = self.chance.choose(&self.agents[at].sessions[recent..]).cloned();
        let key = self.chance.one_in(6).then(|| format!("key-{}", self.chance.below(6)));
        let Some(talk) = talk.filter(|_| !self.chance.one_in(25)) else {
            let person = PEOPLE[self.chance.below(PEOPLE.len())].to_owned();
            let text = format!(
                r#"{{"summary_normal":"Moving money.","requested_by":"user:{person}","localization_hints":{{"primary_language":"en"}}}}"#
            );
            self.ask(&who, Command::Start { body: text.into(), key: None }, Purpose::Start(at, person));
            return;
        };
        let session = talk.id.clone();
        match self.chance.below(12) {
            0..3 => {
                let words =
                    ["Your bal", "ance is 12.50 euro. ", "Noth", "ing else is due. ", "Good day.\n\n"];
                let text = words[self.chance.below(words.len())].to_owned();
                let output_id = self.chance.one_in(3).then(|| format!("out-{}", self.chance.below(3)));
                let complete = self.chance.one_in(4);
                let command = Command::Output {
                    session: id(&session),
                    output_id,
                    text,
                    language: None,
                    content_type: None,
                    complete,
                    stays: false,
                    key,
                };
                self.ask(&who, command, Purpose::Publish);
            }
            3..5 => {
                let amount = format!("{}.00", self.chance.below(20));
                let text = crate::support::TRANSFER
                    .replace("500 euro", &format!("{amount} euro"))
                    .replace("500.00", &amount)
                    .replace("180", &format!("{}", 30 + self.chance.below(60)));
                let purpose = Purpose::Ask(at, session.clone(), amount);
                self.ask(
                    &who,
                    Command::Ask { session: id(&session), body: text.into(), clarify: false, key: None },
                    purpose,
                );
            }
            5 if self.chance.one_in(2) => {
                let text = r#"{"question":"Which account?","timeout_seconds":60,"response_types":["free_text"],"summary_normal":"Which account?"}"#.to_owned();
                let purpose = Purpose::Ask(at, session.clone(), String::new());
                self.ask(
                    &who,
                    Command::Ask { session: id(&session), body: text.into(), clarify: true, key: None },
                    purpose,
                );
            }
            6..8 => {
                let Some((token, _)) = self.chance.choose(&talk.asked).cloned() else { return };
                if self.chance.one_in(4) {
                    return self.ask(
                        &who,
                        Command::Withdraw { session: id(&session), token: id(&token) },
                        Purpose::Other,
                    );
                }
                let until = self.now + 1 + i64::try_from(self.chance.below(20_000)).unwrap();
                self.ask(
                    &who,
                    Command::Wait { session: id(&session), token: id(&token), until },
                    Purpose::Other,
                );
            }
            8 => {
                let Some((token, mut amount)) = self.chance.choose(&talk.asked).cloned() else { return };
                if self.chance.one_in(4) {
                    amount.push('0');
                }
                self.agents[at].calls += 1;
                let call = format!("call_{}", self.agents[at].calls);
                let mut invoked = crate::support::call(&token, &amount).replace("call_1", &call);
                if self.chance.one_in(4) {
                    invoked = invoked.replace(&format!(r#""reply_token":"{token}","#), "");
                }
                let done = format!(
                    r#"{{"type":"aaep:agent.tool.completed","tool":"transfer","tool_call_id":"{call}","status":"success","summary_normal":"Done."}}"#
                );
                let mut events = vec![invoked];
                if !self.chance.one_in(3) {
                    events.push(done);
                }
                let events = events.into_iter().map(Into::into).collect();
                self.ask(&who, Command::Publish { session: id(&session), events, key }, Purpose::Publish);
            }
            _ => {
                let events = self.some_events().into_iter().map(Into::into).collect();
                self.ask(&who, Command::Publish { session: id(&session), events, key }, Purpose::Publish);
            }
        }
    }

    fn some_events(&mut self) -> Vec<String> {
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
        for _ in 0..=self.chance.below(2) {
            events.push(kinds[self.chance.below(kinds.len())].to_owned());
        }
        if self.chance.one_in(12) {
            events = vec![ends[self.chance.below(2)].to_owned()];
        }
        events
    }

    /// Everybody reads who does not stall.
    pub(crate) fn everybody_reads(&mut self) {
        for at in 0..self.ears.len() {
            let most = self.chance.below(6);
            let ear = &mut self.ears[at];
            let most = if ear.is_prompt { usize::MAX } else { most };
            if ear.stalls || !ear.reads(most, &self.lanes) {
                continue;
            }
            // It could not keep up: its subscription is closed, and it knows.
            if let Some(line) = ear.line.take() {
                (ear.subscription, ear.last, ear.whole_from) = (None, None, None);
                let who = ear.who.clone();
                self.ask(&who, Command::Detached { listener: line.id, too_slow: true }, Purpose::Other);
            }
        }
    }

    /// Everybody who is connected reads to the end; what was held for a rate has left.
    pub(crate) fn catch_up(&mut self) {
        self.turn();
        for _ in 0..400 {
            for ear in &mut self.ears {
                if ear.reads(usize::MAX, &self.lanes) {
                    ear.line = None;
                }
            }
            self.pass(LIMITS.lease / 20);
        }
    }
}
