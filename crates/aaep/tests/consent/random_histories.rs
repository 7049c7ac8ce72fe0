//! Random histories of questions, answers, listeners, time and crashes, checked against a second, naive
//! implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasherDefault;

use aaep::consent::{
    ConsentLimits, ConsentOutcome, GuardedCall, Question, QuestionAnswer, QuestionRegistry, Resolution,
    ResolvedBy, StagedChange,
};
use aaep::event::Decision;
use proptest::prelude::*;
use seal::UnixMillis;
use serde_json::json;

use super::consent_hub::*;
use crate::support::byte_choices::RandomChoices;
use crate::support::random_bytes;
use testing::property::cases;

const LISTENERS: [&str; 3] = ["ada", "bob", "cleo"];
const RESUME_WINDOW_MS: i64 = 20_000;

/// The arguments of the call that question `n` is bound to.
fn call_arguments(n: u8) -> String {
    format!(r#"{{"question":{n}}}"#)
}

/// The naive implementation's view of one question.
#[derive(Debug)]
struct ModelQuestion {
    session: usize,
    irreversible: bool,
    accept_by_default: bool,
    timeout_ms: i64,
    asked_at: UnixMillis,
    deadline: UnixMillis,
    entitled_listeners: BTreeSet<usize>,
    /// After a crash, the question waits until this time for listeners to reconnect.
    grace_until: UnixMillis,
    /// Whether the question was accepted, and how it was resolved.
    resolved: Option<(bool, ResolvedBy)>,
    resolved_at: UnixMillis,
    is_spent: bool,
}

/// The state of a listener's subscription.
#[derive(Debug)]
enum SubscriptionLink {
    Open,
    /// The listener can resume until this time.
    Lost(UnixMillis),
    Closed,
}

struct RandomHistory {
    hub: ConsentHub,
    now: UnixMillis,
    /// The naive implementation's questions.
    model: BTreeMap<u8, ModelQuestion>,
    links: [SubscriptionLink; 3],
    is_session_ended: [bool; 2],
}

impl RandomHistory {
    fn new() -> Self {
        let links = [SubscriptionLink::Open, SubscriptionLink::Open, SubscriptionLink::Open];
        let hub = ConsentHub::with_listeners(&LISTENERS);
        Self { hub, now: T0, model: BTreeMap::new(), links, is_session_ended: [false; 2] }
    }

    /// Returns whether the listener is connected or can still resume its subscription.
    fn is_live(&self, listener: usize) -> bool {
        match self.links[listener] {
            SubscriptionLink::Open => true,
            SubscriptionLink::Lost(until) => self.now < until,
            SubscriptionLink::Closed => false,
        }
    }

    fn is_open(&self, n: u8) -> bool {
        self.model.get(&n).is_some_and(|model_question| {
            model_question.resolved.is_none() && !self.is_session_ended[model_question.session]
        })
    }

    /// Performs one random action. `Err` is a violated invariant.
    fn step(&mut self, choices: &mut RandomChoices<'_>) -> Result<(), TestCaseError> {
        let n = u8::try_from(choices.below(6)).unwrap();
        let listener = choices.below(3);
        match choices.below(14) {
            0 | 1 => self.ask(n, choices),
            2..=4 => self.reply(n, listener, choices),
            5 => self.extend_deadline(n, listener),
            6 => {
                self.now += choices.pick(&[1, 3000, 9999, 35_000, 63_000]);
                Ok(())
            }
            7 => self.change_subscription(listener, choices),
            8 => self.cancel(n),
            9 if choices.below(4) == 0 => self.end_session(listener, choices),
            10 | 11 => self.spend(n, choices),
            12 => {
                self.crash();
                Ok(())
            }
            13 => self.wake(),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, n: u8, choices: &mut RandomChoices<'_>) -> Result<(), TestCaseError> {
        let (irreversible, accept_by_default) =
            [(true, false), (false, true), (false, false)][choices.below(3)];
        let timeout_seconds = [10, 70][choices.below(2)];
        let session = choices.below(2);
        let id = [SESSION, OTHER_SESSION][session];
        let base = if irreversible { confirmation(n) } else { harmless_confirmation(n) };
        let base = bound(base, "transfer", &call_arguments(n));
        let event = with(
            base,
            &json!({
                "timestamp": format_timestamp(self.now.get()), "timeout_seconds": timeout_seconds, "session_id": id,
                "default_decision": if accept_by_default { "accept" } else { "reject" },
            }),
        );
        let listeners: Vec<usize> = (0..3).filter(|_| choices.below(2) == 0).collect();
        let names: Vec<&str> = listeners.iter().map(|listener| LISTENERS[*listener]).collect();
        let before = self.hub.registry.clone();
        let result = self.hub.try_ask(&event, &names, self.now);
        let is_valid = !self.model.contains_key(&n) && !self.is_session_ended[session];
        prop_assert_eq!(result.is_ok(), is_valid, "{:?}", result);
        let Ok(outcomes) = result else {
            prop_assert!(self.hub.registry == before);
            return Ok(());
        };
        let timeout_ms = timeout_seconds * 1000;
        let entitled_listeners = listeners.into_iter().filter(|listener| self.is_live(*listener)).collect();
        let model_question = ModelQuestion {
            session,
            irreversible,
            accept_by_default,
            timeout_ms,
            asked_at: self.now,
            deadline: self.now + timeout_ms,
            entitled_listeners,
            grace_until: UnixMillis::MIN,
            resolved: None,
            resolved_at: UnixMillis::MIN,
            is_spent: false,
        };
        self.model.insert(n, model_question);
        let is_unreachable = !self.can_be_answered(n);
        prop_assert_eq!(resolutions(&outcomes).len(), usize::from(is_unreachable));
        self.check_outcomes(&outcomes)
    }

    fn can_be_answered(&self, n: u8) -> bool {
        let model_question = &self.model[&n];
        model_question.entitled_listeners.iter().any(|listener| match self.links[*listener] {
            SubscriptionLink::Open => true,
            // A question whose default is accept does not wait for a lost listener.
            SubscriptionLink::Lost(until) => self.now < until && !model_question.accept_by_default,
            SubscriptionLink::Closed => false,
        })
    }

    fn reply(
        &mut self,
        n: u8,
        listener: usize,
        choices: &mut RandomChoices<'_>,
    ) -> Result<(), TestCaseError> {
        let sender = if choices.below(5) == 0 { choices.below(3) } else { listener };
        let decision = ["accept", "reject"][choices.below(2)];
        let has_late_timestamp = choices.below(6) == 0;
        let deadline = self.model.get(&n).map_or(self.now, |model_question| model_question.deadline);
        let timestamp = if has_late_timestamp { deadline } else { self.now };
        let is_valid = self.is_open(n)
            && self.now < deadline
            && timestamp < deadline
            && sender == listener
            && self.is_live(listener)
            && self.model[&n].entitled_listeners.contains(&listener);
        let before = self.hub.registry.clone();
        let text = reply(n, LISTENERS[listener], decision, timestamp);
        if choices.below(8) == 0 {
            // Simulates a full journal. The reply must have no effect.
            if let Ok(staged) = stage_message(&mut self.hub.registry, LISTENERS[sender], &text, self.now) {
                self.hub.registry.abandon(staged);
            }
            prop_assert!(self.hub.registry == before);
            return Ok(());
        }
        let result = self.hub.send(LISTENERS[sender], &text, self.now);
        prop_assert_eq!(
            result.is_ok(),
            is_valid,
            "{:?} to {:?} at {}",
            result,
            self.model.get(&n),
            self.now - T0
        );
        let Ok(outcomes) = result else {
            prop_assert!(self.hub.registry == before, "a refused reply changes nothing");
            return Ok(());
        };
        let resolved = resolution(&outcomes);
        prop_assert_eq!(
            (resolved.is_accepted(), resolved.resolved_by),
            (decision == "accept", ResolvedBy::Reply)
        );
        self.check_outcomes(&outcomes)
    }

    fn extend_deadline(&mut self, n: u8, listener: usize) -> Result<(), TestCaseError> {
        let before = self.hub.registry.clone();
        let result = self.hub.send(
            LISTENERS[listener],
            &extend_request(n, LISTENERS[listener], None, self.now),
            self.now,
        );
        let can_extend = self.is_open(n)
            && self.is_live(listener)
            && self.model[&n].entitled_listeners.contains(&listener);
        let now = self.now;
        let model_question =
            self.model.get_mut(&n).filter(|model_question| can_extend && now < model_question.deadline);
        let extensible = model_question.filter(|model_question| {
            model_question.deadline < model_question.asked_at + 10 * model_question.timeout_ms
        });
        prop_assert_eq!(result.is_ok(), extensible.is_some());
        match extensible {
            Some(model_question) => model_question.deadline += model_question.timeout_ms,
            None => prop_assert!(self.hub.registry == before),
        }
        Ok(())
    }

    fn wake(&mut self) -> Result<(), TestCaseError> {
        let outcomes = self.hub.wake(self.now);
        self.check_outcomes(&outcomes)?;
        for (n, model_question) in &self.model {
            prop_assert!(
                !self.is_open(*n) || self.now < model_question.deadline,
                "question {} is open past its deadline",
                n
            );
            let is_unreachable = !self.can_be_answered(*n) && self.now >= model_question.grace_until;
            prop_assert!(
                !self.is_open(*n) || !is_unreachable,
                "question {} is open, but nobody can answer it",
                n
            );
        }
        let next = self.hub.registry.next_deadline();
        prop_assert!(next.is_none_or(|next| next > self.now), "a deadline is left in the past");
        prop_assert!(self.hub.wake(self.now).is_empty(), "a second wake must do nothing");
        Ok(())
    }

    fn change_subscription(
        &mut self,
        listener: usize,
        choices: &mut RandomChoices<'_>,
    ) -> Result<(), TestCaseError> {
        let id = sub(LISTENERS[listener]);
        let (is_live, choice) = (self.is_live(listener), choices.below(4));
        let staged = match choice {
            0 if is_live => {
                self.links[listener] = SubscriptionLink::Closed;
                self.hub.registry.subscription_closed(&id, self.now)
            }
            1 | 2 if matches!(self.links[listener], SubscriptionLink::Open) => {
                self.links[listener] = SubscriptionLink::Lost(self.now + RESUME_WINDOW_MS);
                self.hub.registry.subscription_lost(&id, self.now, RESUME_WINDOW_MS)
            }
            _ => {
                let resumed = self.hub.registry.subscription_resumed(&id, self.now);
                prop_assert_eq!(resumed, is_live);
                if is_live {
                    self.links[listener] = SubscriptionLink::Open;
                }
                StagedChange::default()
            }
        };
        let outcomes = self.hub.commit(staged);
        self.check_outcomes(&outcomes)
    }

    fn cancel(&mut self, n: u8) -> Result<(), TestCaseError> {
        let can_cancel = self.is_open(n) && self.now < self.model[&n].deadline;
        let cancelled = self.hub.registry.cancel_question(&token(n), self.now);
        prop_assert_eq!(cancelled.is_ok(), can_cancel);
        let outcomes = cancelled.map(|staged| self.hub.commit(staged)).unwrap_or_default();
        self.check_outcomes(&outcomes)
    }

    /// The listener stops session 0, or its agent ends it. Session 1 is never ended.
    fn end_session(&mut self, listener: usize, choices: &mut RandomChoices<'_>) -> Result<(), TestCaseError> {
        let outcomes = if choices.below(2) == 0 {
            let stopped =
                self.hub.send(LISTENERS[listener], &stop_request(LISTENERS[listener], self.now), self.now);
            prop_assert_eq!(stopped.is_ok(), self.is_live(listener) && !self.is_session_ended[0]);
            let Ok(outcomes) = stopped else { return Ok(()) };
            outcomes
        } else {
            let staged = self.hub.registry.end_session(&session(), self.now);
            self.hub.commit(staged)
        };
        self.check_outcomes(&outcomes)?;
        let mut session_questions = self.model.values().filter(|question| question.session == 0);
        prop_assert!(session_questions.all(|question| question.resolved.is_some()));
        self.is_session_ended[0] = true;
        Ok(())
    }

    fn spend(&mut self, n: u8, choices: &mut RandomChoices<'_>) -> Result<(), TestCaseError> {
        let session = choices.below(2);
        let irreversible = choices.below(2) == 0;
        let id = aaep::SessionId::parse([SESSION, OTHER_SESSION][session]).unwrap();
        let token = token(n);
        let arguments = call_arguments(n);
        let call = GuardedCall {
            irreversible,
            high_risk: irreversible,
            ..call(&id, Some(&token), Some(&arguments))
        };
        let is_covered = self.model.get(&n).is_some_and(|model_question| {
            let is_by_reply = model_question.resolved == Some((true, ResolvedBy::Reply));
            let is_accepted = model_question.resolved.is_some_and(|(accepted, _)| accepted);
            let is_recent =
                self.now.get().saturating_sub(model_question.resolved_at.get()) <= MAX_CONSENT_AGE_MS;
            let is_sufficient = if irreversible {
                is_by_reply && model_question.irreversible && is_recent
            } else {
                is_accepted
            };
            model_question.session == session
                && !self.is_session_ended[session]
                && is_sufficient
                && !model_question.is_spent
        });
        let before = self.hub.registry.clone();
        let staged = self.hub.registry.spend(&call, self.now);
        let result = staged.map(|staged| self.hub.commit(staged));
        prop_assert_eq!(result.is_ok(), is_covered, "{:?} on {:?}", result, self.model.get(&n));
        match self.model.get_mut(&n) {
            Some(model_question) if is_covered => model_question.is_spent = true,
            _ => prop_assert!(self.hub.registry == before),
        }
        Ok(())
    }

    /// Restarts the hub. The listeners that were connected reconnect.
    fn crash(&mut self) {
        let records: Vec<String> = self.hub.registry.questions().map(Question::to_record).collect();
        let questions = records.iter().map(|record| Question::parse_record(record).unwrap());
        let hasher = BuildHasherDefault::default();
        let mut registry = QuestionRegistry::restore(
            ConsentLimits::default(),
            hasher,
            questions,
            self.now,
            RESUME_WINDOW_MS,
        );
        for model_question in self.model.values_mut() {
            model_question.grace_until = self.now + RESUME_WINDOW_MS;
        }
        for (name, link) in LISTENERS.iter().zip(&mut self.links) {
            match link {
                SubscriptionLink::Open => assert!(registry.subscription_opened(&sub(name), name)),
                _ => *link = SubscriptionLink::Closed,
            }
        }
        // The journal knows which sessions have ended.
        if self.is_session_ended[0] {
            let session_questions =
                self.model.iter().filter(|(_, model_question)| model_question.session == 0);
            registry.restore_ended_session(&session(), session_questions.map(|(n, _)| token(*n)));
        }
        self.hub = ConsentHub { registry };
    }

    /// Records the resolutions and checks them against the invariants.
    fn check_outcomes(&mut self, outcomes: &[ConsentOutcome]) -> Result<(), TestCaseError> {
        for resolution in resolutions(outcomes) {
            self.check_resolution(&resolution)?;
        }
        Ok(())
    }

    fn check_resolution(&mut self, resolution: &Resolution) -> Result<(), TestCaseError> {
        let n = (0..6).find(|n| token(*n) == resolution.token).unwrap();
        let (is_reachable, is_in_grace) = (self.can_be_answered(n), self.now < self.model[&n].grace_until);
        let model_question = self.model.get_mut(&n).unwrap();
        prop_assert!(model_question.resolved.is_none(), "resolved twice");
        let accepted = resolution.answer == QuestionAnswer::Decision(Decision::Accept);
        match resolution.resolved_by {
            ResolvedBy::Reply => {}
            ResolvedBy::Timeout => {
                prop_assert!(
                    self.now >= model_question.deadline && accepted == model_question.accept_by_default
                );
            }
            ResolvedBy::Closure => {
                prop_assert!(!is_reachable && !is_in_grace && accepted == model_question.accept_by_default);
            }
            ResolvedBy::Unreachable => {
                prop_assert!(!is_reachable && accepted == model_question.accept_by_default);
            }
            _ => prop_assert!(!accepted),
        }
        prop_assert!(
            !(model_question.irreversible && accepted && resolution.resolved_by != ResolvedBy::Reply),
            "nothing irreversible is accepted by default"
        );
        model_question.resolved = Some((accepted, resolution.resolved_by));
        model_question.resolved_at = resolution.resolved_at;
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn a_naive_implementation_agrees_with_the_registry(bytes in random_bytes(400)) {
        let mut choices = RandomChoices::new(&bytes);
        let mut history = RandomHistory::new();
        for _ in 0..60 {
            history.step(&mut choices)?;
        }
        history.now += 100_000_000;
        history.wake()?;
        prop_assert!((0..6).all(|n| !history.is_open(n)), "every question is resolved at the end");
    }
}
