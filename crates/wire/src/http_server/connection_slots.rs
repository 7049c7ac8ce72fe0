//! Limits the number of connections: in total, per address, and for callers that have not authenticated.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::ServerLimits;
use crate::telemetry::Telemetry;

/// The connection slots of a server.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    max_connections: usize,
    max_per_address: usize,
    /// Maximum number of connections that have not authenticated. The remaining slots are reserved.
    max_unauthenticated: usize,
    state: Mutex<SlotState>,
    /// Whether the server is shutting down.
    is_closing: AtomicBool,
    /// Notified when the server begins to shut down, and when a connection ends.
    changed: Notify,
    telemetry: Arc<Telemetry>,
}

#[derive(Debug, Default)]
struct SlotState {
    /// Number of slots that are taken.
    open: usize,
    per_address: FxHashMap<IpAddr, usize>,
    /// The connections that have not authenticated, oldest first. Notifying one closes it.
    unauthenticated: BTreeMap<u64, Arc<Notify>>,
    next_id: u64,
}

impl ConnectionSlots {
    pub(crate) fn new(limits: &ServerLimits, telemetry: Arc<Telemetry>) -> Arc<Self> {
        // At least half of the slots are for everybody, even if the total was lowered to fit the limit on file descriptors.
        let reserved = limits.reserved_connections.min(limits.connections / 2);
        Arc::new(Self {
            max_connections: limits.connections,
            max_per_address: limits.connections_per_address,
            max_unauthenticated: limits.connections - reserved,
            state: Mutex::default(),
            is_closing: AtomicBool::new(false),
            changed: Notify::new(),
            telemetry,
        })
    }

    /// Takes a slot for a new connection. Returns `None` if a limit is reached. Without an address, there is no limit per
    /// address.
    ///
    /// The oldest connection that has not authenticated is closed to make room for the new one if no slot is free, or if
    /// such connections hold as many slots as they may. Without reserved slots, no connection is closed. The returned `Notify`
    /// is the signal to close this connection for the same reason.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        address: Option<IpAddr>,
    ) -> Option<(ConnectionSlot, Arc<Notify>)> {
        let address = address.map(network_of);
        let mut state = self.lock_state();
        let open_from_address =
            address.and_then(|address| state.per_address.get(&address).copied()).unwrap_or(0);
        if open_from_address >= self.max_per_address {
            self.telemetry.record_connection(Some("connections_per_address"));
            return None;
        }
        let has_reserved_slots = self.max_unauthenticated < self.max_connections;
        if has_reserved_slots
            && (state.open >= self.max_connections || state.unauthenticated.len() >= self.max_unauthenticated)
            && let Some((_, oldest)) = state.unauthenticated.pop_first()
        {
            state.open -= 1;
            oldest.notify_one();
            self.telemetry.record_displaced_connection();
        }
        if state.open >= self.max_connections {
            self.telemetry.record_connection(Some("connections"));
            return None;
        }
        let (id, close_signal) = (state.next_id, Arc::new(Notify::new()));
        state.next_id += 1;
        state.open += 1;
        state.unauthenticated.insert(id, close_signal.clone());
        if let Some(address) = address {
            *state.per_address.entry(address).or_default() += 1;
        }
        self.telemetry.record_connection(None);
        self.telemetry.set_open_connections(state.open);
        Some((ConnectionSlot { slots: self.clone(), id, address, is_authenticated: false }, close_signal))
    }

    /// Ends all connections: idle ones at once, the others after their response. Streams must be ended by their service.
    /// Returns when there is no connection left.
    pub(crate) async fn close_all(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
        self.wait_until(|| self.lock_state().open == 0).await;
    }

    /// Returns whether the server is shutting down.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Waits until the server shuts down.
    pub(crate) async fn closing(&self) {
        self.wait_until(|| self.is_closing()).await;
    }

    async fn wait_until(&self, is_met: impl Fn() -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // A change after this line is not missed.
            changed.as_mut().enable();
            if is_met() {
                return;
            }
            changed.await;
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's slot. Dropping it frees the slot.
#[derive(Debug)]
pub struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    address: Option<IpAddr>,
    is_authenticated: bool,
}

