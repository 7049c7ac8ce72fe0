//! How many announcements per second a subscriber creates, and the time from an event to its announcement. The same run also
//! measures parsing alone, for comparison.

use std::hint::black_box;
use std::time::Instant;

use aaep::event::Event;
use aaep::json::JsonWriter;
use listen::{Preferences, Subscriber, SubscriberLimits};
use sayso_benches::load::Scale;
use seal::UnixMillis;

const NOW: UnixMillis = UnixMillis::new(1_779_631_200_000);

fn main() {
    let scale = Scale::from_args();
    let count = scale.pick(200_000, 500);
    println!("{:<28} {:>12} {:>14} {:>12} {:>9}", "event", "ns", "announcements/s", "ns to parse", "ratio");
    measure("tool calls", &calls(count));
    measure("tokens, merged into sentences", &tokens(count));
    measure("questions, each resolved", &questions(count / 2));
}

/// Feeds all events to a subscriber and takes the announcements after each.
fn measure(name: &str, events: &[String]) {
    let started = Instant::now();
    for event in events {
        black_box(Event::parse(event));
    }
    let parse_elapsed = started.elapsed().as_secs_f64();
    let mut subscriber = Subscriber::new(Preferences::default(), SubscriberLimits::default());
    let mut announcements = 0_u32;
    let started = Instant::now();
    for event in events {
        subscriber.receive(event, NOW);
        while let Some(announcement) = subscriber.next_announcement(NOW) {
            black_box(announcement);
            announcements += 1;
        }
    }
    let elapsed = started.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let each = |seconds: f64| seconds * 1e9 / events.len() as f64;
    println!(
        "{name:<28} {:>12.0} {:>14.0} {:>12.0} {:>9.1}",
        each(elapsed),
        f64::from(announcements) / elapsed,
        each(parse_elapsed),
        elapsed / parse_elapsed
    );
}

fn event(number: usize, session: usize, kind: &str, rest: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number}","session_id":"sess_{session}","timestamp":"2026-05-24T14:00:00.000Z","producer":{{"agent_id":"bank","agent_name":"Bank"}},"localization_hints":{{"primary_language":"en"}},{rest}}}"#
    )
}

/// Returns tool calls in 16 sessions.
fn calls(count: usize) -> Vec<String> {
    let call = |number| {
        format!(r#""tool":"look","tool_call_id":"call_{number}","summary_normal":"Looking up the balance.""#)
    };
    (0..count).map(|number| event(number, number % 16, "tool.invoked", &call(number))).collect()
}

/// Returns one output, token by token.
fn tokens(count: usize) -> Vec<String> {
    let words = ["Your ", "balance ", "is ", "12", ".50 ", "euros. ", "Nothing ", "else ", "was ", "asked. "];
    let mut position = 0;
    let tokens = words.iter().cycle().take(count).enumerate();
    tokens
        .map(|(number, word)| {
            let mut chunk = JsonWriter::default();
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
            let confirmation = format!(
                r#""urgency":"critical","action":"Send 5 euros to Ben.","consequence":"It is gone.","reply_token":"rpl_{number}","timeout_seconds":120,"default_decision":"reject","risk_level":"high","irreversible":true"#
            );
            let resolution = format!(
                r#""from_state":"awaiting_input","to_state":"thinking","extensions":{{"sayso":{{"reply_token":"rpl_{number}","decision":"reject","by":"reply"}}}}"#
            );
            [
                event(2 * number, number % 16, "awaiting.confirmation", &confirmation),
                event(2 * number + 1, number % 16, "state.changed", &resolution),
            ]
        })
        .collect()
}
