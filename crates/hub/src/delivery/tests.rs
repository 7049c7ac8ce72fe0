//! Lanes, cursors and backlogs on their own.

#![allow(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;

use seal::UnixMillis;

use super::*;

fn frame(id: u64, critical: bool) -> Arc<Frame> {
    Arc::new(Frame::event(&format!("evt_{id}"), "{}", id, critical))
}

fn drain(cursor: &mut Cursor, lane: &Lane) -> Vec<u64> {
    let mut taken = Vec::new();
    while let Next::Frame(frame) = cursor.take(lane) {
        if !frame.json().is_empty() {
            taken.push(frame.position);
        }
    }
    taken
}

#[test]
fn a_frame_tells_its_id_and_its_json() {
    let frame = Frame::event("evt_1", r#"{"a":1}"#, 7, false);
    assert_eq!((frame.kind(), frame.id()), (FrameKind::Event, Some("evt_1")));
    assert_eq!(frame.json(), r#"{"a":1}"#);
    assert_eq!((Frame::heartbeat().kind(), Frame::heartbeat().json()), (FrameKind::Heartbeat, ""));
}

#[test]
fn a_listener_that_keeps_up_hears_everything_in_order() {
    let mut lane = Lane::new(LaneLimits::default());
    let mut cursor = Cursor::at_end(&lane);
    for number in 0..10 {
        lane.push(frame(number, number == 4));
        assert_eq!(drain(&mut cursor, &lane), [number]);
    }
    assert_eq!(cursor.behind(&lane), 0);
}

#[test]
fn a_critical_frame_goes_before_what_was_not_given_yet_and_comes_once() {
    let mut lane = Lane::new(LaneLimits::default());
    let mut cursor = Cursor::at_end(&lane);
    for number in 0..6 {
        lane.push(frame(number, number == 3 || number == 5));
    }
    assert_eq!(drain(&mut cursor, &lane), [3, 5, 0, 1, 2, 4]);
    lane.push(frame(6, true));
    assert_eq!(drain(&mut cursor, &lane), [6]);
}

#[test]
fn the_last_word_of_a_session_takes_with_it_what_it_said_before() {
    let mut lane = Lane::new(LaneLimits::default());
    let mut cursor = Cursor::at_end(&lane);
    for frame in [
        of(0, "a", false, Part::Text),
        of(1, "b", false, Part::Text),
        of(2, "a", false, Part::Text),
        of(3, "b", true, Part::Question),
        of(4, "b", true, Part::Last),
        of(5, "a", false, Part::Other),
    ] {
        lane.push(frame);
    }
    assert_eq!(drain(&mut cursor, &lane), [3, 1, 4, 0, 2, 5]);
    for frame in [
        of(6, "c", false, Part::Text),
        of(7, "c", true, Part::Last),
        of(8, "a", true, Part::Question),
        of(9, "d", true, Part::Last),
    ] {
        lane.push(frame);
    }
    assert_eq!(drain(&mut cursor, &lane), [8, 9, 6, 7], "and nobody else waits for that");
    for frame in [
        of(10, "e", false, Part::Other),
        of(11, "e", false, Part::Text),
        of(12, "f", false, Part::Text),
        of(13, "e", true, Part::Question),
    ] {
        lane.push(frame);
    }
    assert_eq!(drain(&mut cursor, &lane), [10, 13, 11, 12], "no question before its session");
}

#[test]
fn who_goes_over_to_another_lane_keeps_what_it_was_not_given() {
    let mut lane = Lane::new(LaneLimits::default());
    let mut other = Lane::new(LaneLimits::default());
    let mut cursor = Cursor::at_end(&lane);
    other.push(frame(1, true));
    for number in 2..5 {
        lane.push(frame(number, number == 3));
    }
    cursor.give(frame(100, false));
    cursor.go_over(&lane, &other);
    other.push(frame(5, false));
    assert_eq!(drain(&mut cursor, &other), [3, 100, 2, 4, 5]);
}

fn of(id: u64, session: &str, critical: bool, part: Part) -> Arc<Frame> {
    let json = format!(r#"{{"n":{id}}}"#);
    Arc::new(Frame::event(&format!("evt_{id}"), &json, id, critical).of_session(session, part))
}

#[test]
fn what_is_its_own_comes_first_but_for_a_critical_which_takes_along_what_its_session_said() {
    let mut lane = Lane::new(LaneLimits::default());
    let mut cursor = Cursor::at_end(&lane);
    for (id, session) in [(100, "a"), (101, "b"), (102, "a")] {
        cursor.give(of(id, session, false, Part::Other));
    }
    lane.push(of(1, "a", false, Part::Other));
    lane.push(of(2, "b", true, Part::Last));
    assert_eq!(drain(&mut cursor, &lane), [101, 2, 100, 102, 1]);
}

/// What an EventSource does: it remembers the id of every block, and makes an event of those that have data.
#[test]
fn whenever_the_line_breaks_a_client_resumes_from_where_it_lacks_nothing() {
    let mut lane = Lane::new(LaneLimits::default());
    let mut cursor = Cursor::at_end(&lane).from(Some(7));
    let mark = cursor.mark().unwrap();
    assert_eq!((mark.kind(), mark.id(), mark.json()), (FrameKind::ResumePoint, Some("at_7"), ""));
    lane.push(of(8, "a", false, Part::Text));
    lane.push(of(9, "b", true, Part::Question));
    lane.push(of(10, "b", false, Part::Text));
    lane.push(of(11, "c", true, Part::Last));
    let mut given = Vec::new();
    while let Next::Frame(frame) = cursor.take(&lane) {
        given.push((frame.position, frame.id().unwrap_or("").to_owned()));
    }
    let expected = [(0, "at_7"), (9, ""), (11, ""), (8, "evt_8"), (10, "evt_10")];
    assert_eq!(given, expected.map(|(position, id)| (position, id.to_owned())));
    lane.push(of(12, "a", false, Part::Text));
    lane.push(of(13, "b", true, Part::Question));
    assert!(matches!(cursor.take(&lane), Next::Frame(frame) if frame.position == 13 && frame.id().is_none()));
    assert!(matches!(cursor.take(&lane), Next::Frame(frame) if frame.position == 12 && frame.id().is_some()));
    let nameless = of(14, "a", false, Part::Text).nameless();
    assert_eq!((nameless.id(), nameless.json()), (None, r#"{"n":14}"#));
}

#[test]
fn who_keeps_up_hears_in_order_and_with_ids_what_goes_out_in_one_write() {
    let mut lane = Lane::new(LaneLimits::default());
    let mut cursor = Cursor::at_end(&lane);
    cursor.give(of(7, "a", false, Part::Text));
    lane.push(of(8, "a", false, Part::Text));
    lane.push(of(9, "b", true, Part::Question));
    let all = [7, 8, 9].map(|id| of(id, "a", false, Part::Text).size()).iter().sum();
    assert!(cursor.lacks_at_most(&lane, all) && !cursor.lacks_at_most(&lane, all - 1));
    let mut given = Vec::new();
    while let Next::Frame(frame) = cursor.take_in_order(&lane) {
        given.push(frame.id().unwrap().to_owned());
    }
    assert_eq!(given, ["evt_7", "evt_8", "evt_9"]);
    assert!(cursor.lacks_at_most(&lane, 0));
}

#[test]
fn a_place_and_its_id_are_the_same() {
    assert_eq!(id_place(&place_id(7)), Some(7));
    for other in ["evt_7", "at_", "at_-1", "at_7x", "7", ""] {
        assert_eq!(id_place(other), None, "{other}");
    }
}

#[test]
fn who_falls_too_far_behind_is_told_so() {
    let mut lane = Lane::new(LaneLimits { frames: 3, ..LaneLimits::default() });
    let mut cursor = Cursor::at_end(&lane);
    for number in 0..4 {
        lane.push(frame(number, false));
    }
    assert_eq!(cursor.take(&lane), Next::TooSlow);
    let mut lane = Lane::new(LaneLimits { bytes: 100, ..LaneLimits::default() });
    let mut cursor = Cursor::at_end(&lane);
    for number in 0..4 {
        lane.push(frame(number, false));
    }
    assert_eq!(cursor.take(&lane), Next::TooSlow);
}

/// A chunk of an output, as the hub frames it.
fn chunk(id: u64, session: &str, position: u64, text: &str) -> Arc<Frame> {
    event(
        id,
        session,
        "output.streaming",
        &format!(r#""chunk":"{text}","position":{position},"complete":false,"coalesce_hint":"none""#),
    )
}

fn event(id: u64, session: &str, kind: &str, payload: &str) -> Arc<Frame> {
    let json = format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.{kind}","event_id":"evt_{id}","session_id":"sess_{session}","timestamp":"2026-11-15T10:00:00.000Z","producer":{{"agent_id":"bank"}},{payload}}}"#
    );
    let read = aaep::event::Event::parse(&json).unwrap();
    let critical = read.envelope.event_type.is_critical();
    Arc::new(Frame::event(&format!("evt_{id}"), &json, id, critical).of_session(session, Part::of(&read)))
}

const NOW: UnixMillis = UnixMillis::new(1_794_000_000_000);

#[test]
fn what_waits_for_a_slow_listener_is_joined_and_a_critical_goes_in_front() {
    let mut backlog = Backlog::new(LaneLimits::default());
    let failed =
        r#""error_category":"transient","error_code":"LOST","recoverable":false,"summary_normal":"Lost.""#;
    for frame in [
        chunk(1, "a", 0, "one "),
        chunk(2, "b", 0, "uno "),
        chunk(3, "a", 4, "two "),
        event(4, "b", "tool.invoked", r#""tool":"look","risk_level":"low","summary_normal":"Looking.""#),
        chunk(5, "a", 8, "three"),
        chunk(6, "b", 4, "dos"),
        event(7, "c", "session.errored", failed),
    ] {
        assert!(backlog.push(&frame));
    }
    let mut told = Vec::new();
    while let Some(frame) = backlog.pull(NOW) {
        let event = frame.parsed().unwrap();
        told.push(match &event.payload {
            aaep::event::Payload::OutputStreaming(chunk) => format!("{} {}", chunk.position, chunk.chunk),
            _ => event.envelope.event_type.as_str().to_owned(),
        });
    }
    let expected =
        ["aaep:agent.session.errored", "0 one two three", "0 uno ", "aaep:agent.tool.invoked", "4 dos"];
    assert_eq!(told, expected);
    assert!(backlog.is_empty());
}

#[test]
fn a_backlog_has_an_end_in_events_and_in_bytes() {
    let mut backlog = Backlog::new(LaneLimits { frames: 5, ..LaneLimits::default() });
    let tool = |id| event(id, "a", "tool.invoked", r#""tool":"t","risk_level":"low","summary_normal":"T.""#);
    for id in 0..5 {
        assert!(backlog.push(&tool(id)));
    }
    assert!(!backlog.push(&tool(5)), "the sixth");
    let mut backlog = Backlog::new(LaneLimits { bytes: 4_000, ..LaneLimits::default() });
    let progress = |id| {
        event(id, "a", "progress.updated", r#""progress":{"description":"Half."},"summary_normal":"Half.""#)
    };
    for id in 0..1_000 {
        assert!(backlog.push(&progress(id)), "the last progress is all that waits");
    }
    assert_eq!(backlog.len(), 1);
    let fits =
        (1_000..).take_while(|id| backlog.push(&chunk(*id, "b", (*id - 1_000) * 100, &"x".repeat(100))));
    assert!((20..40).contains(&fits.count()));
}

#[test]
fn how_much_of_a_lane_waits_is_told_by_number_or_by_weight() {
    let near = |share: f64, wanted: f64| assert!((share - wanted).abs() < 1e-9, "{share} is not {wanted}");
    let limits = LaneLimits { frames: 8, bytes: 1 << 20, merge: 2 };
    let mut many = Lane::new(limits);
    near(many.share_behind(0), 0.0);
    (0..8).for_each(|number| many.push(frame(number, false)));
    near(many.share_behind(2), 0.25);
    let weight = frame(0, false).size();
    let mut heavy = Lane::new(LaneLimits { frames: 1000, bytes: 4 * weight, merge: 2 });
    (0..4).for_each(|number| heavy.push(frame(number, false)));
    near(heavy.share_behind(2), 0.5);
}
