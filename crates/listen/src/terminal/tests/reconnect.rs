//! After a reconnect, the person hears whether anything was missed.

use std::time::Duration;

use aaep::SubscriptionId;
use tokio::time::advance;

use super::latency::{CapturedOutput, event, new_listener};
use crate::client::{ConnectionError, ConnectionEvent, ConnectionLoss};
use crate::terminal::listener::TerminalListener;

const CONFIRMATION: &str = r#""action":"A","consequence":"C","default_decision":"reject","reply_token":"rpl_1","timeout_seconds":300"#;
const STATE_WAITING: &str = r#""from_state":"awaiting_input","to_state":"awaiting_input""#;
const STATE_THINKING: &str = r#""from_state":"idle","to_state":"thinking""#;
const RECONNECTED_WITH_LOSS: &str = "notice: Reconnected, but what you missed was not stored.";

/// Loses the connection, reconnects with these events and catches up. Returns the printed lines.
async fn reconnect(
    listener: &mut TerminalListener<CapturedOutput>,
    output: &CapturedOutput,
    resumed: bool,
    events: Vec<ConnectionEvent>,
) -> Vec<String> {
    listener
        .handle_event(ConnectionEvent::Lost(ConnectionLoss::Unreachable(ConnectionError::ConnectionReset)));
    listener.poll();
    output.take_lines();
    let subscription = SubscriptionId::parse("sub_1").ok();
    listener.handle_event(ConnectionEvent::Open { subscription, notes: None, resumed });
    for event in events {
        listener.handle_event(event);
    }
    listener.poll();
    advance(Duration::from_secs(6)).await;
    listener.poll();
    output.take_lines()
}

#[tokio::test(start_paused = true)]
async fn missing_only_unannounced_events_is_reported_as_missing_nothing() {
    let (mut listener, output) = new_listener(None);
    listener.handle_event(event(1, "awaiting.confirmation", CONFIRMATION));
    let lines = reconnect(&mut listener, &output, true, vec![event(2, "state.changed", STATE_WAITING)]).await;
    let [connected, nothing, open] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!([connected, nothing], ["notice: Reconnected.", "notice: You missed nothing."]);
    assert!(open.starts_with("ask: Question 1 from bank is still open"), "{open}");
}

#[tokio::test(start_paused = true)]
async fn if_missed_events_are_lost_the_current_status_is_announced() {
    let (mut listener, output) = new_listener(None);
    listener.handle_event(event(1, "awaiting.confirmation", CONFIRMATION));
    let known = || vec![event(1, "awaiting.confirmation", CONFIRMATION)];
    let lines = reconnect(&mut listener, &output, false, known()).await;
    let [reconnected, status_follows, open] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!([reconnected, status_follows], [RECONNECTED_WITH_LOSS, "notice: Here is how things stand."]);
    assert!(open.starts_with("ask: Question 1 from bank is still open"), "{open}");
    // The question has been answered, so a status line is announced instead.
    listener.handle_line("yes 1");
    let lines = reconnect(&mut listener, &output, false, known()).await;
    let status_line = "status: Session 1, bank. It has not said what it is doing.";
    assert_eq!(lines, [RECONNECTED_WITH_LOSS, "notice: Here is how things stand.", status_line]);
}

#[tokio::test(start_paused = true)]
async fn announcements_held_before_a_loss_are_printed_only_if_still_true() {
    let (mut unchanged, output) = new_listener(None);
    unchanged.handle_event(event(1, "state.changed", STATE_THINKING));
    let lines = reconnect(&mut unchanged, &output, true, vec![]).await;
    let nothing = "notice: You missed nothing.";
    assert_eq!(lines, ["notice: Reconnected.", nothing, "agent: bank is thinking."]);
    let (mut changed, output) = new_listener(None);
    changed.handle_event(event(1, "state.changed", STATE_THINKING));
    let decides = r#""from_state":"thinking","to_state":"deciding""#;
    let lines = reconnect(&mut changed, &output, true, vec![event(2, "state.changed", decides)]).await;
    let follows = "notice: Here is what you missed.";
    assert_eq!(lines, ["notice: Reconnected.", follows, "agent: bank is deciding what to do."]);
    let (mut resubscribed, output) = new_listener(None);
    resubscribed.handle_event(event(1, "state.changed", STATE_THINKING));
    let lines = reconnect(&mut resubscribed, &output, false, vec![]).await;
    let ended = "session: bank has ended. How it ended is not known.";
    assert_eq!(
        lines,
        [RECONNECTED_WITH_LOSS, "notice: Here is how things stand.", ended, "notice: No agent is working."]
    );
    assert!(!lines.iter().any(|line| line.contains("thinking")), "{lines:#?}");
}
