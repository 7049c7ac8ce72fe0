//! A rate limit for each address, for requests whose sender has not proven anything yet.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use asp::trust::{RateLimited, TokenBucket};
use seal::UnixMillis;

/// Maximum number of addresses that are remembered.
const MAX_ADDRESSES: usize = 10_000;
/// After this time, a bucket is full again, in milliseconds.
const MINUTE_MS: i64 = 60_000;

/// Counts requests by address.
#[derive(Debug, Default)]
pub(crate) struct AddressLimiter {
    buckets: Mutex<HashMap<IpAddr, (TokenBucket, UnixMillis)>>,
}

impl AddressLimiter {
    /// Counts a request from an address.
    pub(crate) fn take(&self, address: IpAddr, per_minute: u32, now: UnixMillis) -> Result<(), RateLimited> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let address = network_of(address);
        if buckets.len() >= MAX_ADDRESSES && !buckets.contains_key(&address) {
            buckets.retain(|_, (_, used_at)| now.millis_since(*used_at) < MINUTE_MS);
            if buckets.len() >= MAX_ADDRESSES {
                return Err(RateLimited { retry_after_ms: MINUTE_MS.unsigned_abs() });
            }
        }
        let (bucket, used_at) = buckets.entry(address).or_insert_with(|| (TokenBucket::default(), now));
        *used_at = now;
        bucket.take(per_minute, now)
    }
}

/// Returns the part of the address space that one client can be expected to control: an IPv4 address, or an IPv6 network of 64 bits.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_limited_each_on_its_own_and_their_number_is_limited() {
        let limiter = AddressLimiter::default();
        let take = |address: IpAddr, at| limiter.take(address, 1, UnixMillis::new(at)).is_ok();
        let v6 = |network, host| IpAddr::from([0x2001, 0xdb8, 0, network, 0, 0, 0, host]);
        assert!(take(v6(1, 1), 0) && !take(v6(1, 2), 0), "one network is one client");
        assert!(take(v6(2, 1), 0));
        let v4 = |number: usize| IpAddr::from(u32::try_from(number).unwrap_or(0).to_be_bytes());
        assert!((2..MAX_ADDRESSES).all(|number| take(v4(number), 0)));
        assert!(!take(v4(MAX_ADDRESSES), 0), "no room");
        assert!(take(v4(MAX_ADDRESSES), MINUTE_MS), "idle addresses are forgotten");
    }
}
