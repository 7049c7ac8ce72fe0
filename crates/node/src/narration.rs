//! What a person hears about a session: each step of the negotiation, in order. The node does not wait for
//! the hub.

use std::sync::Arc;
use std::time::Duration;

use asp::message::{Accept, AuthenticatedMessage, Authenticator, Body, Inform, InformType, Reject};
use asp::session::{AspSession, ObligationOutcome, Payee, SessionEnding, SessionOutcome};
use asp::state_machine::{Role, State};
use asp::{Amount, CommitmentId, Currency, MessageId, ReceiveOutcome, Reference, RejectCode, SentMessage};
use client::Backoff;
use seal::json::{JsonKind, JsonValue, RawJson, Tape, write_object};
use wire::unix_now;

use crate::journal_writer::Batch;
use crate::node::Node;
use crate::person::phrases::{LocalizedText, Phrases, spoken_amount};
use crate::person::{EventKind, HubError, HubSessionState, NarrationEvent, PeerName, Person, one_line};
use crate::records::{ConsentOutcome, SessionInfo, SessionRecord};
use crate::session::{SessionHandle, SessionState};

/// The delays between attempts to reach the hub.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// How long the node tries to report the end of a session to a hub that does not answer.
const END_REPORT_TIMEOUT: Duration = Duration::from_hours(1);
/// Number of messages that are reported again after a restart, or after catching up. The hub ignores those that it knows.
const MESSAGES_AFTER_RESTART: usize = 2;
/// Maximum length of somebody else's text in one sentence, in characters.
const MAX_TEXT_CHARS: usize = 200;
/// Maximum length of a name that the hub accepts, in characters.
const MAX_NAME_CHARS: usize = 200;

impl Node {
    /// Reports a message from this node.
    pub(crate) fn narrate_sent(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &SessionState,
        sent: &SentMessage,
    ) {
        if self.person.is_none() {
            return;
        }
        if let Ok(envelope) = Authenticator::default().parse_unauthenticated(&sent.text) {
            self.narrate_body(handle, state, &sent.message_id.to_string(), &envelope.body, true);
        }
    }

    /// Reports a message from the peer.
    pub(crate) fn narrate_message(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &SessionState,
        message: &AuthenticatedMessage,
        outcome: &ReceiveOutcome,
    ) {
        let id = message.envelope.message_id.to_string();
        match outcome {
            ReceiveOutcome::Accepted { .. } => {
                self.narrate_body(handle, state, &id, &message.envelope.body, false);
            }
            // A message that lost a race is not announced: it had no effect, and the agent may send it again.
            ReceiveOutcome::RolledBack { refusal, .. } if refusal.code != RejectCode::StaleHead => {
                let reason = one_line(&refusal.reason, MAX_TEXT_CHARS);
                self.tell_progress(handle, &id, |phrases, name| phrases.refused_by_peer(name, &reason));
            }
            _ => {}
        }
    }

    /// Reports that the node has stopped delivering one of its messages.
    pub(crate) fn narrate_undeliverable(self: &Arc<Self>, handle: &Arc<SessionHandle>, message: &str) {
        let key = format!("undeliverable-{message}");
        self.tell_progress(handle, &key, |phrases, name| phrases.undeliverable(name));
    }

    /// Reports that the peer has not answered a message of this node in time.
    pub(crate) fn narrate_overdue(self: &Arc<Self>, handle: &Arc<SessionHandle>, message: MessageId) {
        let key = format!("overdue-{message}");
        self.tell_progress(handle, &key, |phrases, name| phrases.response_overdue(name));
    }

    /// Reports the end of a call to which the person said yes.
    pub(crate) fn narrate_call_end(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        request: &crate::records::ConsentRequest,
        is_done: bool,
    ) {
        let is_commit = request.performative == "COMMIT";
        let tool = if is_commit { asp::consent::COMMIT_TOOL } else { asp::consent::ACCEPT_TOOL };
        let name = PeerName::of(&handle.info.peer).name;
        let text = LocalizedText::new(|phrases| match (is_done, is_commit) {
            (false, _) => phrases.call_failed(&name),
            (true, true) => phrases.committed(None, &name),
            (true, false) => phrases.agreed(&name),
        });
        let kind = EventKind::CallEnded { tool, call_id: request.id.clone(), is_done };
        self.tell(handle, NarrationEvent { key: format!("call-end-{}", request.id), kind, text });
    }

