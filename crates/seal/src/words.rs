//! What the system says went wrong, in words for people.

use std::io::{Error, ErrorKind};

/// Why something failed, as the end of a sentence, without the system's own numbers.
///
/// ```
/// let refused = std::io::Error::from(std::io::ErrorKind::AddrInUse);
/// assert_eq!(seal::in_words(&refused), "another program uses this address already");
/// assert_eq!(seal::in_words(&std::io::Error::from_raw_os_error(28)), "the disk is full");
/// ```
pub fn in_words(error: &Error) -> String {
    let words = match error.kind() {
        // A word of our own is inside.
        _ if error.raw_os_error().is_none() && error.get_ref().is_some() => return error.to_string(),
        ErrorKind::NotFound => "there is no such file",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::NotADirectory => "a part of the path is a file, not a folder",
        ErrorKind::AlreadyExists => "it is there already",
        ErrorKind::DirectoryNotEmpty => "the folder is not empty",
        ErrorKind::AddrInUse => "another program uses this address already",
        ErrorKind::AddrNotAvailable => "this machine does not have that address",
        ErrorKind::ConnectionRefused => "nothing listens there",
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            "the connection was cut"
        }
        ErrorKind::UnexpectedEof => "it ended too early",
        ErrorKind::TimedOut => "it does not answer",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            "there is no way to it in the network"
        }
        ErrorKind::StorageFull => "the disk is full",
        ErrorKind::QuotaExceeded => "no more may be kept on this disk",
        ErrorKind::ReadOnlyFilesystem => "nothing can be written on this disk",
        ErrorKind::FileTooLarge => "it is too large",
        ErrorKind::OutOfMemory => "there is not enough memory",
        ErrorKind::InvalidFilename => "it is no name of a file here",
        _ => return without_number(&error.to_string()),
    };
    words.to_owned()
}

/// The system's own sentence, without the number at its end.
fn without_number(text: &str) -> String {
    let said = text.split_once(" (os error ").map_or(text, |(said, _)| said);
    let mut letters = said.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_the_system_is_left() {
        for number in 1..134 {
            let words = in_words(&Error::from_raw_os_error(number));
            assert!(!words.contains("os error") && !words.is_empty(), "{number}: {words}");
        }
        assert_eq!(in_words(&Error::other("The disk (os error 5) said no")), "The disk (os error 5) said no");
    }
}
