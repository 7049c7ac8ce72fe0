//! The scenarios: the messages that the agents exchange.

use asp::escrow::LedgerOperation;
use asp::message::{
    Accept, Authority, Clarify, Close, Commit, CommitTerms, Constraints, Counter, Delegate, DurationMillis,
    DurationSeconds, Escalate, Escrow, Inform, InformType, Obligation, Observe, Penalties, Percent, Propose,
    Query, Reject, Urgency, Withdraw,
};
use asp::state_machine::Role::{Invited, Inviter};
use asp::state_machine::State;
use asp::{Amount, CommitmentId, Currency, ProposalId, QueryId, Reference};
use seal::Timestamp;
use seal::json::RawJson;
use seal::{Random, UnixMillis};

use super::actors::{Actors, RandomSource};
use super::simulation::{ScenarioError, Simulation};

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scenario {
    /// A complete session: invitation, counter-offers, a question, a commitment, a decision by a person, work and an orderly close.
    Agreed,
    /// The invitation is rejected.
    Rejected,
    /// The commitment is countered, and both sides agree on different terms.
    Countered,
    /// Nobody answers the invitation.
    InvitationTimeout,
    /// The person who is asked for a decision does not answer.
    EscalationTimeout,
    /// The commitment is withdrawn before it is accepted.
    Withdrawn,
    /// One side leaves without doing its work.
    UnilateralClose,
    /// Part of the work is delegated to a third agent, in a separate session.
    Delegated,
}

/// The messages and narration of a scenario, and the messages of the delegate's session if there is one.
pub(super) struct ScenarioResult {
    pub(super) narration: Vec<String>,
    pub(super) messages: Vec<String>,
    pub(super) delegate_messages: Option<Vec<String>>,
}

pub(super) fn run_scenario(
    scenario: Scenario,
    actors: &Actors,
    random_source: &mut RandomSource,
    start: UnixMillis,
) -> Result<ScenarioResult, ScenarioError> {
    let mut delegate_messages = None;
    let mut simulation = Simulation::new(actors, &actors.buyer, &actors.press, random_source, start)?;
    let credit = LedgerOperation::Credit {
        reference: Reference::parse("opening-balance").map_err(|error| error.to_string())?,
        agent: actors.buyer.agent().clone(),
        amount: amount("1000.00")?,
        currency: euro()?,
    };
    let entry = simulation.ledger.plan(credit, start).map_err(|error| error.to_string())?;
    simulation.ledger.apply(&entry).map_err(|error| error.to_string())?;
    let invitation = invite(&mut simulation, "40 menus in braille")?;
    match scenario {
        Scenario::Agreed => run_agreed(&mut simulation, &invitation)?,
        Scenario::Rejected => {
            let reason = "the machines are booked until March";
            simulation
                .send(Invited, reject("capacity_unavailable", reason, &Reference::from(&invitation)))?;
        }
        Scenario::Countered => run_countered(&mut simulation, &invitation)?,
        Scenario::InvitationTimeout => simulation.advance_clock(30),
        Scenario::EscalationTimeout => {
            reach_pending_commit(&mut simulation, &invitation)?;
            simulation.send(Invited, escalate("480.00 EUR is below the price list", Some(600)))?;
            simulation.advance_clock(600);
        }
        Scenario::Withdrawn => {
            let commitment = reach_pending_commit(&mut simulation, &invitation)?;
            let mut withdraw = Withdraw::new("the bistro wants to change its menu first");
            withdraw.reference = Some(Reference::from(&commitment));
            simulation.send(Inviter, withdraw)?;
        }
        Scenario::UnilateralClose => {
            let commitment = reach_pending_commit(&mut simulation, &invitation)?;
            simulation.send(Invited, accept(Reference::from(&commitment), None))?;
            simulation.advance_clock(3 * 60);
            simulation.send(
                Invited,
                inform(InformType::Progress, &[("note", "plates are being made")], Some(20)),
            )?;
            simulation.send(
                Invited,
                close(Close::UNILATERAL_REASON, Some("the press has been sold and is stopping all work")),
            )?;
        }
        Scenario::Delegated => {
            delegate_messages = Some(run_delegated(&mut simulation, &invitation, actors)?);
        }
    }
    Ok(ScenarioResult { messages: simulation.messages, narration: simulation.narration, delegate_messages })
}