    /// Reports the end of a session.
    pub(crate) fn finish_narration(self: &Arc<Self>, handle: &Arc<SessionHandle>, state: &SessionState) {
        let Some(outcome) = state.participant.session().and_then(AspSession::outcome) else { return };
        let kind = if state.state() == State::Failed { EventKind::Failed } else { EventKind::Completed };
        let name = PeerName::of(&handle.info.peer).name;
        let text = LocalizedText::new(|phrases| describe_outcome(phrases, &handle.info, outcome, &name));
        self.tell(handle, NarrationEvent { key: "end".to_owned(), kind, text });
    }

    /// Continues the narration of a restored session.
    pub(crate) async fn resume_narration(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &SessionState,
    ) {
        let Some(person) = &self.person else { return };
        if let Some(hub_session) = &handle.hub_session.state.lock().await.id {
            person.follow(hub_session);
        }
        if let Some((request, ConsentOutcome::Accepted { .. })) = &state.last_consent {
            self.narrate_call_end(handle, request, true);
        }
        self.narrate_latest(handle, state);
    }

    /// Reports the latest messages of a session. The hub ignores those that it knows.
    pub(crate) fn narrate_latest(self: &Arc<Self>, handle: &Arc<SessionHandle>, state: &SessionState) {
        let Some(record) = state.participant.record() else { return };
        let texts: Vec<&str> = record.transcript().messages().collect();
        for text in texts.into_iter().rev().take(MESSAGES_AFTER_RESTART).rev() {
            if let Ok(envelope) = Authenticator::default().parse_unauthenticated(text) {
                let is_own = envelope.sender.agent_id == *handle.info.own.agent_id();
                self.narrate_body(handle, state, &envelope.message_id.to_string(), &envelope.body, is_own);
            }
        }
    }

    fn narrate_body(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &SessionState,
        key: &str,
        body: &Body,
        is_own: bool,
    ) {
        if self.person.is_none() {
            return;
        }
        let name = PeerName::of(&handle.info.peer).name;
        let who = (!is_own).then_some(&*name);
        let is_invitation = |reference: &Reference| Some(reference) == invitation_reference(state).as_ref();
        let tells = |text: &dyn Fn(&dyn Phrases) -> String| {
            self.tell(
                handle,
                NarrationEvent {
                    key: key.to_owned(),
                    kind: EventKind::Progress { percent: None },
                    text: LocalizedText::new(text),
                },
            );
        };
        // The end of the session is announced separately.
        if state.state().is_terminal() {
            return self.start_narration(handle);
        }
        match body {
            Body::Propose(body) if body.is_invitation() => self.start_narration(handle),
            Body::Propose(body) => {
                tells(&|phrases| phrases.proposed(who, &offer(phrases, &body.subject, &body.terms)));
            }
            Body::Counter(body) => {
                tells(&|phrases| phrases.countered(who, &offer(phrases, &body.subject, &body.terms)));
            }
            // The person said yes to this message, and hears about it as a call.
            Body::Commit(_) | Body::Accept(_) if is_own && asp::consent::read(body).is_some() => {}
            Body::Commit(_) => tells(&|phrases| phrases.committed(who, &name)),
            Body::Accept(Accept { reference, .. }) if CommitmentId::parse(reference.as_str()).is_ok() => {
                tells(&|phrases| phrases.agreed(&name));
            }
            Body::Accept(Accept { reference, .. }) if is_invitation(reference) => {
                tells(&|phrases| phrases.accepted_invitation(who));
            }
            Body::Accept(_) => tells(&|phrases| phrases.accepted_proposal(who)),
            Body::Reject(Reject { reason, .. }) => {
                let reason = one_line(reason, MAX_TEXT_CHARS);
                tells(&|phrases| phrases.rejected(who, &reason));
            }
            Body::Inform(body) => self.narrate_inform(handle, key, body, who),
            // The person is asked about our own agent's escalation.
            Body::Escalate(_) if is_own && self.policy().consent.escalate => {}
            Body::Escalate(body) => {
                let reason = one_line(&body.reason, MAX_TEXT_CHARS);
                tells(&|phrases| phrases.escalated(who, &reason));
            }
            Body::Close(_) => tells(&|phrases| phrases.closing(who)),
            // Details of the conversation, or the end of the session.
            _ => {}
        }
    }