impl ConnectionSlot {
    /// Records that the caller has authenticated. From now on, the connection is not closed to make room for another one.
    pub(crate) fn mark_authenticated(&mut self) {
        if !self.is_authenticated {
            self.is_authenticated = self.slots.lock_state().unauthenticated.remove(&self.id).is_some();
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut state = self.slots.lock_state();
        // A connection that was closed to make room for another one is no longer counted.
        if self.is_authenticated || state.unauthenticated.remove(&self.id).is_some() {
            state.open -= 1;
        }
        if let Some(address) = self.address
            && let Some(count) = state.per_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                state.per_address.remove(&address);
            }
        }
        self.slots.telemetry.set_open_connections(state.open);
        let is_last = state.open == 0;
        drop(state);
        if is_last && self.slots.is_closing() {
            self.slots.changed.notify_waiters();
        }
    }
}

/// Returns whether the address is `127.0.0.1` or `::1`. All programs on this machine share these addresses, so the limit per
/// address does not apply to them.
pub(crate) fn is_this_machine(address: IpAddr) -> bool {
    matches!(address.to_canonical(), IpAddr::V4(Ipv4Addr::LOCALHOST) | IpAddr::V6(Ipv6Addr::LOCALHOST))
}

/// Maps an IPv6 address to its /64 network, because one customer usually gets a whole /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use super::*;

    fn slots(connections: usize, connections_per_address: usize, reserved: usize) -> Arc<ConnectionSlots> {
        let limits = ServerLimits {
            connections,
            connections_per_address,
            reserved_connections: reserved,
            ..ServerLimits::default()
        };
        ConnectionSlots::new(&limits, Arc::default())
    }

    #[test]
    fn a_freed_or_closed_slot_counts_once() {
        let slots = slots(4, 9, 2);
        let (mut authenticated, _) = slots.acquire(None).unwrap();
        authenticated.mark_authenticated();
        let unauthenticated: Vec<_> = (0..9).map(|_| slots.acquire(None).unwrap()).collect();
        assert_eq!(slots.lock_state().open, 3);
        assert_eq!(slots.lock_state().unauthenticated.len(), 2);
        drop(unauthenticated);
        assert_eq!(slots.lock_state().open, 1);
        let (mut oldest, _) = slots.acquire(None).unwrap();
        let _others = [slots.acquire(None).unwrap(), slots.acquire(None).unwrap()];
        oldest.mark_authenticated();
        drop(oldest);
        assert_eq!(slots.lock_state().open, 3, "a connection that was closed cannot authenticate");
        drop(authenticated);
        assert_eq!(slots.lock_state().open, 2);
    }

    #[test]
    fn connections_that_have_authenticated_are_never_closed_to_make_room() {
        let slots = slots(2, 9, 1);
        let mut held = Vec::new();
        for _ in 0..2 {
            let (mut slot, _) = slots.acquire(None).unwrap();
            slot.mark_authenticated();
            held.push(slot);
        }
        assert!(slots.acquire(None).is_none());
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_a_limit() {
        let slots = slots(10, 1, 0);
        let acquire = |address: &str| slots.acquire(Some(address.parse().unwrap()));
        let held = acquire("2001:db8::1");
        assert!(held.is_some() && acquire("2001:db8::2").is_none());
        let _other = acquire("2001:db8:0:1::1").unwrap();
        drop(held);
        assert!(acquire("2001:db8::2").is_some());
        assert_eq!(slots.lock_state().per_address.len(), 1, "addresses without connections are forgotten");
    }

    #[test]
    fn only_the_common_loopback_addresses_are_exempt_from_the_limit_per_address() {
        assert!(is_this_machine("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!is_this_machine("127.0.0.2".parse().unwrap()));
    }
}
