//! Trust in the hub, based on its manifest.

use super::{AnswerError, Subscriber};
use crate::ManifestStatus;

impl Subscriber {
    /// Sets the result of checking the hub's manifest. A hub with an invalid manifest receives only rejections (§6.9), neither consent
    /// nor text that the person typed.
    pub fn set_manifest_status(&mut self, status: ManifestStatus) {
        self.manifest_status = Some(status);
    }

    /// Returns the result of checking the hub's manifest, if it was checked.
    pub fn manifest_status(&self) -> Option<&ManifestStatus> {
        self.manifest_status.as_ref()
    }

    pub(super) fn ensure_trusted(&self) -> Result<(), AnswerError> {
        match &self.manifest_status {
            Some(status) if status.is_invalid() => Err(AnswerError::UntrustedHub),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use aaep::UnixMillis;
    use aaep::event::Decision;

    use crate::{AnswerError, ManifestFault, ManifestStatus, Preferences, Subscriber, SubscriberLimits};

    #[test]
    fn a_hub_with_an_invalid_manifest_receives_only_rejections() {
        for (status, trusted) in [
            (ManifestStatus::Verified("bank".to_owned()), true),
            (ManifestStatus::Missing, true),
            (ManifestStatus::Invalid(ManifestFault::UntrustedSignature), false),
        ] {
            let mut subscriber = Subscriber::new(Preferences::default(), SubscriberLimits::default());
            subscriber.set_subscription(aaep::SubscriptionId::parse("sub_1").unwrap());
            subscriber.set_manifest_status(status);
            for (at, question) in [
                r#"confirmation","action":"A","consequence":"C","default_decision":"reject""#,
                r#"clarification","question":"Q?""#,
            ]
            .iter()
            .enumerate()
            {
                subscriber.receive(
                    &format!(
                        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.awaiting.{question},"event_id":"evt_{at}","session_id":"sess_1","timestamp":"1970-01-01T00:00:00.000Z","producer":{{"agent_id":"bank"}},"reply_token":"rpl_{at}","timeout_seconds":120}}"#
                    ),
                    UnixMillis::new(0),
                );
            }
            while subscriber.next_announcement(UnixMillis::new(0)).is_some() {}
            let not_trusted = Err(AnswerError::UntrustedHub);
            assert_eq!(
                subscriber.answer_clarification(2, "Lagos", UnixMillis::new(0)) == not_trusted,
                !trusted
            );
            assert_eq!(
                subscriber.answer_confirmation(1, Decision::Accept, UnixMillis::new(0)) == not_trusted,
                !trusted
            );
            assert_eq!(
                subscriber.answer_confirmation(1, Decision::Reject, UnixMillis::new(0)).is_ok(),
                !trusted,
                "a rejection is sent, unless an acceptance was sent before"
            );
        }
    }
}
