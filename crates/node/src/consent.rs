//! Messages that bind only after a person's yes, and escalations that a person decides.
//!
//! A COMMIT, or the ACCEPT of one, is signed and stored only together with the record that the person accepted exactly this body.
//! After a no, silence, a stopped session, a crash, or if the hub cannot be reached, nothing is sent.

use std::sync::Arc;
use std::time::Duration;

use asp::message::{Body, Commit, Consent, Escalate, Inform, InformType};
use asp::session::{IncomingMessage, ReceiverChecks};
use asp::state_machine::State;
use asp::{Performative, Refusal, RejectCode, StoredStep};
use seal::json::{RawJson, write_object};
use seal::{Digest, SystemRandom};
use wire::unix_now;

use crate::NodeError;
use crate::journal_writer::Batch;
use crate::node::Node;
use crate::person::{
    AskedQuestion, BoundCall, HubError, PersonAnswer, PersonQuestion, QuestionKind, deadline_after,
};
use crate::records::{ConsentOutcome, ConsentRequest, SessionRecord};
use crate::send::{MessageExtras, REVOKED, SendOutcome, send_signed};
use crate::session::{RefusalNotice, SessionHandle, SessionState};

/// The time between two attempts to store a no.
const STORAGE_RETRY_DELAY: Duration = Duration::from_secs(1);

impl Node {
    /// Returns whether a person must be asked before this message is sent.
    pub(crate) fn needs_consent(&self, state: &SessionState, body: &Body) -> bool {
        let policy = self.policy().consent;
        match body {
            Body::Commit(_) => policy.commit,
            Body::Accept(_) => {
                policy.accept && (state.state() == State::Agreeing || asp::consent::tool(body).is_some())
            }
            _ => false,
        }
    }

    /// Asks a person about a message. It is sent once the person has accepted it.
    pub(crate) async fn ask_for_consent(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
        body: Body,
        extras: MessageExtras,
    ) -> Result<SendOutcome, NodeError> {
        let refuse = |reason: String| NodeError::Refused(Refusal::new(RejectCode::PolicyViolation, reason));
        if extras.constraints.is_some() {
            return Err(refuse("a message that waits for a person cannot have constraints".to_owned()));
        }
        if asp::consent::read(&body).is_some() {
            return Err(refuse("only the node itself adds a person's consent".to_owned()));
        }
        self.check_allowed(handle, state, &body, extras.tokens_used)?;
        let question = self.question(handle, state, &body).map_err(&refuse)?;
        self.ask_person(handle, state, question, &body, extras.tokens_used).await.map_err(refuse)
    }

    /// Asks the person, and stores that they are asked.
    async fn ask_person(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
        question: PersonQuestion,
        body: &Body,
        tokens_used: Option<u64>,
    ) -> Result<SendOutcome, String> {
        let asked = self.ask_hub(handle, state, &question, body).await?;
        let request = ConsentRequest {
            id: asp::MessageId::generate(unix_now(), &mut SystemRandom).to_string(),
            performative: body.performative().as_str().to_owned(),
            body: body.to_json(),
            hub_session: asked.hub_session,
            reply_token: asked.reply_token.clone(),
            deadline: Some(asked.deadline),
            tokens_used,
        };
        let record = SessionRecord::ConsentAsked(request.clone());
        self.commit(state, Batch::of_session(handle.info.id, vec![record]))
            .await
            .map_err(|error| error.to_string())?;
        state.consent = Some(request.clone());
        self.counters.questions_asked.increment(&[&request.performative]);
        handle.report_change(state, unix_now());
        self.await_consent(handle, request);
        Ok(SendOutcome::AwaitingConsent { reply_token: asked.reply_token })
    }

    /// Asks in the hub's session of this session, after everything that happened before was announced.
    async fn ask_hub(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        question: &PersonQuestion,
        body: &Body,
    ) -> Result<AskedQuestion, String> {
        let person = self.person.as_ref().ok_or("no person can be asked, because the node has no hub")?;
        // The same question again, after a crash, is the same question to the person. After an answer, it is a new one.
        let last = state.last_consent.as_ref().map_or("", |(request, _)| &*request.id);
        let digest = Digest::of_parts([body.to_json().as_bytes(), last.as_bytes()]);
        let mut hub = handle.hub_session.state.lock().await;
        let asked = async {
            self.flush_narration(person, handle, &mut hub).await?;
            for _ in 0..2 {
                let id = self.open_hub_session(person, handle, &mut hub).await?;
                let key = Self::hub_key(handle, &hub, &digest.to_string());
                match person.ask(&id, question, &key).await {
                    Err(error) if error.is_not_found() => {
                        self.leave_hub_session(person, &mut hub, &id).await?;
                    }
                    result => return result,
                }
            }
            Err(HubError::Unreachable("its sessions end at once".to_owned()))
        };
        asked.await.map_err(|error| format!("the person cannot be asked: {error}"))
    }

