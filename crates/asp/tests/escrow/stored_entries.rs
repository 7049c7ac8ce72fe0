//! Entries, requests and answers as JSON.

use asp::escrow::{EscrowAnswer, EscrowError, EscrowLedger, EscrowRequest, LedgerEntry, LedgerOperation};
use asp::session::Payee;

use super::money::{NOW, agent, amount, credit, currency, deposit, escrow_id, hold, reference, release};

fn entries() -> [LedgerEntry; 4] {
    let debit = LedgerOperation::Debit {
        reference: reference(9),
        agent: agent(1),
        amount: amount("0.000000001"),
        currency: currency(1),
    };
    let (id, held) = (escrow_id(3), deposit(0, 1, "12.50", 1));
    let operations = [
        credit(1, 0, "999999999999999.999999999", 0),
        debit,
        LedgerOperation::Hold { id: id.clone(), deposit: held.clone() },
        LedgerOperation::Release { id, deposit: held, to: Payee::Beneficiary },
    ];
    operations.map(|operation| LedgerEntry { at: NOW, operation })
}

#[test]
fn every_entry_is_stored_and_parsed_without_loss() {
    for entry in entries() {
        assert_eq!(LedgerEntry::parse(&entry.to_json()).as_ref(), Ok(&entry), "{}", entry.to_json());
    }
}

/// An entry shows its postings, and an entry whose postings were changed is refused.
#[test]
fn the_postings_of_a_stored_entry_must_be_those_of_its_operation() {
    let text = entries()[2].to_json();
    let session = "01890a5d-ac96-774b-bcce-000000000001";
    assert!(text.ends_with(&format!(
        r#""postings":[{{"account":"agent:agent://agent0.example","billionths":"-12500000000","currency":"EUR"}},{{"account":"escrow:{session}/cmt_1","billionths":"12500000000","currency":"EUR"}}]}}"#
    )));
    for (from, to) in [
        (r#""amount":"12.50""#, r#""amount":"12.51""#),
        (r#""depositor":"agent://agent0"#, r#""depositor":"agent://agent2"#),
        (r#""-12500000000""#, r#""-12400000000""#),
        (r#""currency":"EUR"}]"#, r#""currency":"USD"}]"#),
        (r#""type":"hold""#, r#""type":"release""#),
        (r#""type":"hold""#, r#""type":"gift""#),
        (r#""atMs":1700000000000"#, r#""atMs":"now""#),
        (r#""postings""#, r#""notes""#),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert!(LedgerEntry::parse(&changed).is_err(), "{changed}");
    }
}

/// Stored entries that do not fit together are reported, not repaired.
#[test]
fn a_replay_with_a_missing_or_repeated_entry_fails() {
    let mut ledger = EscrowLedger::default();
    let mut stored = Vec::new();
    let (id, held) = (escrow_id(0), deposit(0, 1, "5", 0));
    for operation in [
        credit(0, 0, "5", 0),
        LedgerOperation::Hold { id: id.clone(), deposit: held.clone() },
        LedgerOperation::Release { id, deposit: held, to: Payee::Beneficiary },
    ] {
        stored.push(ledger.plan(operation, NOW).unwrap());
        ledger.apply(stored.last().unwrap()).unwrap();
    }
    assert_eq!(EscrowLedger::replay(&stored), Ok(ledger));
    assert_eq!(EscrowLedger::replay(&stored[1..]), Err(EscrowError::InsufficientFunds));
    let without_hold = [stored[0].clone(), stored[2].clone()];
    assert_eq!(EscrowLedger::replay(&without_hold), Err(EscrowError::NotHeld));
    for (index, error) in [EscrowError::ReferenceUsed, EscrowError::AlreadyHeld, EscrowError::AlreadyReleased]
        .into_iter()
        .enumerate()
    {
        let repeated: Vec<_> = stored.iter().chain([&stored[index]]).collect();
        assert_eq!(EscrowLedger::replay(repeated), Err(error));
    }
}

#[test]
fn requests_and_answers_are_written_and_parsed_without_loss() {
    let cover = EscrowRequest::Cover { depositor: agent(0), amount: amount("1.5"), currency: currency(0) };
    for request in [cover, hold(1, deposit(0, 1, "2", 0)), release(1, Payee::Depositor)] {
        assert_eq!(EscrowRequest::parse(&request.to_json()).as_ref(), Ok(&request));
    }
    let errors = [
        EscrowError::InsufficientFunds,
        EscrowError::AlreadyHeld,
        EscrowError::NotHeld,
        EscrowError::AlreadyReleased,
        EscrowError::ReferenceUsed,
        EscrowError::DepositMismatch,
        EscrowError::BalanceOverflow,
    ];
    let answers = [
        EscrowAnswer::Covered,
        EscrowAnswer::Held,
        EscrowAnswer::Released(Payee::Beneficiary),
        EscrowAnswer::Released(Payee::Depositor),
        EscrowAnswer::Pending,
    ];
    for answer in answers.into_iter().chain(errors.map(EscrowAnswer::Refused)) {
        assert_eq!(EscrowAnswer::parse(&answer.to_json()), Ok(answer));
    }
    for text in
        ["{}", "[]", r#"{"status":"ok"}"#, r#"{"status":"released"}"#, r#"{"status":"refused","code":"x"}"#]
    {
        assert!(EscrowAnswer::parse(text).is_err(), "{text}");
    }
}
