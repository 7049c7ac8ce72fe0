//! After a loss and a return, one sentence says what was missed: whatever came, and also where nothing of it is said.

use std::time::Duration;

use aaep::SubscriptionId;
use tokio::time::advance;

use super::latency::{Screen, event, talk};
use crate::client::{Heard, Lost, Why};
use crate::terminal::talk::Talk;

const ASKED: &str = r#""action":"A","consequence":"C","default_decision":"reject","reply_token":"rpl_1","timeout_seconds":300"#;
const WAITS: &str = r#""from_state":"awaiting_input","to_state":"awaiting_input""#;
const THINKS: &str = r#""from_state":"idle","to_state":"thinking""#;
const NOT_KEPT: &str = "notice: Connected again, but what was said meanwhile was not kept for you.";

/// The connection is lost, comes back with these events, and is caught up: what is said of it.
async fn returns(talk: &mut Talk<Screen>, screen: &Screen, resumed: bool, events: Vec<Heard>) -> Vec<String> {
    talk.hear(Heard::Lost(Lost::Unreachable(Why::Cut)));
    talk.look();
    screen.lines();
    let subscription = SubscriptionId::parse("sub_1").ok();
    talk.hear(Heard::Open { subscription, notes: None, resumed });
    for event in events {
        talk.hear(event);
    }
    talk.look();
    advance(Duration::from_secs(6)).await;
    talk.look();
    screen.lines()
}

#[tokio::test(start_paused = true)]
async fn who_missed_only_what_is_not_said_is_told_that_nothing_was() {
    let (mut talk, screen) = talk(None);
    talk.hear(event(1, "awaiting.confirmation", ASKED));
    let again = returns(&mut talk, &screen, true, vec![event(2, "state.changed", WAITS)]).await;
    let [back, nothing, open] = &again[..] else { panic!("{again:#?}") };
    assert_eq!([back, nothing], ["notice: Connected again.", "notice: Nothing was said meanwhile."]);
    assert!(open.starts_with("ask: Question 1 from bank is still open"), "{open}");
}

#[tokio::test(start_paused = true)]
async fn who_was_away_for_too_long_is_told_what_still_holds() {
    let (mut talk, screen) = talk(None);
    talk.hear(event(1, "awaiting.confirmation", ASKED));
    let known = || vec![event(1, "awaiting.confirmation", ASKED)];
    let again = returns(&mut talk, &screen, false, known()).await;
    let [not_kept, follows, open] = &again[..] else { panic!("{again:#?}") };
    assert_eq!([not_kept, follows], [NOT_KEPT, "notice: What holds now follows."]);
    assert!(open.starts_with("ask: Question 1 from bank is still open"), "{open}");
    // There is no question any more that would tell what holds.
    talk.typed("yes");
    let again = returns(&mut talk, &screen, false, known()).await;
    let waits = "status: Session 1, bank. It has not said what it does.";
    assert_eq!(again, [NOT_KEPT, "notice: What holds now follows.", waits]);
}

#[tokio::test(start_paused = true)]
async fn what_was_held_before_a_loss_is_said_after_it_only_if_it_holds() {
    let (mut one, screen) = talk(None);
    one.hear(event(1, "state.changed", THINKS));
    let again = returns(&mut one, &screen, true, vec![]).await;
    let nothing = "notice: Nothing was said meanwhile.";
    assert_eq!(again, ["notice: Connected again.", nothing, "agent: bank is thinking."]);
    let (mut other, screen) = talk(None);
    other.hear(event(1, "state.changed", THINKS));
    let decides = r#""from_state":"thinking","to_state":"deciding""#;
    let again = returns(&mut other, &screen, true, vec![event(2, "state.changed", decides)]).await;
    let follows = "notice: What was said meanwhile follows.";
    assert_eq!(again, ["notice: Connected again.", follows, "agent: bank is deciding what to do."]);
    let (mut anew, screen) = talk(None);
    anew.hear(event(1, "state.changed", THINKS));
    let again = returns(&mut anew, &screen, false, vec![]).await;
    assert_eq!(again[..2], [NOT_KEPT, "notice: No agent is at work."]);
    assert!(!again.iter().any(|line| line.contains("thinking")), "{again:#?}");
}