fn run_agreed(simulation: &mut Simulation<'_>, invitation: &ProposalId) -> Result<(), ScenarioError> {
    introduce(simulation, invitation)?;
    let first =
        propose(simulation, "40 menus in braille", &[("price", "400.00 EUR"), ("delivery", "in 7 days")])?;
    let terms = [("price", "520.00 EUR"), ("delivery", "in 7 days")];
    let second = counter(simulation, Invited, Reference::from(&first), "40 menus in braille", &terms)?;
    let terms = [("price", "480.00 EUR"), ("delivery", "in 10 days")];
    let third = counter(simulation, Inviter, Reference::from(&second), "40 menus in braille", &terms)?;
    simulation.send(
        Invited,
        question(&Reference::from(&third), "Do you want contracted or uncontracted braille?"),
    )?;
    simulation.send(
        Inviter,
        answer(&Reference::from(&third), "Uncontracted; many guests read it for the first time."),
    )?;
    simulation.send(Invited, accept(Reference::from(&third), Some("on these terms we can commit")))?;
    let commitment = commit(simulation, "480.00", Some(&third))?;
    simulation.send(Invited, escalate("480.00 EUR is below the price list; may I agree?", Some(900)))?;
    simulation.advance_clock(240);
    simulation.narrate("Jonas, who runs the press, has heard the terms and says yes.");
    let mut resolution =
        inform(InformType::Resolution, &[("decision", "agree to 480.00 EUR this once")], None);
    resolution.resolved_by = Some("Jonas".to_owned());
    simulation.send(Invited, resolution)?;
    simulation.send(Invited, accept(Reference::from(&commitment), None))?;
    work_and_close(simulation)
}

fn run_countered(simulation: &mut Simulation<'_>, invitation: &ProposalId) -> Result<(), ScenarioError> {
    let commitment = reach_pending_commit(simulation, invitation)?;
    let terms = [("price", "500.00 EUR"), ("delivery", "in 7 days")];
    let counter =
        counter(simulation, Invited, Reference::from(&commitment), "40 menus in braille, sooner", &terms)?;
    simulation.send(Inviter, accept(Reference::from(&counter), None))?;
    let commitment = commit(simulation, "500.00", Some(&counter))?;
    simulation.send(Invited, accept(Reference::from(&commitment), None))?;
    work_and_close(simulation)
}

/// Runs the scenario with a delegate. Returns the messages of the delegate's session.
fn run_delegated<'s>(
    simulation: &mut Simulation<'s>,
    invitation: &ProposalId,
    actors: &'s Actors,
) -> Result<Vec<String>, ScenarioError> {
    introduce(simulation, invitation)?;
    let first = propose(simulation, "40 menus in braille, proofread", &[("price", "560.00 EUR")])?;
    let delegation = new_reference(simulation, "del")?;
    let (proofreader, scope) = (actors.proofreader.agent().clone(), "proofread the braille of the menu");
    let mut delegate = Delegate::new(delegation.clone(), proofreader, scope, Authority::Advisory);
    delegate.protocol = Some("asp".to_owned());
    simulation.send(Invited, delegate)?;
    simulation.narrate("The Braille Press opens a separate session with the proofreader.");
    let now = simulation.now;
    let (messages, narration, ended_at) = {
        let mut delegate_session =
            Simulation::new(actors, &actors.press, &actors.proofreader, simulation.random_source(), now)?;
        let invitation = invite(&mut delegate_session, "proofreading a menu")?;
        introduce(&mut delegate_session, &invitation)?;
        let query = QueryId::parse(&format!("qry_{}", random_hex(delegate_session.random_source())))
            .map_err(|error| error.to_string())?;
        let mut request = Query::new(query.clone(), "review", "is the braille of this menu correct?");
        request.parameters = Some(object(&[("pages", "6")])?);
        delegate_session.send(Inviter, request)?;
        delegate_session.advance_clock(600);
        let mut answer =
            inform(InformType::Answer, &[("finding", "two prices run into the next line")], None);
        answer.in_reply_to = Some(Reference::from(&query));
        delegate_session.send(Invited, answer)?;
        let mut remark = Observe::new("the layout of page 3");
        remark.data = Some(object(&[("remark", "a wider margin would help")])?);
        delegate_session.send(Invited, remark)?;
        delegate_session.send(Inviter, close("answered", None))?;
        (delegate_session.messages, delegate_session.narration, delegate_session.now)
    };
    simulation.narration.extend(narration);
    simulation.advance_clock(ended_at.millis_since(simulation.now).max(0) / 1000);
    simulation.narrate("Back in the first session.");
    let mut report = inform(InformType::Answer, &[("finding", "correct once two prices are moved")], None);
    report.in_reply_to = Some(delegation);
    simulation.send(Invited, report)?;
    simulation.send(Invited, accept(Reference::from(&first), None))?;
    let commitment = commit(simulation, "560.00", Some(&first))?;
    simulation.send(Invited, accept(Reference::from(&commitment), None))?;
    work_and_close(simulation)?;
    Ok(messages)
}

