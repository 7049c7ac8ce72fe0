//! The dispute register, the effect of disputes on trust, and the JSON form of disputes and resolutions.

use asp::DisputeId;
use asp::dispute::{
    Decision, Dispute, DisputeReason, DisputeRegister, RegisterError, Resolution, Resolver, Verdict,
};
use asp::trust::{TrustBook, TrustEventKind, TrustParameters};

use super::sessions::{AFTER_ALL_DEADLINES, buyer, executing, file, filing, seller, severity, time};
use crate::support::bodies;
use crate::support::record_harness::B;

fn resolution(verdict: Verdict, resolved_by: Resolver) -> Resolution {
    Resolution {
        dispute_id: DisputeId::parse("dsp_1").unwrap(),
        verdict,
        resolved_by,
        explanation: "because".to_owned(),
        resolved_at: time(AFTER_ALL_DEADLINES),
    }
}

fn person() -> Resolver {
    Resolver::Person("Ada".to_owned())
}

/// Returns a register with one dispute of severity 3.
fn register() -> DisputeRegister {
    let mut filing = filing(DisputeReason::DeadlinePassed);
    filing.severity = severity(3);
    let mut register = DisputeRegister::default();
    register.file(Dispute::file(filing, &executing().record).unwrap()).unwrap();
    register
}

#[test]
fn a_party_files_one_dispute_per_commitment_and_reason() {
    let mut register = register();
    let harness = executing();
    let with = |id: &str, reason, by| {
        let mut filing = filing(reason);
        (filing.dispute_id, filing.filed_by) = (DisputeId::parse(id).unwrap(), by);
        Dispute::file(filing, &harness.record).unwrap()
    };
    let again = with("dsp_1", DisputeReason::TermsChanged, buyer());
    assert_eq!(register.file(again), Err(RegisterError::DuplicateId));
    let same_claim = with("dsp_2", DisputeReason::DeadlinePassed, buyer());
    assert_eq!(register.file(same_claim), Err(RegisterError::DuplicateClaim));
    assert_eq!(register.file(with("dsp_2", DisputeReason::TermsChanged, buyer())), Ok(()));
    assert_eq!(register.file(with("dsp_3", DisputeReason::DeadlinePassed, seller())), Ok(()));
    assert_eq!(register.iter().count(), 3);
}

#[test]
fn a_dispute_ends_once() {
    let mut register = register();
    let mut unknown = resolution(Verdict::Dismissed, person());
    unknown.dispute_id = DisputeId::parse("dsp_9").unwrap();
    assert_eq!(register.resolve(unknown), Err(RegisterError::Unknown));
    assert_eq!(register.resolve(resolution(Verdict::Dismissed, person())), Ok(None));
    let later = resolution(Verdict::Upheld(severity(1)), person());
    assert_eq!(register.resolve(later), Err(RegisterError::AlreadyResolved));
    let (_, known) = register.get(&DisputeId::parse("dsp_1").unwrap()).unwrap();
    assert_eq!(known, Some(&resolution(Verdict::Dismissed, person())));
}

#[test]
fn only_the_parties_settle_or_withdraw_and_only_others_uphold_or_dismiss() {
    let upheld = Verdict::Upheld(severity(3));
    for verdict in [upheld, Verdict::Dismissed, Verdict::Settled, Verdict::Withdrawn] {
        let is_by_parties = matches!(verdict, Verdict::Settled | Verdict::Withdrawn);
        for resolver in [Resolver::Automatic, person(), Resolver::Parties] {
            let is_allowed = is_by_parties == (resolver == Resolver::Parties);
            let result = register().resolve(resolution(verdict, resolver.clone()));
            assert_eq!(result.is_ok(), is_allowed, "{verdict:?} by {resolver:?}");
        }
    }
    let too_severe = resolution(Verdict::Upheld(severity(4)), person());
    assert_eq!(register().resolve(too_severe), Err(RegisterError::SeverityExceeded));
}

