//! The encoding of server-sent events (§B.1.3).

use hub::delivery::{Frame, FrameKind};

/// A comment that keeps an idle connection open.
pub(crate) const HEARTBEAT: &str = ":\n\n";

/// Returns a frame's SSE encoding. It is computed once and shared by all listeners.
pub(crate) fn frame_bytes(frame: &Frame) -> &[u8] {
    frame.encoded_with(encode)
}

/// Returns the parts of a frame's SSE encoding, in order. A frame with an id of its own consists of its id and the block that
/// it shares with other listeners.
pub(crate) fn frame_parts(frame: &Frame) -> [&[u8]; 2] {
    [frame_bytes(frame), frame.shared_body().map_or(&[], |body| frame_bytes(body))]
}

/// Returns the length of a frame's SSE encoding.
pub(crate) fn frame_length(frame: &Frame) -> usize {
    frame_parts(frame).iter().map(|part| part.len()).sum()
}

/// Encodes a frame. A frame that overtakes others has no id, because clients resume from the last id that they received.
fn encode(frame: &Frame) -> Box<[u8]> {
    let id = frame.id().unwrap_or_default();
    let (id_field, line_end) = if id.is_empty() { ("", "") } else { ("id: ", "\n") };
    let parts = match frame.kind() {
        // The rest of the block comes from the shared frame.
        FrameKind::Event if frame.shared_body().is_some() => [id_field, id, line_end, "", "", "", ""],
        FrameKind::Event => ["event: aaep.event\n", id_field, id, line_end, "data: ", frame.json(), "\n\n"],
        FrameKind::Message => ["event: aaep.message\n", "", "", "", "data: ", frame.json(), "\n\n"],
        // A block without data dispatches no event; it only sets the last event id.
        FrameKind::ResumePosition => ["", id_field, id, line_end, "", "", "\n"],
        FrameKind::Heartbeat => [HEARTBEAT, "", "", "", "", "", ""],
    };
    parts.concat().into_bytes().into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_block_of_lines() {
        let event = Frame::event("evt_1", "{}", 1, false);
        for (frame, block) in [
            (&event, "event: aaep.event\nid: evt_1\ndata: {}\n\n"),
            (&event.without_id(), "event: aaep.event\ndata: {}\n\n"),
            (&Frame::message("{}"), "event: aaep.message\ndata: {}\n\n"),
            (&Frame::resume_position("at_7"), "id: at_7\n\n"),
            (&Frame::heartbeat(), ":\n\n"),
        ] {
            assert_eq!(frame_bytes(frame), block.as_bytes());
        }
    }

    #[test]
    fn a_frame_is_encoded_once() {
        let frame = Frame::event("evt_1", "{}", 1, false);
        assert!(std::ptr::eq(frame_bytes(&frame), frame_bytes(&frame)));
        assert_eq!(frame.size(), frame_bytes(&frame).len());
    }
}
