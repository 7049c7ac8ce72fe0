//! Who kept and who broke what, and where the money goes (D4, D5, D7).

use asp::Status;
use asp::machine::{Role, State, Timer};
use asp::session::{Effect, Ending, Fate, Judgement, Payee};

use crate::session::life::*;

#[test]
fn a_whole_life_ends_when_both_have_closed() {
    let mut life = Life::executing();
    assert!(life.effects.iter().any(|effect| matches!(effect, Effect::RecordAgreement(_))));
    life.say(B, inform("progress"));
    life.say(B, inform("result"));
    life.say(A, inform("result"));

    let wish = life.say(A, close("done"));
    assert_eq!((wish.to, life.session.outcome()), (State::Executing, None));
    let again = life.say(A, close("done"));
    assert_eq!(again.to, State::Executing, "one side cannot close for both");
    let step = life.say(B, close("done"));

    assert_eq!((step.row, step.to), (11, State::Closed));
    assert!(step.effects.contains(&Effect::Learn));
    assert_eq!(life.outcome().ending, Ending::Completed);
    assert_eq!(fates(&life), [Fate::Kept, Fate::Kept]);
    assert_eq!(status(&life), Status::Fulfilled);
    assert_eq!(life.outcome().broken_by, []);
    assert_eq!(life.money(), ["inviter pays in 10.50 USD for cmt_1", "cmt_1 to the Beneficiary"]);
}

#[test]
fn both_closing_confirms_what_was_never_reported() {
    let mut life = Life::executing();
    life.say(B, close("done"));
    life.say(A, close("done"));
    assert_eq!(fates(&life), [Fate::Kept, Fate::Kept]);
    assert_eq!(life.outcome().escrow_to, Some(Payee::Beneficiary));
}

#[test]
fn what_was_done_after_its_deadline_is_late() {
    let mut life = Life::executing();
    life.wait(1000);
    life.say(B, inform("progress"));
    life.now += 1;
    life.say(B, inform("result"));
    life.say(A, inform("result"));
    life.say(A, close("done"));
    life.say(B, close("done"));
    assert_eq!(fates(&life), [Fate::Late, Fate::Kept]);
    assert_eq!(status(&life), Status::Late);
    assert_eq!(life.outcome().broken_by, []);
    assert_eq!(life.outcome().escrow_to, Some(Payee::Beneficiary));

    let mut life = Life::executing();
    life.wait(1000);
    life.say(B, inform("result"));
    life.say(B, inform("result"));
    life.say(A, close("unilateral"));
    assert_eq!(fates(&life)[0], Fate::Kept, "at the deadline is in time");
}

#[test]
fn who_leaves_with_his_own_part_undone_has_broken_it() {
    for (leaving, fate, payee) in [
        (B, [Fate::Broken, Fate::Open], Payee::Depositor),
        (A, [Fate::Open, Fate::Broken], Payee::Beneficiary),
    ] {
        let mut life = Life::executing();
        let step = life.say(leaving, close("unilateral"));
        assert_eq!((step.row, step.to), (17, State::Closed));
        assert_eq!(life.outcome().ending, Ending::Unilateral(leaving));
        assert_eq!(fates(&life), fate);
        assert_eq!(life.outcome().broken_by, [leaving]);
        assert_eq!(status(&life), Status::Broken);
        assert_eq!(life.outcome().escrow_to, Some(payee));
    }
}

#[test]
fn who_leaves_with_everything_done_has_broken_nothing() {
    let mut life = Life::executing();
    life.say(B, inform("result"));
    life.say(A, inform("result"));
    life.say(B, close("unilateral"));
    assert_eq!(life.outcome().ending, Ending::Unilateral(B));
    assert_eq!(life.outcome().broken_by, []);
    assert_eq!(status(&life), Status::Fulfilled);
    assert_eq!(life.money().last().unwrap(), "cmt_1 to the Beneficiary");
}

#[test]
fn who_is_overdue_when_the_other_leaves_has_broken_it() {
    let mut life = Life::executing();
    life.say(A, inform("result"));
    life.wait(1001);
    life.say(A, close("unilateral"));
    assert_eq!(fates(&life), [Fate::Broken, Fate::Kept]);
    assert_eq!(life.outcome().broken_by, [B]);
    assert_eq!(life.outcome().escrow_to, Some(Payee::Depositor));
}

#[test]
fn withdrawing_from_a_pending_commitment_is_no_fault() {
    for leaving in Role::ALL {
        let mut life = Life::agreeing();
        let step = life.say(leaving, withdraw());
        assert_eq!((step.row, step.to), (16, State::Closed));
        assert_eq!(life.outcome().ending, Ending::Withdrawn(leaving));
        assert_eq!(status(&life), Status::Withdrawn);
        assert_eq!(life.outcome().obligations, []);
        assert_eq!(life.outcome().broken_by, []);
        assert!(step.effects.iter().any(|effect| matches!(effect, Effect::DropPending(_))));
        assert_eq!(life.money(), [""; 0], "nothing was held");
    }
}

