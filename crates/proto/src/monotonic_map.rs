//! A map for increasing keys. Insertion at the end is O(1); slots are reused, so calls in flight do not allocate.

use alloc::vec::Vec;

/// Maximum number of slots that stay allocated when the map is empty.
const RETAINED_SLOTS: usize = 64;

/// A map in which each new key is greater than the earlier ones. Values stay in their slots until they are removed, and
/// the slots are reused: under load nothing is allocated and no large value is moved.
#[derive(Debug)]
pub struct MonotonicMap<K, V> {
    /// The keys in order, with the slots of their values.
    order: Vec<(K, usize)>,
    values: Vec<Option<V>>,
    /// Free slots.
    free: Vec<usize>,
}

impl<K, V> Default for MonotonicMap<K, V> {
    fn default() -> Self {
        Self { order: Vec::new(), values: Vec::new(), free: Vec::new() }
    }
}

impl<K: Copy + Ord, V> MonotonicMap<K, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Inserts a value. A key that is not the greatest is inserted at its sorted position, which takes longer. An
    /// existing key gets the new value.
    pub fn insert(&mut self, key: K, value: V) {
        let search = match self.order.last() {
            Some((last, _)) if *last >= key => self.position(key),
            _ => Err(self.order.len()),
        };
        match search {
            Ok(index) => self.values[self.order[index].1] = Some(value),
            Err(index) => {
                let available = self.take_free_slot();
                self.values[available] = Some(value);
                self.order.insert(index, (key, available));
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, key: K) -> Option<&V> {
        let index = self.position(key).ok()?;
        self.values[self.order[index].1].as_ref()
    }

    /// The value of a key, mutable.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let index = self.position(key).ok()?;
        self.values[self.order[index].1].as_mut()
    }

    /// Removes a value.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let index = self.position(key).ok()?;
        let (_, available) = self.order.remove(index);
        let value = self.values[available].take();
        self.free.push(available);
        if self.order.is_empty() && self.values.len() > RETAINED_SLOTS {
            *self = Self::default();
        }
        value
    }

    /// All entries, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.order
            .iter()
            .filter_map(|(key, available)| Some((*key, self.values[*available].as_ref()?)))
    }

    fn position(&self, key: K) -> Result<usize, usize> {
        self.order.binary_search_by(|(known, _)| known.cmp(&key))
    }

    fn take_free_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.values.push(None);
            self.values.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_until_it_is_removed_and_iteration_is_in_order() {
        let mut map = MonotonicMap::default();
        [1, 2, 5, 9].into_iter().for_each(|key| map.insert(key, key * 10));
        assert_eq!((map.get(5), map.get(4), map.len()), (Some(&50), None, 4));
        assert_eq!((map.remove(2), map.remove(2), map.remove(9)), (Some(20), None, Some(90)));
        map.insert(11, 110);
        map.insert(7, 70);
        map.insert(5, 51);
        *map.get_mut(11).unwrap() += 1;
        let all: Vec<_> = map.iter().map(|(key, value)| (key, *value)).collect();
        assert_eq!(all, [(1, 10), (5, 51), (7, 70), (11, 111)]);
    }

    #[test]
    fn slots_are_reused_and_released_when_the_map_is_empty() {
        let mut map = MonotonicMap::default();
        for key in 0..1000 {
            map.insert(key, key);
            assert_eq!(map.remove(key), Some(key));
        }
        assert_eq!(map.values.len(), 1);
        (1000..2000).for_each(|key| map.insert(key, key));
        assert!((1000..2000).rev().all(|key| map.remove(key) == Some(key)));
        assert!(map.is_empty() && map.values.capacity() == 0);
    }
}
