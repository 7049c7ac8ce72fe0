//! Texts that the hub writes on behalf of an agent reach each listener in its language.

use crate::support::*;
use hub::ListenerId;
use hub::command::HubReply;

const LANGUAGES: [&str; 3] = ["en", "es", "yo"];
const TOOL: &str = r#"{"type":"aaep:agent.tool.invoked","tool":"fetch","tool_call_id":"call_1","summary_normal":"Looking."}"#;

/// Creates a listener for each language, and a session with a running tool.
fn fixture() -> (HubHarness, Vec<(ListenerId, String)>, String) {
    let mut harness = HubHarness::new();
    let listeners: Vec<_> = LANGUAGES
        .iter()
        .map(|language| {
            let capabilities =
                REPLY_CAPABILITIES.replacen('{', &format!(r#"{{"languages":["{language}"],"#), 1);
            let (subscription, listener_id) =
                harness.connect_listener(&listener(language, &[]), &capabilities);
            (listener_id, subscription)
        })
        .collect();
    let session = harness.start(&agent("bank"));
    let reply = harness.publish(&agent("bank"), &session, &[TOOL]);
    assert!(matches!(reply, HubReply::EventsPublished { .. }), "{reply:?}");
    for (listener_id, _) in &listeners {
        harness.take_events(*listener_id);
    }
    (harness, listeners, session)
}

/// Returns, for each listener, the summaries of the tool's end and of the session's end, and the language.
fn end_summaries(harness: &mut HubHarness, listeners: &[(ListenerId, String)]) -> Vec<[String; 3]> {
    let final_texts = |harness: &mut HubHarness, listener_id: ListenerId| {
        let events = harness.take_events(listener_id);
        let event_of_type = |kind: &str| {
            events.iter().find(|event| text_member(event, "type").ends_with(kind)).unwrap().clone()
        };
        let last = events.last().unwrap();
        let tool = event_of_type("tool.completed");
        let language = last.split("\"primary_language\":\"").nth(1).and_then(|rest| rest.get(..2)).unwrap();
        let error_message = text_member(&tool, "error_message");
        assert!(text_member(&tool, "summary_normal").starts_with(&error_message), "{tool}");
        [text_member(&tool, "summary_normal"), text_member(last, "summary_normal"), language.to_owned()]
    };
    listeners.iter().map(|(listener_id, _)| final_texts(harness, *listener_id)).collect()
}

#[test]
fn a_stop_is_announced_in_each_language() {
    let (mut harness, listeners, session) = fixture();
    let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
    let text = format!(
        r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{}","timestamp":"{at}"}}"#,
        listeners.first().unwrap().1
    );
    assert_eq!(harness.ask_hub(&listener("en", &[]), send_message(&text)), HubReply::Done);
    let expected = [
        ["The session was stopped. The tool had not finished.", "The session was stopped.", "en"],
        ["Se paró la sesión. La herramienta no terminó.", "Se paró la sesión.", "es"],
        ["A dá ìjókòó náà dúró. Irinṣẹ́ náà kò parí.", "A dá ìjókòó náà dúró.", "yo"],
    ];
    assert_eq!(end_summaries(&mut harness, &listeners), expected);
}

#[test]
fn an_agent_that_disappeared_is_announced_in_each_language() {
    let (mut harness, listeners, _) = fixture();
    harness.advance_time(hub::HubLimits::default().lease_ms + 1);
    let expected = [
        [
            "The agent stopped responding. The tool had not finished.",
            "The agent stopped responding, so its session was ended. The agent may or may not have finished what it was doing.",
            "en",
        ],
        [
            "El agente dejó de responder. La herramienta no terminó.",
            "El agente dejó de responder, así que se terminó su sesión. No se sabe si terminó lo que estaba haciendo.",
            "es",
        ],
        [
            "Aṣojú náà ti lọ. Irinṣẹ́ náà kò parí.",
            "Aṣojú náà ti lọ; a parí ìjókòó rẹ̀ fún un. A kò mọ̀ bóyá ohun tí ó ń ṣe parí.",
            "yo",
        ],
    ];
    assert_eq!(end_summaries(&mut harness, &listeners), expected);
}

#[test]
fn an_unused_consent_is_announced_in_each_language() {
    let unused = [
        "An action was approved, but the agent never reported doing it, so it is not known whether it was done.",
        "Se aprobó una acción, pero el agente nunca informó de haberla hecho, así que no se sabe si se hizo.",
        "A fọwọ́ sí ohun kan, ṣùgbọ́n aṣojú náà kò sọ rí pé òun ṣe é, nítorí náà a kò mọ̀ bóyá ó ṣe é.",
    ];
    let unused_terse = [
        "An approved action was not reported as done.",
        "Una acción aprobada no consta como hecha.",
        "Aṣojú náà kò sọ pé òun ṣe ohun tí a fọwọ́ sí.",
    ];
    for is_stopped in [false, true] {
        let (mut harness, listeners, session) = fixture();
        let opened = reply_json(harness.confirm(&agent("bank"), &session, TRANSFER));
        let (_, subscription) = listeners.first().unwrap();
        harness.reply(&listener("en", &[]), subscription, &text_member(&opened, "reply_token"), "accept");
        if is_stopped {
            let at = aaep::Timestamp::from_unix_millis(harness.now).unwrap();
            let text = format!(
                r#"{{"type":"sayso:session.stop","session_id":"{session}","subscription_id":"{subscription}","timestamp":"{at}"}}"#
            );
            assert_eq!(harness.ask_hub(&listener("en", &[]), send_message(&text)), HubReply::Done);
        } else {
            harness.advance_time(hub::HubLimits::default().lease_ms + 1);
        }
        for (at, (listener_id, _)) in listeners.iter().enumerate() {
            let last = harness.take_events(*listener_id).pop().unwrap();
            assert!(text_member(&last, "summary_normal").ends_with(unused[at]), "{last}");
            assert!(text_member(&last, "summary_terse").ends_with(unused_terse[at]), "{last}");
        }
    }
}

#[test]
fn a_consent_for_a_low_risk_call_counts_as_used_when_the_call_starts() {
    let low_risk = r#"{"action":"Book a room.","consequence":"It can be cancelled.","risk_level":"low","timeout_seconds":180,"default_decision":"reject","tool":"book","arguments":{"room":"7"}}"#;
    for (room, is_used) in [("7", true), ("8", false)] {
        let (mut harness, listeners, session) = fixture();
        let opened = reply_json(harness.confirm(&agent("bank"), &session, low_risk));
        let (listener_id, subscription) = listeners.first().unwrap();
        harness.reply(&listener("en", &[]), subscription, &text_member(&opened, "reply_token"), "accept");
        let call = format!(
            r#"{{"type":"aaep:agent.tool.invoked","tool":"book","tool_call_id":"call_2","arguments":{{"room":"{room}"}},"summary_normal":"Booking."}}"#
        );
        assert!(matches!(
            harness.publish(&agent("bank"), &session, &[&call]),
            HubReply::EventsPublished { .. }
        ));
        harness.advance_time(hub::HubLimits::default().lease_ms + 1);
        let last = harness.take_events(*listener_id).pop().unwrap();
        assert_eq!(last.contains("An action was approved"), !is_used, "{last}");
    }
}

#[test]
fn an_agent_that_is_away_is_announced_in_each_language() {
    let (mut harness, listeners, session) = fixture();
    let opened = reply_json(harness.confirm(&agent("bank"), &session, TRANSFER));
    // The agent counts as away 10 seconds after its last request, but its lease does not expire yet.
    harness.advance_time(40_000);
    for (listener_id, _) in &listeners {
        harness.take_events(*listener_id);
    }
    let (_, subscription) = listeners.first().unwrap();
    harness.reply(&listener("en", &[]), subscription, &text_member(&opened, "reply_token"), "accept");
    let prefixes = ["The agent is not connected", "El agente no está conectado", "Aṣojú náà kò sí lórí ìlà"];
    for ((listener_id, _), prefix) in listeners.iter().zip(prefixes) {
        let events = harness.take_events(*listener_id);
        assert!(
            events.iter().any(|event| event.contains(&format!(r#""summary_normal":"{prefix}"#))),
            "{prefix}: {events:#?}"
        );
    }
}