#[test]
fn withdrawing_from_an_agreement_breaks_it() {
    for (leaving, payee) in [(A, Payee::Beneficiary), (B, Payee::Depositor)] {
        let mut life = Life::executing();
        life.say(leaving, inform("result"));
        life.say(leaving, withdraw());
        assert_eq!(life.state(), State::Closed);
        assert_eq!(life.outcome().ending, Ending::Withdrawn(leaving));
        assert_eq!(life.outcome().broken_by, [leaving], "also with his own part done");
        assert_eq!(status(&life), Status::Broken);
        assert_eq!(life.outcome().escrow_to, Some(payee));
    }
}

#[test]
fn money_is_held_once_and_given_out_once() {
    type End = fn(&mut Life);
    let endings: [(&str, End); 6] = [
        ("both close", |life| {
            life.say(A, close("done"));
            life.say(B, close("done"));
        }),
        ("one closes", |life| drop(life.say(A, close("unilateral")))),
        ("one withdraws", |life| drop(life.say(B, withdraw()))),
        ("an error", |life| drop(life.say(B, fatal()))),
        ("the session runs out", |life| drop(life.wait(4000))),
        ("the chain breaks", |life| {
            let step = life.session.break_chain(START).unwrap();
            life.effects.extend(step.effects);
        }),
    ];
    for (how, end) in endings {
        let mut life = Life::executing();
        life.say(B, escalate(None));
        life.say(B, inform("resolution"));
        end(&mut life);
        assert!(life.state().is_terminal(), "{how}");
        let money = life.money();
        assert_eq!(money.len(), 2, "{how}: {money:?}");
        assert_eq!(money[0], "inviter pays in 10.50 USD for cmt_1", "{how}");
        assert_eq!(money[1], format!("cmt_1 to the {:?}", life.outcome().escrow_to.unwrap()), "{how}");
        life.wait(1_000_000);
        assert_eq!(life.money().len(), 2, "{how}: nothing more after the end");
    }
}

#[test]
fn a_commitment_without_escrow_moves_no_money() {
    let mut life = Life::conversing();
    life.say(B, commit("cmt_1", &[(SELLER, 1000)], None));
    let (mut poor, yes) = (life.clone(), accept("cmt_1"));
    let incoming = poor.incoming(A, &yes, None, Judgement { funded: false, ..Judgement::default() });
    assert!(poor.session.feed(&incoming).is_ok(), "there is nothing to cover");
    life.say(A, accept("cmt_1"));
    life.say(B, withdraw());
    assert_eq!(life.money(), [""; 0]);
    assert_eq!(life.outcome().escrow_to, None);
}

#[test]
fn a_commitment_that_was_dropped_does_not_come_back() {
    for answer in [reject("cmt_1"), counter("prop_2", "cmt_1")] {
        let mut life = Life::agreeing();
        let step = life.say(B, answer);
        assert_eq!((step.row, step.to), (10, State::Conversing));
        assert!(step.effects.iter().any(|effect| matches!(effect, Effect::DropPending(_))), "{step:?}");
        assert!(life.session.commitment().is_none());
    }
    let mut life = Life::agreeing().after(&[(B, counter("prop_2", "cmt_1"))]);
    life.say(A, accept("prop_2"));
    assert_eq!(life.refused(A, commit("cmt_1", &[(SELLER, 1000)], None)), asp::Code::Duplicate);
    life.say(B, commit("cmt_2", &[(SELLER, 1000)], Some("7")));
    life.say(A, accept("cmt_2"));
    life.say(B, inform("result"));
    life.say(B, close("done"));
    life.say(A, close("done"));
    assert_eq!(
        life.money(),
        ["invited pays in 7 USD for cmt_2", "cmt_2 to the Depositor"],
        "a bond goes back"
    );
}

#[test]
fn one_close_ends_every_other_live_state() {
    for life in [
        Life::invited(),
        Life::identifying(),
        Life::introduced(),
        Life::conversing(),
        Life::agreeing(),
        Life::escalated(),
    ] {
        for (sender, reason) in [(A, "done"), (B, "done"), (A, "unilateral")] {
            let mut life = life.clone();
            let step = life.say(sender, close(reason));
            assert_eq!(life.state(), State::Closed);
            assert_eq!(life.outcome().ending, Ending::Closed(sender));
            assert_eq!(life.outcome().reason, reason);
            assert!(step.effects.contains(&Effect::Learn));
            assert_eq!(life.refused(sender.other(), close(reason)), asp::Code::InvalidStateTransition);
        }
    }
}

