//! Outputs (§4.3.3, §4.5.4): positions in code points (C-B11), one completion, nothing after it.

use std::sync::Arc;

use super::Waiting;
use crate::fingerprint::Seen;
use crate::rule::{self, Findings};

#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    open: Vec<Output>,
    /// The ids of those that are complete.
    over: Seen,
    /// The producers whose output without an id is complete.
    over_nameless: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Output {
    id: Option<Arc<str>>,
    agent: usize,
    position: u64,
    next: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Chunk {
    pub(super) position: u64,
    pub(super) length: u64,
    pub(super) complete: bool,
}

impl Outputs {
    /// A chunk. Outputs with an id belong to the session, those without to their producer.
    pub(super) fn chunk(&mut self, agent: usize, id: Option<&str>, chunk: Chunk, findings: &mut Findings) {
        let over = match id {
            Some(id) => self.over.contains(id),
            None => self.over_nameless.contains(&agent),
        };
        if over {
            let rule = if chunk.complete { rule::OUTPUT_COMPLETED } else { rule::OUTPUT_OVER };
            return findings.push(rule, "/complete".to_owned(), "this output is complete already".to_owned());
        }
        let same = |output: &Output| output.id.as_deref() == id && (id.is_some() || output.agent == agent);
        let place = self.open.iter().position(same).unwrap_or_else(|| {
            self.open.push(Output { id: id.map(Into::into), agent, position: 0, next: 0 });
            self.open.len() - 1
        });
        let output = &mut self.open[place];
        let pointer = || "/position".to_owned();
        if chunk.position < output.position {
            let found = format!("{} follows {}", chunk.position, output.position);
            findings.push(rule::POSITION_FALLS, pointer(), found);
        } else if chunk.position != output.next {
            let found = format!("{} characters have been sent, found {}", output.next, chunk.position);
            findings.push(rule::POSITION, pointer(), found);
        }
        output.position = chunk.position;
        output.next = chunk.position.saturating_add(chunk.length);
        if chunk.complete {
            match self.open.swap_remove(place).id {
                Some(id) => {
                    self.over.insert(&id);
                }
                None => self.over_nameless.push(agent),
            }
        }
    }

    /// Before a copy is made: see [`Seen`].
    pub(super) fn settle(&mut self) {
        self.over.settle();
    }

    pub(super) fn open(&self) -> impl Iterator<Item = (Option<&str>, u64)> {
        self.open.iter().map(|output| (output.id.as_deref(), output.next))
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn end(&mut self, findings: &mut Findings) {
        for output in self.open.drain(..) {
            let name = output.id.as_deref().unwrap_or("the output");
            findings.push(rule::OUTPUT_COMPLETED, String::new(), format!("{name} is not complete"));
        }
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = Waiting> {
        self.open.iter().map(|output| Waiting::Output { id: output.id.as_deref().map(Into::into) })
    }
}
