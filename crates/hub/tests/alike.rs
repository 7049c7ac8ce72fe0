//! A reply that has no effect is answered as a good one is: the same answer, after the same calls of the journal (C-D1).

use crate::support::*;
use hub::Principal;
use hub::command::{Command, Reply, Request, RequestId};
use seal::UnixMillis;

const CLARIFY: &str = r#"{"question":"Which Ben?","accepted_response_kinds":["freetext"],"timeout_seconds":180,"summary_normal":"Which Ben do you mean?"}"#;

/// Two sessions of a bank with a question each, one question that is answered, one that is over, and everybody who may
/// say something about them.
struct Scene {
    stage: Stage,
    ada: (Principal, String),
    /// Hears all, may answer nothing.
    observer: (Principal, String),
    /// Hears another person's sessions.
    jonas: (Principal, String),
    open: Question,
    other: Question,
    meaning: Question,
    used: Question,
    late: Question,
    closed: String,
}

struct Question {
    session: String,
    token: String,
}

impl Scene {
    fn new() -> Self {
        let mut stage = Stage::new();
        let (bank, ada) = (agent("bank"), listener("ada", &["person:marisol"]));
        let (observer, jonas) = (observer("eve"), listener("jonas", &["person:jonas"]));
        let (adas, _) = stage.listener(&ada, REPLIES);
        let (eves, _) = stage.listener(&observer, REPLIES);
        let (his, _) = stage.listener(&jonas, REPLIES);
        let (closed, _) = stage.listener(&ada, REPLIES);
        let text = format!(r#"{{"type":"subscription.close","subscription_id":"{closed}"}}"#);
        assert_eq!(stage.ask_hub(&ada, say(&text)), Reply::Done);
        let late = ask(&mut stage, &bank, &TRANSFER.replace("180", "60"), false);
        stage.wait(60_000);
        let used = ask(&mut stage, &bank, TRANSFER, false);
        stage.reply(&ada, &adas, &used.token, "reject");
        let open = ask(&mut stage, &bank, TRANSFER, false);
        let other = ask(&mut stage, &bank, TRANSFER, false);
        let meaning = ask(&mut stage, &bank, CLARIFY, true);
        Self {
            stage,
            ada: (ada, adas),
            observer: (observer, eves),
            jonas: (jonas, his),
            open,
            other,
            meaning,
            used,
            late,
            closed,
        }
    }

    /// Says something in a turn of its own; returns the answer and the journal's calls that came before it.
    fn say(&mut self, who: &Principal, text: &str) -> (Reply, Vec<&'static str>) {
        self.stage.disk.calls();
        let request = Request { id: RequestId(9_999), who: who.clone(), command: say(text) };
        let outputs = self.stage.core.turn(vec![request], self.stage.now);
        let answer = outputs.into_iter().find_map(|output| match output {
            hub::command::Output::Reply(_, answer) => Some(answer),
            _ => None,
        });
        (answer.expect("an answer"), self.stage.disk.calls())
    }

    fn decision(&self, question: &Question) -> Option<String> {
        self.stage.disk.decision(&question.token).map(|decision| decision.decision)
    }
}

fn ask(stage: &mut Stage, who: &Principal, text: &str, clarify: bool) -> Question {
    let session = stage.start(who);
    let command = Command::Ask { session: id(&session), body: text.into(), clarify, key: None };
    let asked = stage.ask_hub(who, command);
    let made = json(asked);
    Question { session, token: text_of(&made, "reply_token") }
}

fn reply(token: &str, subscription: &str, at: UnixMillis) -> String {
    let at = aaep::Timestamp::from_unix_millis(at).unwrap();
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{subscription}","timestamp":"{at}"}}"#
    )
}