#[test]
fn only_an_upheld_dispute_lowers_the_trust_in_the_accused_agent() {
    let event = register().resolve(resolution(Verdict::Upheld(severity(2)), person())).unwrap().unwrap();
    assert_eq!(event.peer, seller());
    assert_eq!(event.session_id, Some(executing().record.session_id()));
    let dispute_id = DisputeId::parse("dsp_1").unwrap();
    assert_eq!(event.kind, TrustEventKind::DisputeLost { dispute_id, severity: severity(2) });
    let mut book = TrustBook::new(TrustParameters::default()).unwrap();
    let before = book.score(&seller(), event.at).get();
    book.record(&event);
    assert!(book.score(&seller(), event.at).get() < before);
    let others = [
        (Verdict::Dismissed, person()),
        (Verdict::Settled, Resolver::Parties),
        (Verdict::Withdrawn, Resolver::Parties),
    ];
    for (verdict, resolver) in others {
        assert_eq!(register().resolve(resolution(verdict, resolver)), Ok(None), "{verdict:?}");
    }
}

#[test]
fn disputes_and_resolutions_are_written_and_parsed_without_loss() {
    let mut harness = executing();
    harness.send(B, &bodies::inform("result"));
    let plain = file(&harness, DisputeReason::FulfillmentMismatch).unwrap();
    let mut full = plain.clone();
    full.statement = Some("20 menus instead of 40".to_owned());
    full.evidence.messages = vec![full.evidence.acceptance, full.evidence.agreed_terms];
    let mut without_result = plain.clone();
    without_result.evidence.delivered_result = None;
    for dispute in [plain, full, without_result] {
        assert_eq!(Dispute::parse(&dispute.to_json()).as_ref(), Ok(&dispute), "{}", dispute.to_json());
    }
    let upheld = (1..=5).map(|number| (Verdict::Upheld(severity(number)), person()));
    let others = [
        (Verdict::Dismissed, Resolver::Automatic),
        (Verdict::Settled, Resolver::Parties),
        (Verdict::Withdrawn, Resolver::Parties),
    ];
    for (verdict, resolver) in upheld.chain(others) {
        let resolution = resolution(verdict, resolver);
        assert_eq!(Resolution::parse(&resolution.to_json()).as_ref(), Ok(&resolution));
    }
}

#[test]
fn malformed_disputes_and_resolutions_are_refused() {
    let dispute = file(&executing(), DisputeReason::TermsChanged).unwrap().to_json();
    for (from, to) in [
        (r#""reason":"terms-changed""#, r#""reason":"bad-mood""#),
        (r#""severity":5"#, r#""severity":6"#),
        (r#""dsp_1""#, r#""cmt_1""#),
        (r#""agreedTerms""#, r#""terms""#),
        (r#""hash":"sha256:"#, r#""hash":"md5:"#),
        (r#""filedAt":"2026"#, r#""filedAt":"later 2026"#),
    ] {
        let changed = dispute.replacen(from, to, 1);
        assert_ne!(changed, dispute, "{from}");
        assert!(Dispute::parse(&changed).is_err(), "{changed}");
    }
    let upheld = resolution(Verdict::Upheld(severity(3)), person()).to_json();
    for (from, to) in [
        (r#""severity":3,"#, ""),
        (r#""verdict":"upheld""#, r#""verdict":"maybe""#),
        (r#""method":"person""#, r#""method":"oracle""#),
        (r#""resolvedBy":"Ada","#, ""),
    ] {
        let changed = upheld.replacen(from, to, 1);
        assert_ne!(changed, upheld, "{from}");
        assert!(Resolution::parse(&changed).is_err(), "{changed}");
    }
}

/// What a node does: file, decide, store, restart, and read everything again.
#[test]
fn a_register_is_rebuilt_from_stored_disputes_and_resolutions() {
    let harness = executing();
    let dispute = file(&harness, DisputeReason::DeadlinePassed).unwrap();
    let Decision::Decided(resolution) =
        dispute.decide(&harness.record, None, time(AFTER_ALL_DEADLINES)).unwrap()
    else {
        panic!("it is decided automatically")
    };
    let stored = (dispute.to_json(), resolution.to_json());
    let mut live = DisputeRegister::default();
    live.file(dispute).unwrap();
    live.resolve(resolution).unwrap();
    let mut rebuilt = DisputeRegister::default();
    rebuilt.file(Dispute::parse(&stored.0).unwrap()).unwrap();
    rebuilt.resolve(Resolution::parse(&stored.1).unwrap()).unwrap();
    assert_eq!(rebuilt, live);
}
