//! The JSON view of a session for the agent's own program.

use std::sync::Arc;
use std::time::Duration;

use asp::SessionId;
use asp::session::{AspSession, SessionOutcome};
use asp::state_machine::{State, Timer};
use seal::json::{JsonWriter, write_object};
use seal::{Timestamp, UnixMillis};
use wire::unix_now;

use crate::NodeError;
use crate::encoding::ASP_MSGPACK;
use crate::node::Node;
use crate::peer_client::ASP_JSON;
use crate::person::one_line;
use crate::records::{ConsentOutcome, role_name};
use crate::send::{MAX_SUBJECT_CHARS, run_to_completion};
use crate::session::{SessionHandle, SessionState};

impl Node {
    /// Returns the state of a session and its messages after position `after`. If there is nothing new, waits for a change. With
    /// the `revision` of an earlier view, every change since then is new; without it, only a message after that position.
    pub(crate) async fn show(
        self: &Arc<Self>,
        session: SessionId,
        after: Option<usize>,
        revision: Option<u64>,
        wait: Duration,
    ) -> Result<String, NodeError> {
        let handle = self.session(session).await?;
        let mut changes = handle.subscribe();
        let (node, expiring) = (self.clone(), handle.clone());
        run_to_completion(Box::pin(async move {
            let mut state = node.lock(&expiring).await?;
            node.expire(&expiring, &mut state).await
        }))
        .await?;
        {
            let mut state = self.lock(&handle).await?;
            let has_news = match revision {
                Some(revision) => revision != handle.revision(),
                None => after.is_none_or(|after| state.message_count() > after),
            };
            // The view below contains every change up to now.
            changes.mark_unchanged();
            // Our last message may still have to be delivered after the state became terminal.
            let is_over = state.is_ended || (revision.is_none() && state.state().is_terminal());
            if has_news || is_over || wait.is_zero() {
                return Ok(self.view(&handle, &mut state, after.unwrap_or(0)));
            }
        }
        tokio::select! {
            _ = tokio::time::timeout(wait.min(self.config.limits.max_wait), changes.changed()) => {}
            () = self.stopped() => {}
        }
        let mut state = self.lock(&handle).await?;
        Ok(self.view(&handle, &mut state, after.unwrap_or(0)))
    }

    /// Returns the transcript as JSON Lines, as `sayso asp verify` reads it.
    pub(crate) async fn transcript(self: &Arc<Self>, session: SessionId) -> Result<String, NodeError> {
        let handle = self.session(session).await?;
        let state = self.lock(&handle).await?;
        let Some(record) = state.participant.record() else { return Ok(String::new()) };
        let mut text = String::new();
        for message in record.transcript().messages() {
            text.push_str(message);
            text.push('\n');
        }
        Ok(text)
    }

    /// Returns the cards of both sides of a session, as `sayso asp verify --cards` reads them.
    pub(crate) async fn session_cards(self: &Arc<Self>, session: SessionId) -> Result<String, NodeError> {
        let handle = self.session(session).await?;
        Ok(format!("{}\n{}\n", handle.info.own.as_str(), handle.info.peer.as_str()))
    }

    /// Returns all open sessions.
    pub(crate) fn list(&self) -> String {
        write_object(|writer| {
            writer.key("sessions").array(|writer| {
                for handle in self.handles() {
                    let summary = handle.summary();
                    writer.object(|writer| {
                        write_info(writer, &handle);
                        writer.key("state").text(summary.state.as_str());
                        write_count(writer, "messageCount", summary.message_count);
                        write_time(writer, "updatedAt", summary.updated_at);
                    });
                }
            });
            let quarantined = self.quarantined();
            if !quarantined.is_empty() {
                writer.key("quarantined").array(|writer| {
                    for (id, reason) in quarantined.iter() {
                        writer.object(|writer| {
                            writer.text_members([("sessionId", &*id.to_string()), ("reason", reason)]);
                        });
                    }
                });
            }
        })
    }

    /// Returns ended sessions, the latest first, or those that ended before the given one.
    pub(crate) fn list_ended(&self, before: Option<SessionId>, limit: usize) -> String {
        write_object(|writer| {
            writer.key("sessions").array(|writer| {
                let limit = limit.min(self.config.limits.page_messages);
                self.peers().ended_sessions.page(before, limit).for_each(|summary| writer.raw(summary));
            });
        })
    }

    fn view(&self, handle: &SessionHandle, state: &mut SessionState, after: usize) -> String {
        let encoding = if state.uses_message_pack() { ASP_MSGPACK } else { ASP_JSON };
        let session = state.participant.session();
        let transcript = state.participant.record().map(asp::SessionRecord::transcript);
        write_object(|writer| {
            write_info(writer, handle);
            writer.key("state").text(state.state().as_str());
            writer.key("revision").integer(i64::try_from(handle.revision()).unwrap_or(i64::MAX));
            writer.key("encoding").text(encoding);
            writer.key("waitingFor").text(waiting_for(handle, state));
            let (score, level) = self.peers().trust_of(handle.info.peer.agent_id(), unix_now());
            writer.key("peerTrust").object(|writer| {
                writer.key("score").number(score.get());
                writer.key("level").integer(level.number().into());
            });
            writer.key("deadlines").object(|writer| {
                for timer in Timer::ALL {
                    if let Some(at) = session.and_then(|session| session.deadline(timer)) {
                        write_time(writer, timer.as_str(), at);
                    }
                }
            });
            write_awaited_response(writer, handle, session);
            let limit = self.config.limits.page_messages;
            let messages = transcript.into_iter().flat_map(asp::Transcript::messages).skip(after).take(limit);
            let mut count = 0;
            writer.key("messages").array(|writer| {
                for message in messages {
                    writer.raw(message);
                    count += 1;
                }
            });
            write_count(writer, "next", after + count);
            write_count(writer, "messageCount", state.message_count());
            write_count(writer, "unacknowledged", state.participant.unsettled_messages().count());
            write_consent(writer, state);
            writer.key("refusals").array(|writer| {
                for refusal in &state.refusals {
                    writer.object(|writer| {
                        writer.text_members([
                            ("performative", &*refusal.performative),
                            ("code", &refusal.code),
                            ("reason", &refusal.reason),
                        ]);
                    });
                }
            });
            if let Some(outcome) = session.and_then(AspSession::outcome) {
                write_outcome(writer, outcome);
            }
        })
    }
}

