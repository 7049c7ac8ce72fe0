//! `GET /events`: an SSE stream of unnamed messages, without a subscription request.

use std::sync::Arc;

use hub::Principal;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::implicit_subscription::ImplicitSubscription;
use super::{Compat, SubscriptionResponse};
use crate::http::HttpResponse;
use crate::http_server::{SSE_RESPONSE_HEAD, wait_for_disconnect, write_with_timeout};
use crate::message_transport::CLOSE_TIMEOUT;
use crate::server::{Server, subscription_reply_to_response};
use crate::sse;
use crate::telemetry::TransportKind;

/// An accepted stream in compatibility mode.
pub(crate) struct CompatStream {
    implicit: ImplicitSubscription,
    registration: StreamRegistration,
    responses: mpsc::Receiver<SubscriptionResponse>,
}

/// Unregisters the open stream when dropped.
struct StreamRegistration {
    compat: Arc<Compat>,
    id: u64,
}

impl Drop for StreamRegistration {
    fn drop(&mut self) {
        self.compat.unregister_stream(self.id);
    }
}

impl CompatStream {
    pub(super) async fn open(
        server: &Server,
        compat: &Arc<Compat>,
        principal: &Principal,
    ) -> Result<Self, HttpResponse> {
        let rejected = |reply| subscription_reply_to_response(&reply);
        let implicit =
            ImplicitSubscription::open(&server.hub, principal, compat.limits).await.map_err(rejected)?;
        let (id, responses) = compat.register_stream(principal, &implicit.subscription);
        Ok(Self { implicit, registration: StreamRegistration { compat: compat.clone(), id }, responses })
    }

    /// Writes messages until the subscription or the connection ends.
    pub(crate) async fn run(self, server: &Server, stream: impl AsyncRead + AsyncWrite + Send + Unpin) {
        let Self { mut implicit, registration, mut responses } = self;
        let _listener_guard = server.hub.telemetry().track_listener(TransportKind::Sse);
        let _shutdown_guard = server.hub.delay_shutdown();
        let time_limit = server.core.limits.message_write_timeout;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let writing = async {
            if !write_with_timeout(&mut writer, SSE_RESPONSE_HEAD, server.core.limits.response_timeout).await
            {
                return;
            }
            loop {
                let (messages, is_last) = tokio::select! {
                    biased;
                    Some(SubscriptionResponse { json, subscription }) = responses.recv() => {
                        if let Some(subscription) = subscription {
                            implicit.switch_subscription(&subscription).await;
                            registration.compat.set_subscription(registration.id, &implicit.subscription);
                        }
                        (vec![json], false)
                    }
                    frame = implicit.next() => {
                        let Some(frame) = frame else { return };
                        let rendered = implicit.render(&frame);
                        if let Some(token) = &rendered.question {
                            registration.compat.record_question(registration.id, token);
                        }
                        (rendered.messages, rendered.is_last)
                    }
                };
                if !write_with_timeout(&mut writer, format_messages(&messages).as_bytes(), time_limit).await
                    || is_last
                {
                    return;
                }
            }
        };
        tokio::select! {
            () = writing => {}
            () = wait_for_disconnect(&mut reader) => {}
        }
        drop(registration);
        implicit.close(&implicit.subscription).await;
        let _ = timeout(CLOSE_TIMEOUT, writer.shutdown()).await;
    }
}

/// Encodes messages as unnamed SSE messages. If there are none, returns a comment, which serves as a heartbeat.
fn format_messages(messages: &[String]) -> String {
    if messages.is_empty() {
        return sse::HEARTBEAT.to_owned();
    }
    messages.iter().flat_map(|message| ["data: ", message, "\n\n"]).collect()
}
