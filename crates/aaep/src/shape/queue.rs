//! Held events in the order in which they came, each found by its number.

use std::collections::VecDeque;

use super::held::Held;

#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    /// Numbers rise; what was taken out of the middle leaves a gap until there are more gaps than events.
    slots: VecDeque<(u64, Option<Held<T>>)>,
    next: u64,
    held: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), next: 0, held: 0 }
    }
}

impl<T> Queue<T> {
    pub(super) fn len(&self) -> usize {
        self.held
    }

    /// Puts an event at the end; returns its number.
    pub(super) fn push(&mut self, held: Held<T>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.slots.push_back((number, Some(held)));
        self.held += 1;
        number
    }

    pub(super) fn get(&self, number: u64) -> Option<&Held<T>> {
        let at = self.slots.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.slots.get(at)?.1.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Held<T>> {
        let at = self.slots.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.slots.get_mut(at)?.1.as_mut()
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Held<T>> {
        let at = self.slots.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let taken = self.slots.get_mut(at)?.1.take()?;
        self.held -= 1;
        while matches!(self.slots.front(), Some((_, None))) {
            self.slots.pop_front();
        }
        if self.slots.len() > 2 * self.held + 8 {
            self.slots.retain(|(_, held)| held.is_some());
        }
        Some(taken)
    }

    /// All events with their numbers, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Held<T>)> {
        self.slots.iter().filter_map(|(number, held)| Some((*number, held.as_ref()?)))
    }
}
