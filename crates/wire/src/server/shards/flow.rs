//! A command that several shards handle, in stages. The commands of a stage are sent at the same time.

use std::collections::VecDeque;

use hub::command::{HubCommand, HubReply};
use hub::{AgentConnectionId, ListenerId, Principal};

/// A command for a shard.
pub(super) type ShardCommand = (u16, HubCommand);

/// The stages of one command.
pub(in crate::server) struct Flow {
    pub(super) principal: Principal,
    /// The agent connection that the command arrived on.
    pub(super) connection: Option<AgentConnectionId>,
    stages: VecDeque<Stage>,
    /// The rule of the current stage, and the replies to it so far.
    rule: Rule,
    replies: Vec<Option<HubReply>>,
    outcome: Option<HubReply>,
    /// Commands to send if a stage fails.
    cleanup: Vec<ShardCommand>,
    /// The listener to remove from the fan-out if a stage fails.
    removed_listener: Option<ListenerId>,
    has_failed: bool,
}

pub(super) struct Stage {
    pub(super) rule: Rule,
    pub(super) commands: Vec<ShardCommand>,
}

/// Returns the stage that follows a decision, and the cleanup if that stage fails.
type DecideFn = dyn FnOnce(&HubReply) -> Option<(Stage, Vec<ShardCommand>)> + Send;

/// The rule that decides what follows the replies to a stage.
pub(super) enum Rule {
    /// If this holds for the reply, the next stage follows. Otherwise the reply is the outcome.
    Gate(fn(&HubReply) -> bool),
    /// The reply is the outcome. The function returns a further stage, and the cleanup if that fails.
    Decide(Box<DecideFn>),
    /// If this holds for all replies, the next stage follows. Otherwise the first reply for which it does not hold is the
    /// outcome, and the cleanup is sent.
    All(fn(&HubReply) -> bool),
    /// The reply to the first command is the outcome.
    First,
}

impl Flow {
    pub(super) fn new(principal: &Principal, stages: impl IntoIterator<Item = Stage>) -> Self {
        Self {
            principal: principal.clone(),
            connection: None,
            stages: stages.into_iter().collect(),
            rule: Rule::First,
            replies: Vec::new(),
            outcome: None,
            cleanup: Vec::new(),
            removed_listener: None,
            has_failed: false,
        }
    }

    pub(super) fn with_connection(self, connection: Option<AgentConnectionId>) -> Self {
        Self { connection, ..self }
    }

    /// Sets the outcome of a flow whose stages all succeed.
    pub(super) fn with_outcome(self, outcome: HubReply) -> Self {
        Self { outcome: Some(outcome), ..self }
    }

    /// Removes a listener from the fan-out if a stage fails.
    pub(super) fn with_removed_listener(self, listener: ListenerId) -> Self {
        Self { removed_listener: Some(listener), ..self }
    }

    /// Starts the next stage and returns its commands. Returns no commands if the flow is complete.
    pub(super) fn next_stage(&mut self) -> Vec<ShardCommand> {
        let Some(Stage { rule, commands }) = self.stages.pop_front() else { return Vec::new() };
        self.rule = rule;
        self.replies = commands.iter().map(|_| None).collect();
        commands
    }

    /// Records a reply to the current stage. Returns whether the stage is complete.
    pub(super) fn record(&mut self, index: usize, reply: HubReply) -> bool {
        if let Some(slot) = self.replies.get_mut(index) {
            *slot = Some(reply);
        }
        if self.replies.iter().any(Option::is_none) {
            return false;
        }
        let mut replies = std::mem::take(&mut self.replies).into_iter().flatten();
        match std::mem::replace(&mut self.rule, Rule::First) {
            Rule::Gate(is_passed) => {
                if let Some(reply) = replies.find(|reply| !is_passed(reply)) {
                    self.outcome = Some(reply);
                    self.stages.clear();
                }
            }
            Rule::Decide(next) => {
                let reply = replies.next();
                if let Some((stage, cleanup)) = reply.as_ref().and_then(next) {
                    self.stages.push_back(stage);
                    self.cleanup = cleanup;
                }
                self.outcome = reply;
            }
            Rule::All(is_success) => {
                if let Some(reply) = replies.find(|reply| !is_success(reply)) {
                    self.outcome = Some(reply);
                    self.has_failed = true;
                    self.stages.clear();
                }
            }
            Rule::First => self.outcome = self.outcome.take().or_else(|| replies.next()),
        }
        true
    }

    /// Returns the commands that undo the earlier stages, if a stage has failed.
    pub(super) fn take_cleanup(&mut self) -> Vec<ShardCommand> {
        if self.has_failed { std::mem::take(&mut self.cleanup) } else { Vec::new() }
    }

    pub(super) fn take_removed_listener(&mut self) -> Option<ListenerId> {
        self.removed_listener.take().filter(|_| self.has_failed)
    }

    pub(super) fn into_outcome(self) -> HubReply {
        self.outcome.unwrap_or(HubReply::Done)
    }
}