    /// Asks about our agent's escalation after a restart, unless a person has already been asked about it.
    pub(crate) async fn resume_escalation(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
    ) {
        let was_asked = state.last_consent.as_ref().is_some_and(|(request, _)| {
            state.latest_escalation().is_some_and(|body| body.to_json() == request.body)
        });
        if !was_asked {
            self.ask_about_escalation(handle, state).await;
        }
    }

    /// Asks a person about our agent's escalation, if nobody was asked yet.
    pub(crate) async fn ask_about_escalation(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        state: &mut SessionState,
    ) {
        let is_ours = state.participant.session().and_then(asp::session::AspSession::escalated_by)
            == Some(handle.info.role);
        if !is_ours || state.consent.is_some() || !self.policy().consent.escalate || self.person.is_none() {
            return;
        }
        if self.is_revoked(&handle.info.peer) {
            return;
        }
        let Some(body) = state.latest_escalation() else { return };
        let asked = match self.question(handle, state, &body) {
            Ok(question) => self.ask_person(handle, state, question, &body, None).await,
            Err(reason) => Err(reason),
        };
        if let Err(reason) = asked {
            state.note_refusal(RefusalNotice {
                performative: Performative::Escalate.as_str().to_owned(),
                code: RejectCode::PolicyViolation.as_str().to_owned(),
                reason,
            });
        }
    }

    /// Waits for the person's answer in a task of its own.
    pub(crate) fn await_consent(self: &Arc<Self>, handle: &Arc<SessionHandle>, request: ConsentRequest) {
        let (node, handle) = (self.clone(), handle.clone());
        tokio::spawn(async move {
            let Some(person) = &node.person else {
                let reason = "the node has no hub any more".to_owned();
                return node.refuse_consent(&handle, &request, reason).await;
            };
            let mut stopping = std::pin::pin!(node.stopped());
            let deadline = request.deadline.unwrap_or_else(|| deadline_after(node.policy().consent.timeout));
            let answer = tokio::select! {
                answer = person.wait(&request.hub_session, &request.reply_token, deadline) => Ok(answer),
                reason = node.wait_until_obsolete(&handle, &request) => Err(reason),
                // The answer is fetched after the next start.
                () = &mut stopping => return,
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(reason) => {
                    person.withdraw(&request.hub_session, &request.reply_token).await;
                    PersonAnswer::Refused { reason }
                }
            };
            match answer {
                PersonAnswer::Accepted { receipt, signature } => {
                    node.handle_acceptance(&handle, &request, receipt, signature).await;
                }
                PersonAnswer::Answered { response, receipt, signature } => {
                    node.handle_resolution(&handle, &request, response, receipt, signature).await;
                }
                PersonAnswer::Refused { reason } => node.refuse_consent(&handle, &request, reason).await,
            }
        });
    }

    /// Waits until the session has moved on, so that the message can no longer be sent. Returns why.
    async fn wait_until_obsolete(&self, handle: &SessionHandle, request: &ConsentRequest) -> String {
        let mut changes = handle.subscribe();
        loop {
            if let Ok(state) = self.lock(handle).await
                && let Some(reason) = self.obsolescence(handle, &state, request)
            {
                return reason;
            }
            if changes.changed().await.is_err() {
                return "the session is gone".to_owned();
            }
        }
    }

    fn obsolescence(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        request: &ConsentRequest,
    ) -> Option<String> {
        if self.is_revoked(&handle.info.peer) {
            return Some(REVOKED.to_owned());
        }
        let performative = Performative::parse(&request.performative)?;
        if performative == Performative::Escalate {
            let escalated_by = state.participant.session().and_then(asp::session::AspSession::escalated_by);
            return (escalated_by != Some(handle.info.role))
                .then(|| "the escalation was settled without the person".to_owned());
        }
        let body = Body::parse(performative, &request.body).ok()?;
        let refusal = self.check_allowed(handle, state, &body, request.tokens_used).err()?;
        Some(format!("the session moved on before the person answered: {refusal}"))
    }

    /// Sends the message that the person accepted. The record of the yes and the message are stored together.
    async fn handle_acceptance(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        request: &ConsentRequest,
        receipt: String,
        signature: String,
    ) {
        let result = self.send_accepted(handle, request, &receipt, &signature).await;
        if let Err(error) = result {
            let reason = match error {
                NodeError::Refused(refusal) => refusal.reason,
                error => error.to_string(),
            };
            self.refuse_consent(handle, request, reason).await;
        }
    }

