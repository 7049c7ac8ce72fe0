//! I/O errors as text for people.

use std::io::{Error, ErrorKind};

/// Describes an I/O error as the end of a sentence, without the system's error number.
///
/// ```
/// let in_use = std::io::Error::from(std::io::ErrorKind::AddrInUse);
/// assert_eq!(seal::describe_io_error(&in_use), "another program is using this address");
/// assert_eq!(seal::describe_io_error(&std::io::Error::from_raw_os_error(28)), "the disk is full");
/// ```
pub fn describe_io_error(error: &Error) -> String {
    let text = match error.kind() {
        // The error has its own message.
        _ if error.raw_os_error().is_none() && error.get_ref().is_some() => return error.to_string(),
        ErrorKind::NotFound => "there is no such file",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::IsADirectory => "it is a folder",
        ErrorKind::NotADirectory => "part of the path is a file, not a folder",
        ErrorKind::AlreadyExists => "it already exists",
        ErrorKind::DirectoryNotEmpty => "the folder is not empty",
        ErrorKind::AddrInUse => "another program is using this address",
        ErrorKind::AddrNotAvailable => "this machine does not have that address",
        ErrorKind::ConnectionRefused => "nothing is listening there",
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            "the connection was lost"
        }
        ErrorKind::UnexpectedEof => "it ended too early",
        ErrorKind::TimedOut => "it does not answer",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            "it cannot be reached over the network"
        }
        ErrorKind::StorageFull => "the disk is full",
        ErrorKind::QuotaExceeded => "the disk quota is used up",
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only",
        ErrorKind::FileTooLarge => "it is too large",
        ErrorKind::OutOfMemory => "there is not enough memory",
        ErrorKind::InvalidFilename => "the file name is not valid",
        _ => return to_end_of_sentence(&error.to_string()),
    };
    text.to_owned()
}

/// Returns the system's message so that it can end a sentence: without its error number, and starting with a small letter.
fn to_end_of_sentence(message: &str) -> String {
    let sentence = message.split_once(" (os error ").map_or(message, |(sentence, _)| sentence);
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_omit_the_os_error_number_and_custom_messages_are_unchanged() {
        for number in 1..134 {
            let text = describe_io_error(&Error::from_raw_os_error(number));
            assert!(!text.contains("os error") && !text.is_empty(), "{number}: {text}");
        }
        assert_eq!(
            describe_io_error(&Error::other("The disk (os error 5) said no")),
            "The disk (os error 5) said no"
        );
    }
}