    fn narrate_inform(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        key: &str,
        body: &Inform,
        who: Option<&str>,
    ) {
        let mut percent = None;
        let text = match (body.kind, who) {
            (InformType::Identity, Some(name)) => {
                let is_pinned = self.is_pinned_by_operator(&handle.info.peer);
                let (_, level) = self.peers().trust_of(handle.info.peer.agent_id(), unix_now());
                LocalizedText::new(|phrases| {
                    let mut text =
                        format!("{} {}", phrases.identified(name), phrases.identity(name, is_pinned));
                    // An invitation from a peer is announced together with the trust in that peer.
                    if handle.info.role == Role::Inviter {
                        text = format!("{text} {}", phrases.trust(name, level));
                    }
                    text
                })
            }
            (InformType::Progress, _) => {
                let Some(done) = body.percent else { return };
                percent = Some(done.get());
                LocalizedText::new(|phrases| phrases.progress(who, done.get()))
            }
            (InformType::Result, _) => LocalizedText::new(|phrases| phrases.result(who)),
            (InformType::Error, _) => LocalizedText::new(|phrases| phrases.problem(who)),
            (InformType::Resolution, _) => LocalizedText::new(|phrases| phrases.resolved(who)),
            _ => return,
        };
        self.tell(
            handle,
            NarrationEvent { key: key.to_owned(), kind: EventKind::Progress { percent }, text },
        );
    }

    fn tell_progress(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        key: &str,
        text: impl Fn(&dyn Phrases, &str) -> String,
    ) {
        let name = PeerName::of(&handle.info.peer).name;
        let text = LocalizedText::new(|phrases| text(phrases, &name));
        let kind = EventKind::Progress { percent: None };
        self.tell(handle, NarrationEvent { key: key.to_owned(), kind, text });
    }

    /// Queues an event, and starts the task that sends it.
    fn tell(self: &Arc<Self>, handle: &Arc<SessionHandle>, event: NarrationEvent) {
        if self.person.is_some() && handle.hub_session.push(event) {
            self.send_narration(handle);
        }
    }

    /// Starts the hub's session. The start itself is announced.
    fn start_narration(self: &Arc<Self>, handle: &Arc<SessionHandle>) {
        if self.person.is_some() && handle.hub_session.start_sending() {
            self.send_narration(handle);
        }
    }

