//! The interface to a speech synthesizer.

use crate::Announcement;
use crate::speech::SpeechRate;

/// A speech synthesizer, which speaks one announcement at a time.
///
/// The caller takes announcements from an [`AnnouncementQueue`](crate::AnnouncementQueue) and passes the next one when
/// [`is_idle`](Self::is_idle) returns true. To interrupt an announcement for a critical one, the caller calls
/// [`stop`](Self::stop), and passes the interrupted announcement again later.
pub trait SpeechSynthesizer: Send {
    /// Starts to speak the announcement and returns without waiting for its end.
    fn speak(&mut self, announcement: &Announcement);

    /// Stops speaking now. The synthesizer does not repeat the interrupted announcement by itself.
    fn stop(&mut self);

    /// Whether nothing is being spoken.
    fn is_idle(&mut self) -> bool;

    /// Takes a message for the person about the speech output itself, for example a failure.
    fn take_notice(&mut self) -> Option<String> {
        None
    }

    /// Makes speech faster or slower from now on. Returns the new rate, or `None` at the end of the range.
    fn change_rate(&mut self, _faster: bool) -> Option<SpeechRate> {
        None
    }
}
