//! Where announcements go that take time to be said.

use crate::Announcement;
use crate::speech::Pace;

/// Something that says announcements, one after the other: a speech synthesiser.
///
/// It is given one announcement at a time, out of a [`Queue`](crate::Queue), when [`is_free`](Self::is_free) says so; or at once,
/// when the announcement is critical and cuts in: then [`stop`](Self::stop) is called first, and what it cut off is given again
/// later, unless that was critical itself: then the new one waits.
pub trait Voice: Send {
    /// Says this, and returns without waiting for its end.
    fn say(&mut self, announcement: &Announcement);

    /// Falls silent now. What was being said is not said again of its own accord.
    fn stop(&mut self);

    /// Whether nothing is being said.
    fn is_free(&mut self) -> bool;

    /// What the person should know of the voice itself, once.
    fn news(&mut self) -> Option<String> {
        None
    }

    /// Speaks faster or slower from now on; none where it goes no further.
    fn change_pace(&mut self, _faster: bool) -> Option<Pace> {
        None
    }
}
