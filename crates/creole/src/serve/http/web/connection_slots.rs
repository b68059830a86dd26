//! Limits the number of connections, in total and per address.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::network_prefix;
use crate::serve::http::web::limits::HttpLimits;
use crate::telemetry::metrics::GaugeGuard;

/// The slots for connections.
pub(crate) struct ConnectionSlots {
    permits: Arc<Semaphore>,
    addresses: Arc<AddressCounts>,
}

/// The number of connections per address.
struct AddressCounts {
    max_per_address: usize,
    counts: Mutex<HashMap<[u8; 16], usize>>,
}

/// A slot for a connection; dropping it frees the slot.
pub(crate) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    /// The address that it counts for.
    counted: Option<(Arc<AddressCounts>, [u8; 16])>,
    /// Counts the connection, if metrics are counted.
    gauge: Option<GaugeGuard>,
}

impl ConnectionSlot {
    /// Sets what counts the connection while the slot is taken.
    pub(crate) fn set_gauge(&mut self, gauge: Option<GaugeGuard>) {
        self.gauge = gauge;
    }
}

impl ConnectionSlots {
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        let (max, counts) = (limits.connections_per_address, Mutex::default());
        let addresses = Arc::new(AddressCounts { max_per_address: max, counts });
        Self { permits: Arc::new(Semaphore::new(limits.connections)), addresses }
    }

    /// Waits for a slot.
    pub(crate) async fn wait(&self) -> Option<ConnectionSlot> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
        Some(permit.into())
    }

    /// A slot, if one is free.
    pub(crate) fn try_free(&self) -> Option<ConnectionSlot> {
        Arc::clone(&self.permits).try_acquire_owned().ok().map(ConnectionSlot::from)
    }

    /// The same slot for a connection from this address; `None` if the address has its maximum. `is_shared` marks an
    /// address of many clients, such as a proxy's. This machine's own address is shared too: proxies often run beside a
    /// server.
    pub(crate) fn for_address(
        &self,
        mut slot: ConnectionSlot,
        address: IpAddr,
        is_shared: bool,
    ) -> Option<ConnectionSlot> {
        if is_shared || address.to_canonical().is_loopback() {
            return Some(slot);
        }
        let network = network_prefix(Some(address));
        let mut counts = self.addresses.lock();
        let count = counts.entry(network).or_default();
        if *count >= self.addresses.max_per_address {
            return None;
        }
        *count += 1;
        drop(counts);
        slot.counted = Some((Arc::clone(&self.addresses), network));
        Some(slot)
    }
}

impl AddressCounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], usize>> {
        self.counts.lock()
    }
}

impl From<OwnedSemaphorePermit> for ConnectionSlot {
    fn from(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit, counted: None, gauge: None }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some((addresses, network)) = self.counted.take() else { return };
        let mut counts = addresses.lock();
        if let Some(count) = counts.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connections: usize, connections_per_address: usize) -> ConnectionSlots {
        ConnectionSlots::new(&HttpLimits {
            connections,
            connections_per_address,
            ..HttpLimits::default()
        })
    }

    fn taken(slots: &ConnectionSlots, address: &str, is_shared: bool) -> Option<ConnectionSlot> {
        slots.for_address(slots.try_free()?, address.parse().unwrap(), is_shared)
    }

    #[test]
    fn one_address_does_not_get_all_slots() {
        let slots = places(4, 2);
        let first = taken(&slots, "192.0.2.1", false).unwrap();
        let _second = taken(&slots, "::ffff:192.0.2.1", false).unwrap();
        assert!(taken(&slots, "192.0.2.1", false).is_none());
        let _other = taken(&slots, "192.0.2.2", false).unwrap();
        drop(first);
        let _again = taken(&slots, "192.0.2.1", false).unwrap();
        assert!(taken(&slots, "192.0.2.1", false).is_none(), "a rejected connection takes no slot");
        let _last = taken(&slots, "192.0.2.3", false).unwrap();
        assert!(slots.try_free().is_none());
    }

    #[test]
    fn of_ipv6_a_network_counts() {
        let slots = places(4, 1);
        let _first = taken(&slots, "2001:db8::1", false).unwrap();
        assert!(taken(&slots, "2001:db8::2", false).is_none());
        assert!(taken(&slots, "2001:db8:0:1::1", false).is_some());
    }

    #[test]
    fn addresses_of_many_clients_may_use_all_slots() {
        let slots = places(4, 1);
        let all: Vec<_> =
            [("10.0.0.1", true), ("10.0.0.1", true), ("127.0.0.1", false), ("::1", false)]
                .into_iter()
                .map(|(address, is_shared)| taken(&slots, address, is_shared).unwrap())
                .collect();
        assert!(slots.try_free().is_none());
        drop(all);
        assert!(slots.addresses.lock().is_empty() && slots.try_free().is_some());
    }
}
