//! Connects to the hub, and gives every ACP session its driver.
//!
//! Without a hub, nothing is narrated and only the editor answers. The narrator says so once on standard error, and tries again at
//! the next prompt or permission request.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sayso::Hub;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::AcpOptions;
use super::proxy::Proxy;
use super::queue::{MAX_QUEUED_BYTES, QueueSpace, QueuedItem};
use super::session_driver::{self, AcpSessionEnd, DriverContext, DriverEnd, SessionNews};
use super::wording::{shorten, with_short};
use crate::phrases::{GateText, Language, texts};

/// How long to try to reach the hub, at the start and after a lost connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the gate waits at its end until the hub has everything.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of sessions of the hub at the same time. Further ACP sessions are not narrated.
pub(super) const MAX_SESSIONS: usize = 64;

/// An item for the narrator.
#[derive(Debug)]
pub(super) enum Narration {
    /// The agent gave its name and version.
    Agent {
        /// The name that people hear.
        name: String,
        /// The version.
        version: Option<String>,
    },
    /// Something happened in a session.
    Session {
        /// The ACP session.
        session: String,
        /// What happened.
        news: SessionNews,
    },
    /// The editor closed a session.
    Close {
        /// The ACP session.
        session: String,
    },
    /// Everything is over.
    Shutdown(AcpSessionEnd),
}

/// Sends work to the narrator. It never waits.
#[derive(Clone, Debug)]
pub(super) struct NarrationSender {
    sender: mpsc::UnboundedSender<QueuedItem<Narration>>,
    space: QueueSpace,
}

impl NarrationSender {
    /// Sends something small that must arrive, even if the queue is full.
    pub(super) fn send(&self, narration: Narration) {
        if let Some(item) = QueueSpace::for_one().take(narration, 0) {
            let _ = self.sender.send(item);
        }
    }

    /// Sends news about a session whose line had this size. Returns whether there was space for it.
    pub(super) fn send_session(&self, session: &str, news: SessionNews, bytes: usize) -> bool {
        let narration = Narration::Session { session: session.to_owned(), news };
        self.space.take(narration, bytes).is_some_and(|item| self.sender.send(item).is_ok())
    }
}

/// Starts the narrator.
pub(super) fn spawn(
    options: Arc<AcpOptions>,
    make_proxy: impl FnOnce() -> Arc<Proxy>,
) -> (NarrationSender, JoinHandle<()>, Arc<Proxy>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let space = QueueSpace::new(MAX_QUEUED_BYTES);
    let proxy = make_proxy();
    let narrator = Narrator {
        options,
        proxy: proxy.clone(),
        space: space.clone(),
        agent: None,
        hub: None,
        has_told_missing: false,
        sessions: HashMap::new(),
        muted: HashSet::new(),
    };
    let task = tokio::spawn(narrator.run(receiver));
    (NarrationSender { sender, space }, task, proxy)
}

struct Narrator {
    options: Arc<AcpOptions>,
    proxy: Arc<Proxy>,
    space: QueueSpace,
    agent: Option<(String, Option<String>)>,
    hub: Option<Hub>,
    has_told_missing: bool,
    sessions: HashMap<String, RunningSession>,
    /// Sessions that a person stopped. They are heard again from the next prompt on.
    muted: HashSet<String>,
}

struct RunningSession {
    news: mpsc::UnboundedSender<QueuedItem<SessionNews>>,
    driver: JoinHandle<DriverEnd>,
}

impl Narrator {
    async fn run(mut self, mut receiver: mpsc::UnboundedReceiver<QueuedItem<Narration>>) {
        while let Some(queued) = receiver.recv().await {
            let mut end = None;
            let mut target = None;
            let news = queued.map(|narration| match narration {
                Narration::Agent { name, version } => {
                    self.agent = Some((name, version));
                    None
                }
                Narration::Close { session } => {
                    target = Some(session);
                    None
                }
                Narration::Shutdown(reason) => {
                    end = Some(reason);
                    None
                }
                Narration::Session { session, news } => {
                    target = Some(session);
                    Some(news)
                }
            });
            if let Some(reason) = end {
                return self.shut_down(&reason).await;
            }
            let Some(session) = target else { continue };
            match news.transpose() {
                Some(news) => self.narrate(session, news).await,
                None => self.close(&session),
            }
        }
        self.shut_down(&AcpSessionEnd::Editor).await;
    }

