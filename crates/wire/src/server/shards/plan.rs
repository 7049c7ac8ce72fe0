//! Decides which shards handle a command.

use aaep::SubscriptionId;
use aaep::consent::ConsentMessage;
use hub::command::{HubCommand, HubReply, SubscriberMessage};
use hub::{AgentConnectionId, Principal, ShardMap, StartRoute};

use super::flow::{Flow, Rule, ShardCommand, Stage};

/// The plan for handling a command.
pub(in crate::server) enum Plan {
    /// One shard handles it.
    Single(u16, HubCommand),
    /// Several shards handle it.
    Flow(Box<Flow>),
}

impl Plan {
    /// Plans a command of a hub with several shards.
    pub(in crate::server) fn new(map: ShardMap, principal: &Principal, command: HubCommand) -> Self {
        match command {
            HubCommand::OnConnection { connection, command } => {
                Self::on_connection(map, principal, connection, *command)
            }
            command => Self::of_command(map, principal, None, command),
        }
    }

    fn on_connection(
        map: ShardMap,
        principal: &Principal,
        connection: AgentConnectionId,
        command: HubCommand,
    ) -> Self {
        match Self::of_command(map, principal, Some(connection), command) {
            Self::Single(shard, command) => Self::Single(shard, wrap(Some(connection), command)),
            Self::Flow(flow) => Self::Flow(Box::new(flow.with_connection(Some(connection)))),
        }
    }

    fn of_command(
        map: ShardMap,
        principal: &Principal,
        connection: Option<AgentConnectionId>,
        command: HubCommand,
    ) -> Self {
        let shards = || map.of_scope(&principal.scope);
        match command {
            HubCommand::Subscribe { .. } => subscribe(principal, &shards(), command),
            HubCommand::Attach { listener, .. } | HubCommand::AttachFromStart { listener, .. } => {
                let stage = to_all(&shards(), &command, Rule::All(is_done));
                flow(Flow::new(principal, [stage]).with_removed_listener(listener))
            }
            HubCommand::SendMessage { ref message }
            | HubCommand::SendMessageOnSubscription { ref message, .. } => match message {
                SubscriberMessage::Close(_) => {
                    flow(Flow::new(principal, [to_all(&shards(), &command, Rule::First)]))
                }
                SubscriberMessage::Renegotiate(renegotiation) => {
                    let id = renegotiation.subscription_id.clone();
                    renegotiate(principal, shards(), &id, command)
                }
                SubscriberMessage::Consent(Ok(consent)) => {
                    let shard = match &**consent {
                        ConsentMessage::Reply(reply) => map.of_reply_token(reply.reply_token()),
                        ConsentMessage::Handoff(reply) => map.of_reply_token(&reply.reply_token),
                        ConsentMessage::Stop(stop) => map.of_session(&stop.session_id),
                        _ => map.home_of(&principal.scope),
                    };
                    Self::Single(shard, command)
                }
                _ => Self::Single(map.home_of(&principal.scope), command),
            },
            HubCommand::ShutDown
            | HubCommand::PauseCheckpoints
            | HubCommand::ResumeCheckpoints
            | HubCommand::SetValidTokens { .. }
            | HubCommand::EndSignIn { .. } => {
                let stage = to_all(&map.all(), &command, Rule::All(is_done));
                flow(Flow::new(principal, [stage]).with_outcome(HubReply::Done))
            }
            HubCommand::Detach { .. } | HubCommand::DisconnectAgent { .. } => {
                // There is no reply. `HubHandle` sends these to all shards itself.
                Self::Single(0, command)
            }
            HubCommand::Start { body, idempotency_key } => {
                start(map, principal, connection, HubCommand::Start { body, idempotency_key })
            }
            HubCommand::PublishManifest { ref document } => {
                let document = document.clone();
                replicate_manifest(map, principal, connection, command, move |reply| match reply {
                    HubReply::ManifestPublished { agent_id, .. } => {
                        Some((agent_id.to_string(), Some(document)))
                    }
                    _ => None,
                })
            }
            HubCommand::DeleteManifest => {
                let agent = principal.agent_id.clone();
                replicate_manifest(map, principal, connection, command, move |reply| {
                    let agent = agent.filter(|_| *reply == HubReply::Done)?;
                    Some((agent.to_string(), None))
                })
            }
            HubCommand::Publish { ref session, .. }
            | HubCommand::StreamOutput { ref session, .. }
            | HubCommand::Ask { ref session, .. }
            | HubCommand::HandOff { ref session, .. }
            | HubCommand::Invite { ref session, .. }
            | HubCommand::Join { ref session, .. }
            | HubCommand::Wait { ref session, .. }
            | HubCommand::Withdraw { ref session, .. }
            | HubCommand::Follow { ref session } => Self::Single(map.of_session(session), command),
            command => Self::Single(0, command),
        }
    }
}

fn flow(flow: Flow) -> Plan {
    Plan::Flow(Box::new(flow))
}

/// Adds the agent connection that a command arrived on.
fn wrap(connection: Option<AgentConnectionId>, command: HubCommand) -> HubCommand {
    match connection {
        Some(connection) => HubCommand::OnConnection { connection, command: Box::new(command) },
        None => command,
    }
}

