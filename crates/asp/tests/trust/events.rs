//! Events for the tests, and random histories.

use asp::dispute::Severity;
use asp::message::TrustScore;
use asp::trust::{TrustBook, TrustEvent, TrustEventKind, TrustParameters};
use asp::{AgentUri, CommitmentId, DisputeId, SessionId};
use proptest::prelude::*;
use seal::UnixMillis;

pub(super) const HOUR_MS: i64 = 3_600_000;
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;
/// The time at which the histories begin. It is a whole hour, because decay is computed in whole hours.
pub(super) const START: UnixMillis = UnixMillis::new(19_700 * DAY_MS);

pub(super) fn agent(number: usize) -> AgentUri {
    AgentUri::parse(&format!("agent://peer{number}.example/agent")).unwrap()
}

pub(super) fn commitment() -> CommitmentId {
    CommitmentId::parse("cmt_1").unwrap()
}

pub(super) fn dispute_lost(severity: u8) -> TrustEventKind {
    let severity = Severity::new(severity).unwrap();
    TrustEventKind::DisputeLost { dispute_id: DisputeId::parse("dsp_1").unwrap(), severity }
}

pub(super) fn answered(response_ms: u64) -> TrustEventKind {
    TrustEventKind::MessageAnswered { response_ms, limit_ms: 1_000 }
}

pub(super) fn event(peer: usize, at: UnixMillis, kind: TrustEventKind) -> TrustEvent {
    TrustEvent { peer: agent(peer), at, session_id: None, kind }
}

pub(super) fn endorsement(endorser: usize, score: f64, is_same_organization: bool) -> TrustEventKind {
    TrustEventKind::EndorsementReceived {
        endorser: agent(endorser),
        endorser_score: TrustScore::new(score).unwrap(),
        is_same_organization,
    }
}

pub(super) fn empty_book() -> TrustBook {
    TrustBook::new(TrustParameters::default()).unwrap()
}

/// Returns a book in which these events happened to peer 0 at the start.
pub(super) fn book_with(kinds: impl IntoIterator<Item = TrustEventKind>) -> TrustBook {
    let mut book = empty_book();
    for kind in kinds {
        book.record(&event(0, START, kind));
    }
    book
}

/// A pinned peer with this many good sessions, each with a kept commitment and ten timely answers.
pub(super) fn good_sessions(count: usize) -> Vec<TrustEventKind> {
    let mut kinds = vec![TrustEventKind::CardPinned];
    for _ in 0..count {
        kinds.extend([TrustEventKind::SessionCompleted, TrustEventKind::CommitmentKept(commitment())]);
        kinds.extend((0..10).map(|_| answered(100)));
    }
    kinds
}

pub(super) fn score(book: &TrustBook, peer: usize, now: UnixMillis) -> f64 {
    book.score(&agent(peer), now).get()
}

/// One of each event, with variations.
pub(super) fn every_kind() -> Vec<TrustEventKind> {
    let mut kinds = vec![
        TrustEventKind::SessionCompleted,
        TrustEventKind::SessionClosed,
        TrustEventKind::SessionAbandoned,
        answered(1_000),
        answered(1_001),
        TrustEventKind::ResponseMissed,
        TrustEventKind::CommitmentKept(commitment()),
        TrustEventKind::CommitmentLate(commitment()),
        TrustEventKind::CommitmentBroken(commitment()),
        TrustEventKind::ProtocolViolation,
        TrustEventKind::ChainBroken,
        TrustEventKind::AuthenticationFailed,
        TrustEventKind::CardPinned,
        TrustEventKind::CardTrustedOnFirstUse,
        TrustEventKind::CardRotated,
        TrustEventKind::CardMismatched,
        TrustEventKind::CardRevoked,
        TrustEventKind::EscrowFunded(commitment()),
        TrustEventKind::EscrowUnfunded(commitment()),
        TrustEventKind::EscrowForfeited(commitment()),
        endorsement(1, 64.25, false),
        endorsement(2, 30.0, true),
        endorsement(0, 100.0, false),
    ];
    kinds.extend((1..=5).map(dispute_lost));
    kinds
}

pub(super) fn any_kind() -> impl Strategy<Value = TrustEventKind> {
    proptest::sample::select(every_kind())
}

pub(super) fn good_kind() -> impl Strategy<Value = TrustEventKind> {
    proptest::sample::select(
        every_kind().into_iter().filter(|kind| kind.name().is_good()).collect::<Vec<_>>(),
    )
}

pub(super) fn bad_kind() -> impl Strategy<Value = TrustEventKind> {
    proptest::sample::select(
        every_kind().into_iter().filter(|kind| !kind.name().is_good()).collect::<Vec<_>>(),
    )
}

/// Events of four peers. Each is up to 40 days after the previous one; many happen at the same time.
pub(super) fn history(max_events: usize) -> impl Strategy<Value = Vec<TrustEvent>> {
    let gap = prop_oneof![4 => Just(0_i64), 4 => 0..HOUR_MS, 2 => 0..40 * DAY_MS];
    let session = proptest::option::of(Just(()));
    proptest::collection::vec((gap, 0..4_usize, any_kind(), session), 0..max_events).prop_map(|steps| {
        let mut at = START;
        let step = |(gap_ms, peer, kind, session): (i64, usize, TrustEventKind, Option<()>)| {
            at += gap_ms;
            let session_id = session.map(|()| SessionId::generate(at, &mut |bytes: &mut [u8]| bytes.fill(7)));
            TrustEvent { session_id, ..event(peer, at, kind) }
        };
        steps.into_iter().map(step).collect()
    })
}
