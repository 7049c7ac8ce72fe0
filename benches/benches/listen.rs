//! What a listener's core does in a second, and how long it takes from an event's arrival to its first word. Beside it, in the
//! same run, reading the events and nothing else.

use std::hint::black_box;
use std::time::Instant;

use aaep::event::Event;
use aaep::json::Writer;
use listen::{Ear, Limits, Tastes};
use sayso_benches::load::Scale;
use seal::UnixMillis;

const NOW: UnixMillis = UnixMillis::new(1_779_631_200_000);

fn main() {
    let scale = Scale::of_arguments();
    let count = scale.pick(200_000, 500);
    println!("{:<28} {:>12} {:>14} {:>12} {:>9}", "an event", "ns", "announcements/s", "ns to read", "ratio");
    row("calls of tools", &calls(count));
    row("tokens, into sentences", &tokens(count));
    row("questions, each settled", &questions(count / 2));
}

/// Hears all of it, and says what there is to say after each event.
fn row(name: &str, events: &[String]) {
    let since = Instant::now();
    for event in events {
        black_box(Event::parse(event));
    }
    let read = since.elapsed().as_secs_f64();
    let mut ear = Ear::new(Tastes::default(), Limits::default());
    let mut said = 0_u32;
    let since = Instant::now();
    for event in events {
        ear.hear(event, NOW);
        while let Some(announcement) = ear.next(NOW) {
            black_box(announcement);
            said += 1;
        }
    }
    let heard = since.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let each = |seconds: f64| seconds * 1e9 / events.len() as f64;
    println!(
        "{name:<28} {:>12.0} {:>14.0} {:>12.0} {:>9.1}",
        each(heard),
        f64::from(said) / heard,
        each(read),
        heard / read
    );
}

fn event(number: usize, session: usize, kind: &str, rest: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_{session}","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank","agent_name":"Bank"}},"localization_hints":{{"primary_language":"en"}},{rest}}}"#
    )
}

/// In 16 sessions.
fn calls(count: usize) -> Vec<String> {
    let call = |number| {
        format!(r#""tool":"look","tool_call_id":"call_{number}","summary_normal":"Looking up the balance.""#)
    };
    (0..count).map(|number| event(number, number % 16, "tool.invoked", &call(number))).collect()
}

/// One output, as a model makes it.
fn tokens(count: usize) -> Vec<String> {
    let words = ["Your ", "balance ", "is ", "12", ".50 ", "euro. ", "Nothing ", "else ", "was ", "asked. "];
    let mut position = 0;
    let tokens = words.iter().cycle().take(count).enumerate();
    tokens
        .map(|(number, word)| {
            let mut chunk = Writer::default();
            chunk.text(word);
            let rest = format!(
                r#""chunk":{},"position":{position},"complete":false,"coalesce_hint":"none","output_id":"out_1""#,
                chunk.finish()
            );
            position += word.len();
            event(number, 1, "output.streaming", &rest)
        })
        .collect()
}

fn questions(count: usize) -> Vec<String> {
    (0..count)
        .flat_map(|number| {
            let asked = format!(
                r#""urgency":"critical","action":"Send 5 euro to Ben.","consequence":"It is gone.","reply_token":"rpl_{number}","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true"#
            );
            let settled = format!(
                r#""from_state":"awaiting_input","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"rpl_{number}","decision":"reject","by":"reply"}}}}"#
            );
            [
                event(2 * number, number % 16, "awaiting.confirmation", &asked),
                event(2 * number + 1, number % 16, "state.changed", &settled),
            ]
        })
        .collect()
}