#[test]
fn every_forgery_is_answered_after_the_same_calls_as_a_good_reply() {
    let good = {
        let mut scene = Scene::new();
        let (ada, adas) = scene.ada.clone();
        let text = reply(&scene.open.token, &adas, scene.stage.now);
        let good = scene.say(&ada, &text);
        assert_eq!(scene.decision(&scene.open).as_deref(), Some("accept"), "it can be answered");
        good
    };
    assert_eq!(good, (Reply::Done, vec!["commit"]));

    let mut scene = Scene::new();
    let (ada, adas) = scene.ada.clone();
    let (eve, eves) = scene.observer.clone();
    let (jonas, his) = scene.jonas.clone();
    let bank = agent("bank");
    let now = scene.stage.now;
    let at = aaep::Timestamp::from_unix_millis(now).unwrap();
    let open = scene.open.token.clone();
    let good_text = reply(&open, &adas, now);
    let closed = scene.closed.clone();
    let cases: Vec<(&str, &Principal, String)> = vec![
        ("a token that nobody was given", &ada, reply(&format!("rpl_{:032}", 7), &adas, now)),
        ("replayed: the token is used", &ada, reply(&scene.used.token, &adas, now)),
        ("late by the hub's clock", &ada, reply(&scene.late.token, &adas, now)),
        ("late by its own stamp", &ada, reply(&open, &adas, now + 180_000)),
        ("an observer's", &eve, reply(&open, &eves, now)),
        ("an observer's on a listener's subscription", &eve, good_text.clone()),
        ("of a subscription that was not sent the question", &jonas, reply(&open, &his, now)),
        ("on somebody else's subscription", &jonas, good_text.clone()),
        ("on a subscription that is closed", &ada, reply(&open, &closed, now)),
        ("on a subscription that never was", &ada, reply(&open, &format!("sub_{:032}", 7), now)),
        ("the agent's own", &bank, good_text.clone()),
        (
            "a clarification's, on a confirmation's token",
            &ada,
            format!(
                r#"{{"type":"clarification.reply","reply_token":"{open}","response":"yes","subscription_id":"{adas}","timestamp":"{at}"}}"#
            ),
        ),
        ("a confirmation's, on a clarification's token", &ada, reply(&scene.meaning.token, &adas, now)),
        (
            "an answer of the wrong type",
            &ada,
            format!(
                r#"{{"type":"clarification.reply","reply_token":"{}","response":7,"subscription_id":"{adas}","timestamp":"{at}"}}"#,
                scene.meaning.token
            ),
        ),
        ("one member too many", &ada, good_text.replacen('{', r#"{"x":1,"#, 1)),
        ("a doubled key", &ada, good_text.replacen('{', r#"{"decision":"reject","#, 1)),
        ("a word that is no decision", &ada, good_text.replace("accept", "maybe")),
        ("another session's, smuggled in", &ada, good_text.replacen('{', r#"{"session_id":"x","#, 1)),
        ("not a reply", &ada, r#"{"type":"aaep:agent.state.changed"}"#.to_owned()),
        ("nothing at all", &ada, "{}".to_owned()),
        ("not an object", &ada, "[1,2]".to_owned()),
        (
            "more time for somebody else's question",
            &jonas,
            format!(
                r#"{{"type":"sayso:deadline.extend","reply_token":"{open}","subscription_id":"{his}","timestamp":"{at}"}}"#
            ),
        ),
        (
            "stop, of a session that it does not hear",
            &jonas,
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{his}","timestamp":"{at}"}}"#,
                scene.open.session
            ),
        ),
        (
            "stop, by an observer",
            &eve,
            format!(
                r#"{{"type":"sayso:session.stop","session_id":"{}","subscription_id":"{eves}","timestamp":"{at}"}}"#,
                scene.open.session
            ),
        ),
    ];
    let positions = scene.stage.disk.events().len();
    for (what, who, text) in cases {
        scene.stage.disk.seen();
        assert_eq!(scene.say(who, &text), good, "{what}");
        let seen = scene.stage.disk.seen();
        assert!(matches!(&seen[..], [Seen::Attempt { .. }, Seen::Batch]), "{what}: {seen:?}");
        for question in [&scene.open, &scene.other, &scene.meaning] {
            assert_eq!(scene.decision(question), None, "{what}");
        }
        assert_eq!(scene.decision(&scene.used).as_deref(), Some("reject"), "{what}");
        assert_eq!(scene.decision(&scene.late).as_deref(), Some("reject"), "{what}");
    }
    assert_eq!(scene.stage.disk.events().len(), positions, "nobody heard of any of it");
    // And none of them has spoiled the question for the one who may answer it.
    assert_eq!(scene.say(&ada, &good_text), good);
    assert_eq!(scene.decision(&scene.open).as_deref(), Some("accept"));
    assert_eq!(scene.decision(&scene.other), None, "each session's yes is its own");
}

#[test]
fn a_yes_of_one_session_does_nothing_in_another() {
    let mut scene = Scene::new();
    let (ada, adas) = scene.ada.clone();
    let text = reply(&scene.other.token, &adas, scene.stage.now);
    scene.say(&ada, &text);
    let (session, token) = (scene.open.session.clone(), scene.other.token.clone());
    let made = scene.stage.publish(&agent("bank"), &session, &[&call(&token, "500.00")]);
    assert!(matches!(made, Reply::Unlawful(_)), "{made:?}");
    assert!(matches!(scene.stage.status(&agent("bank"), &session, &token), Reply::NotFound));
}
