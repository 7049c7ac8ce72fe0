//! The part of the tar format (POSIX ustar) that backups need: regular files with plain names.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use seal::Digest;

const BLOCK_BYTES: usize = 512;
/// [`BLOCK_BYTES`] as an offset in a file.
const BLOCK: u64 = 512;
/// An archive ends with at least this many empty blocks.
const END_BLOCKS: u64 = 2;
const MAX_NAME_BYTES: usize = 100;
/// Maximum number of files in an archive. The data folder of a hub has a few files and one journal per shard.
const MAX_FILES: usize = 10_000;

/// The header of a file.
type Header = [u8; BLOCK_BYTES];

/// An archive that is being written.
pub(super) struct TarWriter {
    file: File,
    /// Where the next header is written.
    end: u64,
}

impl TarWriter {
    /// Writes into an empty file, which must also be readable.
    pub(super) fn new(file: File) -> Self {
        Self { file, end: 0 }
    }

    /// Adds a file. Returns the digest of what was written, which is reread for this.
    pub(super) fn add(&mut self, name: &str, source: &mut impl Read) -> io::Result<Digest> {
        let start = self.end + BLOCK;
        self.file.seek(SeekFrom::Start(start))?;
        // The header needs the size, which is known only now, because the source can grow while it is copied.
        let size = io::copy(source, &mut self.file)?;
        let header = encode_header(name, size)
            .ok_or_else(|| io::Error::other(format!("the name {name} is too long for a tar file")))?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&header)?;
        self.end = start + size.next_multiple_of(BLOCK);
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(start))?;
        Digest::of_reader((&self.file).take(size))
    }

    /// Writes the end of the archive and syncs it.
    pub(super) fn finish(self) -> io::Result<()> {
        self.file.set_len(self.end + END_BLOCKS * BLOCK)?;
        self.file.sync_all()
    }
}

/// An archive with the list of its files.
pub(super) struct TarReader {
    file: File,
    entries: Vec<TarEntry>,
}

struct TarEntry {
    name: String,
    start: u64,
    size: u64,
}

impl TarReader {
    /// Reads all headers. Fails if the file is not an archive that [`TarWriter`] could have written, or if it is
    /// incomplete.
    pub(super) fn new(mut file: File) -> io::Result<Self> {
        let invalid = |reason| io::Error::new(ErrorKind::InvalidData, reason);
        let length = file.metadata()?.len();
        let mut entries: Vec<TarEntry> = Vec::new();
        let mut start = BLOCK;
        loop {
            let mut header: Header = [0; BLOCK_BYTES];
            file.seek(SeekFrom::Start(start - BLOCK))?;
            file.read_exact(&mut header).map_err(|_| invalid("it is not a complete tar file"))?;
            if header == [0; BLOCK_BYTES] {
                return Ok(Self { file, entries });
            }
            let (name, size) =
                decode_header(&header).ok_or_else(|| invalid("it is not a tar file of sayso backup"))?;
            let end = size.checked_next_multiple_of(BLOCK).and_then(|size| start.checked_add(size));
            let next = end.filter(|end| *end < length).and_then(|end| end.checked_add(BLOCK));
            let next = next.ok_or_else(|| invalid("it is not a complete tar file"))?;
            if entries.len() == MAX_FILES || entries.iter().any(|entry| entry.name == name) {
                return Err(invalid("it contains too many files, or the same file twice"));
            }
            entries.push(TarEntry { name, start, size });
            start = next;
        }
    }

    /// Returns a reader of a file's content.
    pub(super) fn open(&self, name: &str) -> io::Result<io::Take<&File>> {
        let entry = self.entries.iter().find(|entry| entry.name == name).ok_or(ErrorKind::NotFound)?;
        (&self.file).seek(SeekFrom::Start(entry.start))?;
        Ok((&self.file).take(entry.size))
    }
}

/// Positions of the fields in a header.
mod field {
    use std::ops::Range;

