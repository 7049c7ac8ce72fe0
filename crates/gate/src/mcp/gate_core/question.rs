//! Calls that wait for a person, from the question to the call or its refusal.

use super::*;

impl GateCore {
    /// Holds a call back until a person has answered.
    #[allow(clippy::too_many_arguments, reason = "the parts of one decision")]
    pub(super) fn hold_call(
        &mut self,
        id: RequestId,
        request: &ToolCallRequest<'_>,
        reason: AskReason,
        source: &str,
        batch: Option<u64>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let refuse = |core: &mut Self, sentence: &str, effects: &mut Vec<Effect>| {
            core.reply(&id, batch, refusal_line(&id, sentence), effects);
        };
        if self.is_closed {
            return refuse(
                self,
                "The call was not made, because the connection to the server is closed.",
                effects,
            );
        }
        let others = request.other_params(&[], &[]).ok().flatten().map_or(0, |others| others.len());
        if source.len() > MAX_HELD_MESSAGE_BYTES
            || request.arguments.len() + others > MAX_QUESTION_ARGUMENT_BYTES
        {
            let sentence = format!(
                "The call was not made. It needs a person's permission, and its arguments are longer than the {MAX_QUESTION_ARGUMENT_BYTES} bytes that a person can be asked about. Make several shorter calls instead."
            );
            return refuse(self, &sentence, effects);
        }
        let Some(key) = self.call_key(request) else {
            let sentence = "The call was not made. It needs a person's permission, and its arguments are ambiguous: a name appears twice, or a number is too large to be exact. Write large numbers as strings.";
            return refuse(self, sentence, effects);
        };
        let mut waiter = Waiter {
            id: id.clone(),
            line: with_line_break(source),
            progress_token: request.progress_token.map(str::to_owned),
            progress_count: 0,
            batch,
            params: self.params_to_keep(request),
        };
        if let Some(call) = self.take_retry(key, request, now, effects) {
            let definition = self.tools.definition(&request.tool);
            let tool = request.tool.clone();
            let (key, joined, params) = (Some(key), Vec::new(), waiter.params);
            let running = RunningCall { call, tool, key, definition, joined, batch, params, input_rounds: 0 };
            self.calls.insert(id, CallState::Running(running));
            effects.push(Effect::ToServer(waiter.line));
            return;
        }
        if let Some((question, open)) = self.questions.iter_mut().find(|(_, open)| open.key == key) {
            if open.waiters.len() >= MAX_WAITERS_PER_QUESTION {
                let sentence = "The call was not made. The same call is already waiting for a person's permission too many times.";
                return refuse(self, sentence, effects);
            }
            send_progress(&mut waiter, effects);
            open.waiters.push(waiter);
            self.calls.insert(id, CallState::Waiting(*question));
            return;
        }
        if let Some(yes) = self.take_remembered(key, now, effects) {
            let call = CallNumber(self.next_number());
            self.open_calls.insert(call);
            self.calls.insert(id, CallState::Waiting(yes.question));
            let open = HeldQuestion {
                key,
                tool: yes.tool,
                definition: yes.definition,
                waiters: vec![waiter],
                short_name: yes.short_name,
            };
            self.questions.insert(yes.question, open);
            effects.push(Effect::Spend { question: yes.question, call, is_late: true });
            return;
        }
        if self.questions.len() >= MAX_OPEN_QUESTIONS {
            let sentence = format!(
                "The call was not made. {MAX_OPEN_QUESTIONS} other calls are already waiting for a person's permission. Try again when they are answered."
            );
            return refuse(self, &sentence, effects);
        }
        let question = QuestionId(self.next_number());
        let description = self.describe(request, Some(reason));
        send_progress(&mut waiter, effects);
        self.calls.insert(id, CallState::Waiting(question));
        let short_name = description.short_name.clone();
        let open = HeldQuestion {
            key,
            definition: self.tools.definition(&request.tool),
            tool: request.tool.clone(),
            waiters: vec![waiter],
            short_name,
        };
        self.questions.insert(question, open);
        effects.push(Effect::Ask(question, Box::new(description)));
    }

