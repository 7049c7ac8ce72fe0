//! What listeners are told of the time that a question has.

use crate::support::*;
use hub::command::{Command, Reply};
use hub::{Limits, ListenerId, Principal};

struct Scene {
    stage: Stage,
    ada: Principal,
    subscription: String,
    adas: ListenerId,
    bobs: ListenerId,
    session: String,
    token: String,
}

/// A question of three minutes, which Ada and Bob hear.
fn asked() -> Scene {
    // The agent says nothing meanwhile, and is not held to be gone.
    let limits = Limits { lease: 3_600_000, ..Limits::default() };
    let mut stage = Stage::with(&limits, Disk::default(), START);
    let ada = listener("ada", &[]);
    let (subscription, adas) = stage.listener(&ada, REPLIES);
    let (_, bobs) = stage.listener(&listener("bob", &[]), REPLIES);
    let session = stage.start(&agent("bank"));
    let asked = json(stage.confirm(&agent("bank"), &session, TRANSFER));
    let token = text_of(&asked, "reply_token");
    stage.heard(adas);
    stage.heard(bobs);
    Scene { stage, ada, subscription, adas, bobs, session, token }
}

impl Scene {
    fn more_time(&mut self) {
        let at = aaep::Timestamp::from_unix_millis(self.stage.now).unwrap();
        let text = format!(
            r#"{{"type":"sayso:deadline.extend","reply_token":"{}","subscription_id":"{}","timestamp":"{at}"}}"#,
            self.token, self.subscription
        );
        assert_eq!(self.stage.ask_hub(&self.ada.clone(), say(&text)), Reply::Done);
    }

    /// The mark that tells of a deadline so many milliseconds after the start.
    fn mark(&self, until: i64) -> String {
        let at = aaep::Timestamp::from_unix_millis(START + until).unwrap();
        format!(r#""extensions":{{"sayso":{{"extended":"{}","deadline":"{at}"}}}}"#, self.token)
    }
}

#[test]
fn more_time_of_one_listener_is_told_to_all() {
    let mut scene = asked();
    scene.stage.now += 60_000;
    scene.more_time();
    for ear in [scene.adas, scene.bobs] {
        let heard = scene.stage.heard(ear);
        let [told] = &heard[..] else { panic!("{heard:#?}") };
        assert_eq!(text_of(told, "type"), "aaep:agent.progress.updated");
        assert!(told.contains(&scene.mark(360_000)), "{told}");
        assert_eq!(text_of(told, "summary_normal"), "There is more time to answer: 5 minutes from now.");
    }
    // What is told is what holds.
    scene.stage.wait(299_999);
    assert!(scene.stage.disk.decision(&scene.token).is_none());
    scene.stage.wait(1);
    assert_eq!(scene.stage.disk.decision(&scene.token).unwrap().by, "timeout");
    let heard = scene.stage.heard(scene.bobs);
    assert!(heard.iter().any(|event| event.contains(r#""by":"timeout""#)), "{heard:#?}");
}

#[test]
fn who_has_all_the_time_there_is_gets_no_more_and_nobody_is_told_so() {
    let mut scene = asked();
    for _ in 0..9 {
        scene.more_time();
    }
    assert_eq!(scene.stage.heard(scene.bobs).len(), 9);
    scene.more_time();
    assert_eq!(scene.stage.heard(scene.bobs), [""; 0]);
}

#[test]
fn who_joins_late_is_told_of_more_time_before_the_question() {
    for crash in [false, true] {
        let mut scene = asked();
        scene.stage.now += 60_000;
        scene.more_time();
        scene.stage.now += 170_000;
        if crash {
            scene.stage.crash();
        }
        let (_, late) = scene.stage.listener(&listener("eve", &[]), REPLIES);
        let heard = scene.stage.heard(late);
        let [state, told, question] = &heard[..] else { panic!("{heard:#?}") };
        assert_eq!(text_of(state, "type"), "aaep:agent.state.changed");
        assert!(told.contains(&scene.mark(360_000)), "{told}");
        let words = "There is more time for the question that follows: 2 minutes from now.";
        assert_eq!(text_of(told, "summary_normal"), words);
        assert_eq!(text_of(question, "reply_token"), scene.token);
    }
    let mut scene = asked();
    let (_, late) = scene.stage.listener(&listener("eve", &[]), REPLIES);
    assert_eq!(scene.stage.heard(late).len(), 2, "without more time nothing is told of it");
}

#[test]
fn a_reminder_says_of_which_question() {
    let mut scene = asked();
    scene.stage.wait(90_000);
    let heard = scene.stage.heard(scene.bobs);
    let [told] = &heard[..] else { panic!("{heard:#?}") };
    assert_eq!(text_of(told, "summary_normal"), "90 seconds are left to answer.");
    assert!(told.contains(&format!(r#"{{"sayso":{{"reminds_of":"{}"}}}}"#, scene.token)), "{told}");
}

#[test]
fn no_agent_can_say_the_like() {
    let mut scene = asked();
    let marks =
        [scene.mark(360_000), format!(r#""extensions":{{"sayso":{{"reminds_of":"{}"}}}}"#, scene.token)];
    for mark in marks {
        for mark in [
            mark.clone(),
            mark.replace("sayso", r"say\u0073o"),
            mark.replace("sayso", "urn:sayso:context:v1"),
        ] {
            let forged = format!(
                r#"{{"type":"aaep:agent.progress.updated","@context":["https://aaep-protocol.org/context/v1","urn:sayso:context:v1"],"progress":{{"description":"x"}},"summary_normal":"x",{mark}}}"#
            );
            let answer = scene.stage.publish(&agent("bank"), &scene.session, &[&forged]);
            assert!(
                matches!(&answer, Reply::Malformed(why) if why.to_string().contains("extensions.sayso")),
                "{answer:?}"
            );
        }
    }
    assert_eq!(scene.stage.heard(scene.bobs), [""; 0]);
}

#[test]
fn an_agent_that_waits_is_answered_when_its_wait_is_over() {
    let Scene { mut stage, session, token, .. } = asked();
    let until = START + 10_000;
    let waits = stage.send(&agent("bank"), Command::Wait { session: id(&session), token: id(&token), until });
    assert_eq!(stage.answer(waits), None);
    assert_eq!(stage.core.next_deadline(), Some(until), "nobody else would wake the hub");
    stage.now = until;
    stage.turn();
    assert!(stage.answer(waits).is_some());
}
