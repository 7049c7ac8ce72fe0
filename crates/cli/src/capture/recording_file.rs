//! The recording on disk. Every line is written with one system call, so a killed process loses nothing it has recorded. A
//! partially written line is removed.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use aaep::json::Tape;

use crate::output::{describe_io_error, print_stderr, printable};

pub(super) struct RecordingFile {
    name: String,
    sink: RecordingSink,
    /// The total length of the complete lines, in bytes.
    complete_len: u64,
    write_failed: bool,
    /// The path, if this process created the file.
    created_path: Option<PathBuf>,
    /// Whether to truncate the file before the first write.
    must_truncate: bool,
}

enum RecordingSink {
    Disk(fs::File),
    Stdout(io::Stdout),
}

/// A write error, after which nothing more can be written.
pub(super) struct WriteFailure {
    pub(super) reason: String,
    /// Whether the incomplete line was removed.
    pub(super) was_truncated: bool,
}

impl RecordingFile {
    /// Creates a file. Overwrites an existing file only if `force` is set.
    pub(super) fn create(path: &Path, force: bool) -> Result<Self, String> {
        if path.as_os_str() == "-" {
            return Ok(Self::new("standard output".to_owned(), RecordingSink::Stdout(io::stdout()), 0));
        }
        let name = printable(&path.to_string_lossy());
        match owner_only_options().create_new(true).open(path) {
            Ok(file) => Ok(Self {
                created_path: Some(path.to_owned()),
                ..Self::new(name, RecordingSink::Disk(file), 0)
            }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && force => {
                match owner_only_options().open(path) {
                    Ok(file) => {
                        Ok(Self { must_truncate: true, ..Self::new(name, RecordingSink::Disk(file), 0) })
                    }
                    Err(error) => Err(format!("cannot write {name}: {}", describe_io_error(&error))),
                }
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(format!("{name} already exists. Use --append to add to it, or --force to overwrite it"))
            }
            Err(error) => Err(format!("cannot write {name}: {}", describe_io_error(&error))),
        }
    }

    /// Opens a file to append to it, or creates it. Removes an incomplete last line, which a killed process may leave behind.
    pub(super) fn append(path: &Path) -> Result<Self, String> {
        if path.as_os_str() == "-" {
            return Err("--append needs a file, not standard output".to_owned());
        }
        let name = printable(&path.to_string_lossy());
        let write_error = |error: &io::Error| format!("cannot write {name}: {}", describe_io_error(error));
        let mut file =
            owner_only_options().read(true).create(true).open(path).map_err(|error| write_error(&error))?;
        let length = file.metadata().map_err(|error| write_error(&error))?.len();
        let (complete_len, has_newline) =
            find_complete_end(&file, length).map_err(|error| write_error(&error))?;
        if complete_len < length {
            file.set_len(complete_len).map_err(|error| write_error(&error))?;
            print_stderr(&format!(
                "removed an incomplete last line of {} bytes from {name}",
                length - complete_len
            ));
        }
        file.seek(SeekFrom::Start(complete_len)).map_err(|error| write_error(&error))?;
        let mut file = Self::new(name, RecordingSink::Disk(file), complete_len);
        if !has_newline {
            file.write(b"\n").map_err(|failure| format!("cannot write {}: {}", file.name, failure.reason))?;
        }
        Ok(file)
    }

    fn new(name: String, sink: RecordingSink, complete_len: u64) -> Self {
        Self { name, sink, complete_len, write_failed: false, created_path: None, must_truncate: false }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn has_failed(&self) -> bool {
        self.write_failed
    }

    /// Writes a text as one line. Newlines within JSON become spaces.
    pub(super) fn write_line(&mut self, text: &str) -> Result<(), WriteFailure> {
        let mut line: Vec<u8> =
            text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
        line.push(b'\n');
        self.write(&line)
    }

    /// Removes the file if this process created it and nothing was recorded.
    pub(super) fn remove_if_created_and_empty(&self) {
        if let Some(path) = self.created_path.as_ref().filter(|_| self.complete_len == 0) {
            let _ = fs::remove_file(path);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteFailure> {
        if std::mem::take(&mut self.must_truncate)
            && let RecordingSink::Disk(file) = &self.sink
        {
            // Truncation fails for pipes and devices, which do not need it.
            let _ = file.set_len(0);
        }
        let written = match &mut self.sink {
            RecordingSink::Disk(file) => file.write_all(bytes),
            RecordingSink::Stdout(stdout) => stdout.write_all(bytes).and_then(|()| stdout.flush()),
        };
        let Err(error) = written else {
            self.complete_len += bytes.len() as u64;
            return Ok(());
        };
        self.write_failed = true;
        let was_truncated = match &self.sink {
            RecordingSink::Disk(file) => file.set_len(self.complete_len).is_ok(),
            RecordingSink::Stdout(_) => false,
        };
        Err(WriteFailure { reason: describe_io_error(&error), was_truncated })
    }
}

/// Returns options for a file that only its owner can access, because recordings are private.
fn owner_only_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns the total length of the complete lines, and whether the last of these lines ends with a newline. A last line that
/// is valid JSON counts as complete.
fn find_complete_end(file: &fs::File, length: u64) -> io::Result<(u64, bool)> {
    /// Maximum length of a line that contains an event.
    const MAX_LINE_BYTES: u64 = 2 * 1024 * 1024;
    let start = length.saturating_sub(MAX_LINE_BYTES);
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(start))?;
    let (mut at, mut complete_len, mut line) = (start, 0, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)? as u64;
        if read == 0 {
            return Ok((complete_len, true));
        }
        at += read;
        if line.ends_with(b"\n") {
            complete_len = at;
        } else if std::str::from_utf8(&line).is_ok_and(|text| Tape::default().read(text).is_ok()) {
            return Ok((at, false));
        } else if complete_len == 0 && start > 0 {
            return Err(io::Error::new(ErrorKind::InvalidData, "not a recording: its last line is too long"));
        } else {
            return Ok((complete_len, true));
        }
    }
}
