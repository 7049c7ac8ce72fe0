//! An agent learns only the outcomes of its own questions, and only in the session in which it asked them. The state of
//! a session depends only on the questions of that session.

use crate::support::*;
use hub::Principal;
use hub::command::{HubCommand, HubReply};
use seal::UnixMillis;

/// A question of the bank, and sessions in which it was not asked.
struct QuestionFixture {
    harness: HubHarness,
    bank: Principal,
    post: Principal,
    ada: Principal,
    subscription: String,
    session: String,
    token: String,
    /// Another session of the bank.
    other_session: String,
    /// A session of another agent.
    foreign_session: String,
}

impl QuestionFixture {
    fn new() -> Self {
        let mut harness = HubHarness::new();
        let (bank, post, ada) = (agent("bank"), agent("post"), listener("ada", &[]));
        let (subscription, _) = harness.connect_listener(&ada, REPLY_CAPABILITIES);
        let session = harness.start(&bank);
        let other_session = harness.start(&bank);
        let foreign_session = harness.start(&post);
        let opened = reply_json(harness.confirm(&bank, &session, TRANSFER));
        let token = text_member(&opened, "reply_token");
        Self { harness, bank, post, ada, subscription, session, token, other_session, foreign_session }
    }

    /// Returns principals and sessions that may not query the question. The last one is a listener whose token has the
    /// name of the agent's token.
    fn strangers(&self) -> [(Principal, String); 4] {
        [
            (self.bank.clone(), self.other_session.clone()),
            (self.post.clone(), self.foreign_session.clone()),
            (self.post.clone(), self.session.clone()),
            (listener("bank", &[]), self.session.clone()),
        ]
    }

    /// The replies to another agent: that its own session has no such question, or that it has no such session. Neither says
    /// whether the question exists.
    fn refusal(&self, session: &str) -> HubReply {
        if session == self.session { HubReply::NotFound } else { HubReply::QuestionNotFound }
    }

    fn wait(&self, session: &str, until: UnixMillis) -> HubCommand {
        HubCommand::Wait { session: id(session), token: id(&self.token), until }
    }

    fn accept(&self) -> HubCommand {
        let at = aaep::Timestamp::from_unix_millis(self.harness.now).unwrap();
        send_message(&format!(
            r#"{{"type":"confirmation.reply","reply_token":"{}","decision":"accept","subscription_id":"{}","timestamp":"{at}"}}"#,
            self.token, self.subscription
        ))
    }

    fn assert_strangers_learn_nothing(&mut self, case: &str) {
        for (principal, session) in self.strangers() {
            for until in [self.harness.now, self.harness.now + 60_000] {
                let reply = self.harness.ask_hub(&principal, self.wait(&session, until));
                assert_eq!(reply, self.refusal(&session), "{case}: {} in {session}", principal.name);
            }
        }
    }

    fn own_decision(&mut self) -> String {
        let outcome = self.harness.status(&self.bank.clone(), &self.session.clone(), &self.token.clone());
        text_member(&reply_json(outcome), "decision")
    }
}

#[test]
fn only_the_asking_session_learns_the_outcome_of_a_question() {
    let mut fixture = QuestionFixture::new();
    fixture.assert_strangers_learn_nothing("open");
    let own = fixture.harness.status(&fixture.bank, &fixture.session, &fixture.token);
    assert_eq!(own, HubReply::QuestionPending);

    let accept = fixture.accept();
    assert_eq!(fixture.harness.ask_hub(&fixture.ada.clone(), accept), HubReply::Done);
    fixture.assert_strangers_learn_nothing("decided");
    assert_eq!(fixture.own_decision(), "accept");

    let end = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    let ended = fixture.harness.publish(&fixture.bank, &fixture.session, &[end]);
    assert!(matches!(ended, HubReply::EventsPublished { .. }), "{ended:?}");
    fixture.assert_strangers_learn_nothing("the session has ended");
    assert_eq!(fixture.own_decision(), "accept");

    for (agent, session) in
        [(&fixture.bank, &fixture.other_session), (&fixture.post, &fixture.foreign_session)]
    {
        let ended = fixture.harness.publish(agent, session, &[end]);
        assert!(matches!(ended, HubReply::EventsPublished { .. }), "{ended:?}");
    }
    fixture.assert_strangers_learn_nothing("all sessions have ended");
    assert_eq!(fixture.own_decision(), "accept");
}

#[test]
fn only_the_asking_session_learns_the_outcome_in_the_turn_of_the_reply() {
    for stranger in 0..4 {
        let mut fixture = QuestionFixture::new();
        let (principal, session) = fixture.strangers()[stranger].clone();
        let (accept, wait) = (fixture.accept(), fixture.wait(&session, fixture.harness.now + 60_000));
        let replies = fixture.harness.ask_both_in_one_turn(&fixture.ada, accept, &principal, wait);
        assert_eq!(replies, [HubReply::Done, fixture.refusal(&session)], "{} in {session}", principal.name);
        assert_eq!(fixture.own_decision(), "accept");
    }
}

