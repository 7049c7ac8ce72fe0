//! Calls for which the server needs input (`input_required`, protocol 2026-07-28): listeners are asked for it.
//!
//! The host sees nothing of it. If the listeners give the input, the gate repeats the call with it, under an id of its own, and the
//! host's request gets the answer. Otherwise the host gets the server's answer, as if it had arrived now.

use std::collections::BTreeMap;

use seal::json::{JsonWriter, Tape};

use super::question::send_progress;
use super::*;
use crate::mcp::elicit;
use crate::mcp::message::read_unambiguous;

/// The number of the first progress notification. It is higher than what a question before the call can reach.
const FIRST_PROGRESS: u32 = 100_000;

impl GateCore {
    /// Returns the parameters of a call, if listeners may have to be asked for its input.
    pub(super) fn params_to_keep(&self, request: &ToolCallRequest<'_>) -> Option<Box<str>> {
        let params = request.params_source();
        (self.elicits && params.len() <= MAX_QUESTION_ARGUMENT_BYTES).then(|| params.into())
    }

    /// Asks listeners for the input that the server needs. Returns the call if the host must be asked instead.
    pub(super) fn offer_input(
        &mut self,
        id: &RequestId,
        mut running: RunningCall,
        response: &JsonValue<'_>,
        effects: &mut Vec<Effect>,
    ) -> Option<RunningCall> {
        let offered = self.calls.values().filter(|call| matches!(call, CallState::Offered(_))).count();
        let is_own = running.input_rounds > 0;
        // Only one request of the host can get the server's answer, if it comes to that.
        let has_one_request = running.joined.len() == usize::from(is_own) && running.batch.is_none();
        if !has_one_request
            || running.params.is_none()
            || running.key.is_none()
            || running.input_rounds >= MAX_INPUT_ROUNDS
            || offered >= MAX_OPEN_QUESTIONS
            || self.is_stopped
            || self.is_closed
        {
            return Some(running);
        }
        let Some((requests, request_state)) = read_requests(response) else { return Some(running) };
        let waiter = running.joined.pop().unwrap_or_else(|| Waiter {
            id: id.clone(),
            line: Vec::new(),
            progress_token: running.params.as_deref().and_then(read_progress_token),
            progress_count: FIRST_PROGRESS,
            batch: None,
            params: None,
        });
        let host_id = waiter.id.clone();
        let response = copy_response(response, &host_id);
        let offered = OfferedInput { running, waiter, response, request_state };
        self.calls.insert(host_id.clone(), CallState::Offered(Box::new(offered)));
        effects.push(Effect::OfferInput(host_id, requests));
        None
    }

    /// Reports what the listeners answered: the answers as a JSON object, or `None` if the host must be asked.
    pub(crate) fn handle_input(
        &mut self,
        id: &RequestId,
        input: Option<&str>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(OfferedInput { mut running, waiter, response, request_state }) = self.take_offered(id)
        else {
            return;
        };
        let is_unchanged = self.tools.definition(&running.tool) == running.definition;
        let mut tape = Tape::default();
        let params = running.params.as_deref().and_then(|params| tape.read(params).ok());
        if let (Some(input), Some(params), true) =
            (input, params, is_unchanged && !self.is_stopped && !self.is_closed)
        {
            let own_id = self.unused_id();
            effects.push(Effect::ToServer(retry_line(
                &own_id,
                &params.root(),
                input,
                request_state.as_deref(),
            )));
            running.input_rounds += 1;
            running.joined.push(waiter);
            self.calls.insert(id.clone(), CallState::Joined(own_id.clone()));
            self.calls.insert(own_id, CallState::Running(running));
            return;
        }
        self.expect_retry(&running, request_state, now, effects);
        effects.push(Effect::ToHost(response));
    }

    /// Remembers that the host may retry a call with the input that the server needs.
    pub(super) fn expect_retry(
        &mut self,
        running: &RunningCall,
        request_state: Option<String>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(call) = running.call {
            effects.push(Effect::Note(call, texts::NEEDS_INFORMATION.with(&[&self.server])));
        }
        let RunningCall { key: Some(key), definition, call, .. } = *running else {
            return self.finish(running.call, CallOutcome::NotContinued, effects);
        };
        if self.retries.len() >= MAX_PENDING_RETRIES
            && let Some(oldest) = self.retries.pop_front()
        {
            self.finish(oldest.call, CallOutcome::NotContinued, effects);
        }
        let expires_at = now + RETRY_LIFETIME;
        self.retries.push_back(PendingRetry { key, definition, request_state, call, expires_at });
    }

    /// The host cancels a call, or the person stops it, while listeners are asked for its input.
    pub(super) fn withdraw_offered(&mut self, offered: OfferedInput, effects: &mut Vec<Effect>) {
        effects.push(Effect::WithdrawInput(offered.waiter.id));
        self.finish(offered.running.call, CallOutcome::Cancelled, effects);
    }

    /// Sends a sign of life to a host whose call waits for input.
    pub(crate) fn send_input_progress(&mut self, id: &RequestId, effects: &mut Vec<Effect>) {
        if let Some(CallState::Offered(offered)) = self.calls.get_mut(id) {
            send_progress(&mut offered.waiter, effects);
        }
    }

    fn take_offered(&mut self, id: &RequestId) -> Option<OfferedInput> {
        match self.calls.remove(id)? {
            CallState::Offered(offered) => Some(*offered),
            other => {
                self.calls.insert(id.clone(), other);
                None
            }
        }
    }

    /// Returns an id for a request of the gate.
    fn unused_id(&mut self) -> RequestId {
        loop {
            let id = RequestId::Text(format!("sayso-{}", self.next_number()));
            if !self.calls.contains_key(&id) && !self.tracked.contains_key(&id) {
                return id;
            }
        }
    }
}

/// The name and the text of each request for input.
type InputRequests = Vec<(String, String)>;

/// Reads the requests in a server's answer, and the state for the retry. Returns `None` if one of them cannot be asked in words.
fn read_requests(response: &JsonValue<'_>) -> Option<(InputRequests, Option<String>)> {
    let result = response.member("result")?;
    let [_, requests, state] =
        read_unambiguous(&result, ["resultType", "inputRequests", "requestState"]).ok()?;
    let mut found = BTreeMap::new();
    for (name, request) in requests?.members() {
        let is_form = request.member("method").is_some_and(|method| method.is_text("elicitation/create"));
        let can_be_asked = is_form && !name.has_lone_surrogate() && elicit::can_be_asked(request.source());
        if !can_be_asked || found.insert(name.text()?.into_owned(), request.source().to_owned()).is_some() {
            return None;
        }
    }
    let is_countable = !found.is_empty() && found.len() <= MAX_INPUT_REQUESTS;
    is_countable.then(|| (found.into_iter().collect(), state.map(|state| state.source().to_owned())))
}

fn read_progress_token(params: &str) -> Option<String> {
    let mut tape = Tape::default();
    let doc = tape.read(params).ok()?;
    let request = ToolCallRequest::read(Some(doc.root())).ok()?;
    request.progress_token.map(str::to_owned)
}

/// Writes the answers to the requests with these names.
pub(crate) fn write_input(answers: &[(String, String)]) -> String {
    let mut out = JsonWriter::with_capacity(256);
    out.open_object();
    for (name, answer) in answers {
        out.key(name).raw(answer);
    }
    out.close_object();
    out.finish()
}