/// Returns the entry of an ended session in the list of ended sessions.
pub(crate) fn describe_ended(handle: &SessionHandle, state: &SessionState) -> String {
    write_object(|writer| {
        write_info(writer, handle);
        writer.key("state").text(state.state().as_str());
        write_count(writer, "messageCount", state.message_count());
        if let Some(outcome) = state.participant.session().and_then(AspSession::outcome) {
            write_time(writer, "endedAt", outcome.ended_at);
            writer.key("reason").text(&one_line(&outcome.reason, MAX_SUBJECT_CHARS));
        }
    })
}

fn write_info(writer: &mut JsonWriter, handle: &SessionHandle) {
    let info = &handle.info;
    writer.text_members([
        ("sessionId", &*info.id.to_string()),
        ("peer", info.peer.agent_id().as_str()),
        ("peerName", info.peer.name()),
        ("role", role_name(info.role)),
        ("subject", &info.subject),
    ]);
}

/// Says who must do something next.
fn waiting_for(handle: &SessionHandle, state: &SessionState) -> &'static str {
    if state.consent.is_some() {
        return "person";
    }
    if state.has_undelivered() {
        return "delivery";
    }
    let Some(session) = state.participant.session() else { return "nothing" };
    let own = handle.info.role;
    match session.state() {
        State::Closed | State::Failed => "nothing",
        State::Idle | State::Invited if own == asp::state_machine::Role::Inviter => "peer",
        State::Agreeing => {
            let is_ours = session.commitment().is_some_and(|commitment| commitment.sender() == own);
            if is_ours { "peer" } else { "you" }
        }
        State::Escalated => {
            if session.escalated_by() == Some(own) {
                "you"
            } else {
                "peer"
            }
        }
        _ => "anyone",
    }
}

/// Describes the message that awaits a response within a time: who must answer it, and whether the response is overdue.
fn write_awaited_response(writer: &mut JsonWriter, handle: &SessionHandle, session: Option<&AspSession>) {
    let Some(session) = session else { return };
    let Some(awaited) = session.awaited_response() else { return };
    writer.key("awaitedResponse").object(|writer| {
        let from = if awaited.awaited_by == handle.info.role { "peer" } else { "you" };
        writer.text_members([("from", from), ("messageId", &*awaited.message_id.to_string())]);
        if let Some(due_at) = awaited.overdue_since.or_else(|| session.deadline(Timer::Response)) {
            write_time(writer, "dueAt", due_at);
        }
        writer.key("isOverdue").boolean(awaited.overdue_since.is_some());
    });
}

fn write_consent(writer: &mut JsonWriter, state: &SessionState) {
    if let Some(request) = &state.consent {
        writer.key("consent").object(|writer| {
            writer.text_members([
                ("status", "awaiting_consent"),
                ("performative", &*request.performative),
                ("reply_token", &request.reply_token),
            ]);
        });
    } else if let Some((request, outcome)) = &state.last_consent {
        writer.key("consent").object(|writer| {
            let (status, reason) = match outcome {
                ConsentOutcome::Accepted { .. } => ("accepted", None),
                ConsentOutcome::Answered { .. } => ("answered", None),
                ConsentOutcome::Refused { reason } => ("refused", Some(reason)),
            };
            writer.text_members([
                ("status", status),
                ("performative", &*request.performative),
                ("reply_token", &request.reply_token),
            ]);
            if let Some(reason) = reason {
                writer.key("reason").text(reason);
            }
        });
    }
}

fn write_outcome(writer: &mut JsonWriter, outcome: &SessionOutcome) {
    writer.key("outcome").object(|writer| {
        writer.key("reason").text(&outcome.reason);
        write_time(writer, "endedAt", outcome.ended_at);
        if let Some(commitment) = &outcome.commitment {
            writer.key("commitment").object(|writer| {
                writer.key("commitmentId").text(commitment.commit().commitment_id.as_str());
                writer.key("status").text(commitment.status().as_str());
            });
        }
        writer.key("obligations").array(|writer| {
            for (obligation, result) in &outcome.obligations {
                writer.object(|writer| {
                    writer.text_members([
                        ("party", obligation.party.as_str()),
                        ("action", &*obligation.action),
                        ("outcome", result.as_str()),
                    ]);
                });
            }
        });
        writer.key("brokenBy").array(|writer| {
            outcome.broken_by.iter().for_each(|role| writer.text(role_name(*role)));
        });
    });
}

fn write_count(writer: &mut JsonWriter, name: &str, count: usize) {
    writer.key(name).integer(i64::try_from(count).unwrap_or(i64::MAX));
}

fn write_time(writer: &mut JsonWriter, name: &str, at: UnixMillis) {
    if let Some(at) = Timestamp::from_unix_millis(at) {
        writer.key(name).text(&at.to_string());
    }
}
