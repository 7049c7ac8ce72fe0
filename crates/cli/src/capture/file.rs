//! The recording on disk. Every line is given to the system at once, in one piece: who is killed loses nothing that was
//! received, and what could not be written whole is taken back.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use aaep::json::Tape;

use crate::print::{in_words, printable, tell};

pub(super) struct File {
    name: String,
    out: Out,
    /// Up to here every line is whole.
    whole: u64,
    full: bool,
    /// It was made here, at this path.
    made: Option<PathBuf>,
    /// What was in it goes once there is something to write.
    written_over: bool,
}

enum Out {
    Disk(fs::File),
    Stdout(io::Stdout),
}

/// Nothing more can be written.
pub(super) struct Full {
    pub(super) why: String,
    /// The line that did not fit is gone.
    pub(super) cut: bool,
}

impl File {
    /// A new file. One that is there is not written over, unless that is wanted.
    pub(super) fn create(path: &Path, force: bool) -> Result<Self, String> {
        if path.as_os_str() == "-" {
            return Ok(Self::of("standard output".to_owned(), Out::Stdout(io::stdout()), 0));
        }
        let name = printable(&path.to_string_lossy());
        match private().create_new(true).open(path) {
            Ok(file) => Ok(Self { made: Some(path.to_owned()), ..Self::of(name, Out::Disk(file), 0) }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && force => match private().open(path) {
                Ok(file) => Ok(Self { written_over: true, ..Self::of(name, Out::Disk(file), 0) }),
                Err(error) => Err(format!("cannot write {name}: {}", in_words(&error))),
            },
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(format!(
                "{name} is there already. Use --append to add to it, or --force to write over it"
            )),
            Err(error) => Err(format!("cannot write {name}: {}", in_words(&error))),
        }
    }

    /// A file that may be there. Half a line at its end, which a kill leaves behind, is taken off.
    pub(super) fn append(path: &Path) -> Result<Self, String> {
        if path.as_os_str() == "-" {
            return Err("--append is for files".to_owned());
        }
        let name = printable(&path.to_string_lossy());
        let cannot = |error: &io::Error| format!("cannot write {name}: {}", in_words(error));
        let mut file = private().read(true).create(true).open(path).map_err(|error| cannot(&error))?;
        let length = file.metadata().map_err(|error| cannot(&error))?.len();
        let (whole, ended) = ends(&file, length).map_err(|error| cannot(&error))?;
        if whole < length {
            file.set_len(whole).map_err(|error| cannot(&error))?;
            tell(&format!("{name} ended with half a line of {} bytes; it is taken off.", length - whole));
        }
        file.seek(SeekFrom::Start(whole)).map_err(|error| cannot(&error))?;
        let mut file = Self::of(name, Out::Disk(file), whole);
        if !ended {
            file.write(b"\n").map_err(|full| format!("cannot write {}: {}", file.name, full.why))?;
        }
        Ok(file)
    }

    fn of(name: String, out: Out, whole: u64) -> Self {
        Self { name, out, whole, full: false, made: None, written_over: false }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Writes one text as one line. An end of line within JSON is white space.
    pub(super) fn line(&mut self, text: &str) -> Result<(), Full> {
        let mut line: Vec<u8> =
            text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect();
        line.push(b'\n');
        self.write(&line)
    }

    /// Nothing was recorded: a file that was made for it goes again.
    pub(super) fn leave_no_trace(&self) {
        if let Some(path) = self.made.as_ref().filter(|_| self.whole == 0) {
            let _ = fs::remove_file(path);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if std::mem::take(&mut self.written_over)
            && let Out::Disk(file) = &self.out
        {
            // What cannot be cut is no file, but a pipe or a device.
            let _ = file.set_len(0);
        }
        let written = match &mut self.out {
            Out::Disk(file) => file.write_all(bytes),
            Out::Stdout(out) => out.write_all(bytes).and_then(|()| out.flush()),
        };
        let Err(error) = written else {
            self.whole += bytes.len() as u64;
            return Ok(());
        };
        self.full = true;
        let cut = match &self.out {
            Out::Disk(file) => file.set_len(self.whole).is_ok(),
            Out::Stdout(_) => false,
        };
        Err(Full { why: in_words(&error), cut })
    }
}

/// What agents say is between them and the person: the file is for its owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Up to where a recording has whole lines, and whether the last of them is ended. A last line that is whole JSON lacks
/// only its end.
fn ends(file: &fs::File, length: u64) -> io::Result<(u64, bool)> {
    /// A longer line is no event, whole or not.
    const LONGEST: u64 = 2 * 1024 * 1024;
    let from = length.saturating_sub(LONGEST);
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(from))?;
    let (mut at, mut whole, mut line) = (from, 0, Vec::new());
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)? as u64;
        if read == 0 {
            return Ok((whole, true));
        }
        at += read;
        if line.ends_with(b"\n") {
            whole = at;
        } else if std::str::from_utf8(&line).is_ok_and(|text| Tape::default().read(text).is_ok()) {
            return Ok((at, false));
        } else if whole == 0 && from > 0 {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "it is no recording: its last line does not end",
            ));
        } else {
            return Ok((whole, true));
        }
    }
}
