//! Attempts to sign in that failed: so many from one address, and then it must wait.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use seal::UnixMillis;

/// Who has failed how often. Time comes in as an argument, in milliseconds.
#[derive(Debug)]
pub(crate) struct Attempts {
    most: usize,
    /// How many failures, and when they are forgotten.
    failed: HashMap<IpAddr, (usize, UnixMillis)>,
}

/// For so long failures count, from the first of them.
const SPAN: i64 = 60_000;
/// So many addresses are remembered; beyond that, the one that is forgotten soonest makes room.
const MOST_PEERS: usize = 10_000;

impl Attempts {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, failed: HashMap::new() }
    }

    /// Whether this one may try; if not, after how many seconds.
    pub(crate) fn may(&self, peer: IpAddr, now: UnixMillis) -> Result<(), i64> {
        match self.failed.get(&place(peer)) {
            Some((count, until)) if *count >= self.most && now < *until => {
                Err(until.millis_since(now).div_euclid(1000) + 1)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn failed(&mut self, peer: IpAddr, now: UnixMillis) {
        let peer = place(peer);
        if self.failed.len() >= MOST_PEERS && !self.failed.contains_key(&peer) {
            self.failed.retain(|_, (_, until)| now < *until);
            let first = self.failed.iter().min_by_key(|(_, (_, until))| *until).map(|(peer, _)| *peer);
            if let Some(first) = first.filter(|_| self.failed.len() >= MOST_PEERS) {
                self.failed.remove(&first);
            }
        }
        let (count, until) = self.failed.entry(peer).or_insert((0, now.saturating_add(SPAN)));
        if now >= *until {
            (*count, *until) = (0, now.saturating_add(SPAN));
        }
        *count = count.saturating_add(1);
    }
}

/// One household has 2^64 addresses of IPv6; they count as one.
fn place(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_fails_too_often_waits() {
        let mut attempts = Attempts::new(3);
        let [one, other]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        for _ in 0..3 {
            assert_eq!(attempts.may(one, UnixMillis::new(1000)), Ok(()));
            attempts.failed(one, UnixMillis::new(1000));
        }
        assert_eq!(
            (attempts.may(one, UnixMillis::new(1000)), attempts.may(one, UnixMillis::new(60_999))),
            (Err(61), Err(1))
        );
        assert_eq!(
            attempts.may("::ffff:192.0.2.1".parse().unwrap(), UnixMillis::new(1000)),
            Err(61),
            "the same one"
        );
        assert_eq!(
            (attempts.may(other, UnixMillis::new(1000)), attempts.may(one, UnixMillis::new(61_000))),
            (Ok(()), Ok(()))
        );
        attempts.failed(one, UnixMillis::new(61_000));
        assert_eq!(attempts.may(one, UnixMillis::new(61_000)), Ok(()), "it begins anew");
    }

    #[test]
    fn a_network_of_addresses_counts_as_one() {
        let mut attempts = Attempts::new(1);
        attempts.failed("2001:db8::1".parse().unwrap(), UnixMillis::new(0));
        assert!(attempts.may("2001:db8::ffff:2".parse().unwrap(), UnixMillis::new(0)).is_err());
        assert!(attempts.may("2001:db8:0:1::1".parse().unwrap(), UnixMillis::new(0)).is_ok());
    }

    #[test]
    fn strangers_cannot_fill_the_memory() {
        let mut attempts = Attempts::new(1);
        for number in 0..u32::try_from(MOST_PEERS).unwrap() + 10 {
            attempts.failed(IpAddr::V4(number.into()), UnixMillis::new(i64::from(number)));
        }
        assert_eq!(attempts.failed.len(), MOST_PEERS);
    }
}