    /// The host cancels a call.
    pub(super) fn cancel(&mut self, id: &RequestId, source: &str, effects: &mut Vec<Effect>) {
        match self.calls.remove(id) {
            Some(CallState::Waiting(question)) => {
                let Some(open) = self.questions.get_mut(&question) else { return };
                let batch =
                    open.waiters.iter().find(|waiter| waiter.id == *id).and_then(|waiter| waiter.batch);
                open.waiters.retain(|waiter| waiter.id != *id);
                if open.waiters.is_empty() {
                    let minutes = REMEMBERED_ANSWER_LIFETIME.as_secs() / 60;
                    let minutes = minutes.to_string();
                    effects.push(Effect::Announce(GateText::new(|language| {
                        texts::NO_LONGER_WAITS.fill(language, &[open.short_name.text(language), &minutes])
                    })));
                }
                self.leave_batch(id, batch, effects);
            }
            Some(CallState::Running(running)) => {
                effects.push(Effect::ToServer(with_line_break(source)));
                self.finish(running.call, CallOutcome::Cancelled, effects);
                for waiter in running.joined {
                    self.calls.remove(&waiter.id);
                    let sentence = "The call was cancelled. It was made under another request, which the host cancelled.";
                    self.reply(&waiter.id, waiter.batch, refusal_line(&waiter.id, sentence), effects);
                }
                self.leave_batch(id, running.batch, effects);
            }
            // The server does not know this id.
            Some(CallState::Joined(other)) => {
                let Some(CallState::Running(running)) = self.calls.get_mut(&other) else { return };
                running.joined.retain(|waiter| waiter.id != *id);
                if running.input_rounds > 0 && running.joined.is_empty() {
                    let call = running.call;
                    self.calls.insert(other.clone(), CallState::Discarded);
                    effects.push(Effect::ToServer(cancelled_line(&other, "The host cancelled the call.")));
                    self.finish(call, CallOutcome::Cancelled, effects);
                }
            }
            // The server has answered already.
            Some(CallState::Offered(offered)) => self.withdraw_offered(*offered, effects),
            Some(CallState::Discarded) | None => {}
        }
    }

    /// Reports the answer to a question.
    pub(crate) fn handle_answer(
        &mut self,
        question: QuestionId,
        outcome: QuestionOutcome,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        match outcome {
            QuestionOutcome::Refused(sentence) => self.refuse_question(question, &sentence, effects),
            QuestionOutcome::Granted => {
                let Some(open) = self.questions.get(&question) else {
                    return effects.push(Effect::ForgetYes(question));
                };
                self.is_stopped = false;
                if self.tools.allow(&open.tool, open.definition) {
                    effects.push(Effect::SavePins);
                }
                if self.is_closed {
                    self.questions.remove(&question);
                    return effects.push(Effect::ForgetYes(question));
                }
                if !open.waiters.is_empty() {
                    let call = CallNumber(self.next_number());
                    self.open_calls.insert(call);
                    return effects.push(Effect::Spend { question, call, is_late: false });
                }
                let Some(HeldQuestion { key, tool, definition, short_name, .. }) =
                    self.questions.remove(&question)
                else {
                    return;
                };
                if self.remembered.len() >= MAX_REMEMBERED_ANSWERS
                    && let Some(oldest) = self.remembered.pop_front()
                {
                    effects.push(Effect::ForgetYes(oldest.question));
                }
                let expires_at = now + REMEMBERED_ANSWER_LIFETIME;
                let minutes = REMEMBERED_ANSWER_LIFETIME.as_secs() / 60;
                let minutes = minutes.to_string();
                effects.push(Effect::Announce(GateText::new(|language| {
                    texts::YES_KEPT.fill(language, &[short_name.text(language), &minutes])
                })));
                self.remembered.push_back(RememberedYes {
                    key,
                    question,
                    tool,
                    definition,
                    short_name,
                    expires_at,
                });
            }
        }
    }

    /// Reports whether the hub accepted that a yes is spent. Only now the call is sent to the server.
    pub(crate) fn handle_spent(
        &mut self,
        question: QuestionId,
        call: CallNumber,
        spent: Result<(), String>,
        effects: &mut Vec<Effect>,
    ) {
        if let Err(sentence) = spent {
            self.open_calls.remove(&call);
            return self.refuse_question(question, &sentence, effects);
        }
        let Some(mut open) = self.questions.remove(&question) else {
            return self.finish(Some(call), CallOutcome::NotMade, effects);
        };
        if self.tools.definition(&open.tool) != open.definition {
            self.finish(Some(call), CallOutcome::NotMade, effects);
            let sentence = "The call was not made, because the server changed the description of the tool while the person was asked. Call it again to ask again.";
            self.questions.insert(question, open);
            return self.refuse_question(question, sentence, effects);
        }
        // The latest request is the one that the host most likely still waits for.
        let Some(waiter) = open.waiters.pop() else {
            return self.finish(Some(call), CallOutcome::NotMade, effects);
        };
        for joined in &open.waiters {
            self.calls.insert(joined.id.clone(), CallState::Joined(waiter.id.clone()));
        }
        let running = RunningCall {
            call: Some(call),
            tool: open.tool,
            key: Some(open.key),
            definition: open.definition,
            joined: open.waiters,
            batch: waiter.batch,
            params: waiter.params,
            input_rounds: 0,
        };
        self.calls.insert(waiter.id, CallState::Running(running));
        effects.push(Effect::ToServer(waiter.line));
    }