fn is_done(reply: &HubReply) -> bool {
    *reply == HubReply::Done
}

fn is_not_found(reply: &HubReply) -> bool {
    *reply == HubReply::NotFound
}

fn commands_for(shards: &[u16], command: &HubCommand) -> Vec<ShardCommand> {
    shards.iter().map(|shard| (*shard, command.clone())).collect()
}

fn to_all(shards: &[u16], command: &HubCommand, rule: Rule) -> Stage {
    Stage { rule, commands: commands_for(shards, command) }
}

fn close_command(id: &SubscriptionId) -> HubCommand {
    HubCommand::SendMessage { message: SubscriberMessage::Close(id.clone()) }
}

/// The home accepts the subscription; then the other shards get replicas.
fn subscribe(principal: &Principal, shards: &[u16], command: HubCommand) -> Plan {
    let home = shards.first().copied().unwrap_or(0);
    let others: Vec<u16> = shards.iter().skip(1).copied().collect();
    let all = shards.to_vec();
    if others.is_empty() {
        return Plan::Single(home, command);
    }
    let add_replicas = move |reply: &HubReply| {
        let HubReply::Subscribed { accepted, .. } = reply else { return None };
        let add = HubCommand::AddSubscription { accepted: reply.to_json()? };
        let cleanup = commands_for(&all, &close_command(&accepted.subscription_id));
        Some((to_all(&others, &add, Rule::All(is_done)), cleanup))
    };
    let stage = Stage { rule: Rule::Decide(Box::new(add_replicas)), commands: vec![(home, command)] };
    flow(Flow::new(principal, [stage]))
}

/// The home decides; then the other shards change their replicas in the same way. If one fails, the subscription is closed,
/// because its terms would differ between the shards.
fn renegotiate(principal: &Principal, shards: Vec<u16>, id: &SubscriptionId, command: HubCommand) -> Plan {
    let home = shards.first().copied().unwrap_or(0);
    if shards.len() == 1 {
        return Plan::Single(home, command);
    }
    let (id, copy) = (id.clone(), command.clone());
    let change_replicas = move |reply: &HubReply| {
        let others: Vec<u16> = shards.iter().skip(1).copied().collect();
        let close = close_command(&id);
        match reply {
            HubReply::Renegotiated(_) => {
                let is_renegotiated: fn(&HubReply) -> bool =
                    |reply| matches!(reply, HubReply::Renegotiated(_));
                Some((to_all(&others, &copy, Rule::All(is_renegotiated)), commands_for(&shards, &close)))
            }
            HubReply::SubscriptionRejected(_) => Some((to_all(&others, &close, Rule::First), Vec::new())),
            _ => None,
        }
    };
    let stage = Stage { rule: Rule::Decide(Box::new(change_replicas)), commands: vec![(home, command)] };
    flow(Flow::new(principal, [stage]))
}

/// Starts a session in the shard of its person.
fn start(
    map: ShardMap,
    principal: &Principal,
    connection: Option<AgentConnectionId>,
    command: HubCommand,
) -> Plan {
    let HubCommand::Start { body, idempotency_key } = command else { return Plan::Single(0, command) };
    let StartRoute { shard, foreign_parent } = StartRoute::find(map, principal, &body);
    let mut stages = Vec::new();
    // A request from before the hub had several shards was stored in shard 0.
    if map.was_single()
        && shard != 0
        && let Some(key) = &idempotency_key
    {
        let find = HubCommand::FindResponse { body: body.clone(), idempotency_key: key.clone() };
        stages.push(Stage { rule: Rule::Gate(is_not_found), commands: vec![(0, wrap(connection, find))] });
    }
    let command = match foreign_parent {
        Some((parent_shard, session)) => {
            let check = HubCommand::CheckParent { session };
            stages.push(Stage { rule: Rule::Gate(is_done), commands: vec![(parent_shard, check)] });
            HubCommand::StartWithForeignParent { body, idempotency_key }
        }
        None => HubCommand::Start { body, idempotency_key },
    };
    if stages.is_empty() {
        return Plan::Single(shard, command);
    }
    stages.push(Stage { rule: Rule::First, commands: vec![(shard, wrap(connection, command))] });
    flow(Flow::new(principal, stages))
}

/// Shard 0 decides about a manifest; then the other shards store it too.
fn replicate_manifest(
    map: ShardMap,
    principal: &Principal,
    connection: Option<AgentConnectionId>,
    command: HubCommand,
    stored: impl FnOnce(&HubReply) -> Option<(String, Option<String>)> + Send + 'static,
) -> Plan {
    let store_in_others = move |reply: &HubReply| {
        let (agent, document) = stored(reply)?;
        let others: Vec<u16> = map.all().into_iter().skip(1).collect();
        let replicate = HubCommand::ReplicateManifest { agent, document };
        Some((to_all(&others, &replicate, Rule::All(is_done)), Vec::new()))
    };
    let rule = Rule::Decide(Box::new(store_in_others));
    flow(Flow::new(principal, [Stage { rule, commands: vec![(0, wrap(connection, command))] }]))
}
