//! The queue of items that wait to be narrated, limited by size. The lines between editor and agent never wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum size of everything that waits to be narrated, in bytes. What exceeds it is left out, and the gap is announced.
pub(super) const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// The size that an item counts in addition to its text, in bytes.
const ITEM_BYTES: usize = 256;

/// The space for items that wait.
#[derive(Clone, Debug)]
pub(super) struct QueueSpace {
    space: Arc<Semaphore>,
    left_out: Arc<AtomicU64>,
}

impl QueueSpace {
    /// Creates space for this many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { space: Arc::new(Semaphore::new(bytes)), left_out: Arc::default() }
    }

    /// Creates space for one item that must not be left out.
    pub(super) fn for_one() -> Self {
        Self::new(ITEM_BYTES)
    }

    /// Takes space for an item of about this size. Returns `None` if there is none, and counts the item as left out.
    pub(super) fn take<T>(&self, item: T, bytes: usize) -> Option<QueuedItem<T>> {
        let bytes = u32::try_from(bytes.saturating_add(ITEM_BYTES)).unwrap_or(u32::MAX);
        if let Ok(permit) = self.space.clone().try_acquire_many_owned(bytes) {
            return Some(QueuedItem { item, space: permit });
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Returns how many items were left out since the last call.
    pub(super) fn take_left_out(&self) -> u64 {
        self.left_out.swap(0, Ordering::Relaxed)
    }
}

/// An item that waits. Its space is free again when it is dropped or taken out.
#[derive(Debug)]
pub(super) struct QueuedItem<T> {
    item: T,
    space: OwnedSemaphorePermit,
}

impl<T> QueuedItem<T> {
    /// Returns the item.
    pub(super) fn item(&self) -> &T {
        &self.item
    }

    /// Takes the item out.
    pub(super) fn into_item(self) -> T {
        self.item
    }

    /// Converts the item and keeps its space.
    pub(super) fn map<U>(self, convert: impl FnOnce(T) -> U) -> QueuedItem<U> {
        QueuedItem { item: convert(self.item), space: self.space }
    }
}

impl<T> QueuedItem<Option<T>> {
    /// Returns the item if there is one, with its space.
    pub(super) fn transpose(self) -> Option<QueuedItem<T>> {
        let space = self.space;
        self.item.map(|item| QueuedItem { item, space })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_the_space_is_left_out_and_counted() {
        let space = QueueSpace::new(1000);
        let first = space.take("a", 600);
        assert!(first.is_some());
        assert!(space.take("b", 600).is_none());
        assert_eq!((space.take_left_out(), space.take_left_out()), (1, 0));
        drop(first);
        assert!(space.take("c", 600).is_some());
        assert!(space.take("d", usize::MAX).is_none());
    }
}