    /// Sends the waiting events in a task of its own.
    fn send_narration(self: &Arc<Self>, handle: &Arc<SessionHandle>) {
        let (node, handle) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            let mut stopping = std::pin::pin!(node.stopped());
            tokio::select! {
                () = node.narrate_all(&handle) => {}
                () = &mut stopping => {}
            }
        });
    }

    async fn narrate_all(&self, handle: &SessionHandle) {
        let Some(person) = &self.person else { return };
        let mut backoff = BACKOFF;
        let mut failing_since = None;
        loop {
            let result = {
                let mut hub = handle.hub_session.state.lock().await;
                self.flush_narration(person, handle, &mut hub).await
            };
            match result {
                Ok(()) if handle.hub_session.finish_sending() => return,
                Ok(()) => {}
                Err(error) => {
                    let since = *failing_since.get_or_insert_with(tokio::time::Instant::now);
                    tracing::debug!(target: "sayso::log", kind = "asp.narration_failed", session = %handle.info.id, %error);
                    if handle.hub_session.is_ending() && since.elapsed() > END_REPORT_TIMEOUT {
                        handle.hub_session.clear();
                    }
                    tokio::time::sleep(backoff.delay()).await;
                    backoff.grow();
                }
            }
        }
    }

    /// Sends all waiting events in order. Fails only if the hub may accept them later.
    pub(crate) async fn flush_narration(
        &self,
        person: &Person,
        handle: &SessionHandle,
        hub: &mut HubSessionState,
    ) -> Result<(), HubError> {
        // The start of the hub's session announces the invitation.
        match self.open_hub_session(person, handle, hub).await {
            Err(error) if error.is_temporary() => return Err(error),
            _ => {}
        }
        while let Some(event) = handle.hub_session.next() {
            let body = event.to_json();
            match self.report_event(person, handle, hub, &body, &event.key).await {
                Ok(()) | Err(HubError::Stopped | HubError::Ended) => {}
                Err(error) if error.is_temporary() => return Err(error),
                // The hub will never accept it.
                Err(error) => {
                    tracing::warn!(target: "sayso::log", kind = "asp.narration_refused", session = %handle.info.id, %error);
                }
            }
            handle.hub_session.remove(&event.key);
            if event.is_last() {
                hub.is_ended = true;
                if let Some(id) = hub.id.take() {
                    person.unfollow(&id);
                }
            }
        }
        Ok(())
    }

    /// Reports an event in the hub's session. If that session has ended, a new one is started, unless the person stopped it.
    async fn report_event(
        &self,
        person: &Person,
        handle: &SessionHandle,
        hub: &mut HubSessionState,
        event: &str,
        key: &str,
    ) -> Result<(), HubError> {
        for _ in 0..2 {
            let id = self.open_hub_session(person, handle, hub).await?;
            match person.report(&id, event, &Self::hub_key(handle, hub, key)).await {
                Err(error) if error.is_not_found() => self.leave_hub_session(person, hub, &id).await?,
                result => return result,
            }
        }
        Err(HubError::Unreachable("its sessions end at once".to_owned()))
    }

    /// Notes that the hub's session has ended. Fails if the person stopped it.
    pub(crate) async fn leave_hub_session(
        &self,
        person: &Person,
        hub: &mut HubSessionState,
        id: &str,
    ) -> Result<(), HubError> {
        hub.is_stopped = person.has_stopped(id).await;
        person.unfollow(id);
        hub.id = None;
        if hub.is_stopped { Err(HubError::Stopped) } else { Ok(()) }
    }

    /// Returns the hub's session of an ASP session. Starts it if necessary.
    pub(crate) async fn open_hub_session(
        &self,
        person: &Person,
        handle: &SessionHandle,
        hub: &mut HubSessionState,
    ) -> Result<String, HubError> {
        if hub.is_stopped {
            return Err(HubError::Stopped);
        }
        if hub.is_ended {
            return Err(HubError::Ended);
        }
        if let Some(id) = &hub.id {
            return Ok(id.clone());
        }
        let body = self.start_of_hub_session(&handle.info, hub.started_count == 0);
        let id = person.start_session(&body, &Self::hub_key(handle, hub, "start")).await?;
        hub.id = Some(id.clone());
        hub.started_count += 1;
        // If this record is lost, the same request finds the same session again.
        let record = SessionRecord::NarrationStarted { hub_session: id.clone() };
        let batch = Batch::of_session(handle.info.id, vec![record]);
        if let Err(error) = self.journal.append(batch, unix_now()).await {
            tracing::debug!(target: "sayso::log", kind = "asp.failed", session = %handle.info.id, %error);
        }
        Ok(id)
    }

    fn start_of_hub_session(&self, info: &SessionInfo, is_first: bool) -> String {
        let peer = PeerName::of(&info.peer);
        let subject = one_line(&info.subject, MAX_TEXT_CHARS);
        let (_, level) = self.peers().trust_of(info.peer.agent_id(), unix_now());
        let text = LocalizedText::new(|phrases| {
            let name = peer.in_full(phrases);
            match info.role {
                _ if !is_first => phrases.session_title(&name, &subject),
                Role::Inviter => phrases.invited_peer(&name, &subject),
                Role::Invited => {
                    format!("{} {}", phrases.invited_us(&name, &subject), phrases.trust(&peer.name, level))
                }
            }
        });
        write_object(|writer| {
            text.write(writer, "summary_normal");
            writer.key("producer").object(|writer| {
                writer.key("agent_name").text(&one_line(info.own.name(), MAX_NAME_CHARS));
            });
            writer.key("localization_hints").object(|writer| writer.key("primary_language").text("en"));
            writer.key("correlation_id").text(&info.id.to_string());
        })
    }

    /// Returns the idempotency key of a request about a session.
    pub(crate) fn hub_key(handle: &SessionHandle, hub: &HubSessionState, key: &str) -> String {
        // Two nodes with the same token at the same hub can take part in the same ASP session.
        let role = crate::records::role_name(handle.info.role);
        format!("asp-{}-{role}-{}-{key}", handle.info.id, hub.started_count)
    }

    /// Returns whether the operator pins this card now.
    pub(crate) fn is_pinned_by_operator(&self, card: &asp::AgentCard) -> bool {
        self.peers().is_pinned_by_operator(card)
    }
}