    async fn send_accepted(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        request: &ConsentRequest,
        receipt: &str,
        signature: &str,
    ) -> Result<(), NodeError> {
        let refuse = |reason: &str| NodeError::Refused(Refusal::new(RejectCode::PolicyViolation, reason));
        let mut state = self.lock(handle).await?;
        if state.consent.as_ref().is_none_or(|asked| asked.id != request.id) {
            return Ok(());
        }
        self.expire(handle, &mut state).await?;
        self.check_not_revoked(handle)?;
        let performative = Performative::parse(&request.performative)
            .ok_or_else(|| refuse("the stored message is malformed"))?;
        let body = Body::parse(performative, &request.body).map_err(|error| refuse(&error.to_string()))?;
        self.check_allowed(handle, &state, &body, request.tokens_used)?;
        let question = self.question(handle, &state, &body).map_err(|reason| refuse(&reason))?;
        let person = self.person.as_ref().ok_or_else(|| refuse("the node has no hub any more"))?;
        let receipt_json = RawJson::parse(receipt).map_err(|error| refuse(&error.to_string()))?;
        let body = asp::consent::attach(body, Consent::new(receipt_json, signature));
        let hub_key = person.receipt_key().await.map_err(|error| refuse(&error.to_string()))?;
        // The hub's key proves the yes, and the digest in the receipt binds it to exactly this body.
        let verified =
            asp::consent::verify(handle.info.id, &body, question.kind.accepted_commitment(), hub_key)
                .map_err(|error| refuse(&error.to_string()))?;
        if !verified.is_in_time(unix_now()) {
            return Err(refuse("the person's yes has expired"));
        }
        person.begin_call(request, &question).await.map_err(|error| refuse(&error.to_string()))?;
        let checks = self.checks_of_own_message(handle, &state, &body);
        let extras = MessageExtras { constraints: None, tokens_used: request.tokens_used };
        // The operator may have revoked the card while the hub was asked.
        let sent = self.check_not_revoked(handle).and_then(|()| {
            send_signed(&mut state.participant, body, extras, checks)
                .map_err(|error| refuse(&error.to_string()))
        });
        let sent = match sent {
            Ok(sent) => sent,
            Err(error) => {
                self.narrate_call_end(handle, request, false);
                return Err(error);
            }
        };
        let outcome =
            ConsentOutcome::Accepted { receipt: receipt.to_owned(), signature: signature.to_owned() };
        let records = vec![
            SessionRecord::ConsentResolved { request: request.id.clone(), outcome: outcome.clone() },
            SessionRecord::Step(StoredStep::from(&sent)),
        ];
        self.commit(&mut state, Batch::of_session(handle.info.id, records)).await?;
        self.peers().escrow.reserve(&handle.info, state.participant.session());
        state.consent = None;
        state.last_consent = Some((request.clone(), outcome));
        self.counters.sent.increment(performative);
        self.counters.questions_resolved.increment(&["accepted"]);
        self.narrate_call_end(handle, request, true);
        self.finish_change(handle, &mut state).await
    }

    /// Sends the person's decision about an escalation.
    async fn handle_resolution(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        request: &ConsentRequest,
        response: String,
        receipt: String,
        signature: String,
    ) {
        let check = match &self.person {
            Some(person) => person.check_answer(&request.reply_token, &response, &receipt, &signature).await,
            None => Err("the node has no hub any more".to_owned()),
        };
        if let Err(reason) = check {
            return self.refuse_consent(handle, request, reason).await;
        }
        let result = async {
            let mut state = self.lock(handle).await?;
            if state.consent.as_ref().is_none_or(|asked| asked.id != request.id) {
                return Ok(());
            }
            self.expire(handle, &mut state).await?;
            self.check_not_revoked(handle)?;
            let mut resolution = Inform::new(InformType::Resolution);
            resolution.resolved_by = Some("person".to_owned());
            let data = write_object(|writer| {
                writer.key("decision").text(&response);
                writer.key("receipt").raw(&receipt);
                writer.key("signature").text(&signature);
            });
            resolution.data = RawJson::parse(&data).ok();
            let outcome = ConsentOutcome::Answered { response, receipt, signature };
            let checks = self.checks_of_own_message(handle, &state, &Body::Inform(resolution.clone()));
            let sent =
                send_signed(&mut state.participant, resolution.into(), MessageExtras::default(), checks)?;
            // The answer and the message are stored together, so that a crash cannot lose one of them.
            let records = vec![
                SessionRecord::ConsentResolved { request: request.id.clone(), outcome: outcome.clone() },
                SessionRecord::Step(StoredStep::from(&sent)),
            ];
            self.commit(&mut state, Batch::of_session(handle.info.id, records)).await?;
            state.consent = None;
            state.last_consent = Some((request.clone(), outcome));
            self.counters.sent.increment(Performative::Inform);
            self.counters.questions_resolved.increment(&["answered"]);
            self.narrate_sent(handle, &state, &sent);
            self.finish_change(handle, &mut state).await
        };
        if let Err(error) = result.await {
            self.refuse_consent(handle, request, error.to_string()).await;
        }
    }

