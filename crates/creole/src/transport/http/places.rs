//! How many connections there may be, and how many of them one address may have.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::Limits;
use crate::auth::network_prefix;

/// The places for connections.
pub(super) struct Places {
    free: Arc<Semaphore>,
    addresses: Arc<Addresses>,
}

/// How many connections each address has.
struct Addresses {
    most: usize,
    counts: Mutex<HashMap<[u8; 16], usize>>,
}

/// A place for a connection; it is free again when this is dropped.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    /// The address that it counts for.
    counted: Option<(Arc<Addresses>, [u8; 16])>,
}

impl Places {
    pub(super) fn new(limits: &Limits) -> Self {
        let (most, counts) = (limits.connections_per_address, Mutex::default());
        let addresses = Arc::new(Addresses { most, counts });
        Self { free: Arc::new(Semaphore::new(limits.connections)), addresses }
    }

    /// Waits for a place.
    pub(super) async fn wait(&self) -> Option<Place> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(permit.into())
    }

    /// A place, if there is one.
    pub(super) fn free(&self) -> Option<Place> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(Place::from)
    }

    /// The same place for a connection from this address; nothing if the address has all that it may have. `is_shared` is
    /// an address of many clients, such as a proxy's. That of this machine is one too: proxies often run beside a server.
    pub(super) fn of(&self, mut place: Place, address: IpAddr, is_shared: bool) -> Option<Place> {
        if is_shared || address.to_canonical().is_loopback() {
            return Some(place);
        }
        let network = network_prefix(Some(address));
        let mut counts = self.addresses.lock();
        let count = counts.entry(network).or_default();
        if *count >= self.addresses.most {
            return None;
        }
        *count += 1;
        drop(counts);
        place.counted = Some((Arc::clone(&self.addresses), network));
        Some(place)
    }
}

impl Addresses {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<OwnedSemaphorePermit> for Place {
    fn from(permit: OwnedSemaphorePermit) -> Self {
        Self { _permit: permit, counted: None }
    }
}

impl Drop for Place {
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

    fn places(connections: usize, connections_per_address: usize) -> Places {
        Places::new(&Limits { connections, connections_per_address, ..Limits::default() })
    }

    fn taken(places: &Places, address: &str, is_shared: bool) -> Option<Place> {
        places.of(places.free()?, address.parse().unwrap(), is_shared)
    }

    #[test]
    fn one_address_does_not_get_all_places() {
        let places = places(4, 2);
        let first = taken(&places, "192.0.2.1", false).unwrap();
        let _second = taken(&places, "::ffff:192.0.2.1", false).unwrap();
        assert!(taken(&places, "192.0.2.1", false).is_none());
        let _other = taken(&places, "192.0.2.2", false).unwrap();
        drop(first);
        let _again = taken(&places, "192.0.2.1", false).unwrap();
        assert!(taken(&places, "192.0.2.1", false).is_none(), "what was refused took no place");
        let _last = taken(&places, "192.0.2.3", false).unwrap();
        assert!(places.free().is_none());
    }

    #[test]
    fn of_ipv6_a_network_counts() {
        let places = places(4, 1);
        let _first = taken(&places, "2001:db8::1", false).unwrap();
        assert!(taken(&places, "2001:db8::2", false).is_none());
        assert!(taken(&places, "2001:db8:0:1::1", false).is_some());
    }

    #[test]
    fn addresses_of_many_clients_may_have_all_places() {
        let places = places(4, 1);
        let all: Vec<_> =
            [("10.0.0.1", true), ("10.0.0.1", true), ("127.0.0.1", false), ("::1", false)]
                .into_iter()
                .map(|(address, is_shared)| taken(&places, address, is_shared).unwrap())
                .collect();
        assert!(places.free().is_none());
        drop(all);
        assert!(places.addresses.lock().is_empty() && places.free().is_some());
    }
}
