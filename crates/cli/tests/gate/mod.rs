//! The gates, with the real binary and a real hub.

mod hook;