    /// Records a no. The message is not sent.
    async fn refuse_consent(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        request: &ConsentRequest,
        reason: String,
    ) {
        self.peers().escrow.forget_promise(handle.info.id);
        loop {
            match self.store_refusal(handle, request, reason.clone()).await {
                // Without the record, the session would wait for this answer forever.
                Err(NodeError::Storage(_)) => tokio::time::sleep(STORAGE_RETRY_DELAY).await,
                result => return Self::log_failure(handle.info.id, result),
            }
        }
    }

    async fn store_refusal(
        self: &Arc<Self>,
        handle: &Arc<SessionHandle>,
        request: &ConsentRequest,
        reason: String,
    ) -> Result<(), NodeError> {
        let mut state = self.lock(handle).await?;
        if state.consent.as_ref().is_none_or(|asked| asked.id != request.id) {
            return Ok(());
        }
        state.consent = None;
        state.note_refusal(RefusalNotice {
            performative: request.performative.clone(),
            code: RejectCode::PolicyViolation.as_str().to_owned(),
            reason: reason.clone(),
        });
        let outcome = ConsentOutcome::Refused { reason };
        let record = SessionRecord::ConsentResolved { request: request.id.clone(), outcome: outcome.clone() };
        self.commit(&mut state, Batch::of_session(handle.info.id, vec![record])).await?;
        state.last_consent = Some((request.clone(), outcome));
        self.counters.questions_resolved.increment(&["refused"]);
        self.finish_change(handle, &mut state).await
    }

    /// Checks whether the session machine would accept this node's message now.
    fn check_allowed(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        body: &Body,
        tokens_used: Option<u64>,
    ) -> Result<(), NodeError> {
        let mut session = state.participant.session().ok_or(NodeError::UnknownSession)?.clone();
        let message = IncomingMessage {
            message_id: asp::MessageId::generate(unix_now(), &mut SystemRandom),
            sender: handle.info.role,
            body,
            sent_at: unix_now(),
            response_timeout_ms: None,
            constraints: None,
            tokens_used,
            checks: self.checks_of_own_message(handle, state, body),
        };
        session.handle_message(&message).map(drop).map_err(NodeError::Refused)
    }

    /// Returns the question about one of this node's messages.
    fn question(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        body: &Body,
    ) -> Result<PersonQuestion, String> {
        let commitment = state.participant.session().and_then(asp::session::AspSession::commitment);
        let commitment: Option<&Commit> = commitment.map(asp::Commitment::commit);
        let (kind, call) = if let Body::Escalate(escalate) = body {
            (QuestionKind::Escalation(escalate.clone()), None)
        } else {
            if let Body::Accept(accept) = body
                && (accept.note.is_some() || accept.other.iter().next().is_some())
            {
                return Err(
                    "an acceptance that is put to a person cannot have a note or other members".to_owned()
                );
            }
            let arguments = asp::consent::arguments(handle.info.id, body, commitment);
            let arguments = arguments.map_err(|error| error.to_string())?;
            let tool = asp::consent::tool(body).ok_or("this message needs no consent")?;
            let kind = match (body, commitment) {
                (Body::Commit(commit), _) => QuestionKind::Commit(commit.clone()),
                (_, Some(commit)) => QuestionKind::Accept(commit.clone()),
                _ => return Err("no commitment is pending".to_owned()),
            };
            (kind, Some(BoundCall { tool, arguments }))
        };
        let peer = &handle.info.peer;
        let (score, level) = self.peers().trust_of(peer.agent_id(), unix_now());
        let mut timeout = self.policy().consent.timeout;
        if let QuestionKind::Escalation(Escalate { timeout: Some(limit), .. }) = &kind {
            timeout = timeout.min(Duration::from_millis(u64::try_from(limit.millis()).unwrap_or(0)));
        }
        Ok(PersonQuestion {
            subject: handle.info.subject.clone(),
            own_agent: handle.info.own.agent_id().clone(),
            peer: peer.clone(),
            is_pinned_by_operator: self.is_pinned_by_operator(peer),
            score,
            level,
            kind,
            call,
            timeout,
        })
    }

    /// The checks for one of this node's messages: only the escrow can fail, because it is this node's own money or the peer's promise.
    pub(crate) fn checks_of_own_message(
        &self,
        handle: &SessionHandle,
        state: &SessionState,
        body: &Body,
    ) -> ReceiverChecks {
        ReceiverChecks { is_funded: self.is_funded(handle, state, body), ..ReceiverChecks::PASSED }
    }
}
