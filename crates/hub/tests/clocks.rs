//! Clocks that jump, forwards and backwards.

use crate::support::*;
use hub::command::Reply;
use hub::{Limits, Principal};
use seal::UnixMillis;

const HOUR: i64 = 3_600_000;
const DECIDE: &str = r#"{"type":"aaep:agent.state.changed","to_state":"deciding"}"#;

struct Scene {
    stage: Stage,
    bank: Principal,
    ada: Principal,
    subscription: String,
    ear: hub::ListenerId,
    session: String,
}

fn scene() -> Scene {
    let mut stage = Stage::new();
    let (bank, ada) = (agent("bank"), listener("ada", &[]));
    let (subscription, ear) = stage.listener(&ada, REPLIES);
    let session = stage.start(&bank);
    Scene { stage, bank, ada, subscription, ear, session }
}

impl Scene {
    fn ask(&mut self) -> String {
        let asked = json(self.stage.confirm(&self.bank, &self.session, TRANSFER));
        text_of(&asked, "reply_token")
    }

    fn decision(&self, token: &str) -> Option<(String, String)> {
        self.stage.disk.decision(token).map(|decision| (decision.decision, decision.by))
    }

    /// In each session, as it is on disk, no stamp is before the one in front of it.
    fn stamps_never_go_back(&self) {
        let mut last = std::collections::HashMap::new();
        for event in self.stage.disk.events() {
            let at = text_of(std::str::from_utf8(&event.body).unwrap(), "timestamp");
            let before = last.insert(event.session, at.clone());
            assert!(before.as_ref().is_none_or(|before| *before <= at), "{at} after {before:?}");
        }
    }
}

#[test]
fn an_event_carries_the_time_of_its_turn_and_no_agent_sets_it() {
    let mut scene = scene();
    scene.stage.now += 12_345;
    assert!(matches!(
        scene.stage.publish(&scene.bank, &scene.session, &[THINK]),
        Reply::EventsPublished { .. }
    ));
    let last = scene.stage.disk.events().pop().unwrap();
    let at = aaep::Timestamp::from_unix_millis(scene.stage.now).unwrap().to_string();
    assert_eq!(
        (last.at, text_of(std::str::from_utf8(&last.body).unwrap(), "timestamp")),
        (scene.stage.now, at)
    );
    for at in ["2020-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"] {
        let dated = DECIDE.replacen('{', &format!(r#"{{"timestamp":"{at}","#), 1);
        let refused = scene.stage.publish(&scene.bank, &scene.session, &[&dated]);
        assert!(matches!(refused, Reply::Malformed(_)), "{refused:?}");
    }
}

#[test]
fn a_clock_that_goes_back_takes_no_stamp_with_it_and_stops_nobody() {
    let mut scene = scene();
    let done = scene.stage.publish(&scene.bank, &scene.session, &[THINK]);
    assert!(matches!(done, Reply::EventsPublished { .. }), "{done:?}");
    scene.stage.now -= HOUR;
    let done = scene.stage.publish(&scene.bank, &scene.session, &[DECIDE]);
    assert!(matches!(done, Reply::EventsPublished { .. }), "{done:?}");
    let token = scene.ask();
    scene.stage.reply(&scene.ada, &scene.subscription, &token, "accept");
    assert_eq!(scene.decision(&token), Some(("accept".into(), "reply".into())));
    let heard = scene.stage.heard(scene.ear);
    assert!(
        heard.iter().any(|event| event.contains(r#""decision":"accept""#)),
        "the outcome is told: {heard:?}"
    );
    scene.stage.crash();
    let call = scene.stage.publish(&scene.bank, &scene.session, &[&call(&token, "500.00")]);
    assert!(matches!(call, Reply::EventsPublished { .. }), "after a restart, too: {call:?}");
    scene.stamps_never_go_back();
}

#[test]
fn who_is_asked_while_the_clock_is_behind_gets_the_time_that_was_said_and_no_more() {
    let mut scene = scene();
    scene.stage.now -= HOUR;
    let asked_at = scene.stage.now;
    let token = scene.ask();
    scene.stage.now = asked_at + 179_999;
    scene.stage.turn();
    assert_eq!(scene.decision(&token), None);
    scene.stage.now = asked_at + 180_000;
    scene.stage.turn();
    assert_eq!(scene.decision(&token), Some(("reject".into(), "timeout".into())));
    scene.stage.reply(&scene.ada, &scene.subscription, &token, "accept");
    assert_eq!(scene.decision(&token), Some(("reject".into(), "timeout".into())));
    let told = scene.stage.heard(scene.ear);
    assert!(told.iter().any(|event| event.contains(r#""by":"timeout""#)), "and everybody is told: {told:#?}");
    scene.stamps_never_go_back();
}

#[test]
fn a_jump_forwards_shortens_a_question_by_no_more_than_the_jump() {
    let mut scene = scene();
    let token = scene.ask();
    scene.stage.now += 100_000;
    scene.stage.turn();
    assert_eq!(scene.decision(&token), None, "80 seconds are left");
    scene.stage.now += 79_999;
    scene.stage.turn();
    assert_eq!(scene.decision(&token), None);
    scene.stage.now += 1;
    scene.stage.turn();
    assert_eq!(scene.decision(&token).unwrap().0, "reject");
}

#[test]
fn what_was_defaulted_stays_so_when_the_clock_goes_back() {
    let mut scene = scene();
    let token = scene.ask();
    scene.stage.now += HOUR;
    scene.stage.turn();
    assert_eq!(scene.decision(&token).unwrap().0, "reject");
    scene.stage.now -= HOUR;
    scene.stage.attach(&scene.ada, &scene.subscription, None);
    scene.stage.reply(&scene.ada, &scene.subscription, &token, "accept");
    assert_eq!(scene.decision(&token).unwrap().0, "reject", "no yes out of a second chance");
    let made = scene.stage.publish(&scene.bank, &scene.session, &[&call(&token, "500.00")]);
    assert!(matches!(made, Reply::Unlawful(_) | Reply::NotFound), "{made:?}");
    scene.stamps_never_go_back();
}

#[test]
fn an_open_question_outlives_a_jump_back_and_a_restart_and_is_decided_once() {
    let mut scene = scene();
    let token = scene.ask();
    scene.stage.now -= HOUR;
    scene.stage.crash();
    scene.stage.turn();
    assert_eq!(scene.decision(&token), None);
    scene.stage.attach(&scene.ada, &scene.subscription, None);
    scene.stage.reply(&scene.ada, &scene.subscription, &token, "reject");
    scene.stage.now += 2 * HOUR;
    scene.stage.turn();
    assert_eq!(scene.decision(&token), Some(("reject".into(), "reply".into())));
    scene.stamps_never_go_back();
}

#[test]
fn clocks_at_the_ends_of_time_break_nothing() {
    for now in [0, -1, 253_402_300_799_999, i64::MIN, i64::MAX].map(UnixMillis::new) {
        let mut scene = scene();
        let token = scene.ask();
        (scene.stage.now, scene.stage.beyond_time) = (now, true);
        scene.stage.turn();
        scene.stage.publish(&scene.bank, &scene.session, &[THINK]);
        assert_ne!(scene.decision(&token).map(|decision| decision.0).as_deref(), Some("accept"), "{now}");
        let _ = Stage::with(&Limits::default(), scene.stage.disk.clone(), now);
        scene.stamps_never_go_back();
    }
}
