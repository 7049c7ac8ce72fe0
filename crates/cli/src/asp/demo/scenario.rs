//! What the agents say to each other.

use asp::machine::Role::{Invited, Inviter};
use asp::machine::State;
use asp::message::{
    Accept, Authority, Clarify, Close, Commit, CommitTerms, Constraints, Counter, Delegate, Escalate, Escrow,
    Inform, InformType, Millis, Obligation, Observe, Penalties, Percent, Propose, Query, Reject, Seconds,
    Urgency, Withdraw,
};
use asp::{Amount, CommitmentId, Currency, ProposalId, QueryId, Reference};
use seal::Timestamp;
use seal::json::Raw;
use seal::{Random, UnixMillis};

use super::cast::{Cast, Source};
use super::stage::{Stage, Stopped};

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scenario {
    /// The whole life: invitation, counters, a question, a commitment, a person asked, work, an end in order.
    Agreed,
    /// The invitation is rejected.
    Rejected,
    /// The commitment is countered, and another one is agreed to.
    Countered,
    /// Nobody answers the invitation.
    InvitationTimeout,
    /// The person who is asked does not answer.
    EscalationTimeout,
    /// The commitment is taken back before it binds.
    Withdrawn,
    /// One side leaves with its work undone.
    UnilateralClose,
    /// A part is handed to a third agent, which has a session of its own.
    Delegated,
}

/// What was said: in the session, and in the delegate's own where there is one.
pub(super) struct Played {
    pub(super) told: Vec<String>,
    pub(super) messages: Vec<String>,
    pub(super) delegate: Option<Vec<String>>,
}

pub(super) fn play(
    scenario: Scenario,
    cast: &Cast,
    source: &mut Source,
    start: UnixMillis,
) -> Result<Played, Stopped> {
    let mut delegate = None;
    let mut stage = Stage::new(cast, &cast.buyer, &cast.press, source, start)?;
    stage.ledger.credit(cast.buyer.agent(), &amount("1000.00")?, &euro()?).map_err(|why| why.to_string())?;
    let invitation = invite(&mut stage, "40 menus in braille")?;
    match scenario {
        Scenario::Agreed => agreed(&mut stage, &invitation)?,
        Scenario::Rejected => {
            let reason = "the machines are booked until March";
            stage.say(Invited, reject("capacity_unavailable", reason, &Reference::from(&invitation)))?;
        }
        Scenario::Countered => countered(&mut stage, &invitation)?,
        Scenario::InvitationTimeout => stage.wait(30),
        Scenario::EscalationTimeout => {
            commit_is_pending(&mut stage, &invitation)?;
            stage.say(Invited, escalate("480.00 EUR is below the price list", Some(600)))?;
            stage.wait(600);
        }
        Scenario::Withdrawn => {
            let commitment = commit_is_pending(&mut stage, &invitation)?;
            let mut withdraw = Withdraw::new("the bistro changes its menu first");
            withdraw.reference = Some(Reference::from(&commitment));
            stage.say(Inviter, withdraw)?;
        }
        Scenario::UnilateralClose => {
            let commitment = commit_is_pending(&mut stage, &invitation)?;
            stage.say(Invited, accept(Reference::from(&commitment), None))?;
            stage.wait(3 * 60);
            stage
                .say(Invited, inform(InformType::Progress, &[("note", "plates are being made")], Some(20)))?;
            stage.say(Invited, close(Close::UNILATERAL, Some("the press is sold and stops all work")))?;
        }
        Scenario::Delegated => delegate = Some(delegated(&mut stage, &invitation, cast)?),
    }
    Ok(Played { messages: stage.messages, told: stage.told, delegate })
}

fn agreed(stage: &mut Stage<'_>, invitation: &ProposalId) -> Result<(), Stopped> {
    introduce(stage, invitation)?;
    let first = propose(stage, "40 menus in braille", &[("price", "400.00 EUR"), ("delivery", "in 7 days")])?;
    let terms = [("price", "520.00 EUR"), ("delivery", "in 7 days")];
    let second = counter(stage, Invited, Reference::from(&first), "40 menus in braille", &terms)?;
    let terms = [("price", "480.00 EUR"), ("delivery", "in 10 days")];
    let third = counter(stage, Inviter, Reference::from(&second), "40 menus in braille", &terms)?;
    stage.say(
        Invited,
        question(&Reference::from(&third), "Do you want contracted or uncontracted braille?"),
    )?;
    stage.say(
        Inviter,
        answer(&Reference::from(&third), "Uncontracted; many guests read it for the first time."),
    )?;
    stage.say(Invited, accept(Reference::from(&third), Some("on these terms we can commit")))?;
    let commitment = commit(stage, "480.00", Some(&third))?;
    stage.say(Invited, escalate("480.00 EUR is below the price list; may I agree?", Some(900)))?;
    stage.wait(240);
    stage.tell("Jonas, who runs the press, has heard the terms and says yes.");
    let mut resolution =
        inform(InformType::Resolution, &[("decision", "agree to 480.00 EUR this once")], None);
    resolution.resolved_by = Some("Jonas".to_owned());
    stage.say(Invited, resolution)?;
    stage.say(Invited, accept(Reference::from(&commitment), None))?;
    work_and_close(stage)
}

