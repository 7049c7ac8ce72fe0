//! The scenes. Each is what an agent's author would write: say, ask, act, report, end.

use super::agent::{Agent, Answered, Over};
use super::draft::Draft;
use super::language::{Line, Phrase};
use super::named::answered_place;
use super::phrases::{self, Question};
use super::request::Scene;

/// Plays a scene to its end.
pub(super) async fn play(agent: &Agent, scene: Scene) -> Result<(), Over> {
    match scene {
        Scene::Greeting => answer(agent, &phrases::GREETING).await,
        Scene::Balance => balance(agent).await,
        Scene::Transfer => confirmed(agent, &phrases::TRANSFER).await,
        Scene::Booking => confirmed(agent, &phrases::BOOKING).await,
        Scene::Mail => confirmed(agent, &phrases::MAIL).await,
        Scene::Deletion => confirmed(agent, &phrases::DELETION).await,
        Scene::Weather => weather(agent).await,
        Scene::Explanation => {
            agent.be("thinking", &phrases::THINKING).await?;
            answer(agent, &phrases::EXPLANATION).await
        }
        Scene::NoSuchTool => no_such_tool(agent).await,
        Scene::Handoff => handoff(agent).await,
        Scene::Failure => failure(agent).await,
        Scene::Cancellation => cancellation(agent).await,
        Scene::Unknown => {
            write(agent, &phrases::UNKNOWN).await?;
            complete(agent, &phrases::NOT_UNDERSTOOD).await
        }
    }
}

/// Says its answer, and that it is done.
async fn answer(agent: &Agent, line: &Line) -> Result<(), Over> {
    write(agent, line).await?;
    complete(agent, &phrases::DONE).await
}

async fn write(agent: &Agent, line: &Line) -> Result<(), Over> {
    agent.be("writing_output", &phrases::WRITING).await?;
    agent.output(line, agent.named()).await?;
    agent.be("idle", &phrases::IDLE).await
}

async fn complete(agent: &Agent, phrase: &Phrase) -> Result<(), Over> {
    agent.say(agent.event("session.completed").summary(phrase)).await
}

async fn balance(agent: &Agent) -> Result<(), Over> {
    agent.be("calling_tool", &phrases::CALLING).await?;
    agent.say(invoked(agent, "look_up_balance", &phrases::LOOKING).text("risk_level", "low")).await?;
    let progress = r#"{"step":1,"total_steps":1}"#;
    agent
        .say(agent.event("progress.updated").raw("progress", progress).summary(&phrases::LOOKING_AT_IT))
        .await?;
    agent.say(completed(agent, "look_up_balance", "success", &phrases::LOOKED)).await?;
    answer(agent, &phrases::BALANCE).await
}

/// Asks first, and acts only on a yes.
async fn confirmed(agent: &Agent, question: &Question) -> Result<(), Over> {
    agent.be("thinking", &phrases::THINKING).await?;
    let Question { tool, arguments, irreversible, risk, .. } = *question;
    let asked = agent
        .question()
        .line("action", &question.action)
        .line("consequence", &question.consequence)
        .text("risk_level", risk)
        .raw("irreversible", if irreversible { "true" } else { "false" })
        .text("reversibility", if irreversible { "irreversible" } else { "reversible_with_effort" })
        .raw("timeout_seconds", &agent.time())
        .text("default_decision", "reject")
        .summary(&question.ask)
        .text("tool", tool)
        .raw("arguments", arguments);
    if agent.ask(asked, false).await? == Answered::No {
        return answer(agent, &question.refused).await;
    }
    agent.be("calling_tool", &phrases::CALLING).await?;
    let call = invoked(agent, tool, &question.doing)
        .text("risk_level", risk)
        .raw("irreversible", if irreversible { "true" } else { "false" })
        .raw("arguments", arguments);
    agent.say(call).await?;
    agent.say(completed(agent, tool, "success", &question.did)).await?;
    answer(agent, &question.done).await
}

async fn weather(agent: &Agent) -> Result<(), Over> {
    let mut named = agent.named().clone();
    if named.place.is_none() {
        agent.be("thinking", &phrases::THINKING).await?;
        let asked = agent
            .question()
            .line("question", &phrases::WHERE)
            .raw("accepted_response_kinds", r#"["freetext","multiple_choice"]"#)
            .raw("choices", phrases::PLACES)
            .raw("timeout_seconds", &agent.time())
            .summary(&phrases::WHERE_TO_ASK);
        match agent.ask(asked, true).await? {
            Answered::No => return answer(agent, &phrases::NOWHERE).await,
            Answered::Yes(said) => named.place = answered_place(&said),
        }
    }
    let known = named.place.is_some();
    let line = if known { &phrases::WEATHER } else { &phrases::WEATHER_ANYWHERE };
    agent.be("writing_output", &phrases::WRITING).await?;
    agent.output(line, &named).await?;
    agent.be("idle", &phrases::IDLE).await?;
    complete(agent, &phrases::DONE).await
}

async fn no_such_tool(agent: &Agent) -> Result<(), Over> {
    agent.be("thinking", &phrases::THINKING).await?;
    let errored = agent
        .event("session.errored")
        .text("error_category", "requires_user")
        .text("error_code", "NO_SUCH_TOOL")
        .raw("recoverable", "true")
        .line("remediation_hint", &phrases::ASK_OTHERWISE)
        .summary(&phrases::NO_SUCH_TOOL);
    agent.say(errored).await
}

async fn handoff(agent: &Agent) -> Result<(), Over> {
    agent.be("handing_off", &phrases::HANDING_OFF).await?;
    let handoff = agent
        .event("handoff.requested")
        .line("reason", &phrases::HANDOFF_REASON)
        .text("target_kind", "human")
        .text("urgency_for_handoff", "low")
        .summary(&phrases::HANDOFF);
    agent.say(handoff).await?;
    complete(agent, &phrases::HANDED_OFF).await
}

async fn failure(agent: &Agent) -> Result<(), Over> {
    agent.be("calling_tool", &phrases::CALLING).await?;
    agent.say(invoked(agent, "look_up_balance", &phrases::LOOKING).text("risk_level", "low")).await?;
    let failed = completed(agent, "look_up_balance", "error", &phrases::LOOKED_IN_VAIN)
        .line("error_message", &phrases::NO_ANSWER);
    agent.say(failed).await?;
    let errored = agent
        .event("session.errored")
        .text("error_category", "transient")
        .text("error_code", "DEMONSTRATION")
        .raw("recoverable", "true")
        .line("remediation_hint", &phrases::TRY_AGAIN)
        .summary(&phrases::FAILED);
    agent.say(errored).await
}

async fn cancellation(agent: &Agent) -> Result<(), Over> {
    agent.be("thinking", &phrases::THINKING).await?;
    let cancelled = agent
        .event("session.cancelled")
        .text("cancelled_by", "user")
        .text("cancellation_reason", "asked_to")
        .summary(&phrases::CANCELLED);
    agent.say(cancelled).await
}

fn invoked<'a>(agent: &'a Agent, tool: &str, phrase: &Phrase) -> Draft<'a> {
    agent.event("tool.invoked").text("tool", tool).text("tool_call_id", "call_1").summary(phrase)
}

fn completed<'a>(agent: &'a Agent, tool: &str, status: &str, phrase: &Phrase) -> Draft<'a> {
    agent
        .event("tool.completed")
        .text("tool", tool)
        .text("tool_call_id", "call_1")
        .text("status", status)
        .summary(phrase)
}
