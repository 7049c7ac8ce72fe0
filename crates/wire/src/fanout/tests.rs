//! The thread on its own.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::time::Duration;

use super::*;

#[test]
fn a_listener_behind_a_channel_that_is_gone_is_missed_at_once() {
    let (news, told) = channel();
    let (fanout, _) = Fanout::start(LaneLimits::default(), move |one| news.send(one).unwrap()).unwrap();
    let (sender, frames) = tokio::sync::mpsc::channel(1);
    let listener = ListenerId(7);
    let (lane, sink) = (LaneId(1), Sink::Channel(sender));
    fanout.order(Order::Attach { listener, lane, sink, own: Vec::new(), from: None });
    drop(frames);
    fanout.order(Order::Ready(listener));
    assert_eq!(told.recv_timeout(Duration::from_mins(2)), Ok(News::Gone(listener)));
}
