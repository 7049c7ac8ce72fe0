//! Whatever is said in whatever order and at whatever time, the ASP session does not panic, a refusal leaves it as it was,
//! and an end is an end.
//!
//! A line is the sender (`a` or `b`), facts as letters (`t` not trusted, `f` not funded, `c` another card), milliseconds that
//! pass, the performative, and the body as JSON: `a 2000 PROPOSE {…}`. A line that is no message lets time pass.

#![no_main]

use seal::UnixMillis;
use asp::machine::{Reading, Role, State};
use asp::message::Body;
use asp::session::{Incoming, Judgement, Party, Rules, Session};
use asp::{AgentUri, Level, Limits, Performative};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for reading in Reading::ALL {
        let limits = Limits { open_proposals: 2, ..Limits::default() };
        let rules = Rules { reading, ..Rules::default() };
        let mut session =
            Session::new(party("marisol.example/bistro/buyer"), party("braillepress.example/orders/desk"), rules, &limits);
        let mut now = UnixMillis::new(1_767_603_600_000);
        for line in text.lines().take(64) {
            play(&mut session, &mut now, line);
            let ended = session.state().is_terminal();
            assert_eq!(ended, session.outcome().is_some());
            assert!(!ended || session.next_deadline().is_none());
            assert!(session.state() != State::Idle || session.next_deadline().is_none());
        }
    }
});

fn play(session: &mut Session, now: &mut UnixMillis, line: &str) {
    let mut words = line.splitn(4, ' ');
    let (who, passed) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    *now = now.saturating_add(passed.parse::<i32>().unwrap_or(0).into());
    let before = session.state();
    for step in session.wake(*now) {
        assert!(!step.from.is_terminal());
    }
    assert!(session.wake(*now).is_empty(), "a second wake-up does nothing");
    assert!(!before.is_terminal() || session.state() == before);
    let body = words.next().and_then(Performative::parse).zip(words.next());
    let Some(Ok(body)) = body.map(|(performative, json)| Body::parse(performative, json)) else {
        if who == "x" {
            let broken = session.break_chain(*now).is_some();
            assert!(!broken || session.state() == State::Failed);
        }
        return;
    };
    let message = Incoming {
        sender: if who.starts_with('a') { Role::Inviter } else { Role::Invited },
        body: &body,
        at: *now,
        answer_within: who.contains('r').then_some(5000),
        judgement: Judgement {
            trusted: !who.contains('t'),
            funded: !who.contains('f'),
            card_pinned: !who.contains('c'),
        },
    };
    let old = session.clone();
    match session.feed(&message) {
        Ok(step) => assert!(!step.from.is_terminal() && step.to == session.state()),
        Err(_) => assert!(*session == old, "a refusal changes nothing"),
    }
}

fn party(name: &str) -> Party {
    Party { agent: AgentUri::parse(&format!("agent://{name}")).expect("a name"), level: Level::Standard }
}
