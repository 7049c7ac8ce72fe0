//! The scenes. Each is what an agent's author writes with the crate `sayso`: say, ask, act, report, end.

use sayso::{
    Action, Cancellation, Cause, Error, Failure, HandOff, Progress, Risk, State, StateChange, Target, Tool,
};

use super::agent::Agent;
use super::language::Line;
use super::named::answered_place;
use super::phrases::{self, Errand};
use super::request::Scene;

pub(super) async fn play(agent: Agent, scene: Scene) -> Result<(), Error> {
    match scene {
        Scene::Greeting => answer(agent, &phrases::GREETING).await,
        Scene::Balance => balance(agent).await,
        Scene::Transfer => confirmed(agent, &phrases::TRANSFER).await,
        Scene::Booking => confirmed(agent, &phrases::BOOKING).await,
        Scene::Mail => confirmed(agent, &phrases::MAIL).await,
        Scene::Deletion => confirmed(agent, &phrases::DELETION).await,
        Scene::Weather => weather(agent).await,
        Scene::Explanation => {
            think(&agent).await?;
            answer(agent, &phrases::EXPLANATION).await
        }
        Scene::NoSuchTool => no_such_tool(agent).await,
        Scene::Handoff => handoff(agent).await,
        Scene::Failure => failure(agent).await,
        Scene::Cancellation => cancellation(agent).await,
        Scene::Unknown => {
            write(&agent, &phrases::UNKNOWN).await?;
            let words = agent.words(&phrases::NOT_UNDERSTOOD);
            agent.session.finish(words).await
        }
    }
}

async fn think(agent: &Agent) -> Result<(), Error> {
    agent.session.think(agent.words(&phrases::THINKING)).await
}

/// Says its answer, and that it is done.
async fn answer(agent: Agent, line: &Line) -> Result<(), Error> {
    write(&agent, line).await?;
    let words = agent.words(&phrases::DONE);
    agent.session.finish(words).await
}

async fn write(agent: &Agent, line: &Line) -> Result<(), Error> {
    agent.session.enter(StateChange::to(State::WritingOutput, agent.words(&phrases::WRITING))).await?;
    agent.output(line).await?;
    agent.session.enter(StateChange::to(State::Idle, agent.words(&phrases::IDLE))).await
}

async fn balance(agent: Agent) -> Result<(), Error> {
    let tool = look_up(&agent).await?;
    agent.session.progress(Progress::says(agent.words(&phrases::LOOKING_AT_IT)).step(1, 1)).await?;
    tool.done(agent.words(&phrases::LOOKED)).await?;
    answer(agent, &phrases::BALANCE).await
}

async fn look_up(agent: &Agent) -> Result<Tool<'_>, Error> {
    agent.session.enter(StateChange::to(State::CallingTool, agent.words(&phrases::CALLING))).await?;
    agent.session.tool("look_up_balance").says(agent.words(&phrases::LOOKING)).start().await
}

/// Asks first, and acts only on a yes.
async fn confirmed(agent: Agent, errand: &Errand) -> Result<(), Error> {
    think(&agent).await?;
    let action = Action::new(errand.tool, agent.named.fill(errand.arguments))
        .says(agent.line(&errand.action))
        .consequence(agent.line(&errand.consequence))
        .summary(agent.words(&errand.ask))
        .doing(agent.words(&errand.doing))
        .risk(errand.risk);
    let action = if errand.irreversible { action.irreversible() } else { action.reversible_with_effort() };
    let Some(granted) = agent.ask(action).await? else { return answer(agent, &errand.refused).await };
    agent.session.enter(StateChange::to(State::CallingTool, agent.words(&phrases::CALLING))).await?;
    let tool = agent.session.begin(granted).await?;
    tool.done(agent.words(&errand.did)).await?;
    answer(agent, &errand.done).await
}

async fn weather(mut agent: Agent) -> Result<(), Error> {
    if agent.named.place.is_none() {
        think(&agent).await?;
        let asked = sayso::Question::new(agent.words(&phrases::WHERE)).or_in_words();
        let asked = phrases::PLACES.iter().fold(asked, |asked, place| asked.choice(*place, *place));
        match agent.clarify(asked).await? {
            None => return answer(agent, &phrases::NOWHERE).await,
            Some(said) => agent.named.place = answered_place(&said),
        }
    }
    let known = agent.named.place.is_some();
    answer(agent, if known { &phrases::WEATHER } else { &phrases::WEATHER_ANYWHERE }).await
}

async fn no_such_tool(agent: Agent) -> Result<(), Error> {
    think(&agent).await?;
    let failure = Failure::new(agent.words(&phrases::NO_SUCH_TOOL))
        .cause(Cause::RequiresUser)
        .code("NO_SUCH_TOOL")
        .hint(agent.line(&phrases::ASK_OTHERWISE));
    agent.session.fail(failure).await
}

async fn handoff(agent: Agent) -> Result<(), Error> {
    agent.session.enter(StateChange::to(State::HandingOff, agent.words(&phrases::HANDING_OFF))).await?;
    let handoff = HandOff::to(Target::Human, agent.line(&phrases::HANDOFF_REASON))
        .summary(agent.words(&phrases::HANDOFF))
        .urgency(Risk::Low);
    agent.session.hand_off(handoff).await?;
    let words = agent.words(&phrases::HANDED_OFF);
    agent.session.finish(words).await
}

async fn failure(agent: Agent) -> Result<(), Error> {
    let tool = look_up(&agent).await?;
    tool.failed_as(agent.words(&phrases::LOOKED_IN_VAIN), agent.line(&phrases::NO_ANSWER)).await?;
    let failure = Failure::new(agent.words(&phrases::FAILED))
        .cause(Cause::Transient)
        .code("DEMONSTRATION")
        .hint(agent.line(&phrases::TRY_AGAIN));
    agent.session.fail(failure).await
}

async fn cancellation(agent: Agent) -> Result<(), Error> {
    think(&agent).await?;
    let cancellation = Cancellation::new(agent.words(&phrases::CANCELLED)).at_request();
    agent.session.cancel(cancellation).await
}