fn countered(stage: &mut Stage<'_>, invitation: &ProposalId) -> Result<(), Stopped> {
    let commitment = commit_is_pending(stage, invitation)?;
    let terms = [("price", "500.00 EUR"), ("delivery", "in 7 days")];
    let counter =
        counter(stage, Invited, Reference::from(&commitment), "40 menus in braille, sooner", &terms)?;
    stage.say(Inviter, accept(Reference::from(&counter), None))?;
    let commitment = commit(stage, "500.00", Some(&counter))?;
    stage.say(Invited, accept(Reference::from(&commitment), None))?;
    work_and_close(stage)
}

fn delegated<'s>(
    stage: &mut Stage<'s>,
    invitation: &ProposalId,
    cast: &'s Cast,
) -> Result<Vec<String>, Stopped> {
    introduce(stage, invitation)?;
    let first = propose(stage, "40 menus in braille, proofread", &[("price", "560.00 EUR")])?;
    let delegation = reference(stage, "del")?;
    let (reader, scope) = (cast.reader.agent().clone(), "proofread the braille of the menu");
    let mut delegate = Delegate::new(delegation.clone(), reader, scope, Authority::Advisory);
    delegate.protocol = Some("asp".to_owned());
    stage.say(Invited, delegate)?;
    stage.tell("The Braille Press opens a session of its own with the proofreader.");
    let now = stage.now;
    let (messages, told, later) = {
        let mut side = Stage::new(cast, &cast.press, &cast.reader, stage.source(), now)?;
        let invitation = invite(&mut side, "proofreading a menu")?;
        introduce(&mut side, &invitation)?;
        let query =
            QueryId::parse(&format!("qry_{}", letters(side.source()))).map_err(|why| why.to_string())?;
        let mut asked = Query::new(query.clone(), "review", "is the braille of this menu sound?");
        asked.parameters = Some(object(&[("pages", "6")])?);
        side.say(Inviter, asked)?;
        side.wait(600);
        let mut found = inform(InformType::Answer, &[("finding", "two prices run into the next line")], None);
        found.in_reply_to = Some(Reference::from(&query));
        side.say(Invited, found)?;
        let mut remark = Observe::new("the layout of page 3");
        remark.data = Some(object(&[("remark", "a wider margin would help")])?);
        side.say(Invited, remark)?;
        side.say(Inviter, close("answered", None))?;
        (side.messages, side.told, side.now)
    };
    stage.told.extend(told);
    stage.wait(later.millis_since(stage.now).max(0) / 1000);
    stage.tell("Back in the first session.");
    let mut report =
        inform(InformType::Answer, &[("finding", "two prices to be moved; then it is sound")], None);
    report.in_reply_to = Some(delegation);
    stage.say(Invited, report)?;
    stage.say(Invited, accept(Reference::from(&first), None))?;
    let commitment = commit(stage, "560.00", Some(&first))?;
    stage.say(Invited, accept(Reference::from(&commitment), None))?;
    work_and_close(stage)?;
    Ok(messages)
}

/// From the invitation to a COMMIT that waits for its answer.
fn commit_is_pending(stage: &mut Stage<'_>, invitation: &ProposalId) -> Result<CommitmentId, Stopped> {
    introduce(stage, invitation)?;
    let terms = [("price", "480.00 EUR"), ("delivery", "in 10 days")];
    let first = propose(stage, "40 menus in braille", &terms)?;
    stage.say(Invited, accept(Reference::from(&first), None))?;
    commit(stage, "480.00", Some(&first))
}

