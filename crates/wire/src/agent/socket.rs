//! One WebSocket of an agent, from its request to its end.

use std::collections::HashMap;
use std::time::Duration;

use aaep::json::Writer;
use futures_util::StreamExt;
use hub::command::{Notice, Reply, RequestId};
use hub::{Principal, Role};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use super::rpc::{self, Call, Fault, Message};
use crate::http::{Head, Response, Status};
use crate::listener::websocket::{accept_key, switch};
use crate::listener::{Ear, Ending, FAREWELL, Heard, Mouth, Word, hang_up};
use crate::server::{Limits, Line, Server, Told, response};

/// The subprotocol, for those who ask for one.
const PROTOCOL: &str = "sayso.agent.v1";
/// Nobody takes longer for one message and is still there.
const PATIENCE: Duration = Duration::from_mins(1);

/// A request to become an agent's WebSocket that was found good.
#[derive(Debug)]
pub(crate) struct Upgrade {
    who: Principal,
    accept: String,
    protocol: Option<&'static str>,
}

impl Upgrade {
    /// Reads the request. Who only listens has nothing to say here.
    pub(crate) fn asked(head: &Head, who: Principal) -> Result<Self, Response> {
        if matches!(who.role, Role::Listener | Role::Observer) {
            return Err(Response::problem(Status::Forbidden, "This token is not for that."));
        }
        let accept = accept_key(head)?;
        let protocol = match head.header("sec-websocket-protocol") {
            None => None,
            Some(_) if head.lists("sec-websocket-protocol", PROTOCOL) => Some(PROTOCOL),
            Some(_) => {
                let why = format!("The subprotocol here is {PROTOCOL}, or none.");
                return Err(Response::problem(Status::BadRequest, &why));
            }
        };
        Ok(Self { who, accept, protocol })
    }
}

/// The connection is a WebSocket from here on; `read` is what came after the head.
pub(crate) async fn run(
    server: &Server,
    upgrade: Upgrade,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    read: Vec<u8>,
) {
    let Upgrade { who, accept, protocol } = upgrade;
    let Some(socket) = switch(server, &accept, protocol, stream, read).await else { return };
    let (mut mouth, mut ear) = socket.split();
    // Every call in flight has a place for its answer.
    let line = server.bridge.line(server.limits.untold.saturating_add(2 * server.limits.calls).max(1));
    let mut talk = Talk {
        line,
        who: who.clone(),
        limits: server.limits,
        calls: HashMap::new(),
        batches: HashMap::new(),
        bytes: 0,
    };
    let ending = tokio::select! {
        ending = talk.converse(&mut ear, &mut mouth) => ending,
        () = server.dismissed(&who) => Ending::Dismissed,
    };
    drop(talk);
    let _ = timeout(FAREWELL, mouth.say(Word::End { ending, subscription: None })).await;
    if let Ok(socket) = ear.reunite(mouth) {
        hang_up(socket.into_inner()).await;
    }
}

/// What is said and in flight on one connection.
struct Talk {
    line: Line,
    who: Principal,
    limits: Limits,
    calls: HashMap<RequestId, InFlight>,
    /// Batches that are not settled, by the first of their calls that went to the hub.
    batches: HashMap<RequestId, Batch>,
    /// Of the messages whose calls are in flight.
    bytes: usize,
}

/// A call that the hub has not settled.
struct InFlight {
    id: Option<String>,
    bytes: usize,
    batch: Option<RequestId>,
}

struct Batch {
    left: usize,
    answers: Vec<String>,
}

