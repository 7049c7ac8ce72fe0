//! `GET /events`: a stream of unnamed messages, and nothing to ask for first.

use std::sync::Arc;

use hub::Principal;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::bare::Bare;
use super::{Compat, Handover};
use crate::http::{Response, Status};
use crate::listener::FAREWELL;
use crate::observe::Wire;
use crate::server::{STREAM_HEAD, Server, hung_up, response, written};
use crate::sse;

/// A stream of the dialect that was let in.
pub(crate) struct Stream {
    bare: Bare,
    place: Place,
    handed: mpsc::Receiver<Handover>,
}

/// Among the open streams, until it is dropped.
struct Place {
    compat: Arc<Compat>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.compat.close(self.id);
    }
}

impl Stream {
    pub(super) async fn open(
        server: &Server,
        compat: &Arc<Compat>,
        who: &Principal,
    ) -> Result<Self, Response> {
        let refused = |reply| response(&reply, Status::Ok);
        let bare = Bare::open(&server.bridge, who, compat.limits).await.map_err(refused)?;
        let (id, handed) = compat.open(who, &bare.subscription);
        Ok(Self { bare, place: Place { compat: compat.clone(), id }, handed })
    }

    /// Says what there is to hear, until one of the two ends.
    pub(crate) async fn run(self, server: &Server, stream: impl AsyncRead + AsyncWrite + Send + Unpin) {
        let Self { mut bare, place, mut handed } = self;
        let _here = server.bridge.observe().listens(Wire::Sse);
        let _talk = server.bridge.talk();
        let patience = server.limits.message_time;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let said = async {
            if !written(&mut writer, STREAM_HEAD, server.limits.answer_time).await {
                return;
            }
            loop {
                let (messages, last) = tokio::select! {
                    biased;
                    Some(Handover { answer, subscription }) = handed.recv() => {
                        if let Some(subscription) = subscription {
                            bare.go_over(&subscription).await;
                            place.compat.moved(place.id, &bare.subscription);
                        }
                        (vec![answer], false)
                    }
                    frame = bare.next() => {
                        let Some(frame) = frame else { return };
                        let told = bare.tell(&frame);
                        if let Some(token) = &told.question {
                            place.compat.told(place.id, token);
                        }
                        (told.messages, told.last)
                    }
                };
                if !written(&mut writer, lines(&messages).as_bytes(), patience).await || last {
                    return;
                }
            }
        };
        tokio::select! {
            () = said => {}
            () = hung_up(&mut reader) => {}
        }
        drop(place);
        bare.close(&bare.subscription).await;
        let _ = timeout(FAREWELL, writer.shutdown()).await;
    }
}

/// Messages as the dialect frames them; a comment where there is none, as a sign of life.
fn lines(messages: &[String]) -> String {
    if messages.is_empty() {
        return sse::HEARTBEAT.to_owned();
    }
    messages.iter().flat_map(|message| ["data: ", message, "\n\n"]).collect()
}