    async fn narrate(&mut self, id: String, news: QueuedItem<SessionNews>) {
        let is_prompt = matches!(news.item(), SessionNews::Prompt(_));
        let is_question = matches!(news.item(), SessionNews::Permission(_));
        self.reap(&id).await;
        if is_prompt {
            self.muted.remove(&id);
        }
        if self.muted.contains(&id) {
            return self.discard(news);
        }
        if let Some(running) = self.sessions.get(&id) {
            let _ = running.news.send(news);
            if let Some(gap) = Some(self.space.take_left_out()).filter(|count| *count > 0)
                && let Some(gap) = self.space.take(SessionNews::Gap(gap), 0)
            {
                let _ = running.news.send(gap);
            }
            return;
        }
        // Without a session, only something new is worth one. Late reports of an ended turn are not.
        if !is_prompt && !is_question {
            return;
        }
        let request = match news.item() {
            SessionNews::Prompt(text) => text.clone(),
            _ => String::new(),
        };
        if self.start(&id, &request).await {
            if is_question && let Some(running) = self.sessions.get(&id) {
                let _ = running.news.send(news);
            }
        } else {
            self.discard(news);
        }
    }

    /// Leaves a question that no driver gets to the editor.
    fn discard(&self, news: QueuedItem<SessionNews>) {
        if let SessionNews::Permission(offered) = news.into_item() {
            self.proxy.leave_to_editor(offered.ticket);
        }
    }

    /// Removes a session whose driver has stopped.
    async fn reap(&mut self, id: &str) {
        if self.sessions.get(id).is_none_or(|running| !running.news.is_closed()) {
            return;
        }
        let Some(running) = self.sessions.remove(id) else { return };
        match running.driver.await {
            Ok(DriverEnd::StoppedByPerson) => drop(self.muted.insert(id.to_owned())),
            Ok(DriverEnd::Closed) => {}
            Ok(DriverEnd::Lost) | Err(_) => {
                self.hub = None;
                self.proxy.log(
                    "the connection to the hub is lost, so nothing is heard; the editor's dialogs remain",
                );
            }
        }
    }

    async fn start(&mut self, id: &str, request: &str) -> bool {
        if self.sessions.len() >= MAX_SESSIONS {
            self.proxy.log(&format!("not narrated: more than {MAX_SESSIONS} sessions are open"));
            return false;
        }
        let Some(hub) = self.connect().await else { return false };
        let summary = if request.trim().is_empty() {
            GateText::from(&texts::EDITOR_SESSION)
        } else {
            with_short(&texts::WORKING_ON, request.trim(), 300)
        };
        let mut builder = hub.session(shorten(request, 4000, Language::English)).says(summary);
        if self.options.token.is_none() {
            // With a token, the hub knows the agent's id.
            builder = builder.agent("acp");
        }
        match builder.start().await {
            Ok(session) => {
                let (news, receiver) = mpsc::unbounded_channel();
                let context = DriverContext {
                    proxy: self.proxy.clone(),
                    narrates_thoughts: self.options.narrates_thoughts,
                    acp_session: id.to_owned(),
                };
                let driver = tokio::spawn(session_driver::run(session, receiver, context));
                self.sessions.insert(id.to_owned(), RunningSession { news, driver });
                true
            }
            Err(error) => {
                self.hub = None;
                self.proxy.log(&format!("the hub refuses the session, so it is not heard: {error}"));
                false
            }
        }
    }

    async fn connect(&mut self) -> Option<Hub> {
        if self.hub.is_none() {
            let mut builder = Hub::connect(self.options.hub_url.as_str()).connect_timeout(CONNECT_TIMEOUT);
            if let Some(token) = &self.options.token {
                builder = builder.token(token.as_str());
            }
            if let Some(file) = &self.options.ca_file {
                builder = builder.ca_file(file);
            }
            if let Some((name, version)) = &self.agent {
                builder = builder.agent_name(name.as_str());
                if let Some(version) = version {
                    builder = builder.agent_version(version.as_str());
                }
            }
            match builder.open().await {
                Ok(hub) => {
                    self.hub = Some(hub);
                    self.has_told_missing = false;
                }
                Err(error) if !self.has_told_missing => {
                    self.has_told_missing = true;
                    self.proxy.log(&format!("nothing is heard, and only the editor asks: {error}"));
                }
                Err(_) => {}
            }
        }
        self.hub.clone()
    }

    fn close(&mut self, id: &str) {
        self.muted.remove(id);
        if let Some(running) = self.sessions.remove(id)
            && let Some(end) = QueueSpace::for_one().take(SessionNews::End(AcpSessionEnd::Editor), 0)
        {
            let _ = running.news.send(end);
        }
    }

    async fn shut_down(mut self, reason: &AcpSessionEnd) {
        let flush = async {
            let sessions: Vec<_> = self.sessions.drain().map(|(_, session)| session).collect();
            for running in &sessions {
                if let Some(end) = QueueSpace::for_one().take(SessionNews::End(reason.clone()), 0) {
                    let _ = running.news.send(end);
                }
            }
            for running in sessions {
                let _ = running.driver.await;
            }
            if let Some(hub) = self.hub.take() {
                hub.close().await;
            }
        };
        let _ = timeout(FLUSH_TIMEOUT, flush).await;
    }
}
