//! The connection between editor and agent: passes every line, and decides who answers a permission request.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufRead, AsyncWriteExt, Stdout};
use tokio::process::ChildStdin;

use super::lines::{LineRead, MAX_INSPECTED_BYTES, pass_rest, read_line};
use super::message::{
    self, AgentMessage, EditorMessage, EditorRequest, RequestId, Response, ResponseResult, read_agent_line,
    read_editor_line,
};
use super::narrator::{Narration, NarrationSender};
use super::permission_table::{Closure, EditorResponse, PermissionTable, Ticket};
use super::session_driver::{OfferedRequest, SessionNews};
use super::wording::shorten;
use crate::phrases::Language;

/// Maximum number of unanswered requests of the editor that the gate follows.
const MAX_FOLLOWED_REQUESTS: usize = 1024;

/// Maximum number of lines that the gate itself writes to standard error.
const MAX_LOG_LINES: u32 = 50;

/// The two ends, and what is open between them.
pub(super) struct Proxy {
    to_agent: tokio::sync::Mutex<Option<ChildStdin>>,
    to_editor: tokio::sync::Mutex<Stdout>,
    permissions: Mutex<PermissionTable>,
    requests: Mutex<FollowedRequests>,
    has_logged_unanswered: AtomicBool,
    log_lines: AtomicU32,
}

/// The requests of the editor whose answers the gate reads.
#[derive(Default)]
struct FollowedRequests {
    open: HashMap<RequestId, EditorRequest>,
    /// Sessions whose history the agent is repeating. It is not narrated again.
    replaying: HashSet<String>,
}

impl Proxy {
    pub(super) fn new(to_agent: ChildStdin) -> Self {
        Self {
            to_agent: tokio::sync::Mutex::new(Some(to_agent)),
            to_editor: tokio::sync::Mutex::new(tokio::io::stdout()),
            permissions: Mutex::default(),
            requests: Mutex::default(),
            has_logged_unanswered: AtomicBool::new(false),
            log_lines: AtomicU32::new(0),
        }
    }

