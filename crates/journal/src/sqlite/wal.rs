//! Whether the write-ahead log lost what was acknowledged.
//!
//! SQLite reads its log up to the first frame whose checksum is wrong, and forgets the rest without a word: right for a
//! commit that a crash tore, wrong for a damaged disk, where acknowledged batches would vanish. The two can be told apart.
//! Each batch is synchronised before the next one begins, so a crash tears at most one; if the ends of two or more stand
//! at or after the first bad frame, one of them was acknowledged. (Damage in the very last batch looks like a torn one.)
//!
//! The format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::fault::system;
use crate::{Error, Place};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// Refuses a log in which acknowledged batches can no longer be read. No log is a good log.
pub(super) fn check(path: &Path) -> Result<(), Error> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(system(error)),
    };
    match batches_lost(io::BufReader::with_capacity(1 << 16, file)) {
        Ok(lost) if lost >= 2 => Err(Error::damaged(Place::WriteAheadLog)),
        Ok(_) => Ok(()),
        Err(error) => Err(system(error)),
    }
}

/// How many batches end at or after the first frame that cannot be believed.
fn batches_lost(mut log: impl Read) -> io::Result<usize> {
    let mut header = [0; HEADER];
    if !fill(&mut log, &mut header)? {
        return Ok(0);
    }
    let magic = word(&header, 0);
    let mut sum = Checksum { big: magic & 1 == 1, one: 0, two: 0 };
    sum.add(&header[..24]);
    // With a bad header nothing in the log counts, whatever generation it says it is.
    let sound = magic & !1 == MAGIC && sum.is(&header, 24);
    let salts = sound.then(|| (word(&header, 16), word(&header, 20)));
    let size = word(&header, 8) as usize;
    if !(512..=65536).contains(&size) || !size.is_power_of_two() {
        // Neither is there a way to count; a page size of ours would have been sound.
        return Ok(if header == [0; HEADER] { 0 } else { usize::MAX });
    }
    let mut frame = vec![0; FRAME_HEADER + size];
    let (mut good, mut lost) = (sound, 0);
    while fill(&mut log, &mut frame)? {
        let current = salts.is_none_or(|salts| salts == (word(&frame, 8), word(&frame, 12)));
        if good {
            sum.add(&frame[..8]);
            sum.add(&frame[FRAME_HEADER..]);
            good = current && sum.is(&frame, 16);
        }
        if !good && current && word(&frame, 4) != 0 {
            lost += 1;
        }
    }
    Ok(lost)
}

struct Checksum {
    big: bool,
    one: u32,
    two: u32,
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let (mut left, mut right) = (word(pair, 0), word(pair, 4));
            if !self.big {
                (left, right) = (left.swap_bytes(), right.swap_bytes());
            }
            self.one = self.one.wrapping_add(left).wrapping_add(self.two);
            self.two = self.two.wrapping_add(right).wrapping_add(self.one);
        }
    }

    fn is(&self, bytes: &[u8], at: usize) -> bool {
        (self.one, self.two) == (word(bytes, at), word(bytes, at + 4))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Whether there were as many bytes as that.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
