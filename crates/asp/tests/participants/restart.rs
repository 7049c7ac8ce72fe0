//! Participants that are restored from their stored steps, and messages that were authenticated in another thread.

use asp::message::{Authenticator, Body, PinnedCards};
use asp::session::ReceiverChecks;
use asp::state_machine::{Role, State};
use asp::{
    AgentCard, AspError, AuthenticationError, Participant, ReceiveOutcome, RejectCode, RestoreError,
    StoredStep,
};

use super::participant_pair::{A, B, ParticipantPair};
use crate::support::bodies::{accept, commit, invitation, observe, propose};
use crate::support::record_harness::agent_for;
use crate::support::test_agents::{keys, participant_config, profile};

/// Restores one side from the steps that it has stored.
pub(super) fn restore(pair: &ParticipantPair, role: Role) -> Participant {
    try_restore(role, pair.steps[role as usize].clone()).unwrap()
}

fn try_restore(role: Role, steps: Vec<StoredStep>) -> Result<Participant, RestoreError> {
    Participant::restore(participant_config(agent_for(role), &[agent_for(role.other())]), steps)
}

pub(super) fn assert_same_participant(restored: &Participant, original: &Participant) {
    assert_eq!(restored.role(), original.role());
    assert_eq!(restored.session(), original.session());
    let texts = |side: &Participant| -> Vec<String> {
        side.record().iter().flat_map(|record| record.transcript().messages()).map(str::to_owned).collect()
    };
    assert_eq!(texts(restored), texts(original));
    let position = |side: &Participant| side.record().map(|record| record.transcript().position());
    assert_eq!(position(restored), position(original));
    let unsettled = |side: &Participant| -> Vec<_> {
        side.unsettled_messages().map(|(id, text)| (id, text.clone())).collect()
    };
    assert_eq!(unsettled(restored), unsettled(original));
}

