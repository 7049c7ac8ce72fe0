//! The delivery of this node's messages: in order per session, until the peer has stored or refused each of them.

use std::sync::Arc;
use std::time::Duration;

use asp::message::{Authenticator, PinnedCards};
use asp::{MessageId, ReceiveOutcome, StoredStep};
use client::Backoff;
use seal::{Digest, Random, SystemRandom, UnixMillis};
use wire::unix_now;

use crate::NodeError;
use crate::catch_up::has_hash;
use crate::crash_point;
use crate::journal_writer::Batch;
use crate::node::Node;
use crate::peer_client::{DeliveryAnswer, PeerError};
use crate::records::SessionRecord;
use crate::session::{RefusalNotice, SessionHandle, SessionState};

/// The message to deliver next.
pub(crate) struct NextMessage {
    id: MessageId,
    pub(crate) text: Arc<str>,
    pub(crate) is_invitation: bool,
    /// Whether the peer takes MessagePack.
    pub(crate) is_message_pack: bool,
}

impl Node {
    /// Starts the delivery of a session's messages, unless a task already delivers them.
    pub(crate) fn start_delivery(self: &Arc<Self>, handle: &Arc<SessionHandle>, state: &mut SessionState) {
        if state.is_delivering {
            return;
        }
        state.is_delivering = true;
        let (node, handle) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            let mut stopping = std::pin::pin!(node.stopped());
            tokio::select! {
                () = node.deliver_all(&handle) => {}
                () = &mut stopping => {}
            }
        });
    }

    async fn deliver_all(self: &Arc<Self>, handle: &Arc<SessionHandle>) {
        let limits = &self.config.limits;
        let mut backoff = Backoff::new(limits.retry_delay, limits.max_retry_delay);
        let mut first_failure = None;
        loop {
            let Ok(mut state) = self.lock(handle).await else {
                // The journal cannot be read now. The delivery continues when it can.
                wait(&mut backoff, None).await;
                continue;
            };
            // Changes from now on, such as a reload of the policy, end the waiting below.
            let mut changes = handle.subscribe();
            let Some(next) = next_message(&mut state) else {
                state.is_delivering = false;
                return;
            };
            drop(state);
            let peer = &handle.info.peer;
            if self.is_revoked(peer) {
                // Nothing is sent to a revoked agent. If it is accepted again before the message is given up, the delivery continues.
                self.client.end_session(handle.info.id);
                let failing_since = *first_failure.get_or_insert_with(unix_now);
                let left = time_left(failing_since, limits.delivery_timeout);
                if left.is_zero() {
                    let reason = "the card of the other side is revoked";
                    if self.abandon(handle, &next, "unauthorized", reason).await.is_err() {
                        wait(&mut backoff, None).await;
                    }
                } else {
                    let _ = tokio::time::timeout(left, changes.changed()).await;
                }
                continue;
            }
            // The breaker allows one trial call. The others wait for its result, and ask again.
            let contact_made = self.contact_made.notified();
            let breaker_delay = self.peers().delay_until_allowed(peer.agent_id(), unix_now());
            if let Some(delay) = breaker_delay {
                let _ = tokio::time::timeout(delay, contact_made).await;
                continue;
            }
            crash_point::pass("deliver.before");
            let answer = self.client.deliver(peer, handle.info.id, &next).await;
            if answer.is_ok() {
                crash_point::pass("deliver.after");
            }
            self.record_contact(peer.agent_id(), answer.is_ok());
            // An answer that may change counts as a failed attempt, so that the node does not keep trying forever.
            let answer = match answer {
                Ok(DeliveryAnswer::Rejected { reason, is_final: false, .. }) => {
                    Err(PeerError::NotTaken(reason))
                }
                answer => answer,
            };
            let result = match answer {
                Ok(DeliveryAnswer::Stored) => self.settle(handle, next.id).await,
                Ok(DeliveryAnswer::Refused { reject }) => self.handle_reject(handle, &next, &reject).await,
                Ok(DeliveryAnswer::Rejected { code, reason, .. }) => {
                    self.counters.count_refused_by_peer(&code);
                    self.abandon(handle, &next, &code, &reason).await
                }
                Err(error) => {
                    self.counters.delivery_failures.add(1);
                    let delay = match &error {
                        PeerError::Busy(delay) => *delay,
                        _ => None,
                    };
                    tracing::debug!(target: "sayso::log", kind = "asp.delivery_failed", session = %handle.info.id, %error);
                    let failing_since = *first_failure.get_or_insert_with(unix_now);
                    if time_left(failing_since, limits.delivery_timeout).is_zero() {
                        let reason = "the other side did not answer in time";
                        self.abandon(handle, &next, "timeout", reason).await
                    } else {
                        wait(&mut backoff, delay).await;
                        continue;
                    }
                }
            };
            match result {
                Ok(true) => {
                    first_failure = None;
                    backoff = Backoff::new(limits.retry_delay, limits.max_retry_delay);
                }
                // A failed write, or an answer that another attempt may improve.
                Ok(false) | Err(_) => wait(&mut backoff, None).await,
            }
        }
    }

    /// Records that the peer has stored a message. Returns whether the delivery may go on.
    pub(crate) async fn settle(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        message_id: MessageId,
    ) -> Result<bool, NodeError> {
        let mut state = self.lock(handle).await?;
        if state.participant.is_settled(message_id) {
            return Ok(true);
        }
        state.participant.settle(message_id);
        let settled = state.participant.take_settled();
        let step = SessionRecord::Step(StoredStep::Settled { message_id });
        let mut batch = Batch::of_session(handle.info.id, vec![step]);
        batch.node_records = self.effects_until_end(&handle.info, &mut state, &settled, unix_now());
        self.commit(&mut state, batch).await?;
        self.finish_change(handle, &mut state).await?;
        Ok(true)
    }

    /// Rolls back a message that the peer refused.
    async fn handle_reject(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        refused: &NextMessage,
        reject: &str,
    ) -> Result<bool, NodeError> {
        let mut state = self.lock(handle).await?;
        let cards = PinnedCards::new([(*handle.info.peer).clone()]);
        let Ok(message) = Authenticator::default().authenticate(reject, &cards, &self.config.limits.session)
        else {
            return Ok(false);
        };
        if state.participant.is_settled(refused.id) {
            // A message from the peer arrived first, and has rolled ours back.
            return Ok(true);
        }
        let checks = self.checks_of_peer(&handle.info.peer, None);
        let outcome = state
            .participant
            .handle(&message, checks, unix_now(), &mut SystemRandom)
            .map_err(NodeError::Local)?;
        let ReceiveOutcome::RolledBack { refusal, messages } = &outcome else { return Ok(false) };
        self.peers().escrow.forget_promise(handle.info.id);
        for body in messages {
            state.note_refusal(RefusalNotice {
                performative: body.performative().as_str().to_owned(),
                code: refusal.code.as_str().to_owned(),
                reason: refusal.reason.clone(),
            });
        }
        self.store_outcome(handle, &mut state, &message, &outcome).await?;
        let peer_head = message.envelope.integrity.previous_hash;
        let has_lost_messages = !has_hash(&state, &peer_head);
        if !has_lost_messages {
            self.advance(handle, &mut state).await?;
        }
        self.finish_change(handle, &mut state).await?;
        drop(state);
        // Without the messages that this node has lost, the peer would refuse each of our messages.
        if has_lost_messages && !self.catch_up_until_done(handle, peer_head).await? {
            // The peer may have rolled back the message at its head.
            let mut state = self.lock(handle).await?;
            if !state.state().is_terminal() {
                self.advance(handle, &mut state).await?;
                self.finish_change(handle, &mut state).await?;
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// Fetches the messages that this node has lost, and tries again while the peer does not answer and the session is open. Returns
    /// whether the node has them.
    async fn catch_up_until_done(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        peer_head: Digest,
    ) -> Result<bool, NodeError> {
        let limits = &self.config.limits;
        let mut backoff = Backoff::new(limits.retry_delay, limits.max_retry_delay);
        loop {
            match self.catch_up(handle, peer_head).await {
                Err(NodeError::CatchingUp { retry_after, .. }) if !self.is_revoked(&handle.info.peer) => {
                    wait(&mut backoff, Some(retry_after)).await;
                }
                result => return result,
            }
        }
    }

    /// Stops delivering a message that the peer will never take.
    async fn abandon(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        next: &NextMessage,
        code: &str,
        reason: &str,
    ) -> Result<bool, NodeError> {
        let mut state = self.lock(handle).await?;
        if state.participant.is_settled(next.id) {
            return Ok(true);
        }
        state.note_refusal(RefusalNotice {
            performative: performative_of(&next.text),
            code: code.to_owned(),
            reason: reason.to_owned(),
        });
        let record = SessionRecord::DeliveryAbandoned { message: next.id };
        self.commit(&mut state, Batch::of_session(handle.info.id, vec![record])).await?;
        state.abandoned = Some(next.id);
        self.counters.abandoned.add(1);
        self.narrate_undeliverable(handle, &next.id.to_string());
        self.finish_change(handle, &mut state).await?;
        Ok(true)
    }
}

/// Returns how much of a period is left that began at this time.
fn time_left(since: UnixMillis, period: Duration) -> Duration {
    let elapsed = u64::try_from(unix_now().millis_since(since)).unwrap_or(0);
    period.saturating_sub(Duration::from_millis(elapsed))
}

fn next_message(state: &mut SessionState) -> Option<NextMessage> {
    if !state.has_undelivered() {
        return None;
    }
    let is_message_pack = state.uses_message_pack();
    let (id, text) = state.participant.unsettled_messages().next()?;
    let is_invitation =
        state.participant.record().and_then(|record| record.transcript().messages().next()) == Some(&**text);
    Some(NextMessage { id, text: text.clone(), is_invitation, is_message_pack })
}

/// Returns the performative of a message, or an empty string if it has none.
pub(crate) fn performative_of(text: &str) -> String {
    let mut tape = seal::json::Tape::default();
    let performative =
        tape.read(text).ok().and_then(|doc| Some(doc.root().member("performative")?.text()?.into_owned()));
    performative.unwrap_or_default()
}

/// Waits before the next attempt, a little longer for some than for others, so that they do not all come at once.
async fn wait(backoff: &mut Backoff, at_least: Option<Duration>) {
    let mut random = [0];
    SystemRandom.fill(&mut random);
    tokio::time::sleep(retry_delay(backoff, at_least, random[0])).await;
    backoff.grow();
}

/// Maximum time that a peer can make us wait.
const MAX_REQUESTED_DELAY: Duration = Duration::from_mins(10);

fn retry_delay(backoff: &Backoff, at_least: Option<Duration>, random: u8) -> Duration {
    let delay = backoff.delay().max(at_least.unwrap_or_default().min(MAX_REQUESTED_DELAY));
    delay + delay.mul_f64(f64::from(random) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_ask_for_a_pause_without_end() {
        let backoff = Backoff::new(Duration::from_millis(200), Duration::from_mins(1));
        for requested in [Duration::from_secs(u64::MAX), Duration::MAX, Duration::from_hours(1)] {
            assert_eq!(retry_delay(&backoff, Some(requested), 0), MAX_REQUESTED_DELAY);
            assert!(retry_delay(&backoff, Some(requested), u8::MAX) < 2 * MAX_REQUESTED_DELAY);
        }
        assert_eq!(retry_delay(&backoff, Some(Duration::from_secs(5)), 0), Duration::from_secs(5));
        assert_eq!(retry_delay(&backoff, None, 0), Duration::from_millis(200));
    }
}
