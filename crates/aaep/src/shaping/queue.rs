//! The queue of held events. Each event has a number, by which it can be found and removed.

use std::collections::VecDeque;

use super::held_event::HeldEvent;

#[derive(Clone, Debug)]
pub(super) struct HeldQueue<T> {
    /// The slots in the order of their numbers. A removed event leaves an empty slot. Empty slots
    /// are removed when they reach the front, or when there are too many of them.
    slots: VecDeque<(u64, Option<HeldEvent<T>>)>,
    next_number: u64,
    held_count: usize,
}

impl<T> Default for HeldQueue<T> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), next_number: 0, held_count: 0 }
    }
}

impl<T> HeldQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.held_count
    }

    /// Appends an event and returns its number.
    pub(super) fn push(&mut self, held: HeldEvent<T>) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.slots.push_back((number, Some(held)));
        self.held_count += 1;
        number
    }

    pub(super) fn get(&self, number: u64) -> Option<&HeldEvent<T>> {
        let index = self.slots.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.slots.get(index)?.1.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut HeldEvent<T>> {
        let index = self.slots.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.slots.get_mut(index)?.1.as_mut()
    }

    pub(super) fn take(&mut self, number: u64) -> Option<HeldEvent<T>> {
        let index = self.slots.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let held = self.slots.get_mut(index)?.1.take()?;
        self.held_count -= 1;
        while matches!(self.slots.front(), Some((_, None))) {
            self.slots.pop_front();
        }
        if self.slots.len() > 2 * self.held_count + 8 {
            self.slots.retain(|(_, held)| held.is_some());
        }
        Some(held)
    }

    /// Iterates over all events with their numbers, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &HeldEvent<T>)> {
        self.slots.iter().filter_map(|(number, held)| Some((*number, held.as_ref()?)))
    }
}
