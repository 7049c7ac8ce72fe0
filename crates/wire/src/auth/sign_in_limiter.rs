//! A rate limiter for failed sign-in attempts, per address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use seal::UnixMillis;

/// Counts failed attempts per IPv4 address or IPv6 /64 network. The caller provides the current time.
#[derive(Debug)]
pub(crate) struct SignInLimiter {
    max_failures: usize,
    /// The number of failures and when they expire, for each address or network.
    failures: HashMap<IpAddr, (usize, UnixMillis)>,
}

/// Length of the window in which failures are counted, from the first failure, in milliseconds.
const WINDOW_MS: i64 = 60_000;
/// Maximum number of addresses to remember. Beyond that, the entry that expires first is evicted.
const MAX_PEERS: usize = 10_000;

impl SignInLimiter {
    pub(crate) fn new(max_failures: usize) -> Self {
        Self { max_failures, failures: HashMap::new() }
    }

    /// Checks whether an address may try to sign in. The error is the number of seconds to wait.
    pub(crate) fn check(&self, peer: IpAddr, now: UnixMillis) -> Result<(), i64> {
        match self.failures.get(&network_of(peer)) {
            Some((count, expires_at)) if *count >= self.max_failures && now < *expires_at => {
                Err(expires_at.millis_since(now).div_euclid(1000) + 1)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn record_failure(&mut self, peer: IpAddr, now: UnixMillis) {
        let peer = network_of(peer);
        if self.failures.len() >= MAX_PEERS && !self.failures.contains_key(&peer) {
            self.failures.retain(|_, (_, expires_at)| now < *expires_at);
            let oldest =
                self.failures.iter().min_by_key(|(_, (_, expires_at))| *expires_at).map(|(peer, _)| *peer);
            if let Some(oldest) = oldest.filter(|_| self.failures.len() >= MAX_PEERS) {
                self.failures.remove(&oldest);
            }
        }
        let (count, expires_at) = self.failures.entry(peer).or_insert((0, now.saturating_add(WINDOW_MS)));
        if now >= *expires_at {
            (*count, *expires_at) = (0, now.saturating_add(WINDOW_MS));
        }
        *count = count.saturating_add(1);
    }
}

/// Maps an IPv6 address to its /64 network, because one customer usually gets a whole /64.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_too_many_failures_must_wait() {
        let mut limiter = SignInLimiter::new(3);
        let [first_peer, other_peer]: [IpAddr; 2] =
            ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        for _ in 0..3 {
            assert_eq!(limiter.check(first_peer, UnixMillis::new(1000)), Ok(()));
            limiter.record_failure(first_peer, UnixMillis::new(1000));
        }
        assert_eq!(
            (
                limiter.check(first_peer, UnixMillis::new(1000)),
                limiter.check(first_peer, UnixMillis::new(60_999))
            ),
            (Err(61), Err(1))
        );
        assert_eq!(
            limiter.check("::ffff:192.0.2.1".parse().unwrap(), UnixMillis::new(1000)),
            Err(61),
            "an IPv4-mapped IPv6 address counts as the IPv4 address"
        );
        assert_eq!(
            (
                limiter.check(other_peer, UnixMillis::new(1000)),
                limiter.check(first_peer, UnixMillis::new(61_000))
            ),
            (Ok(()), Ok(()))
        );
        for _ in 0..3 {
            assert_eq!(limiter.check(first_peer, UnixMillis::new(61_000)), Ok(()), "a new window starts");
            limiter.record_failure(first_peer, UnixMillis::new(61_000));
        }
        assert_eq!(limiter.check(first_peer, UnixMillis::new(61_000)), Err(61));
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_a_limit() {
        let mut limiter = SignInLimiter::new(1);
        limiter.record_failure("2001:db8::1".parse().unwrap(), UnixMillis::new(0));
        assert!(limiter.check("2001:db8::ffff:2".parse().unwrap(), UnixMillis::new(0)).is_err());
        assert!(limiter.check("2001:db8:0:1::1".parse().unwrap(), UnixMillis::new(0)).is_ok());
    }

    #[test]
    fn the_number_of_remembered_addresses_is_limited() {
        let mut limiter = SignInLimiter::new(1);
        for number in 0..u32::try_from(MAX_PEERS).unwrap() + 10 {
            limiter.record_failure(IpAddr::V4(number.into()), UnixMillis::new(i64::from(number)));
        }
        assert_eq!(limiter.failures.len(), MAX_PEERS);
        // An address that is already in the full table takes nobody else's place.
        let remembered = IpAddr::V4(u32::try_from(MAX_PEERS).unwrap().into());
        limiter.record_failure(remembered, UnixMillis::new(30_000));
        assert_eq!(limiter.failures.len(), MAX_PEERS);
        // As soon as windows are over, their addresses are forgotten.
        let end_of_all = UnixMillis::new(WINDOW_MS).saturating_add(i64::try_from(MAX_PEERS).unwrap() + 9);
        limiter.record_failure("192.0.2.1".parse().unwrap(), end_of_all);
        assert_eq!(limiter.failures.len(), 1);
    }

    #[test]
    fn only_as_many_addresses_as_necessary_are_evicted() {
        let mut limiter = SignInLimiter::new(1);
        for number in 0..u32::try_from(MAX_PEERS).unwrap() {
            limiter.record_failure(IpAddr::V4(number.into()), UnixMillis::new(i64::from(number / 5_000)));
        }
        // Half of the windows are over, so nobody else is evicted.
        limiter.record_failure("192.0.2.1".parse().unwrap(), UnixMillis::new(WINDOW_MS));
        assert_eq!(limiter.failures.len(), MAX_PEERS / 2 + 1);
        // Below the limit, addresses whose windows are over are not searched for.
        limiter.record_failure("192.0.2.2".parse().unwrap(), UnixMillis::new(WINDOW_MS + 1));
        assert_eq!(limiter.failures.len(), MAX_PEERS / 2 + 2);
    }
}
