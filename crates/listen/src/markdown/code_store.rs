//! Code from outputs, which is announced with its length and read on request.

use std::collections::VecDeque;

/// The code blocks that were announced, the oldest first. The oldest ones are forgotten beyond the limit.
#[derive(Debug)]
pub(crate) struct CodeBlockStore {
    blocks: VecDeque<CodeBlock>,
    last_number: u32,
    max_blocks: usize,
    max_block_bytes: usize,
}

/// One code block.
#[derive(Debug)]
pub(crate) struct CodeBlock {
    /// The number by which the person refers to it. Numbers are not reused.
    pub(crate) number: u32,
    pub(crate) text: String,
    /// Whether its end was dropped because it is too long.
    pub(crate) was_cut: bool,
}

impl CodeBlockStore {
    pub(crate) fn new(max_blocks: usize, max_block_bytes: usize) -> Self {
        Self { blocks: VecDeque::new(), last_number: 0, max_blocks, max_block_bytes }
    }

    /// Stores a code block and returns its number.
    pub(super) fn add(&mut self, text: &str) -> u32 {
        self.last_number = self.last_number.saturating_add(1);
        self.blocks.push_back(CodeBlock { number: self.last_number, text: String::new(), was_cut: false });
        if self.blocks.len() > self.max_blocks {
            self.blocks.pop_front();
        }
        self.append(self.last_number, text);
        self.last_number
    }

    /// Adds text to a block whose end had not arrived.
    pub(super) fn append(&mut self, number: u32, text: &str) {
        let Some(block) = self.blocks.iter_mut().find(|block| block.number == number) else { return };
        let free_bytes = self.max_block_bytes.saturating_sub(block.text.len());
        let end = text.floor_char_boundary(free_bytes.min(text.len()));
        if !block.was_cut {
            block.text.push_str(text.get(..end).unwrap_or_default());
        }
        block.was_cut |= end < text.len();
    }

    /// Returns a block by its number, or the latest one.
    pub(crate) fn get(&self, number: Option<u32>) -> Option<&CodeBlock> {
        match number {
            Some(number) => self.blocks.iter().find(|block| block.number == number),
            None => self.blocks.back(),
        }
    }
}