/// Runs the session up to a COMMIT that has not been answered yet.
fn reach_pending_commit(
    simulation: &mut Simulation<'_>,
    invitation: &ProposalId,
) -> Result<CommitmentId, ScenarioError> {
    introduce(simulation, invitation)?;
    let terms = [("price", "480.00 EUR"), ("delivery", "in 10 days")];
    let first = propose(simulation, "40 menus in braille", &terms)?;
    simulation.send(Invited, accept(Reference::from(&first), None))?;
    commit(simulation, "480.00", Some(&first))
}

fn invite(simulation: &mut Simulation<'_>, subject: &str) -> Result<ProposalId, ScenarioError> {
    let id = new_proposal_id(simulation, "inv_")?;
    let terms = RawJson::parse(r#"{"schemas":["urn:asp:negotiation:v1"],"proposed_duration":3600}"#);
    let terms = terms.map_err(|error| error.to_string())?;
    let mut body = Propose::new(id.clone(), Propose::INVITATION_TYPE, subject, terms);
    // `send` advances the clock by two seconds, so the deadline is thirty seconds after the message is sent.
    body.valid_until = Timestamp::from_unix_millis(simulation.now + 32_000);
    simulation.send(Inviter, body)?;
    Ok(id)
}

/// Accepts the invitation and lets both sides introduce themselves.
fn introduce(simulation: &mut Simulation<'_>, invitation: &ProposalId) -> Result<(), ScenarioError> {
    simulation.send(Invited, accept(Reference::from(invitation), None))?;
    for role in [Inviter, Invited] {
        let mut identity = inform(InformType::Identity, &[], None);
        identity.card = RawJson::parse(simulation.actor(role).card().as_str()).ok();
        simulation.send(role, identity)?;
    }
    Ok(())
}

fn propose(
    simulation: &mut Simulation<'_>,
    subject: &str,
    terms: &[(&str, &str)],
) -> Result<ProposalId, ScenarioError> {
    let id = new_proposal_id(simulation, "")?;
    let mut body = Propose::new(id.clone(), "service-agreement", subject, object(terms)?);
    body.valid_until = Timestamp::from_unix_millis(simulation.now + 1_200_000);
    let mut constraints = Constraints::new();
    constraints.max_response_time_ms = DurationMillis::new(60_000);
    simulation.send_with_constraints(Inviter, body, Some(constraints))?;
    Ok(id)
}

fn counter(
    simulation: &mut Simulation<'_>,
    role: asp::state_machine::Role,
    counters: Reference,
    subject: &str,
    terms: &[(&str, &str)],
) -> Result<ProposalId, ScenarioError> {
    let id = new_proposal_id(simulation, "")?;
    let mut body = Counter::new(id.clone(), counters, subject, object(terms)?);
    body.valid_until = Timestamp::from_unix_millis(simulation.now + 1_200_000);
    simulation.send(role, body)?;
    Ok(id)
}

fn commit(
    simulation: &mut Simulation<'_>,
    price: &str,
    proposal: Option<&ProposalId>,
) -> Result<CommitmentId, ScenarioError> {
    let id = CommitmentId::parse(&format!("cmt_{}", random_hex(simulation.random_source())))
        .map_err(|error| error.to_string())?;
    let now = simulation.now;
    let due = |minutes: i64| {
        Timestamp::from_unix_millis(now + minutes * 60_000)
            .ok_or_else(|| "the due time is out of range".to_owned())
    };
    let (buyer, press) =
        (simulation.actor(Inviter).agent().clone(), simulation.actor(Invited).agent().clone());
    let mut terms = CommitTerms::new([
        Obligation::new(press, "print and deliver 40 menus", due(7 * 24 * 60)?),
        Obligation::new(buyer, "send the text and accept the delivery", due(8 * 24 * 60)?),
    ]);
    let mut penalties = Penalties::new();
    penalties.late_fulfillment = Some("5 percent of the escrow for each day".to_owned());
    penalties.non_delivery = Some("all of the escrow".to_owned());
    terms.penalties = Some(penalties);
    let mut escrow = Escrow::new(amount(price)?, euro()?);
    escrow.release_condition = Some("fulfillment-verified".to_owned());
    let mut body = Commit::new(id.clone(), terms);
    body.deadline = Some(due(8 * 24 * 60)?);
    body.escrow = Some(escrow);
    body.proposal_id = proposal.cloned();
    simulation.send(Inviter, body)?;
    Ok(id)
}

fn work_and_close(simulation: &mut Simulation<'_>) -> Result<(), ScenarioError> {
    debug_assert_eq!(simulation.state(), State::Executing);
    simulation.advance_clock(10 * 60);
    simulation
        .send(Invited, inform(InformType::Progress, &[("note", "20 of 40 menus are printed")], Some(50)))?;
    simulation.advance_clock(10 * 60);
    simulation.send(
        Invited,
        inform(InformType::Result, &[("delivered", "40 menus, bound, in one parcel")], None),
    )?;
    simulation
        .send(Inviter, inform(InformType::Result, &[("received", "40 menus, and they read well")], None))?;
    simulation.send(Invited, close("fulfilled", Some("40 menus in braille, printed and delivered")))?;
    simulation.send(Inviter, close("fulfilled", None))
}

fn accept(reference: Reference, note: Option<&str>) -> Accept {
    let mut accept = Accept::new(reference);
    accept.note = note.map(str::to_owned);
    accept
}

fn reject(code: &str, reason: &str, reference: &Reference) -> Reject {
    let mut reject = Reject::new(code, reason);
    reject.reference = Some(reference.clone());
    reject
}

fn inform(kind: InformType, data: &[(&str, &str)], percent: Option<u8>) -> Inform {
    let mut inform = Inform::new(kind);
    inform.data = object(data).ok().filter(|_| !data.is_empty());
    inform.percent = percent.and_then(Percent::new);
    inform
}

fn question(about: &Reference, text: &str) -> Clarify {
    let mut clarify = Clarify::new(about.clone());
    clarify.question = Some(text.to_owned());
    clarify
}

fn answer(about: &Reference, text: &str) -> Clarify {
    let mut clarify = Clarify::new(about.clone());
    clarify.answer = Some(text.to_owned());
    clarify
}

fn escalate(reason: &str, timeout: Option<u32>) -> Escalate {
    let mut escalate = Escalate::new(reason, Urgency::High);
    escalate.timeout = timeout.and_then(DurationSeconds::new);
    escalate.handler = Some("Jonas".to_owned());
    escalate
}

fn close(reason: &str, summary: Option<&str>) -> Close {
    let mut close = Close::new(reason);
    close.summary = summary.map(str::to_owned);
    close
}

fn object(members: &[(&str, &str)]) -> Result<RawJson, ScenarioError> {
    let text = seal::json::write_object(|writer| writer.text_members(members.iter().copied()));
    RawJson::parse(&text).map_err(|error| error.to_string())
}

fn amount(text: &str) -> Result<Amount, ScenarioError> {
    Amount::parse(text).map_err(|error| error.to_string())
}

fn euro() -> Result<Currency, ScenarioError> {
    Currency::parse("EUR").map_err(|error| error.to_string())
}

fn new_proposal_id(simulation: &mut Simulation<'_>, id_prefix: &str) -> Result<ProposalId, ScenarioError> {
    ProposalId::parse(&format!("prop_{id_prefix}{}", random_hex(simulation.random_source())))
        .map_err(|error| error.to_string())
}

fn new_reference(simulation: &mut Simulation<'_>, prefix: &str) -> Result<Reference, ScenarioError> {
    Reference::parse(&format!("{prefix}_{}", random_hex(simulation.random_source())))
        .map_err(|error| error.to_string())
}

/// Returns sixteen random hexadecimal digits.
fn random_hex(random_source: &mut RandomSource) -> String {
    let mut bytes = [0; 8];
    random_source.fill(&mut bytes);
    format!("{:016x}", u64::from_be_bytes(bytes))
}