/// Describes an outcome without the bytes of a REJECT, which contain random ids and signatures.
pub(super) fn describe_outcome(outcome: &ReceiveOutcome) -> String {
    match outcome {
        ReceiveOutcome::Refused { refusal, reject } => {
            format!("refused: {refusal:?}, with a REJECT: {}", reject.is_some())
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn unsettled_messages_are_available_in_order_after_a_restart() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(B, observe("zero"));
    let first = pair.send(A, observe("one"));
    let second = pair.send(A, observe("two"));
    let mut restored = restore(&pair, A);
    let texts: Vec<_> = restored.unsettled_messages().map(|(_, text)| text.to_string()).collect();
    assert_eq!(texts, [first.clone(), second.clone()]);
    let ids: Vec<_> = restored.unsettled_messages().map(|(id, _)| id).collect();
    let transcript = restored.record().unwrap().transcript();
    assert_eq!(ids.iter().map(|id| transcript.message(id).unwrap().to_string()).collect::<Vec<_>>(), texts);

    restored.settle(ids[0]);
    assert!(restored.is_settled(ids[0]) && !restored.is_settled(ids[1]));
    // The transport delivers them again, and the session continues.
    pair.sides[A as usize] = restored;
    pair.deliver_accepted(B, &first);
    pair.deliver_accepted(B, &second);
    pair.send_and_deliver(B, observe("three"));
    assert_eq!(pair.side(A).unsettled_messages().count(), 0);
}

/// The inviter has rolled the refused message back, so a copy must stay refused even if it would be allowed now.
#[test]
fn a_refused_message_stays_refused_after_a_restart() {
    let mut pair = ParticipantPair::conversing();
    pair.send_and_deliver(B, commit("cmt_1"));
    let acceptance = pair.send(A, accept("cmt_1"));
    pair.checks.is_funded = false;
    let (refusal, reject) = pair.deliver_refused(B, &acceptance);
    assert_eq!(refusal.code, RejectCode::BudgetExceeded);
    pair.deliver_rollback(A, &reject);

    pair.checks.is_funded = true;
    pair.sides[B as usize] = restore(&pair, B);
    let (refusal, _) = pair.deliver_refused(B, &acceptance);
    assert_eq!(refusal.code, RejectCode::Duplicate);
    assert_eq!(pair.states(), [State::Agreeing; 2]);
}

/// The caller handles the timers after the restart, and a deadline that has passed takes effect.
#[test]
fn a_deadline_that_passed_during_a_restart_takes_effect_afterwards() {
    let mut pair = ParticipantPair::conversing();
    let deadline = pair.side(A).session().unwrap().next_deadline().unwrap();
    let mut restored = restore(&pair, A);
    assert_eq!(restored.session().unwrap().next_deadline(), Some(deadline));
    assert_eq!(restored.session().unwrap().state(), State::Conversing);
    let transitions = restored.handle_timeout(deadline + 3_600_000);
    assert_eq!(transitions.len(), 1);
    assert_eq!(restored.session().unwrap().state(), State::Failed);
    assert_eq!(restored.session().unwrap().outcome().unwrap().ended_at, deadline);
}

#[test]
fn damaged_steps_are_reported() {
    let mut pair = ParticipantPair::introduced();
    pair.send_and_deliver(A, propose("prop_1"));
    let steps = &pair.steps[A as usize];
    assert_eq!(steps.len(), 6, "opened, three sent and two received");
    let failed_at = |steps: Vec<StoredStep>| match try_restore(A, steps) {
        Err(RestoreError::InvalidStep { index, error }) => (index, error),
        other => panic!("{other:?}"),
    };

    let mut changed = steps.clone();
    let StoredStep::Sent { text } = &mut changed[5] else { panic!("{:?}", changed[5]) };
    *text = text.replace("prop_1", "prop_2").into();
    assert_eq!(failed_at(changed), (5, AuthenticationError::HashMismatch.into()));

    let mut swapped = steps.clone();
    swapped.swap(4, 5);
    assert_eq!(failed_at(swapped).0, 4);

    let mut missing = steps.clone();
    missing.remove(2);
    assert_eq!(failed_at(missing).0, 2);

    let mut not_opened = steps.clone();
    not_opened.remove(0);
    assert_eq!(failed_at(not_opened).0, 0);

    let mut opened_twice = steps.clone();
    opened_twice.push(steps[0].clone());
    assert_eq!(failed_at(opened_twice).0, 6);

    for (index, step) in steps.iter().enumerate() {
        let wrong_direction = match step {
            StoredStep::Sent { text } => StoredStep::Received { text: text.clone() },
            StoredStep::Received { text } => StoredStep::Sent { text: text.clone() },
            _ => continue,
        };
        let mut steps = steps.clone();
        steps[index] = wrong_direction;
        assert_eq!(failed_at(steps).0, index);
    }
}

#[test]
fn a_message_can_be_authenticated_in_another_thread() {
    let mut pair = ParticipantPair::conversing();
    let text = pair.send(A, observe("hello"));
    let (cards, limits) = (pair.side(B).cards().clone(), pair.side(B).limits().clone());
    let thread = std::thread::spawn({
        let text = text.clone();
        move || Authenticator::default().authenticate(&text, &cards, &limits)
    });
    let message = thread.join().unwrap().unwrap();
    assert_eq!(*message.text, *text);
    assert!(matches!(&message.envelope.body, Body::Observe(body) if body.subject == "hello"));
    let (now, mut random) = (pair.now, pair.random.clone());
    let outcome = pair.side(B).handle(&message, ReceiverChecks::PASSED, now, &mut random).unwrap();
    assert!(matches!(outcome, ReceiveOutcome::Accepted { .. }), "{outcome:?}");
    assert_eq!(pair.side(B).record().unwrap().transcript().head(), message.hash);
    pair.assert_agreement();
}

/// The card of an agent may be replaced while a session is open. The session keeps the card it began with.
#[test]
fn a_message_authenticated_with_another_card_is_dropped() {
    let mut pair = ParticipantPair::conversing();
    let own_card = pair.side(A).card().clone();
    let new_keys = keys(9);
    let new_card = AgentCard::sign(&profile(own_card.agent_id().as_str()), &new_keys).unwrap();
    let mut impostor_config = participant_config(agent_for(A), &[agent_for(B)]);
    (impostor_config.card, impostor_config.keys) = (new_card.clone(), new_keys);
    let mut impostor = Participant::new(impostor_config).unwrap();
    let mut random = pair.random.clone();
    impostor.invite(&agent_for(B).card, pair.now, &mut random).unwrap();
    let text = impostor.send(invitation(), pair.now, &mut random).unwrap().text;

    let cards = PinnedCards::new([new_card, agent_for(B).card.clone()]);
    let message = Authenticator::default().authenticate(&text, &cards, pair.side(B).limits()).unwrap();
    let before = pair.snapshot(B);
    let now = pair.now;
    let outcome = pair.side(B).handle(&message, ReceiverChecks::PASSED, now, &mut random).unwrap();
    assert!(matches!(outcome, ReceiveOutcome::Dropped(AuthenticationError::InvalidSignature)), "{outcome:?}");
    assert_eq!(pair.snapshot(B), before);
    assert_eq!(pair.side(B).dropped_count(), 1);
    // Authentication with the session's own cards gives the same result.
    let side = pair.side(B);
    let error = Authenticator::default().authenticate(&text, side.cards(), side.limits()).unwrap_err();
    assert_eq!(error, AspError::from(AuthenticationError::InvalidSignature));
}
