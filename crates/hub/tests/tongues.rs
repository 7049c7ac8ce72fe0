//! What the hub says in place of an agent is heard in the listener's language.

use crate::support::*;
use hub::ListenerId;
use hub::command::Reply;

const LANGUAGES: [&str; 3] = ["en", "es", "yo"];
const TOOL: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"fetch","tool_call_id":"call_1","summary_normal":"Looking."}"#;

/// A listener for each language, and a session in which a tool is under way.
fn scene() -> (Stage, Vec<(ListenerId, String)>, String) {
    let mut stage = Stage::new();
    let ears: Vec<_> = LANGUAGES
        .iter()
        .map(|language| {
            let wish = REPLIES.replacen('{', &format!(r#"{{"languages":["{language}"],"#), 1);
            let (subscription, ear) = stage.listener(&listener(language, &[]), &wish);
            (ear, subscription)
        })
        .collect();
    let session = stage.start(&agent("bank"));
    let answer = stage.publish(&agent("bank"), &session, &[TOOL]);
    assert!(matches!(answer, Reply::EventsPublished { .. }), "{answer:?}");
    for (ear, _) in &ears {
        stage.heard(*ear);
    }
    (stage, ears, session)
}

/// What each has heard of the tool's end and the session's: summary and language.
fn ends(stage: &mut Stage, ears: &[(ListenerId, String)]) -> Vec<[String; 3]> {
    let one = |stage: &mut Stage, ear: ListenerId| {
        let heard = stage.heard(ear);
        let of =
            |kind: &str| heard.iter().find(|event| text_of(event, "type").ends_with(kind)).unwrap().clone();
        let last = heard.last().unwrap();
        let tool = of("tool.completed");
        let hints = last.split("\"primary_language\":\"").nth(1).unwrap();
        let why = text_of(&tool, "error_message");
        assert!(text_of(&tool, "summary_normal").starts_with(&why), "{tool}");
        [
            text_of(&tool, "summary_normal"),
            text_of(last, "summary_normal"),
            hints.get(..2).unwrap().to_owned(),
        ]
    };
    ears.iter().map(|(ear, _)| one(stage, *ear)).collect()
}

#[test]
fn that_the_person_stopped_it_is_told_in_each_language() {
    let (mut stage, ears, session) = scene();
    let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{}","timestamp":"{at}"}}"#,
        ears.first().unwrap().1
    );
    assert_eq!(stage.ask_hub(&listener("en", &[]), say(&text)), Reply::Done);
    let wanted = [
        [
            "The person stopped the session. The tool had not finished.",
            "The person stopped the session.",
            "en",
        ],
        ["La persona paró la sesión. La herramienta no terminó.", "La persona paró la sesión.", "es"],
        ["Ènìyàn náà dá ìjókòó náà dúró. Irinṣẹ́ náà kò parí.", "Ènìyàn náà dá ìjókòó náà dúró.", "yo"],
    ];
    assert_eq!(ends(&mut stage, &ears), wanted);
}

#[test]
fn that_the_agent_is_gone_is_told_in_each_language() {
    let (mut stage, ears, _) = scene();
    stage.wait(hub::Limits::default().lease + 1);
    let wanted = [
        [
            "The agent is gone. The tool had not finished.",
            "The agent is gone; its session was ended for it. Whether what it was doing got done is not known.",
            "en",
        ],
        [
            "El agente ya no está. La herramienta no terminó.",
            "El agente ya no está; se terminó su sesión por él. No se sabe si se hizo lo que estaba haciendo.",
            "es",
        ],
        [
            "Aṣojú náà ti lọ. Irinṣẹ́ náà kò parí.",
            "Aṣojú náà ti lọ; a parí ìjókòó rẹ̀ fún un. A kò mọ̀ bóyá ohun tí ó ń ṣe parí.",
            "yo",
        ],
    ];
    assert_eq!(ends(&mut stage, &ears), wanted);
}

#[test]
fn of_a_yes_that_was_not_used_each_language_is_told_so() {
    let unused = [
        "It had a yes and never said that it used it, so nothing is known to have been done with it.",
        "Tenía un sí y nunca dijo que lo usara, así que no consta que se hiciera nada con él.",
        "Ó ti gba bẹ́ẹ̀ni, kò sì sọ rí pé òun lò ó, nítorí náà a kò mọ̀ pé a fi ṣe ohunkóhun.",
    ];
    let in_short = [
        "A yes is not known to have been used.",
        "No consta que se usara un sí.",
        "A kò mọ̀ pé ó lo bẹ́ẹ̀ni kan.",
    ];
    for stops in [false, true] {
        let (mut stage, ears, session) = scene();
        let asked = json(stage.confirm(&agent("bank"), &session, TRANSFER));
        let (_, subscription) = ears.first().unwrap();
        stage.reply(&listener("en", &[]), subscription, &text_of(&asked, "reply_token"), "accept");
        if stops {
            let at = aaep::Timestamp::from_unix_millis(stage.now).unwrap();
            let text = format!(
                r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
            );
            assert_eq!(stage.ask_hub(&listener("en", &[]), say(&text)), Reply::Done);
        } else {
            stage.wait(hub::Limits::default().lease + 1);
        }
        for (at, (ear, _)) in ears.iter().enumerate() {
            let last = stage.heard(*ear).pop().unwrap();
            assert!(text_of(&last, "summary_normal").ends_with(unused[at]), "{last}");
            assert!(text_of(&last, "summary_terse").ends_with(in_short[at]), "{last}");
        }
    }
}

#[test]
fn a_yes_to_what_does_little_harm_was_used_if_that_was_begun() {
    let harmless = r#"{"action":"Book a room.","consequence":"It can be cancelled.","risk_level":"low","timeout_seconds":180,"default_decision":"reject","tool":"book","arguments":{"room":"7"}}"#;
    for (room, used) in [("7", true), ("8", false)] {
        let (mut stage, ears, session) = scene();
        let asked = json(stage.confirm(&agent("bank"), &session, harmless));
        let (ear, subscription) = ears.first().unwrap();
        stage.reply(&listener("en", &[]), subscription, &text_of(&asked, "reply_token"), "accept");
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"book","tool_call_id":"call_2","arguments":{{"room":"{room}"}},"summary_normal":"Booking."}}"#
        );
        assert!(matches!(stage.publish(&agent("bank"), &session, &[&call]), Reply::EventsPublished { .. }));
        stage.wait(hub::Limits::default().lease + 1);
        let last = stage.heard(*ear).pop().unwrap();
        assert_eq!(last.contains("It had a yes"), !used, "{last}");
    }
}

#[test]
fn that_nobody_takes_an_answer_is_told_in_each_language() {
    let (mut stage, ears, session) = scene();
    let asked = json(stage.confirm(&agent("bank"), &session, TRANSFER));
    // Long enough for who was there to be held to be away, and not for the agent to be gone.
    stage.wait(40_000);
    for (ear, _) in &ears {
        stage.heard(*ear);
    }
    let (_, subscription) = ears.first().unwrap();
    stage.reply(&listener("en", &[]), subscription, &text_of(&asked, "reply_token"), "accept");
    let begins = ["The agent is not connected", "El agente no está conectado", "Aṣojú náà kò sí lórí ìlà"];
    for ((ear, _), words) in ears.iter().zip(begins) {
        let heard = stage.heard(*ear);
        assert!(
            heard.iter().any(|event| event.contains(&format!(r#""summary_normal":"{words}"#))),
            "{words}: {heard:#?}"
        );
    }
}
