//! The demo scenarios, written as an agent author would write them with the `sayso` crate: report, ask, act, finish.

use sayso::{
    Action, Cancellation, Error, ErrorCategory, Failure, HandOff, HandOffTarget, ProgressUpdate,
    ReportedState, Risk, StateChange, ToolCall,
};

use super::agent::DemoAgent;
use super::language::TranslatedText;
use super::phrases::{self, ConfirmedAction};
use super::request::DemoScenario;
use super::request_details::parse_place_answer;

pub(super) async fn run_scenario(agent: DemoAgent, scenario: DemoScenario) -> Result<(), Error> {
    match scenario {
        DemoScenario::Greeting => answer(agent, &phrases::GREETING).await,
        DemoScenario::Balance => run_balance(agent).await,
        DemoScenario::Transfer => run_confirmed_action(agent, &phrases::TRANSFER).await,
        DemoScenario::Booking => run_confirmed_action(agent, &phrases::BOOKING).await,
        DemoScenario::Mail => run_confirmed_action(agent, &phrases::MAIL).await,
        DemoScenario::Deletion => run_confirmed_action(agent, &phrases::DELETION).await,
        DemoScenario::Weather => run_weather(agent).await,
        DemoScenario::Explanation => {
            think(&agent).await?;
            answer(agent, &phrases::EXPLANATION).await
        }
        DemoScenario::NoSuchTool => run_no_such_tool(agent).await,
        DemoScenario::Handoff => run_handoff(agent).await,
        DemoScenario::Failure => run_failure(agent).await,
        DemoScenario::Cancellation => run_cancellation(agent).await,
        DemoScenario::Unknown => {
            write(&agent, &phrases::UNKNOWN_REQUEST_ANSWER).await?;
            let summary = agent.localize_phrase(&phrases::UNKNOWN_REQUEST_SUMMARY);
            agent.session.finish(summary).await
        }
    }
}

async fn think(agent: &DemoAgent) -> Result<(), Error> {
    agent.session.think(agent.localize_phrase(&phrases::THINKING)).await
}

/// Sends the answer and finishes the session.
async fn answer(agent: DemoAgent, text: &TranslatedText) -> Result<(), Error> {
    write(&agent, text).await?;
    let summary = agent.localize_phrase(&phrases::DONE);
    agent.session.finish(summary).await
}

/// Sends an output, with a state change before and after it.
async fn write(agent: &DemoAgent, text: &TranslatedText) -> Result<(), Error> {
    agent
        .session
        .change_state(StateChange::new(
            ReportedState::WritingOutput,
            agent.localize_phrase(&phrases::WRITING),
        ))
        .await?;
    agent.output(text).await?;
    agent
        .session
        .change_state(StateChange::new(ReportedState::Idle, agent.localize_phrase(&phrases::IDLE)))
        .await
}

async fn run_balance(agent: DemoAgent) -> Result<(), Error> {
    let tool = start_lookup(&agent).await?;
    agent
        .session
        .progress(ProgressUpdate::new(agent.localize_phrase(&phrases::LOOKUP_RUNNING)).step(1, 1))
        .await?;
    tool.succeed(agent.localize_phrase(&phrases::LOOKUP_DONE)).await?;
    answer(agent, &phrases::BALANCE).await
}

async fn start_lookup(agent: &DemoAgent) -> Result<ToolCall<'_>, Error> {
    agent
        .session
        .change_state(StateChange::new(ReportedState::CallingTool, agent.localize_phrase(&phrases::CALLING)))
        .await?;
    agent.session.tool("look_up_balance").says(agent.localize_phrase(&phrases::LOOKUP_STARTED)).start().await
}

/// Asks for consent, and performs the action only if the person accepts.
async fn run_confirmed_action(agent: DemoAgent, confirmed: &ConfirmedAction) -> Result<(), Error> {
    think(&agent).await?;
    let action = Action::new(confirmed.tool, agent.details.fill_template(confirmed.arguments))
        .says(agent.localize_text(&confirmed.action))
        .consequence(agent.localize_text(&confirmed.consequence))
        .summary(agent.localize_phrase(&confirmed.question))
        .invocation_summary(agent.localize_phrase(&confirmed.tool_invoked))
        .risk(confirmed.risk);
    let action =
        if confirmed.is_irreversible { action.irreversible() } else { action.reversible_with_effort() };
    let Some(granted) = agent.ask(action).await? else {
        return answer(agent, &confirmed.refused_answer).await;
    };
    agent
        .session
        .change_state(StateChange::new(ReportedState::CallingTool, agent.localize_phrase(&phrases::CALLING)))
        .await?;
    let tool = agent.session.start_call(granted).await?;
    tool.succeed(agent.localize_phrase(&confirmed.tool_completed)).await?;
    answer(agent, &confirmed.answer).await
}

async fn run_weather(mut agent: DemoAgent) -> Result<(), Error> {
    if agent.details.place.is_none() {
        think(&agent).await?;
        let question =
            sayso::ClarificationRequest::new(agent.localize_phrase(&phrases::ASK_PLACE)).accept_free_text();
        let question =
            phrases::PLACES.iter().fold(question, |question, place| question.choice(*place, *place));
        match agent.clarify(question).await? {
            None => return answer(agent, &phrases::NO_PLACE).await,
            Some(text) => agent.details.place = parse_place_answer(&text),
        }
    }
    let has_place = agent.details.place.is_some();
    answer(agent, if has_place { &phrases::WEATHER } else { &phrases::WEATHER_WITHOUT_PLACE }).await
}

async fn run_no_such_tool(agent: DemoAgent) -> Result<(), Error> {
    think(&agent).await?;
    let failure = Failure::new(agent.localize_phrase(&phrases::NO_SUCH_TOOL))
        .category(ErrorCategory::RequiresUser)
        .code("NO_SUCH_TOOL")
        .remediation_hint(agent.localize_text(&phrases::ASK_FOR_SOMETHING_ELSE));
    agent.session.fail(failure).await
}

async fn run_handoff(agent: DemoAgent) -> Result<(), Error> {
    agent
        .session
        .change_state(StateChange::new(
            ReportedState::HandingOff,
            agent.localize_phrase(&phrases::HANDING_OFF),
        ))
        .await?;
    let handoff = HandOff::new(HandOffTarget::Human, agent.localize_text(&phrases::HANDOFF_REASON))
        .summary(agent.localize_phrase(&phrases::HANDOFF))
        .urgency(Risk::Low);
    agent.session.announce_hand_off(handoff).await?;
    let summary = agent.localize_phrase(&phrases::HANDED_OFF);
    agent.session.finish(summary).await
}

async fn run_failure(agent: DemoAgent) -> Result<(), Error> {
    let tool = start_lookup(&agent).await?;
    tool.fail_with_summary(
        agent.localize_phrase(&phrases::LOOKUP_FAILED),
        agent.localize_text(&phrases::NO_ANSWER),
    )
    .await?;
    let failure = Failure::new(agent.localize_phrase(&phrases::FAILED))
        .category(ErrorCategory::Transient)
        .code("DEMONSTRATION")
        .remediation_hint(agent.localize_text(&phrases::TRY_AGAIN));
    agent.session.fail(failure).await
}

async fn run_cancellation(agent: DemoAgent) -> Result<(), Error> {
    think(&agent).await?;
    let cancellation = Cancellation::new(agent.localize_phrase(&phrases::CANCELLED)).requested_by_user();
    agent.session.cancel(cancellation).await
}
