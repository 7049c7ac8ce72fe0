//! Rate limits and the circuit breaker.

use asp::trust::{
    CircuitBreaker, CircuitBreakerParameters, CircuitState, LevelLimits, PeerLimits, TokenBucket, TrustLevel,
};
use proptest::prelude::*;
use seal::UnixMillis;
use testing::property::cases;

fn at(millis: i64) -> UnixMillis {
    UnixMillis::new(1_700_000_000_000 + millis)
}

#[test]
fn more_trusted_peers_may_send_more() {
    let limits = PeerLimits::default();
    let by_level = TrustLevel::ALL.map(|level| limits.of(level));
    let numbers = |limits: LevelLimits| (limits.messages_per_minute, limits.invitations_per_minute);
    assert_eq!(by_level.map(numbers), [(30, 2), (120, 10), (600, 30), (1_800, 60), (6_000, 120)]);
    assert_eq!(by_level.map(|limits| limits.bytes_per_minute >> 20), [2, 8, 32, 128, 512]);
}

#[test]
fn a_bucket_allows_a_burst_and_then_the_rate() {
    let mut bucket = TokenBucket::default();
    for _ in 0..30 {
        assert_eq!(bucket.take(30, at(0)), Ok(()));
    }
    assert_eq!(bucket.take(30, at(0)).unwrap_err().retry_after_ms, 2_000);
    assert_eq!(bucket.take(30, at(1_999)).unwrap_err().retry_after_ms, 1);
    assert_eq!(bucket.take(30, at(2_000)), Ok(()));
    assert!(bucket.take(30, at(2_000)).is_err());
}

#[test]
fn several_tokens_are_taken_at_once() {
    let mut bucket = TokenBucket::default();
    assert_eq!(bucket.take_many(60, 100, at(0)), Ok(()));
    assert_eq!(bucket.take_many(60, 100, at(0)).unwrap_err().retry_after_ms, 12_000);
    assert_eq!(bucket.take_many(40, 100, at(0)), Ok(()), "what was refused took nothing");
    // More than a full bucket has takes a full bucket.
    assert_eq!(bucket.take_many(u32::MAX, 100, at(59_999)).unwrap_err().retry_after_ms, 1);
    assert_eq!(bucket.take_many(u32::MAX, 100, at(60_000)), Ok(()));
    assert_eq!(bucket.take(100, at(60_000)).unwrap_err().retry_after_ms, 600);
}

#[test]
fn a_limit_of_0_allows_nothing() {
    assert!(TokenBucket::default().take(0, at(0)).is_err());
}

#[test]
fn a_peer_that_loses_its_level_is_limited_at_once_and_recovers() {
    let mut bucket = TokenBucket::default();
    for _ in 0..6_000 {
        bucket.take(6_000, at(0)).unwrap();
    }
    // At the lower rate at most 30 tokens count as used, so the next token is free after at most two seconds.
    assert_eq!(bucket.take(30, at(0)).unwrap_err().retry_after_ms, 2_000);
    assert_eq!(bucket.take(30, at(2_000)), Ok(()));
}

#[test]
fn a_clock_that_goes_back_gives_no_tokens() {
    let mut bucket = TokenBucket::default();
    bucket.take(1, at(60_000)).unwrap();
    assert!(bucket.take(1, at(0)).is_err());
    assert!(bucket.take(1, at(60_000)).is_err(), "the time before the step back must not count again");
    assert_eq!(bucket.take(1, at(120_000)), Ok(()));
}

fn breaker() -> CircuitBreaker {
    CircuitBreaker::new(CircuitBreakerParameters::default())
}

/// Returns a circuit breaker that opened at time 0.
fn open_breaker() -> CircuitBreaker {
    let mut breaker = breaker();
    (0..5).for_each(|_| breaker.record_failure(at(0)));
    breaker
}