#[test]
fn who_withdraws_ends_every_live_state() {
    for life in [
        Life::invited(),
        Life::identifying(),
        Life::introduced(),
        Life::conversing(),
        Life::agreeing(),
        Life::executing(),
        Life::escalated(),
    ] {
        for sender in Role::ALL {
            let mut life = life.clone();
            let step = life.say(sender, withdraw());
            assert_eq!((step.row, step.to), (16, State::Closed));
            assert_eq!(life.outcome().ending, Ending::Withdrawn(sender));
            assert_eq!(life.outcome().reason, "changed my mind");
        }
    }
}

#[test]
fn an_invitation_that_is_rejected_fails() {
    for mut life in [Life::invited(), Life::identifying()] {
        let step = life.say(B, reject("prop_inv"));
        assert_eq!((step.row, step.to), (3, State::Failed));
        assert_eq!(life.outcome().ending, Ending::Rejected(B));
        assert_eq!(life.outcome().reason, "no");
    }
}

#[test]
fn an_error_that_cannot_be_recovered_fails_the_session() {
    for (mut life, row) in [(Life::introduced(), 18), (Life::conversing(), 18), (Life::executing(), 13)] {
        assert!(!life.clone().say(B, inform("error")).to.is_terminal());
        let step = life.say(B, fatal());
        assert_eq!((step.row, step.to), (row, State::Failed));
        assert_eq!(life.outcome().ending, Ending::Fatal(B));
    }
}

#[test]
fn a_broken_chain_fails_every_live_session_and_no_other() {
    for mut life in [
        Life::invited(),
        Life::introduced(),
        Life::conversing(),
        Life::agreeing(),
        Life::executing(),
        Life::escalated(),
    ] {
        let step = life.session.break_chain(START).unwrap();
        assert_eq!((step.row, step.to), (18, State::Failed));
        assert_eq!(life.outcome().ending, Ending::BrokenChain);
        assert!(life.outcome().reason.starts_with("hash_chain_integrity"));
        assert_eq!(life.session.break_chain(START), None);
    }
    let mut closed = Life::conversing().after(&[(A, close("done"))]);
    for life in [&mut Life::new(), &mut closed] {
        let before = life.session.clone();
        assert_eq!(life.session.break_chain(START), None);
        assert_eq!(life.session, before);
    }
}

#[test]
fn what_nobody_is_to_blame_for_is_left_open_and_paid_back() {
    let mut life = Life::conversing();
    life.say(A, commit("cmt_1", &[(SELLER, 100_000)], Some("1")));
    life.say(B, accept("cmt_1"));
    life.wait(3600);
    assert_eq!(life.outcome().ending, Ending::TimedOut(Timer::Session));
    assert_eq!(fates(&life), [Fate::Open]);
    assert_eq!(life.outcome().broken_by, []);
    assert_eq!(life.outcome().escrow_to, Some(Payee::Depositor));
}

fn fates(life: &Life) -> Vec<Fate> {
    life.outcome().obligations.iter().map(|(_, fate)| *fate).collect()
}

fn status(life: &Life) -> Status {
    life.outcome().commitment.as_ref().unwrap().status()
}

/// Who leaves, what he has done, who is then to blame, and who gets the money that the inviter paid in.
#[test]
fn whoever_leaves_work_open_is_to_blame_unless_his_own_is_done_and_he_takes_no_money_back() {
    // Only the seller has something to do; the buyer, who paid in, leaves.
    let mut life = Life::conversing();
    life.say(A, commit("cmt_1", &[(SELLER, 1000)], Some("10.50")));
    life.say(B, accept("cmt_1"));
    for leave in [close("unilateral"), fatal()] {
        let mut life = life.clone();
        life.say(A, leave);
        assert_eq!(fates(&life), [Fate::Open]);
        assert_eq!(life.outcome().broken_by, [A]);
        assert_eq!(life.outcome().escrow_to, Some(Payee::Beneficiary));
    }
    // The seller escalates, the buyer closes meanwhile.
    let mut escalated = life.clone();
    escalated.say(B, escalate(None));
    escalated.say(A, close("enough"));
    assert_eq!(escalated.outcome().broken_by, [A]);
    // Both have something to do; the seller has done his, and leaves before the buyer has.
    let mut life = Life::executing();
    life.say(B, inform("result"));
    life.say(B, close("unilateral"));
    assert_eq!(fates(&life), [Fate::Kept, Fate::Open]);
    assert_eq!(life.outcome().broken_by, []);
    assert_eq!(life.outcome().escrow_to, Some(Payee::Beneficiary), "his work is done");
    // The buyer has done his, but the seller's work is open and his money is in it.
    let mut life = Life::executing();
    life.say(A, inform("result"));
    life.say(A, close("unilateral"));
    assert_eq!(life.outcome().broken_by, [A]);
    assert_eq!(life.outcome().escrow_to, Some(Payee::Beneficiary));
}

#[test]
fn work_that_is_done_is_paid_when_time_runs_out() {
    let mut life = Life::executing();
    life.say(B, inform("result"));
    life.wait(4000);
    assert_eq!(life.state(), State::Failed);
    assert_eq!(life.outcome().escrow_to, Some(Payee::Beneficiary));
}
