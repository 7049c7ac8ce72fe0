//! The form of the outputs of a turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Blob, EncodingError, decode, encode};
use crate::command::{AgentNotice, HubReply, RequestId, TurnOutput, Unavailable};
use crate::delivery::{Frame, FrameForm};
use crate::{AgentConnectionId, DeliveryGroupId, ListenerId};

/// An output, with the parts that every version can read outside of the body.
#[derive(Serialize, Deserialize)]
struct OutputForm {
    kind: OutputKind,
    /// The request, connection or listener that the output is for.
    #[serde(default)]
    to: u64,
    #[serde(default)]
    group: u64,
    body: Blob,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum OutputKind {
    Reply,
    Notify,
    Frame,
    Join,
    Move,
    Send,
    Close,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

#[derive(Serialize, Deserialize)]
struct JoinForm {
    private_frames: Vec<FrameForm>,
    #[serde(default)]
    resume_position: Option<u64>,
    #[serde(default)]
    origin_id: Option<Box<str>>,
}

/// Encodes an output for another node. Returns `None` for a log event, which stays on its node.
pub fn encode_output(output: &TurnOutput) -> Result<Option<Vec<u8>>, EncodingError> {
    let (kind, to, group, body) = match output {
        TurnOutput::Reply(id, reply) => (OutputKind::Reply, id.0, 0, encode(reply)?),
        TurnOutput::Notify(connection, notice) => (OutputKind::Notify, connection.0, 0, encode(notice)?),
        TurnOutput::Frame(group, frame) => (OutputKind::Frame, 0, group.0, encode(&frame.to_form())?),
        TurnOutput::Join { listener, group, private_frames, resume_position, origin_id } => {
            let form = JoinForm {
                private_frames: private_frames.iter().map(|frame| frame.to_form()).collect(),
                resume_position: *resume_position,
                origin_id: origin_id.clone(),
            };
            (OutputKind::Join, listener.0, group.0, encode(&form)?)
        }
        TurnOutput::Move(listener, group) => (OutputKind::Move, listener.0, group.0, Vec::new()),
        TurnOutput::Send(listener, frame) => (OutputKind::Send, listener.0, 0, encode(&frame.to_form())?),
        TurnOutput::Close(listener) => (OutputKind::Close, listener.0, 0, Vec::new()),
        TurnOutput::Log(_) => return Ok(None),
    };
    encode(&OutputForm { kind, to, group, body: body.into() }).map(Some)
}

/// Decodes an output of another node. A reply of an unknown kind becomes an error, so that its request does not wait forever.
pub fn decode_output(bytes: &[u8]) -> Result<TurnOutput, EncodingError> {
    let OutputForm { kind, to, group, body } = decode(bytes)?;
    let (listener, group) = (ListenerId(to), DeliveryGroupId(group));
    let body = &body.0;
    let frame = |body: &[u8]| decode::<FrameForm>(body).map(|form| Arc::new(Frame::from_form(form)));
    Ok(match kind {
        OutputKind::Reply => {
            let reply = decode(body).unwrap_or_else(|error: EncodingError| {
                let reason = format!("the reply of another node cannot be read: {error}");
                HubReply::Unavailable(Unavailable::Forwarded(reason))
            });
            TurnOutput::Reply(RequestId(to), reply)
        }
        OutputKind::Notify => TurnOutput::Notify(AgentConnectionId(to), decode::<AgentNotice>(body)?),
        OutputKind::Frame => TurnOutput::Frame(group, frame(body)?),
        OutputKind::Join => {
            let JoinForm { private_frames, resume_position, origin_id } = decode(body)?;
            let private_frames = private_frames.into_iter().map(|form| Arc::new(Frame::from_form(form)));
            let private_frames = private_frames.collect();
            TurnOutput::Join { listener, group, private_frames, resume_position, origin_id }
        }
        OutputKind::Move => TurnOutput::Move(listener, group),
        OutputKind::Send => TurnOutput::Send(listener, frame(body)?),
        OutputKind::Close => TurnOutput::Close(listener),
        OutputKind::Unknown => return Err(EncodingError("the kind of the output is unknown".to_owned())),
    })
}
