//! Fuzzes an ASP session with messages in any order and at any time. The session must not panic, a refusal must leave it
//! unchanged, and a terminal state must be final.
//!
//! An input line contains the sender (`a` or `b`) followed by flags, the milliseconds that pass, the performative, and the
//! body as JSON, for example `at 2000 PROPOSE {…}`. The flags are letters: with `t` the sender is not trusted, with `f` the
//! escrow is not funded, with `c` the card is not pinned, and with `r` the message has a response timeout. A line without a
//! valid message only lets time pass. If the sender of such a line is `x`, the line also breaks the chain.

#![no_main]

use asp::message::{Body, TrustScore};
use asp::session::{AspSession, IncomingMessage, Party, ReceiverChecks, SessionRules};
use asp::state_machine::{AnyStateInterpretation, Role, State};
use asp::{AgentUri, AspLimits, ConformanceLevel, MessageId, Performative};
use libfuzzer_sys::fuzz_target;
use seal::UnixMillis;

fuzz_target!(|text: &str| {
    for any_state in AnyStateInterpretation::ALL {
        let limits = AspLimits { max_open_proposals: 2, ..AspLimits::default() };
        let rules = SessionRules { any_state, ..SessionRules::default() };
        let mut session = AspSession::new(
            party("marisol.example/bistro/buyer"),
            party("braillepress.example/orders/desk"),
            rules,
            &limits,
        );
        let mut now = UnixMillis::new(1_767_603_600_000);
        for line in text.lines().take(64) {
            run_line(&mut session, &mut now, line);
            let has_ended = session.state().is_terminal();
            assert_eq!(has_ended, session.outcome().is_some());
            assert!(!has_ended || session.next_deadline().is_none());
            assert!(session.state() != State::Idle || session.next_deadline().is_none());
        }
    }
});

fn run_line(session: &mut AspSession, now: &mut UnixMillis, line: &str) {
    let mut fields = line.splitn(4, ' ');
    let (sender, elapsed_ms) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
    *now = now.saturating_add(elapsed_ms.parse::<i32>().unwrap_or(0).into());
    let state_before = session.state();
    for transition in session.handle_timeout(*now) {
        assert!(!transition.from.is_terminal());
    }
    assert!(session.handle_timeout(*now).is_empty(), "a second timeout at the same time must have no effect");
    assert!(!state_before.is_terminal() || session.state() == state_before);
    let body = fields.next().and_then(Performative::parse).zip(fields.next());
    let Some(Ok(body)) = body.map(|(performative, json)| Body::parse(performative, json)) else {
        if sender == "x" {
            let has_failed = session.handle_broken_chain(*now).is_some();
            assert!(!has_failed || session.state() == State::Failed);
        }
        return;
    };
    let message = IncomingMessage {
        sender: if sender.starts_with('a') { Role::Inviter } else { Role::Invited },
        body: &body,
        sent_at: *now,
        response_timeout_ms: sender.contains('r').then_some(5000),
        message_id: MessageId::parse("01890a5d-ac96-774b-bcce-b302099a8057").expect("a UUID of version 7"),
        constraints: None,
        tokens_used: None,
        checks: ReceiverChecks {
            is_trusted: !sender.contains('t'),
            is_funded: !sender.contains('f'),
            is_card_pinned: !sender.contains('c'),
            has_required_consent: !sender.contains('n'),
            trust_score: (!sender.contains('t')).then_some(TrustScore::MAX),
        },
    };
    let session_before = session.clone();
    match session.handle_message(&message) {
        Ok(transition) => assert!(!transition.from.is_terminal() && transition.to == session.state()),
        Err(_) => assert!(*session == session_before, "a refused message must change nothing"),
    }
}

fn party(name: &str) -> Party {
    Party {
        agent: AgentUri::parse(&format!("agent://{name}")).expect("a valid agent URI"),
        level: ConformanceLevel::Standard,
    }
}
