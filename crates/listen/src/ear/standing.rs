//! Who is heard, as far as that is known.

use super::{Ear, NotAnswered};
use crate::Standing;

impl Ear {
    /// What was found out about who is heard. To one whose manifest is wrong nothing is answered but no (§6.9): undecided
    /// means no, and nothing that the person says is given away.
    pub fn set_standing(&mut self, standing: Standing) {
        self.standing = Some(standing);
    }

    /// What is known of who is heard, where that was looked at.
    pub fn standing(&self) -> Option<&Standing> {
        self.standing.as_ref()
    }

    pub(super) fn trusts(&self) -> Result<(), NotAnswered> {
        match &self.standing {
            Some(standing) if standing.is_wrong() => Err(NotAnswered::NotTrusted),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use aaep::UnixMillis;
    use aaep::event::Decision;

    use crate::{Ear, Fault, Limits, NotAnswered, Standing, Tastes};

    #[test]
    fn one_who_is_not_who_it_should_be_gets_a_no_and_nothing_else() {
        for (standing, trusted) in [
            (Standing::Proven("bank".to_owned()), true),
            (Standing::Absent, true),
            (Standing::Wrong(Fault::Signature), false),
        ] {
            let mut ear = Ear::new(Tastes::default(), Limits::default());
            ear.subscribe(aaep::SubscriptionId::parse("sub_1").unwrap());
            ear.set_standing(standing);
            for (at, asked) in [
                r#"confirmation","action":"A","consequence":"C","default_decision":"reject""#,
                r#"clarification","question":"Q?""#,
            ]
            .iter()
            .enumerate()
            {
                ear.hear(
                    &format!(
                        r#"{{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.awaiting.{asked},"event_id":"evt_{at}","session_id":"sess_1","timestamp":"1970-01-01T00:00:00.000Z","producer":{{"agent_id":"bank"}},"reply_token":"rpl_{at}","timeout_seconds":120}}"#
                    ),
                    UnixMillis::new(0),
                );
            }
            while ear.next(UnixMillis::new(0)).is_some() {}
            let not_trusted = Err(NotAnswered::NotTrusted);
            assert_eq!(ear.respond(2, "Lagos", UnixMillis::new(0)) == not_trusted, !trusted);
            assert_eq!(ear.decide(1, Decision::Accept, UnixMillis::new(0)) == not_trusted, !trusted);
            assert_eq!(
                ear.decide(1, Decision::Reject, UnixMillis::new(0)).is_ok(),
                !trusted,
                "one answer is all that counts"
            );
        }
    }
}
