//! Server-sent events: how a stream is written (§B.1.3).

use hub::delivery::{Frame, FrameKind};

/// A comment that keeps a connection from being closed.
pub(crate) const HEARTBEAT: &str = ":\n\n";

/// A frame as a stream sends it. It is encoded once, whoever hears it.
pub(crate) fn bytes(frame: &Frame) -> &[u8] {
    frame.encoded(encode)
}

/// Encodes a frame. What overtakes others has no id: clients resume from the last id that they have seen.
fn encode(frame: &Frame) -> Box<[u8]> {
    let id = frame.id().unwrap_or_default();
    let before = if id.is_empty() { "" } else { "id: " };
    let after = if id.is_empty() { "" } else { "\n" };
    let parts = match frame.kind() {
        FrameKind::Event => ["event: aaep.event\n", before, id, after, "data: ", frame.json(), "\n\n"],
        FrameKind::Message => ["event: aaep.message\n", "", "", "", "data: ", frame.json(), "\n\n"],
        // Without data no event comes of it.
        FrameKind::ResumePoint => ["", before, id, after, "", "", "\n"],
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
            (&event.nameless(), "event: aaep.event\ndata: {}\n\n"),
            (&Frame::message("{}"), "event: aaep.message\ndata: {}\n\n"),
            (&Frame::mark("at_7"), "id: at_7\n\n"),
            (&Frame::heartbeat(), ":\n\n"),
        ] {
            assert_eq!(bytes(frame), block.as_bytes());
        }
    }

    #[test]
    fn a_frame_is_encoded_once() {
        let frame = Frame::event("evt_1", "{}", 1, false);
        assert!(std::ptr::eq(bytes(&frame), bytes(&frame)));
        assert_eq!(frame.size(), bytes(&frame).len());
    }
}