impl Talk {
    async fn converse(&mut self, ear: &mut impl Ear, mouth: &mut impl Mouth) -> Ending {
        let mut pings = tokio::time::interval(self.limits.ping_time);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        pings.reset();
        // The third sign of life that was asked for has its time to come, too.
        let silence = self.limits.ping_time * 4;
        let mut until = Instant::now() + silence;
        loop {
            let room = self.calls.len() < self.limits.calls && self.bytes < self.limits.body_bytes;
            let word = tokio::select! {
                biased;
                told = self.line.told() => {
                    if !room {
                        // Nobody was listened to meanwhile.
                        until = Instant::now() + silence;
                    }
                    match told {
                        None => return Ending::Over,
                        Some(Told::Notice(notice)) => notified(&notice).map(Word::Aside),
                        Some(Told::Answer(request, answer)) => self.settle(request, &answer).map(Word::Aside),
                    }
                }
                _ = pings.tick() => Some(Word::Ping),
                heard = timeout_at(until, ear.hear()), if room => {
                    until = Instant::now() + silence;
                    match heard {
                        Err(_) => return Ending::Silent,
                        Ok(Heard::End(ending)) => return ending,
                        Ok(Heard::Message { text, .. }) => match self.take(&text) {
                            Ok(said) => said.map(Word::Aside),
                            Err(ending) => return ending,
                        },
                        Ok(Heard::Malformed) => {
                            Some(Word::Aside(Fault::parse("Messages are UTF-8.").answer(None)))
                        }
                        Ok(_) => None,
                    }
                }
            };
            if let Some(word) = word
                && !timeout(PATIENCE, mouth.say(word)).await.unwrap_or(false)
            {
                return Ending::Gone;
            }
        }
    }

    /// Takes a message; what can be said to it at once is.
    fn take(&mut self, text: &str) -> Result<Option<String>, Ending> {
        let (calls, is_batch) = match rpc::read(text, self.limits.calls) {
            Ok(Message::One(call)) => (vec![call], false),
            Ok(Message::Batch(calls)) => (calls, true),
            Err(fault) => return Ok(Some(fault.answer(None))),
        };
        let mut answers = Vec::new();
        let mut asked = Vec::new();
        for Call { id, command } in calls {
            match command {
                Ok(command) => {
                    asked.push((self.line.ask(&self.who, command).ok_or(Ending::Gone)?, id));
                }
                Err(fault) => answers.extend(id.map(|id| fault.answer(Some(&id)))),
            }
        }
        let first = asked.first().map(|(request, _)| *request);
        let left = asked.len();
        let mut bytes = text.len();
        for (request, id) in asked {
            let bytes = std::mem::take(&mut bytes);
            self.bytes += bytes;
            self.calls.insert(request, InFlight { id, bytes, batch: first.filter(|_| is_batch) });
        }
        match first {
            Some(first) if is_batch => {
                self.batches.insert(first, Batch { left, answers });
                Ok(None)
            }
            _ => Ok(said(&answers, is_batch)),
        }
    }

    /// The hub has settled a call; what can be said now is returned.
    fn settle(&mut self, request: RequestId, answer: &Reply) -> Option<String> {
        let InFlight { id, bytes, batch } = self.calls.remove(&request)?;
        self.bytes = self.bytes.saturating_sub(bytes);
        let answer = id.map(|id| answered(&id, answer));
        let Some(batch) = batch else { return answer };
        let whole = self.batches.get_mut(&batch)?;
        whole.answers.extend(answer);
        whole.left -= 1;
        if whole.left > 0 {
            return None;
        }
        let whole = self.batches.remove(&batch)?;
        said(&whole.answers, true)
    }
}

/// Answers, if there are any: to notifications alone nothing is said.
fn said(answers: &[String], is_batch: bool) -> Option<String> {
    match answers {
        [] => None,
        [answer] if !is_batch => Some(answer.clone()),
        answers => Some(rpc::batch(answers)),
    }
}

fn answered(id: &str, reply: &Reply) -> String {
    match reply.to_json() {
        Some(json) => rpc::result(id, &json),
        None => Fault::of(response(reply, Status::Ok)).answer(Some(id)),
    }
}

fn notified(notice: &Notice) -> Option<String> {
    let mut params = Writer::default();
    params.open_object();
    params.key("session_id");
    let method = match notice {
        Notice::Resolved { session, token, outcome } => {
            params.text(session.as_str());
            params.key("reply_token");
            params.text(token.as_str());
            outcome.write(&mut params);
            "session.resolved"
        }
        Notice::Stopped { session, reason } => {
            params.text(session.as_str());
            params.key("reason");
            params.text(reason.as_str());
            "session.stopped"
        }
        _ => return None,
    };
    params.close_object();
    Some(rpc::notification(method, &params.finish()))
}
