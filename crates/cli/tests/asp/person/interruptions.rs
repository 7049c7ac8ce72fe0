//! Crashes while a question is open.