/// Returns the reference to the invitation, with which the session began.
fn invitation_reference(state: &SessionState) -> Option<Reference> {
    let text = state.participant.record()?.transcript().messages().next()?;
    match Authenticator::default().parse_unauthenticated(text).ok()?.body {
        Body::Propose(invitation) => Reference::parse(invitation.proposal_id.as_str()).ok(),
        _ => None,
    }
}

/// Describes an offer by its subject and, if the terms have one, its price.
fn offer(phrases: &dyn Phrases, subject: &str, terms: &RawJson) -> String {
    let subject = one_line(subject, MAX_TEXT_CHARS);
    match price(terms) {
        Some((amount, Some(currency))) => {
            phrases.offer(&subject, &spoken_amount(phrases, &amount, &currency))
        }
        Some((amount, None)) => phrases.offer(&subject, amount.as_str()),
        None => subject.trim_end_matches('.').to_owned(),
    }
}

/// Finds the price in the terms of an offer: `price`, `total` or `amount`. It is a string or a number with `currency` beside it, or
/// an object with `amount` (or `value`) and `currency`. The currency may be missing.
fn price(terms: &RawJson) -> Option<(Amount, Option<Currency>)> {
    let mut tape = Tape::default();
    let doc = tape.read(terms.as_str()).ok()?;
    let root = doc.root();
    let value = ["price", "total", "amount"].into_iter().find_map(|name| root.member(name))?;
    let (amount, holder) = match value.kind() {
        JsonKind::Object => (value.member("amount").or_else(|| value.member("value"))?, value),
        _ => (value, root),
    };
    let amount = match amount.kind() {
        JsonKind::Text => Amount::parse(&amount.text()?).ok()?,
        JsonKind::Number => Amount::parse(amount.source()).ok()?,
        _ => return None,
    };
    let read = |holder: &JsonValue<'_>| Currency::parse(&holder.member("currency")?.text()?).ok();
    Some((amount, read(&holder)))
}

/// Describes how a session ended.
fn describe_outcome(
    phrases: &dyn Phrases,
    info: &SessionInfo,
    outcome: &SessionOutcome,
    name: &str,
) -> String {
    let who = |role: Role| (role != info.role).then_some(name);
    let mut has_reason = false;
    let ending = match outcome.ending {
        SessionEnding::Completed => phrases.ended_completed(name),
        SessionEnding::Closed(role) | SessionEnding::Unilateral(role) => {
            has_reason = true;
            phrases.ended_closed(who(role), name)
        }
        SessionEnding::Withdrawn(role) => {
            has_reason = true;
            phrases.ended_withdrawn(who(role), name)
        }
        SessionEnding::Rejected(role) => {
            has_reason = true;
            phrases.ended_rejected(who(role))
        }
        SessionEnding::TimedOut(_) => phrases.ended_timeout(name),
        _ => phrases.ended_failed(name),
    };
    let mut sentences = vec![ending];
    let reason = one_line(&outcome.reason, MAX_TEXT_CHARS);
    if has_reason && !reason.is_empty() {
        sentences.push(phrases.reason(&reason));
    }
    sentences.extend(outcome.broken_by.iter().map(|role| phrases.broke_agreement(who(*role))));
    let is_open = outcome.obligations.iter().any(|(_, result)| *result == ObligationOutcome::Open);
    if is_open && outcome.broken_by.is_empty() {
        sentences.push(phrases.obligation_open().to_owned());
    }
    if let (Some(payee), Some(commitment)) = (outcome.escrow_payee, &outcome.commitment)
        && let Some(escrow) = &commitment.commit().escrow
    {
        let amount = spoken_amount(phrases, &escrow.amount, &escrow.currency);
        let is_own_money = commitment.sender() == info.role;
        sentences.push(match (payee, is_own_money) {
            (Payee::Depositor, true) => phrases.own_money_back(&amount),
            (Payee::Beneficiary, false) => phrases.money_to_us(&amount),
            (Payee::Depositor, false) | (Payee::Beneficiary, true) => phrases.money_to_peer(name, &amount),
        });
    }
    sentences.join(" ")
}