    /// Sends a sign of life to every host request that waits for this question and has a progress token.
    pub(crate) fn send_progress(&mut self, question: QuestionId, effects: &mut Vec<Effect>) {
        for waiter in self.questions.get_mut(&question).into_iter().flat_map(|open| &mut open.waiters) {
            send_progress(waiter, effects);
        }
    }

    /// The person stopped the session: running calls are cancelled, and from now on every call needs a question.
    pub(crate) fn handle_person_stop(&mut self, effects: &mut Vec<Effect>) {
        self.is_stopped = true;
        let sentence = "The person stopped this work. The call was cancelled; it may have been made in part. Do not call this server again unless the person asks for it.";
        let running = self.calls.iter().filter(|(_, state)| matches!(state, CallState::Running(_)));
        let running: Vec<_> = running.map(|(id, _)| id.clone()).collect();
        for id in running {
            let Some(CallState::Running(call)) = self.calls.insert(id.clone(), CallState::Discarded) else {
                continue;
            };
            effects.push(Effect::ToServer(cancelled_line(&id, "The person stopped the session.")));
            self.finish(call.call, CallOutcome::Cancelled, effects);
            // The host does not know an id of the gate.
            if call.input_rounds == 0 {
                self.reply(&id, call.batch, refusal_line(&id, sentence), effects);
            }
            for waiter in call.joined {
                self.calls.remove(&waiter.id);
                self.reply(&waiter.id, waiter.batch, refusal_line(&waiter.id, sentence), effects);
            }
        }
        let offered = self.calls.extract_if(|_, state| matches!(state, CallState::Offered(_)));
        for (id, state) in offered.collect::<Vec<_>>() {
            if let CallState::Offered(offered) = state {
                effects.push(Effect::ToHost(refusal_line(&id, sentence)));
                self.withdraw_offered(*offered, effects);
            }
        }
        for yes in std::mem::take(&mut self.remembered) {
            effects.push(Effect::ForgetYes(yes.question));
        }
        for retry in std::mem::take(&mut self.retries) {
            self.finish(retry.call, CallOutcome::Cancelled, effects);
        }
        for task in self.tasks.values_mut() {
            task.is_stopped = true;
        }
    }

    /// The host or the server is gone. No call is sent to the server any more.
    pub(crate) fn close(&mut self, effects: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        effects.push(Effect::WithdrawAll);
        let questions: Vec<_> = self.questions.keys().copied().collect();
        for question in questions {
            let sentence =
                "The call was not made, because the connection was closed before a person answered.";
            self.refuse_question(question, sentence, effects);
        }
    }

    /// Returns the narrated call that this request continues, if it is the retry of a call that needed input. The retry must have
    /// the same parameters and the state that the server gave, and the definition of the tool must still be the same.
    #[allow(clippy::option_option, reason = "a continued call may have no narration")]
    pub(super) fn take_retry(
        &mut self,
        key: CallKey,
        request: &ToolCallRequest<'_>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Option<Option<CallNumber>> {
        while let Some(expired) = self.retries.pop_front_if(|retry| retry.expires_at <= now) {
            self.finish(expired.call, CallOutcome::NotContinued, effects);
        }
        if self.is_stopped || (!request.has_input_responses && request.request_state.is_none()) {
            return None;
        }
        let definition = self.tools.definition(&request.tool);
        let matches = |retry: &PendingRetry| {
            retry.key.without_input == key.without_input
                && retry.request_state == request.request_state
                && retry.definition == definition
        };
        let index = self.retries.iter().position(matches)?;
        self.retries.remove(index).map(|retry| retry.call)
    }

    fn take_remembered(
        &mut self,
        key: CallKey,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Option<RememberedYes> {
        while let Some(expired) = self.remembered.pop_front_if(|yes| yes.expires_at <= now) {
            effects.push(Effect::ForgetYes(expired.question));
        }
        let index = self.remembered.iter().position(|yes| yes.key == key)?;
        self.remembered.remove(index)
    }

    fn refuse_question(&mut self, question: QuestionId, sentence: &str, effects: &mut Vec<Effect>) {
        let Some(open) = self.questions.remove(&question) else { return };
        for waiter in open.waiters {
            self.calls.remove(&waiter.id);
            self.reply(&waiter.id, waiter.batch, refusal_line(&waiter.id, sentence), effects);
        }
    }
}

pub(super) fn send_progress(waiter: &mut Waiter, effects: &mut Vec<Effect>) {
    if let Some(token) = &waiter.progress_token {
        waiter.progress_count += 1;
        let message = "Waiting for a person's permission.";
        effects.push(Effect::ToHost(progress_line(token, waiter.progress_count, message)));
    }
}
