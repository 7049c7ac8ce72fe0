//! Who an agent is: its id, its name, and whether somebody other than the agent confirms the name.

use aaep::event::Event;

use super::{Subscriber, hub_extension_texts, read_hub_extension, wording};
use crate::{ManifestStatus, Phrases, sanitize};

/// An agent's id and the name that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentIdentity {
    id: String,
    name: String,
    /// Whether the hub confirms the name, or a verified manifest names the agent.
    pub(super) is_verified: bool,
    /// The id and label of the session's main producer, if it is not this agent.
    main_producer: Option<(String, String)>,
}

impl AgentIdentity {
    /// Returns the name for announcements. A name that nobody confirms is followed by the agent's id. If another producer's name is
    /// not verified, the session's main producer is named as well.
    pub(super) fn label(&self, phrases: &Phrases) -> String {
        match &self.main_producer {
            Some((_, main)) if !self.is_verified => phrases.agent_for(&self.own_label(phrases), main),
            _ => self.own_label(phrases),
        }
    }

    /// Returns the identity of the session's main producer, which may be this agent.
    pub(super) fn main_producer_identity(&self) -> Self {
        match &self.main_producer {
            None => self.clone(),
            Some((id, _)) => {
                Self { id: id.clone(), name: id.clone(), is_verified: false, main_producer: None }
            }
        }
    }

    pub(super) fn is_main(&self) -> bool {
        self.main_producer.is_none()
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    fn own_label(&self, phrases: &Phrases) -> String {
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

    /// Returns a sentence with the agent's id, unless the label contains it.
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

/// The hub's statement about an agent's manifest that it has verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerifiedManifest {
    contact: Option<String>,
}

impl VerifiedManifest {
    /// Reads the hub's statement in a session's first event.
    pub(super) fn read(event: &Event) -> Option<Self> {
        read_hub_extension(event, |sayso| {
            let manifest = sayso.member("manifest")?;
            manifest.member("verified_by")?.text()?;
            let contact = manifest.member("contact").and_then(|contact| contact.text());
            let contact = contact.map(|contact| sanitize(&contact, true));
            Some(Self { contact: contact.filter(|contact| !contact.is_empty()) })
        })
    }

    pub(super) fn describe(&self, phrases: &Phrases) -> String {
        match &self.contact {
            Some(contact) => phrases.manifest_contact(contact),
            None => phrases.manifest_verified.to_owned(),
        }
    }
}

impl Subscriber {
    /// Determines who sent an event. The hub confirms the name of a session's main producer once, with `verified_name`. Later events
    /// of the session with the same id and name count as confirmed. In events of other producers, the hub names the main producer, and
    /// confirms the name each time.
    pub(super) fn identify_agent(&self, event: &Event) -> AgentIdentity {
        let producer = &event.envelope.producer;
        let session = self.sessions.iter().find(|session| session.id == event.envelope.session_id);
        let [named] = hub_extension_texts(event, ["main_producer"]);
        let named = named.filter(|_| self.has_hub);
        let main_id = named.or_else(|| session.map(|session| session.identity.id.clone()));
        let main_producer = main_id.filter(|main| *main != producer.agent_id).map(|main| {
            let known = session.filter(|session| session.identity.id == main);
            let label = known.map(|session| session.agent_name.clone());
            let label = label.unwrap_or_else(|| wording::display_name(self.phrases, &main));
            (main, label)
        });
        let mut identity = AgentIdentity {
            id: producer.agent_id.clone(),
            name: producer.agent_name.as_ref().unwrap_or(&producer.agent_id).clone(),
            // Provisionally true, so that the comparison below matches only an identity that was verified.
            is_verified: true,
            main_producer,
        };
        identity.is_verified = if self.has_hub {
            let verified_name = read_hub_extension(event, |sayso| sayso.member("verified_name")?.as_bool());
            verified_name == Some(true) || session.is_some_and(|session| session.identity == identity)
        } else {
            matches!(&self.manifest_status, Some(ManifestStatus::Verified(agent)) if *agent == identity.id)
        };
        identity
    }
}
