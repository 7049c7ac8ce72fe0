//! Consent as a hub records it: whose answers count, until when they count, and which single call they permit.

mod asking_questions;
mod clarifications;
mod consent_hub;
mod crash_recovery;
mod deadlines_and_reminders;
mod model_check;
mod model_state;
mod random_histories;
mod receipts;
mod reply_validation;
mod session_endings;
mod spending_consent;
mod staging_and_commit;
mod subscription_lifecycle;
mod threat_model;
