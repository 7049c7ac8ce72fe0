//! The routes of a node.

/// The route of a request.
pub(super) enum Route<'r> {
    WellKnownCard,
    Card(&'r str),
    Discover,
    PeerSessions,
    PeerSession(&'r str),
    PeerMessages(&'r str),
    PeerMessage(&'r str, &'r str),
    PeerEvents(&'r str),
    PeerSocket(&'r str),
    OwnSessions,
    OwnSession(&'r str),
    OwnMessages(&'r str),
    OwnTranscript(&'r str),
    OwnCards(&'r str),
    OwnDisputes(&'r str),
    OwnDispute(&'r str),
    Trust,
}

impl<'r> Route<'r> {
    pub(super) fn of(path: &'r str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        Some(match parts.as_slice() {
            [".well-known", "asp-agent-card.json"] => Self::WellKnownCard,
            ["v1", "asp", "agents", name, "card"] => Self::Card(name),
            ["v1", "asp", "discover"] => Self::Discover,
            ["v1", "asp", "sessions"] => Self::PeerSessions,
            ["v1", "asp", "sessions", id] => Self::PeerSession(id),
            ["v1", "asp", "sessions", id, "messages"] => Self::PeerMessages(id),
            ["v1", "asp", "sessions", id, "messages", message] => Self::PeerMessage(id, message),
            ["v1", "asp", "sessions", id, "events"] => Self::PeerEvents(id),
            ["v1", "asp", "sessions", id, "ws"] => Self::PeerSocket(id),
            ["agent", "v1", "asp", "sessions"] => Self::OwnSessions,
            ["agent", "v1", "asp", "sessions", id] => Self::OwnSession(id),
            ["agent", "v1", "asp", "sessions", id, "messages"] => Self::OwnMessages(id),
            ["agent", "v1", "asp", "sessions", id, "transcript"] => Self::OwnTranscript(id),
            ["agent", "v1", "asp", "sessions", id, "cards"] => Self::OwnCards(id),
            ["agent", "v1", "asp", "sessions", id, "disputes"] => Self::OwnDisputes(id),
            ["agent", "v1", "asp", "disputes", id] => Self::OwnDispute(id),
            ["agent", "v1", "asp", "trust"] => Self::Trust,
            _ => return None,
        })
    }

    pub(super) fn template(&self) -> &'static str {
        match self {
            Self::WellKnownCard => "/.well-known/asp-agent-card.json",
            Self::Card(_) => "/v1/asp/agents/{agent}/card",
            Self::Discover => "/v1/asp/discover",
            Self::PeerSessions => "/v1/asp/sessions",
            Self::PeerSession(_) => "/v1/asp/sessions/{id}",
            Self::PeerMessages(_) => "/v1/asp/sessions/{id}/messages",
            Self::PeerMessage(..) => "/v1/asp/sessions/{id}/messages/{message}",
            Self::PeerEvents(_) => "/v1/asp/sessions/{id}/events",
            Self::PeerSocket(_) => "/v1/asp/sessions/{id}/ws",
            Self::OwnSessions => "/agent/v1/asp/sessions",
            Self::OwnSession(_) => "/agent/v1/asp/sessions/{id}",
            Self::OwnMessages(_) => "/agent/v1/asp/sessions/{id}/messages",
            Self::OwnTranscript(_) => "/agent/v1/asp/sessions/{id}/transcript",
            Self::OwnCards(_) => "/agent/v1/asp/sessions/{id}/cards",
            Self::OwnDisputes(_) => "/agent/v1/asp/sessions/{id}/disputes",
            Self::OwnDispute(_) => "/agent/v1/asp/disputes/{id}",
            Self::Trust => "/agent/v1/asp/trust",
        }
    }

    pub(super) fn allowed_methods(&self) -> &'static str {
        match self {
            Self::Card(_) => "GET, PUT",
            Self::PeerSessions | Self::OwnMessages(_) => "POST",
            Self::PeerSession(_) => "GET, DELETE",
            Self::PeerMessages(_) | Self::OwnSessions | Self::OwnDisputes(_) | Self::OwnDispute(_) => {
                "GET, POST"
            }
            _ => "GET",
        }
    }

    pub(super) fn is_for_peers(&self) -> bool {
        matches!(
            self,
            Self::PeerSessions
                | Self::PeerSession(_)
                | Self::PeerMessages(_)
                | Self::PeerMessage(..)
                | Self::PeerEvents(_)
        )
    }
}