#[test]
fn only_the_asking_session_can_withdraw_a_question() {
    let mut fixture = QuestionFixture::new();
    for (principal, session) in fixture.strangers() {
        let withdraw = HubCommand::Withdraw { session: id(&session), token: id(&fixture.token) };
        let reply = fixture.harness.ask_hub(&principal, withdraw);
        assert_eq!(reply, fixture.refusal(&session), "{} in {session}", principal.name);
        let own = fixture.harness.status(&fixture.bank, &fixture.session, &fixture.token);
        assert_eq!(own, HubReply::QuestionPending, "{} in {session}", principal.name);
    }
    let withdraw = HubCommand::Withdraw { session: id(&fixture.session), token: id(&fixture.token) };
    let withdrawn = reply_json(fixture.harness.ask_hub(&fixture.bank.clone(), withdraw));
    assert_eq!(text_member(&withdrawn, "decision"), "reject");
}

#[test]
fn an_answer_or_a_withdrawal_counts_even_if_listeners_ask_for_more_time_in_the_same_turn() {
    for is_withdrawal in [false, true] {
        let mut fixture = QuestionFixture::new();
        let at = aaep::Timestamp::from_unix_millis(fixture.harness.now).unwrap();
        let extend = format!(
            r#"{{"type":"sayso:deadline.extend","reply_token":"{}","subscription_id":"{}","timestamp":"{at}"}}"#,
            fixture.token, fixture.subscription
        );
        let last = if is_withdrawal {
            (&fixture.bank, HubCommand::Withdraw { session: id(&fixture.session), token: id(&fixture.token) })
        } else {
            (&fixture.ada, fixture.accept())
        };
        let mut commands: Vec<_> = (0..10).map(|_| (&fixture.ada, send_message(&extend))).collect();
        commands.push(last);
        fixture.harness.ask_all_in_one_turn(commands);
        assert_eq!(fixture.own_decision(), if is_withdrawal { "reject" } else { "accept" });
    }
}

/// Asks another question, in the same session or in another one, and accepts the first question in the same turn.
/// Returns the next state of the session of the first question.
fn state_after_accepting_while_asking(in_other_session: bool) -> String {
    let mut fixture = QuestionFixture::new();
    let (_, listener_id) = fixture.harness.connect_listener(&listener("bob", &[]), REPLY_CAPABILITIES);
    fixture.harness.take_events(listener_id);
    let session = if in_other_session { &fixture.other_session } else { &fixture.session };
    let ask = HubCommand::Ask {
        session: id(session),
        body: TRANSFER.replace("500", "600").as_str().into(),
        is_clarification: false,
        idempotency_key: None,
    };
    let accept = fixture.accept();
    let replies = fixture.harness.ask_both_in_one_turn(&fixture.bank, ask, &fixture.ada, accept);
    assert!(matches!(replies, [HubReply::QuestionOpened { .. }, HubReply::Done]), "{replies:?}");
    let events = fixture.harness.take_events(listener_id);
    let resolved: Vec<_> = events.iter().filter(|event| event.contains(r#""decision":"accept""#)).collect();
    let [resolved] = resolved[..] else { panic!("{events:#?}") };
    assert_eq!(text_member(resolved, "session_id"), fixture.session);
    text_member(resolved, "to_state")
}

#[test]
fn a_session_waits_for_input_only_while_one_of_its_own_questions_is_open() {
    assert_eq!(state_after_accepting_while_asking(false), "awaiting_input");
    assert_eq!(state_after_accepting_while_asking(true), "thinking");

    // The same with a question that was asked in an earlier turn.
    for in_other_session in [false, true] {
        let mut fixture = QuestionFixture::new();
        let (_, listener_id) = fixture.harness.connect_listener(&listener("bob", &[]), REPLY_CAPABILITIES);
        let session = if in_other_session { &fixture.other_session } else { &fixture.session };
        let opened = fixture.harness.confirm(&fixture.bank, session, &TRANSFER.replace("500", "600"));
        assert!(matches!(opened, HubReply::QuestionOpened { .. }), "{opened:?}");
        fixture.harness.take_events(listener_id);
        let accept = fixture.accept();
        assert_eq!(fixture.harness.ask_hub(&fixture.ada.clone(), accept), HubReply::Done);
        let events = fixture.harness.take_events(listener_id);
        let [resolved] = &events[..] else { panic!("{events:#?}") };
        let expected = if in_other_session { "thinking" } else { "awaiting_input" };
        assert_eq!(text_member(resolved, "to_state"), expected);
    }
}

#[test]
fn an_agent_learns_the_deadline_of_its_question_and_why_a_question_is_refused() {
    let mut harness = HubHarness::new();
    let bank = agent("bank");
    harness.connect_listener(&listener("ada", &[]), REPLY_CAPABILITIES);
    let session = harness.start(&bank);
    let HubReply::QuestionOpened { deadline, .. } = harness.confirm(&bank, &session, TRANSFER) else {
        panic!()
    };
    assert_eq!(deadline, harness.now + 180_000);

    let duplicate = harness.confirm(&bank, &session, TRANSFER);
    let HubReply::RuleViolations(findings) = &duplicate else { panic!("{duplicate:?}") };
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule.id()).collect();
    assert_eq!(rules, ["AAEP-6.1-5"]);

    let text = TRANSFER
        .replace("500", "600")
        .replace(r#""default_decision":"reject""#, r#""default_decision":"accept""#);
    let refused = harness.confirm(&bank, &session, &text);
    let HubReply::RuleViolations(findings) = &refused else { panic!("{refused:?}") };
    assert!(findings.iter().all(|finding| finding.pointer == "/default_decision"), "{findings:?}");
}