fn invite(stage: &mut Stage<'_>, subject: &str) -> Result<ProposalId, Stopped> {
    let id = proposal_id(stage, "inv_")?;
    let terms = Raw::parse(r#"{"schemas":["urn:asp:negotiation:v1"],"proposed_duration":3600}"#);
    let terms = terms.map_err(|why| why.to_string())?;
    let mut body = Propose::new(id.clone(), Propose::INVITATION, subject, terms);
    // Thirty seconds after it is sent, which is two seconds from now.
    body.valid_until = Timestamp::from_unix_millis(stage.now + 32_000);
    stage.say(Inviter, body)?;
    Ok(id)
}

fn introduce(stage: &mut Stage<'_>, invitation: &ProposalId) -> Result<(), Stopped> {
    stage.say(Invited, accept(Reference::from(invitation), None))?;
    for role in [Inviter, Invited] {
        let mut identity = inform(InformType::Identity, &[], None);
        identity.card = Raw::parse(stage.actor(role).card().as_str()).ok();
        stage.say(role, identity)?;
    }
    Ok(())
}

fn propose(stage: &mut Stage<'_>, subject: &str, terms: &[(&str, &str)]) -> Result<ProposalId, Stopped> {
    let id = proposal_id(stage, "")?;
    let mut body = Propose::new(id.clone(), "service-agreement", subject, object(terms)?);
    body.valid_until = Timestamp::from_unix_millis(stage.now + 1_200_000);
    let mut constraints = Constraints::new();
    constraints.max_response_time_ms = Millis::new(60_000);
    stage.say_within(Inviter, body, Some(constraints))?;
    Ok(id)
}

fn counter(
    stage: &mut Stage<'_>,
    role: asp::machine::Role,
    counters: Reference,
    subject: &str,
    terms: &[(&str, &str)],
) -> Result<ProposalId, Stopped> {
    let id = proposal_id(stage, "")?;
    let mut body = Counter::new(id.clone(), counters, subject, object(terms)?);
    body.valid_until = Timestamp::from_unix_millis(stage.now + 1_200_000);
    stage.say(role, body)?;
    Ok(id)
}

fn commit(
    stage: &mut Stage<'_>,
    price: &str,
    proposal: Option<&ProposalId>,
) -> Result<CommitmentId, Stopped> {
    let id =
        CommitmentId::parse(&format!("cmt_{}", letters(stage.source()))).map_err(|why| why.to_string())?;
    let now = stage.now;
    let due = |minutes: i64| {
        Timestamp::from_unix_millis(now + minutes * 60_000).ok_or_else(|| "no such time".to_owned())
    };
    let (buyer, press) = (stage.actor(Inviter).agent().clone(), stage.actor(Invited).agent().clone());
    let mut terms = CommitTerms::new([
        Obligation::new(press, "print and hand over 40 menus", due(7 * 24 * 60)?),
        Obligation::new(buyer, "send the text and take the menus in", due(8 * 24 * 60)?),
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
    stage.say(Inviter, body)?;
    Ok(id)
}

fn work_and_close(stage: &mut Stage<'_>) -> Result<(), Stopped> {
    debug_assert_eq!(stage.state(), State::Executing);
    stage.wait(10 * 60);
    stage.say(Invited, inform(InformType::Progress, &[("note", "20 of 40 menus are printed")], Some(50)))?;
    stage.wait(10 * 60);
    stage
        .say(Invited, inform(InformType::Result, &[("delivered", "40 menus, bound, in one parcel")], None))?;
    stage.say(Inviter, inform(InformType::Result, &[("received", "40 menus, and they read well")], None))?;
    stage.say(Invited, close("fulfilled", Some("40 menus in braille, printed and delivered")))?;
    stage.say(Inviter, close("fulfilled", None))
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

fn inform(kind: InformType, told: &[(&str, &str)], percent: Option<u8>) -> Inform {
    let mut inform = Inform::new(kind);
    inform.data = object(told).ok().filter(|_| !told.is_empty());
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
    escalate.timeout = timeout.and_then(Seconds::new);
    escalate.handler = Some("Jonas".to_owned());
    escalate
}

fn close(reason: &str, summary: Option<&str>) -> Close {
    let mut close = Close::new(reason);
    close.summary = summary.map(str::to_owned);
    close
}

fn object(members: &[(&str, &str)]) -> Result<Raw, Stopped> {
    let text = seal::json::object(|writer| writer.texts(members.iter().copied()));
    Raw::parse(&text).map_err(|why| why.to_string())
}

fn amount(text: &str) -> Result<Amount, Stopped> {
    Amount::parse(text).map_err(|why| why.to_string())
}

fn euro() -> Result<Currency, Stopped> {
    Currency::parse("EUR").map_err(|why| why.to_string())
}

fn proposal_id(stage: &mut Stage<'_>, mark: &str) -> Result<ProposalId, Stopped> {
    ProposalId::parse(&format!("prop_{mark}{}", letters(stage.source()))).map_err(|why| why.to_string())
}

fn reference(stage: &mut Stage<'_>, prefix: &str) -> Result<Reference, Stopped> {
    Reference::parse(&format!("{prefix}_{}", letters(stage.source()))).map_err(|why| why.to_string())
}

/// Sixteen hexadecimal digits.
fn letters(source: &mut Source) -> String {
    let mut bytes = [0; 8];
    source.fill(&mut bytes);
    format!("{:016x}", u64::from_be_bytes(bytes))
}