    pub(super) const NAME: Range<usize> = 0..100;
    pub(super) const MODE: Range<usize> = 100..108;
    pub(super) const OWNER: Range<usize> = 108..116;
    pub(super) const GROUP: Range<usize> = 116..124;
    pub(super) const SIZE: Range<usize> = 124..136;
    pub(super) const TIME: Range<usize> = 136..148;
    pub(super) const CHECKSUM: Range<usize> = 148..156;
    pub(super) const KIND: Range<usize> = 156..157;
    pub(super) const MAGIC: Range<usize> = 257..265;
}

/// Magic and version of ustar.
const MAGIC: &[u8] = b"ustar\x0000";
const REGULAR_FILE: &[u8] = b"0";
/// The first octal size that does not fit. Larger sizes are binary, with the highest bit set, as in GNU tar.
const OCTAL_SIZE_LIMIT: u64 = 1 << 33;
const BINARY_SIZE_MARK: u8 = 0x80;

/// Returns `None` if the name is too long.
fn encode_header(name: &str, size: u64) -> Option<Header> {
    let mut header: Header = [0; BLOCK_BYTES];
    let mut put = |field: std::ops::Range<usize>, value: &[u8]| {
        header.get_mut(field).into_iter().flatten().zip(value).for_each(|(byte, value)| *byte = *value);
    };
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    put(field::NAME, name.as_bytes());
    put(field::MODE, b"0000600");
    put(field::OWNER, b"0000000");
    put(field::GROUP, b"0000000");
    if size < OCTAL_SIZE_LIMIT {
        put(field::SIZE, format!("{size:011o}").as_bytes());
    } else {
        put(field::SIZE, &[BINARY_SIZE_MARK, 0, 0, 0]);
        put(field::SIZE.start + 4..field::SIZE.end, &size.to_be_bytes());
    }
    put(field::TIME, b"00000000000");
    put(field::KIND, REGULAR_FILE);
    put(field::MAGIC, MAGIC);
    let checksum = checksum_field(&header);
    header[field::CHECKSUM].copy_from_slice(checksum.as_bytes());
    Some(header)
}

/// Returns name and size, or `None` if the header is damaged or not of a regular file.
fn decode_header(header: &Header) -> Option<(String, u64)> {
    let size = match header[field::SIZE] {
        [BINARY_SIZE_MARK, 0, 0, 0, ref size @ ..] => u64::from_be_bytes(size.try_into().ok()?),
        ref octal => parse_octal(octal)?,
    };
    let name = header[field::NAME].split(|byte| *byte == 0).next()?;
    let is_valid = header[field::CHECKSUM] == *checksum_field(header).as_bytes()
        && header[field::KIND] == *REGULAR_FILE
        && header[field::MAGIC] == *MAGIC;
    is_valid.then(|| Some((String::from_utf8(name.to_vec()).ok()?, size)))?
}

/// Returns the content of the checksum field: the sum of all bytes, with spaces in place of the field itself.
fn checksum_field(header: &Header) -> String {
    let sum = |bytes: &[u8]| bytes.iter().copied().map(u64::from).sum::<u64>();
    let total =
        sum(&header[..field::CHECKSUM.start]) + sum(b"        ") + sum(&header[field::CHECKSUM.end..]);
    format!("{total:06o}\0 ")
}

fn parse_octal(bytes: &[u8]) -> Option<u64> {
    let digits = bytes.split(|byte| matches!(byte, 0 | b' ')).next()?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_a_round_trip_and_any_change_is_noticed() {
        for size in [0, 1, 511, OCTAL_SIZE_LIMIT - 1, OCTAL_SIZE_LIMIT, u64::MAX] {
            let header = encode_header("journal.sqlite", size).unwrap();
            assert_eq!(decode_header(&header), Some(("journal.sqlite".to_owned(), size)));
            for offset in 0..BLOCK_BYTES {
                let mut changed = header;
                changed[offset] ^= 1;
                assert_ne!(decode_header(&changed), Some(("journal.sqlite".to_owned(), size)), "{offset}");
            }
        }
        assert!(encode_header(&"n".repeat(MAX_NAME_BYTES), 0).is_some());
        assert_eq!(encode_header(&"n".repeat(MAX_NAME_BYTES + 1), 0), None);
    }
}
