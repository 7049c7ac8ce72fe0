//! A listener that does not read, beside one that does.

use serde_json::{Value, json};

use crate::sse::Listener;
use crate::stage::{Stage, people};
use crate::wire::{Heard, Kind, Sign, Wire};

/// A listener that has stopped to read, with all buffers on the way full, and its neighbour.
struct Slow {
    stage: Stage,
    wire: Box<dyn Wire>,
    neighbour: Listener,
    session: String,
}

impl Slow {
    /// Progress is joined where it waits, however much there is of it: so buffers are filled without filling the queue.
    fn new(kind: Kind) -> Self {
        // It gives no sign of life until the end, and only then takes its last word: it is let go for neither.
        let patient = ["--http-heartbeat", "1h", "--messages-ping-time", "1h", "--messages-write-time", "1h"];
        let mut stage = Stage::with(kind, &patient);
        let (wire, _) = stage.subscribed(&json!({}));
        let (neighbour, _) = stage.neighbour(&people().ben, &json!({}));
        let session = stage.start();
        let mut slow = Self { stage, wire, neighbour, session };
        // The kernel takes up to 10 MiB on TCP, far less on other wires.
        let megabytes = if kind.has_tokens() { 16 } else { 2 };
        for round in 0..megabytes {
            let said: Vec<_> = (0..256)
                .map(|number| {
                    json!({"type": "aaep:agent.progress.updated",
                        "progress": {"description": format!("{round}/{number} {}", "x".repeat(3900))}})
                })
                .collect();
            slow.stage.publish(&slow.session, &said);
            let last = said[255]["progress"]["description"].clone();
            slow.hears(|event| event["progress"]["description"] == last);
        }
        slow
    }

    /// The neighbour hears up to there.
    fn hears(&mut self, last: impl Fn(&Value) -> bool) -> Vec<Value> {
        (&mut self.neighbour as &mut dyn Wire).until(last)
    }
}

pub(crate) fn who_is_slow_for_a_while_gets_all_text_once(kind: Kind) {
    let mut slow = Slow::new(kind);
    let mut whole = String::new();
    for number in 0..400 {
        let sentence = format!("Sentence {number} of many. ");
        slow.stage.output(&slow.session, &sentence, false);
        whole += &sentence;
    }
    slow.stage.output(&slow.session, "The end.", true);
    whole += "The end.";
    let done = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done."});
    slow.stage.publish(&slow.session, &[done]);
    let completed = |event: &Value| event["type"] == "aaep:agent.session.completed";
    let text = |heard: &[Value]| {
        let mut position = 0;
        let mut text = String::new();
        for event in heard.iter().filter(|event| event["chunk"].is_string()) {
            assert_eq!(event["position"], position, "no hole and nothing twice");
            let chunk = event["chunk"].as_str().unwrap();
            position += chunk.chars().count();
            text += chunk;
        }
        text
    };
    let there = slow.hears(completed);
    assert_eq!(text(&there), whole);
    let here = slow.wire.until(completed);
    assert_eq!(text(&here), whole);
    let chunks = |heard: &[Value]| heard.iter().filter(|event| event["chunk"].is_string()).count();
    assert!(chunks(&here) < chunks(&there), "{} of {} events", chunks(&here), chunks(&there));
}

pub(crate) fn who_does_not_read_is_let_go(kind: Kind) {
    let mut slow = Slow::new(kind);
    // 4 MiB may wait.
    let sentence = format!("Word {}word. ", "word ".repeat(7000));
    for _ in 0..160 {
        slow.stage.output(&slow.session, &sentence, false);
        slow.hears(|event| event["chunk"].is_string());
    }
    // It hears what was on its way, and then that it is over.
    let last = loop {
        match slow.wire.next() {
            Heard::Event(_) | Heard::Alive => {}
            Heard::Message(message) => break message,
            Heard::End(sign) => panic!("it ended without a word: {sign:?}"),
        }
    };
    assert_eq!(
        (&last["type"], &last["reason_code"]),
        (&json!("subscription.close"), &json!("slow_consumer"))
    );
    assert_eq!(slow.wire.sign(), kind.pick(Sign::End, Sign::Code(4004), Sign::End, Sign::Stays));
    // And nobody else noticed.
    let done = json!({"type": "aaep:agent.session.completed", "summary_normal": "All is done."});
    slow.stage.output(&slow.session, "", true);
    slow.stage.publish(&slow.session, &[done]);
    slow.hears(|event| event["type"] == "aaep:agent.session.completed");
}
