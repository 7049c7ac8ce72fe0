//! Who an agent is: its id, its name, and whether somebody other than the agent confirms the name.

use aaep::event::Event;

use super::{Subscriber, read_hub_extension, wording};
use crate::{ManifestStatus, Phrases};

/// An agent's id and the name that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentIdentity {
    id: String,
    name: String,
    /// Whether the hub confirms the name, or a verified manifest names the agent.
    pub(super) is_verified: bool,
}

impl AgentIdentity {
    /// Returns the name for announcements. A name that nobody confirms is followed by the agent's id.
    pub(super) fn label(&self, phrases: &Phrases) -> String {
        let name = wording::display_name(phrases, &self.name);
        if self.is_verified || self.name_is_id() {
            return name;
        }
        let name = name.replace(['(', ')', '[', ']', '（', '）'], " ");
        let name = wording::display_name(phrases, &name);
        let lower = name.to_lowercase();
        // A name that contains the label of an id could pretend to have another id.
        let imitates_id = Phrases::all().any(|phrases| lower.contains(phrases.agent_id_label));
        let name = if imitates_id { phrases.the_agent } else { name.as_str() };
        phrases.agent_with_id(name, &wording::display_name(phrases, &self.id))
    }

    /// Returns a sentence with the agent's id, if [`Self::label`] does not contain it.
    pub(super) fn describe_id(&self, phrases: &Phrases) -> Option<String> {
        (self.is_verified && !self.name_is_id())
            .then(|| phrases.agent_id_is(&wording::display_name(phrases, &self.id)))
    }

    /// Whether name and id are the same, apart from case, spaces, hyphens and underscores.
    fn name_is_id(&self) -> bool {
        let fold = |text: &str| {
            let is_significant = |c: &char| !c.is_whitespace() && !matches!(c, '-' | '_');
            text.chars().filter(is_significant).flat_map(char::to_lowercase).collect::<String>()
        };
        fold(&self.name) == fold(&self.id)
    }
}

impl Subscriber {
    /// Determines who sent an event. The hub confirms a name once for each session, with `verified_name`. Later events of the session
    /// with the same id and name count as confirmed.
    pub(super) fn identify_agent(&self, event: &Event) -> AgentIdentity {
        let producer = &event.envelope.producer;
        let mut identity = AgentIdentity {
            id: producer.agent_id.clone(),
            name: producer.agent_name.as_ref().unwrap_or(&producer.agent_id).clone(),
            // Provisionally true, so that the comparison below matches only an identity that was verified.
            is_verified: true,
        };
        let session = self.sessions.iter().find(|session| session.id == event.envelope.session_id);
        identity.is_verified = if self.has_hub {
            let verified_name = read_hub_extension(event, |sayso| sayso.member("verified_name")?.as_bool());
            verified_name == Some(true) || session.is_some_and(|session| session.identity == identity)
        } else {
            matches!(&self.manifest_status, Some(ManifestStatus::Verified(agent)) if *agent == identity.id)
        };
        identity
    }
}
