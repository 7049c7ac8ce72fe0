//! Unit tests of queues, cursors and backlogs.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use seal::UnixMillis;

use super::*;

fn frame(id: u64, is_critical: bool) -> Arc<Frame> {
    Arc::new(Frame::event(&format!("evt_{id}"), "{}", id, is_critical))
}

fn drain(cursor: &mut Cursor, queue: &DeliveryQueue) -> Vec<u64> {
    let mut positions = Vec::new();
    while let NextFrame::Frame(frame) = cursor.take(queue) {
        if !frame.json().is_empty() {
            positions.push(frame.position);
        }
    }
    positions
}

#[test]
fn a_frame_returns_its_id_and_its_json() {
    let frame = Frame::event("evt_1", r#"{"a":1}"#, 7, false);
    assert_eq!((frame.kind(), frame.id()), (FrameKind::Event, Some("evt_1")));
    assert_eq!(frame.json(), r#"{"a":1}"#);
    assert_eq!((Frame::heartbeat().kind(), Frame::heartbeat().json()), (FrameKind::Heartbeat, ""));
}

#[test]
fn a_listener_that_keeps_up_receives_frames_in_order() {
    let mut queue = DeliveryQueue::new(DeliveryLimits::default());
    let mut cursor = Cursor::at_end(&queue);
    for number in 0..10 {
        queue.push(frame(number, number == 4));
        assert_eq!(drain(&mut cursor, &queue), [number]);
    }
    assert_eq!(cursor.lag(&queue), 0);
}

#[test]
fn a_critical_frame_overtakes_undelivered_frames_and_is_delivered_once() {
    let mut queue = DeliveryQueue::new(DeliveryLimits::default());
    let mut cursor = Cursor::at_end(&queue);
    for number in 0..6 {
        queue.push(frame(number, number == 3 || number == 5));
    }
    assert_eq!(drain(&mut cursor, &queue), [3, 5, 0, 1, 2, 4]);
    queue.push(frame(6, true));
    assert_eq!(drain(&mut cursor, &queue), [6]);
}

#[test]
fn a_terminal_frame_pulls_along_earlier_frames_of_its_session() {
    let mut queue = DeliveryQueue::new(DeliveryLimits::default());
    let mut cursor = Cursor::at_end(&queue);
    for frame in [
        frame_of(0, "a", false, OrderingClass::Text),
        frame_of(1, "b", false, OrderingClass::Text),
        frame_of(2, "a", false, OrderingClass::Text),
        frame_of(3, "b", true, OrderingClass::Question),
        frame_of(4, "b", true, OrderingClass::Terminal),
        frame_of(5, "a", false, OrderingClass::Other),
    ] {
        queue.push(frame);
    }
    assert_eq!(drain(&mut cursor, &queue), [3, 1, 4, 0, 2, 5]);
    for frame in [
        frame_of(6, "c", false, OrderingClass::Text),
        frame_of(7, "c", true, OrderingClass::Terminal),
        frame_of(8, "a", true, OrderingClass::Question),
        frame_of(9, "d", true, OrderingClass::Terminal),
    ] {
        queue.push(frame);
    }
    assert_eq!(drain(&mut cursor, &queue), [8, 9, 6, 7], "other sessions do not wait");
    for frame in [
        frame_of(10, "e", false, OrderingClass::Other),
        frame_of(11, "e", false, OrderingClass::Text),
        frame_of(12, "f", false, OrderingClass::Text),
        frame_of(13, "e", true, OrderingClass::Question),
    ] {
        queue.push(frame);
    }
    assert_eq!(
        drain(&mut cursor, &queue),
        [10, 13, 11, 12],
        "a question does not overtake the start of its session"
    );
}

#[test]
fn a_cursor_that_moves_keeps_undelivered_frames() {
    let mut queue = DeliveryQueue::new(DeliveryLimits::default());
    let mut other = DeliveryQueue::new(DeliveryLimits::default());
    let mut cursor = Cursor::at_end(&queue);
    other.push(frame(1, true));
    for number in 2..5 {
        queue.push(frame(number, number == 3));
    }
    cursor.push_private(frame(100, false));
    cursor.move_to(&queue, &other);
    other.push(frame(5, false));
    assert_eq!(drain(&mut cursor, &other), [3, 100, 2, 4, 5]);
}

fn frame_of(id: u64, session: &str, is_critical: bool, ordering: OrderingClass) -> Arc<Frame> {
    let json = format!(r#"{{"n":{id}}}"#);
    Arc::new(Frame::event(&format!("evt_{id}"), &json, id, is_critical).with_session(session, ordering))
}

#[test]
fn a_critical_frame_overtakes_private_frames_of_other_sessions() {
    let mut queue = DeliveryQueue::new(DeliveryLimits::default());
    let mut cursor = Cursor::at_end(&queue);
    for (id, session) in [(100, "a"), (101, "b"), (102, "a")] {
        cursor.push_private(frame_of(id, session, false, OrderingClass::Other));
    }
    queue.push(frame_of(1, "a", false, OrderingClass::Other));
    queue.push(frame_of(2, "b", true, OrderingClass::Terminal));
    assert_eq!(drain(&mut cursor, &queue), [101, 2, 100, 102, 1]);
}

/// A client, like an EventSource, resumes from the last id that it received.
#[test]
fn frames_that_overtake_have_no_id_so_that_a_client_that_resumes_misses_nothing() {
    let mut queue = DeliveryQueue::new(DeliveryLimits::default());
    let mut cursor = Cursor::at_end(&queue).with_origin(Some(7));
    let resume_position = cursor.resume_position().unwrap();
    assert_eq!(
        (resume_position.kind(), resume_position.id(), resume_position.json()),
        (FrameKind::ResumePosition, Some("at_7"), "")
    );
    queue.push(frame_of(8, "a", false, OrderingClass::Text));
    queue.push(frame_of(9, "b", true, OrderingClass::Question));
    queue.push(frame_of(10, "b", false, OrderingClass::Text));
    queue.push(frame_of(11, "c", true, OrderingClass::Terminal));
    let mut delivered = Vec::new();
    while let NextFrame::Frame(frame) = cursor.take(&queue) {
        delivered.push((frame.position, frame.id().unwrap_or("").to_owned()));
    }
    let expected = [(0, "at_7"), (9, ""), (11, ""), (8, "evt_8"), (10, "evt_10")];
    assert_eq!(delivered, expected.map(|(position, id)| (position, id.to_owned())));
    queue.push(frame_of(12, "a", false, OrderingClass::Text));
    queue.push(frame_of(13, "b", true, OrderingClass::Question));
    assert!(
        matches!(cursor.take(&queue), NextFrame::Frame(frame) if frame.position == 13 && frame.id().is_none())
    );
    assert!(
        matches!(cursor.take(&queue), NextFrame::Frame(frame) if frame.position == 12 && frame.id().is_some())
    );
    let without_id = frame_of(14, "a", false, OrderingClass::Text).without_id();
    assert_eq!((without_id.id(), without_id.json()), (None, r#"{"n":14}"#));
}

#[test]
fn frames_in_one_write_keep_their_order_and_ids() {
    let mut queue = DeliveryQueue::new(DeliveryLimits::default());
    let mut cursor = Cursor::at_end(&queue);
    cursor.push_private(frame_of(7, "a", false, OrderingClass::Text));
    queue.push(frame_of(8, "a", false, OrderingClass::Text));
    queue.push(frame_of(9, "b", true, OrderingClass::Question));
    let total_bytes = [7, 8, 9].map(|id| frame_of(id, "a", false, OrderingClass::Text).size()).iter().sum();
    assert!(cursor.pending_fits_in(&queue, total_bytes) && !cursor.pending_fits_in(&queue, total_bytes - 1));
    let mut delivered = Vec::new();
    while let NextFrame::Frame(frame) = cursor.take_in_order(&queue) {
        delivered.push(frame.id().unwrap().to_owned());
    }
    assert_eq!(delivered, ["evt_7", "evt_8", "evt_9"]);
    assert!(cursor.pending_fits_in(&queue, 0));
}

#[test]
fn a_log_position_round_trips_through_its_id() {
    assert_eq!(position_from_id(&position_to_id(7)), Some(7));
    for other in ["evt_7", "at_", "at_-1", "at_7x", "7", ""] {
        assert_eq!(position_from_id(other), None, "{other}");
    }
}

#[test]
fn a_cursor_whose_frames_were_dropped_reports_that_it_lagged() {
    let mut queue = DeliveryQueue::new(DeliveryLimits { frames: 3, ..DeliveryLimits::default() });
    let mut cursor = Cursor::at_end(&queue);
    for number in 0..4 {
        queue.push(frame(number, false));
    }
    assert_eq!(cursor.take(&queue), NextFrame::Lagged);
    let mut queue = DeliveryQueue::new(DeliveryLimits { bytes: 100, ..DeliveryLimits::default() });
    let mut cursor = Cursor::at_end(&queue);
    for number in 0..4 {
        queue.push(frame(number, false));
    }
    assert_eq!(cursor.take(&queue), NextFrame::Lagged);
}

/// Creates the frame that the hub would send for a chunk of output.
fn chunk_frame(id: u64, session: &str, position: u64, text: &str) -> Arc<Frame> {
    event_frame(
        id,
        session,
        "output.streaming",
        &format!(r#""chunk":"{text}","position":{position},"complete":false,"coalesce_hint":"none""#),
    )
}

fn event_frame(id: u64, session: &str, kind: &str, payload: &str) -> Arc<Frame> {
    let json = format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{id}","session_id":"sess_{session}","timestamp":"2026-11-15T10:00:00.000Z","producer":{{"agent_id":"bank"}},{payload}}}"#
    );
    let parsed = aaep::event::Event::parse(&json).unwrap();
    let is_critical = parsed.envelope.event_type.is_critical();
    Arc::new(
        Frame::event(&format!("evt_{id}"), &json, id, is_critical)
            .with_session(session, OrderingClass::of(&parsed)),
    )
}

const NOW: UnixMillis = UnixMillis::new(1_794_000_000_000);

#[test]
fn a_backlog_merges_frames_and_puts_critical_ones_first() {
    let mut backlog = Backlog::new(DeliveryLimits::default());
    let errored =
        r#""error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost.""#;
    for frame in [
        chunk_frame(1, "a", 0, "one "),
        chunk_frame(2, "b", 0, "uno "),
        chunk_frame(3, "a", 4, "two "),
        event_frame(
            4,
            "b",
            "tool.invoked",
            r#""tool":"look","risk_level":"low","summary_normal":"Looking.""#,
        ),
        chunk_frame(5, "a", 8, "three"),
        chunk_frame(6, "b", 4, "dos"),
        event_frame(7, "c", "session.errored", errored),
    ] {
        assert!(backlog.push(&frame));
    }
    let mut delivered = Vec::new();
    while let Some(frame) = backlog.pull(NOW) {
        let event = frame.parsed_event().unwrap();
        delivered.push(match &event.payload {
            aaep::event::Payload::OutputStreaming(chunk) => format!("{} {}", chunk.position, chunk.chunk),
            _ => event.envelope.event_type.as_str().to_owned(),
        });
    }
    let expected =
        ["aaep:agent.session.errored", "0 one two three", "0 uno ", "aaep:agent.tool.invoked", "4 dos"];
    assert_eq!(delivered, expected);
    assert!(backlog.is_empty());
}

#[test]
fn a_backlog_is_limited_in_events_and_in_bytes() {
    let mut backlog = Backlog::new(DeliveryLimits { frames: 5, ..DeliveryLimits::default() });
    let tool_event =
        |id| event_frame(id, "a", "tool.invoked", r#""tool":"t","risk_level":"low","summary_normal":"T.""#);
    for id in 0..5 {
        assert!(backlog.push(&tool_event(id)));
    }
    assert!(!backlog.push(&tool_event(5)), "the sixth exceeds the limit");
    let mut backlog = Backlog::new(DeliveryLimits { bytes: 4_000, ..DeliveryLimits::default() });
    let progress_event = |id| {
        event_frame(
            id,
            "a",
            "progress.updated",
            r#""progress":{"description":"Half."},"summary_normal":"Half.""#,
        )
    };
    for id in 0..1_000 {
        assert!(backlog.push(&progress_event(id)), "only the latest progress is waiting");
    }
    assert_eq!(backlog.len(), 1);
    let accepted = (1_000..)
        .take_while(|id| backlog.push(&chunk_frame(*id, "b", (*id - 1_000) * 100, &"x".repeat(100))));
    assert!((20..40).contains(&accepted.count()));
}

#[test]
fn the_fill_ratio_is_the_larger_of_the_frame_and_byte_ratios() {
    let assert_close =
        |ratio: f64, expected: f64| assert!((ratio - expected).abs() < 1e-9, "{ratio} is not {expected}");
    let limits = DeliveryLimits { frames: 8, bytes: 1 << 20, merge_above_frames: 2 };
    let mut by_count = DeliveryQueue::new(limits);
    assert_close(by_count.fill_ratio(0), 0.0);
    (0..8).for_each(|number| by_count.push(frame(number, false)));
    assert_close(by_count.fill_ratio(2), 0.25);
    let frame_bytes = frame(0, false).size();
    let mut by_size =
        DeliveryQueue::new(DeliveryLimits { frames: 1000, bytes: 4 * frame_bytes, merge_above_frames: 2 });
    (0..4).for_each(|number| by_size.push(frame(number, false)));
    assert_close(by_size.fill_ratio(2), 0.5);
}