    /// Passes the lines of the editor until it closes its end.
    pub(super) async fn pass_editor_lines(
        &self,
        mut editor: impl AsyncBufRead + Unpin,
        narrator: &NarrationSender,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            let read = read_line(&mut editor, &mut line, MAX_INSPECTED_BYTES).await?;
            let message = match read {
                LineRead::Line => read_editor_line(&line),
                LineRead::TooLong | LineRead::End => EditorMessage::Other,
            };
            let is_passed = match &message {
                EditorMessage::Response(response) => self.accept_editor_response(response),
                EditorMessage::Cancel { session } => {
                    // Before it passes, so that no answer from a listener can follow it.
                    self.permissions().close_session(session, &Closure::TurnCancelled);
                    true
                }
                EditorMessage::Request { id, kind } => {
                    // Before it passes, because the agent's reports about it may come at once.
                    self.follow_request(id, kind);
                    if let EditorRequest::Prompt { session, text } = kind {
                        narrator.send_session(session, SessionNews::Prompt(text.clone()), line.len());
                    }
                    true
                }
                EditorMessage::Other => true,
            };
            if is_passed && !line.is_empty() {
                let mut guard = self.to_agent.lock().await;
                let agent = guard.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
                agent.write_all(&line).await?;
                if read == LineRead::TooLong {
                    pass_rest(&mut editor, agent).await?;
                }
                agent.flush().await?;
            }
            if read == LineRead::End {
                return Ok(());
            }
        }
    }

    /// Passes the lines of the agent until it closes its end.
    pub(super) async fn pass_agent_lines(
        &self,
        mut agent: impl AsyncBufRead + Unpin,
        narrator: &NarrationSender,
    ) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            let read = read_line(&mut agent, &mut line, MAX_INSPECTED_BYTES).await?;
            let message = match read {
                LineRead::Line => read_agent_line(&line),
                LineRead::TooLong | LineRead::End => AgentMessage::Other,
            };
            // Everything is handled before it passes, because the editor may react at once.
            let offer = match message {
                AgentMessage::Permission(request) => {
                    let registered = self.permissions().open(&request);
                    registered.map(|(ticket, closed)| Box::new(OfferedRequest { request, ticket, closed }))
                }
                AgentMessage::CancelRequest(id) => {
                    self.permissions().close(&id, Closure::Withdrawn);
                    None
                }
                AgentMessage::Update { session, update } => {
                    if !self.requests().replaying.contains(&session) {
                        narrator.send_session(&session, SessionNews::Update(update), line.len());
                    }
                    None
                }
                AgentMessage::Response(response) => {
                    self.handle_agent_response(response, narrator);
                    None
                }
                AgentMessage::Other => None,
            };
            if !line.is_empty() {
                let mut editor = self.to_editor.lock().await;
                editor.write_all(&line).await?;
                if read == LineRead::TooLong {
                    pass_rest(&mut agent, &mut *editor).await?;
                }
                editor.flush().await?;
            }
            if read == LineRead::End {
                return Ok(());
            }
            if let Some(offered) = offer {
                let (session, ticket) = (offered.request.session.clone(), offered.ticket);
                if !narrator.send_session(&session, SessionNews::Permission(offered), line.len()) {
                    self.leave_to_editor(ticket);
                }
            }
        }
    }

    fn accept_editor_response(&self, response: &Response) -> bool {
        let option = response.result.as_ref().ok().and_then(|result| result.selected_option.as_deref());
        self.permissions().answer_by_editor(&response.id, option) == EditorResponse::Pass
    }

    fn follow_request(&self, id: &RequestId, kind: &EditorRequest) {
        let mut requests = self.requests();
        if requests.open.len() >= MAX_FOLLOWED_REQUESTS {
            return;
        }
        if let EditorRequest::Load(session) = kind {
            requests.replaying.insert(session.clone());
        }
        requests.open.insert(id.clone(), kind.clone());
    }

    fn handle_agent_response(&self, response: Response, narrator: &NarrationSender) {
        let mut requests = self.requests();
        let Some(request) = requests.open.remove(&response.id) else { return };
        match (request, response.result) {
            (EditorRequest::Load(session), _) => drop(requests.replaying.remove(&session)),
            (EditorRequest::Initialize, Ok(ResponseResult { agent: Some((name, version)), .. })) => {
                let version = version.map(|version| shorten(&version, 100, Language::English));
                narrator.send(Narration::Agent { name: shorten(&name, 100, Language::English), version });
            }
            (EditorRequest::Prompt { session, .. }, result) => {
                let result = result.map(|result| result.stop_reason.unwrap_or_else(|| "end_turn".to_owned()));
                narrator.send_session(&session, SessionNews::TurnEnded(result), 0);
            }
            (EditorRequest::Close(session), Ok(_)) => narrator.send(Narration::Close { session }),
            _ => {}
        }
    }

    /// Whether a listener can still answer.
    pub(super) fn is_open(&self, ticket: Ticket) -> bool {
        self.permissions().is_open(ticket)
    }

    /// Answers a request with the option that a listener chose, and dismisses the editor's dialog. Returns whether the answer
    /// came in time.
    pub(super) async fn answer(&self, ticket: Ticket, option: &str) -> bool {
        let Some(id) = self.permissions().answer_by_listener(ticket, option) else { return false };
        self.write_to_agent(&id.selected(option)).await;
        self.write_to_editor(&id.cancel_request()).await;
        true
    }

    /// Leaves a request to the editor.
    pub(super) fn leave_to_editor(&self, ticket: Ticket) {
        self.permissions().close_ticket(ticket, Closure::Withdrawn);
    }

    /// Leaves all requests to the editor.
    pub(super) fn leave_all_to_editor(&self) {
        self.permissions().close_all(&Closure::ConnectionClosed);
    }

    /// Cancels the turn of a session, because a listener stopped it. Its open requests are answered with `cancelled`.
    pub(super) async fn cancel_turn(&self, session: &str) {
        let ids = self.permissions().decide_session(session);
        self.write_to_agent(&message::session_cancel(session)).await;
        for id in ids {
            self.write_to_agent(&id.cancelled()).await;
            self.write_to_editor(&id.cancel_request()).await;
        }
    }

    /// Closes the agent's standard input.
    pub(super) async fn close_agent_input(&self) {
        drop(self.to_agent.lock().await.take());
    }

    /// Writes one of the gate's own lines to standard error, which the agent also uses. An agent that provokes many of them does not
    /// get more than [`MAX_LOG_LINES`].
    pub(super) fn log(&self, text: &str) {
        let count = self.log_lines.fetch_add(1, Ordering::Relaxed);
        let text = match count {
            MAX_LOG_LINES => "further messages are left out",
            count if count > MAX_LOG_LINES => return,
            _ => text,
        };
        let text = seal::escape_controls(text, |char| format!("\\u{{{char:x}}}"));
        let _ = writeln!(io::stderr(), "sayso acp: {text}");
    }

    /// Reports once that listeners did not answer, so that somebody looks at the editor.
    pub(super) fn log_unanswered(&self, reason: &str) {
        if !self.has_logged_unanswered.swap(true, Ordering::Relaxed) {
            self.log(&format!("no answer from a listener ({reason}); the editor's dialog remains"));
        }
    }

    async fn write_to_agent(&self, line: &str) {
        if let Some(agent) = self.to_agent.lock().await.as_mut() {
            // If the agent is gone, its end is noticed elsewhere.
            let _ = agent.write_all(line.as_bytes()).await;
            let _ = agent.flush().await;
        }
    }

    async fn write_to_editor(&self, line: &str) {
        let mut editor = self.to_editor.lock().await;
        let _ = editor.write_all(line.as_bytes()).await;
        let _ = editor.flush().await;
    }

    fn permissions(&self) -> MutexGuard<'_, PermissionTable> {
        self.permissions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, FollowedRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
