//! Tests of the fan-out thread on its own.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use super::*;

#[test]
fn a_listener_whose_channel_is_closed_is_reported() {
    let (report_sender, reports) = channel();
    let (fanout, _) =
        Fanout::start(DeliveryLimits::default(), move |report| report_sender.send(report).unwrap()).unwrap();
    let (sender, frames) = tokio::sync::mpsc::channel(1);
    let listener = ListenerId(7);
    let (group, sink) = (DeliveryGroupId(1), ListenerSink::Channel(sender));
    fanout.send(FanoutCommand::Attach {
        listener,
        group,
        sink,
        private_frames: Vec::new(),
        resume_position: None,
        origin_id: None,
    });
    drop(frames);
    fanout.send(FanoutCommand::Ready(listener));
    assert_eq!(reports.recv_timeout(Duration::from_mins(2)), Ok(FanoutReport::Disconnected(listener)));
}
