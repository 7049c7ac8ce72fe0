//! Outputs (§4.3.3, §4.5.4). Their positions count code points (C-B11). Each output is completed
//! once, and no chunk follows its completion.

use std::sync::Arc;

use super::PendingItem;
use crate::fingerprint::SeenNames;
use crate::rule::{self, Findings};

#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    open: Vec<OpenOutput>,
    /// The ids of completed outputs.
    completed_ids: SeenNames,
    /// The indexes of the producers whose output without an id is complete.
    completed_unnamed: Vec<usize>,
}

#[derive(Clone, Debug)]
struct OpenOutput {
    id: Option<Arc<str>>,
    producer: usize,
    /// The position of the latest chunk.
    position: u64,
    next_position: u64,
}

#[derive(Clone, Copy)]
pub(super) struct OutputChunk {
    pub(super) position: u64,
    pub(super) length: u64,
    pub(super) is_complete: bool,
}

impl Outputs {
    /// Adds a chunk. An output with an id belongs to the session. An output without an id belongs
    /// to its producer.
    pub(super) fn add_chunk(
        &mut self,
        producer: usize,
        id: Option<&str>,
        chunk: OutputChunk,
        findings: &mut Findings,
    ) {
        let is_completed = match id {
            Some(id) => self.completed_ids.contains(id),
            None => self.completed_unnamed.contains(&producer),
        };
        if is_completed {
            let rule =
                if chunk.is_complete { rule::OUTPUT_COMPLETED } else { rule::NO_CHUNK_AFTER_COMPLETION };
            return findings.push(rule, "/complete".to_owned(), "this output is already complete".to_owned());
        }
        let is_same_output =
            |output: &OpenOutput| output.id.as_deref() == id && (id.is_some() || output.producer == producer);
        let index = self.open.iter().position(is_same_output).unwrap_or_else(|| {
            self.open.push(OpenOutput { id: id.map(Into::into), producer, position: 0, next_position: 0 });
            self.open.len() - 1
        });
        let output = &mut self.open[index];
        let pointer = || "/position".to_owned();
        if chunk.position < output.position && findings.checks(rule::POSITION_NOT_DECREASING) {
            let found = format!("{} follows {}", chunk.position, output.position);
            findings.push(rule::POSITION_NOT_DECREASING, pointer(), found);
        } else if chunk.position != output.next_position {
            let found = format!("expected {}, found {}", output.next_position, chunk.position);
            findings.push(rule::OUTPUT_POSITION, pointer(), found);
        }
        output.position = chunk.position;
        output.next_position = chunk.position.saturating_add(chunk.length);
        if chunk.is_complete {
            match self.open.swap_remove(index).id {
                Some(id) => {
                    self.completed_ids.insert(&id);
                }
                None => self.completed_unnamed.push(producer),
            }
        }
    }

    /// Call this before the session is cloned, so that the clone is cheap. See [`SeenNames`].
    pub(super) fn merge_recent(&mut self) {
        self.completed_ids.merge_recent();
    }

    /// Returns the producer's index, the id and the next position of each incomplete output.
    pub(super) fn iter_open(&self) -> impl Iterator<Item = (usize, Option<&str>, u64)> {
        self.open.iter().map(|output| (output.producer, output.id.as_deref(), output.next_position))
    }

    pub(super) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn report_open(&mut self, findings: &mut Findings) {
        for output in self.open.drain(..) {
            let name = output.id.as_deref().unwrap_or("the output");
            findings.push(rule::OUTPUT_COMPLETED, String::new(), format!("{name} is not complete"));
        }
    }

    pub(super) fn pending_items(&self) -> impl Iterator<Item = PendingItem> {
        self.open.iter().map(|output| PendingItem::Output { output_id: output.id.as_deref().map(Into::into) })
    }
}