#[test]
fn five_failures_in_a_row_open_the_circuit() {
    let mut breaker = breaker();
    for _ in 0..10 {
        (0..4).for_each(|_| breaker.record_failure(at(0)));
        breaker.record_success();
        assert_eq!(breaker.state(at(0)), CircuitState::Closed);
    }
    (0..4).for_each(|_| breaker.record_failure(at(0)));
    assert_eq!(breaker.try_call(at(0)), Ok(()));
    breaker.record_failure(at(0));
    assert_eq!(breaker.state(at(0)), CircuitState::Open { until: at(30_000) });
    assert_eq!(breaker.try_call(at(29_999)).unwrap_err().retry_at, at(30_000));
}

#[test]
fn one_trial_call_decides_whether_the_circuit_closes() {
    let mut breaker = open_breaker();
    assert_eq!(breaker.state(at(30_000)), CircuitState::HalfOpen);
    assert_eq!(breaker.try_call(at(30_000)), Ok(()));
    assert_eq!(breaker.try_call(at(30_000)).unwrap_err().retry_at, at(90_000), "one trial at a time");
    breaker.record_success();
    assert_eq!(breaker.state(at(30_001)), CircuitState::Closed);
    (0..4).for_each(|_| breaker.record_failure(at(30_002)));
    assert_eq!(breaker.try_call(at(30_003)), Ok(()), "the failures are counted from 0 again");
}

#[test]
fn each_failed_trial_doubles_the_time_up_to_ten_minutes() {
    let mut breaker = open_breaker();
    let mut now = at(0);
    for open_ms in [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000] {
        assert_eq!(breaker.try_call(now).unwrap_err().retry_at, now + open_ms);
        now += open_ms;
        assert_eq!(breaker.try_call(now), Ok(()));
        breaker.record_failure(now);
    }
}

#[test]
fn a_trial_whose_result_is_never_reported_does_not_block_the_peer() {
    let mut breaker = open_breaker();
    breaker.try_call(at(30_000)).unwrap();
    assert!(breaker.try_call(at(89_999)).is_err());
    assert_eq!(breaker.try_call(at(90_000)), Ok(()));
    assert!(breaker.try_call(at(90_000)).is_err());
}

#[test]
fn late_failures_of_earlier_calls_do_not_extend_the_open_time() {
    let mut breaker = open_breaker();
    breaker.record_failure(at(29_000));
    assert_eq!(breaker.try_call(at(30_000)), Ok(()));
}

proptest! {
    #![proptest_config(cases(300))]

    /// At most a full bucket, plus the tokens that were added since the start, is allowed.
    #[test]
    fn a_bucket_never_exceeds_its_rate(rate in 1..200_u32, gaps in proptest::collection::vec(0..2_000_i64, 1..400)) {
        let (mut bucket, mut now, mut allowed) = (TokenBucket::default(), at(0), 0_i64);
        for gap_ms in gaps {
            now += gap_ms;
            if bucket.take(rate, now).is_ok() {
                allowed += 1;
            }
            let elapsed_ms = now.millis_since(at(0));
            prop_assert!(allowed * 60_000 <= i64::from(rate) * (60_000 + elapsed_ms));
        }
    }

    #[test]
    fn a_call_after_the_retry_after_time_is_allowed(rate in 1..10_000_u32, attempts in 1..500_usize) {
        let (mut bucket, mut now) = (TokenBucket::default(), at(0));
        for _ in 0..attempts {
            if let Err(limited) = bucket.take(rate, now) {
                now += i64::try_from(limited.retry_after_ms).unwrap();
                prop_assert_eq!(bucket.take(rate, now), Ok(()));
            }
        }
    }

    /// An open circuit allows at most one call per open time.
    #[test]
    fn an_open_circuit_allows_few_calls(gaps in proptest::collection::vec(0..10_000_i64, 1..300)) {
        let (mut breaker, mut now, mut calls) = (open_breaker(), at(0), 0_i64);
        for gap_ms in gaps {
            now += gap_ms;
            if breaker.try_call(now).is_ok() {
                calls += 1;
                breaker.record_failure(now);
            }
            prop_assert!(calls <= now.millis_since(at(0)) / 30_000);
        }
    }
}
