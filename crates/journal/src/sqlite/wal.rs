//! Detects acknowledged batches that the write-ahead log lost.
//!
//! SQLite reads the write-ahead log (WAL) up to the first frame with a wrong checksum and silently ignores the rest. That
//! is right for a commit that a crash interrupted. On a damaged disk, however, acknowledged batches would be lost. To
//! tell the two cases apart, this module counts batches. Each batch is flushed to disk with fsync before the next one
//! starts, so a crash interrupts at most one batch. If two or more batches end at or after the first bad frame, at least
//! one of them was acknowledged. Damage to the last batch alone is not detected, because it looks like an interrupted
//! commit.
//!
//! The file format is described at <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::error_mapping::from_io;
use crate::{DamageLocation, JournalError};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// Fails if acknowledged batches in the WAL are unreadable. A missing WAL is not an error.
pub(super) fn check(path: &Path) -> Result<(), JournalError> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(from_io(error)),
    };
    match count_lost_batches(io::BufReader::with_capacity(1 << 16, file)) {
        Ok(lost) if lost >= 2 => Err(JournalError::corrupt(DamageLocation::WriteAheadLog)),
        Ok(_) => Ok(()),
        Err(error) => Err(from_io(error)),
    }
}

/// Counts the batches that end at or after the first invalid frame.
fn count_lost_batches(mut wal: impl Read) -> io::Result<usize> {
    let mut header = [0; HEADER_BYTES];
    if !read_fully(&mut wal, &mut header)? {
        return Ok(0);
    }
    let magic = read_u32_be(&header, 0);
    let mut checksum = WalChecksum { is_big_endian: magic & 1 == 1, sum1: 0, sum2: 0 };
    checksum.add(&header[..24]);
    // If the header is invalid, no frame is valid, and the salts of the current frames are unknown.
    let header_is_valid = magic & !1 == MAGIC && checksum.matches(&header, 24);
    let salts = header_is_valid.then(|| (read_u32_be(&header, 16), read_u32_be(&header, 20)));
    let page_size = read_u32_be(&header, 8) as usize;
    if !(512..=65536).contains(&page_size) || !page_size.is_power_of_two() {
        // Without a valid page size, batches cannot be counted. This crate never writes such a header.
        return Ok(if header == [0; HEADER_BYTES] { 0 } else { usize::MAX });
    }
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_size];
    let (mut all_valid, mut lost) = (header_is_valid, 0);
    while read_fully(&mut wal, &mut frame)? {
        // Frames with other salts are remains of an earlier WAL.
        let is_current = salts.is_none_or(|salts| salts == (read_u32_be(&frame, 8), read_u32_be(&frame, 12)));
        if all_valid {
            checksum.add(&frame[..8]);
            checksum.add(&frame[FRAME_HEADER_BYTES..]);
            all_valid = is_current && checksum.matches(&frame, 16);
        }
        let ends_batch = read_u32_be(&frame, 4) != 0;
        if !all_valid && is_current && ends_batch {
            lost += 1;
        }
    }
    Ok(lost)
}

struct WalChecksum {
    is_big_endian: bool,
    sum1: u32,
    sum2: u32,
}

impl WalChecksum {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let (mut first, mut second) = (read_u32_be(pair, 0), read_u32_be(pair, 4));
            if !self.is_big_endian {
                (first, second) = (first.swap_bytes(), second.swap_bytes());
            }
            self.sum1 = self.sum1.wrapping_add(first).wrapping_add(self.sum2);
            self.sum2 = self.sum2.wrapping_add(second).wrapping_add(self.sum1);
        }
    }

    fn matches(&self, bytes: &[u8], offset: usize) -> bool {
        (self.sum1, self.sum2) == (read_u32_be(bytes, offset), read_u32_be(bytes, offset + 4))
    }
}

fn read_u32_be(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..offset + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Fills the buffer. Returns `false` if the WAL ends first.
fn read_fully(wal: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match wal.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
