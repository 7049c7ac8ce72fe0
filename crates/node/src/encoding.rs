//! The encoding of a session's messages between nodes (D34): JSON, or MessagePack if both sides agreed in the invitation.

use asp::message::{Accept, Authenticator, Body, ExtraMembers, Propose};
use asp::state_machine::State;
use seal::json::{RawJson, Tape};

use crate::session::SessionState;

/// The media type of a message in MessagePack.
pub(crate) const ASP_MSGPACK: &str = "application/asp+msgpack";
/// The member of an invitation that lists the encodings which the inviter offers besides JSON.
const OFFER: &str = "encodings";
/// The member of the acceptance that names the encoding which the invited side chose.
const CHOICE: &str = "encoding";
/// The acceptance is one of the first messages.
const MAX_MESSAGES_BEFORE_ACCEPTANCE: usize = 4;

/// Offers MessagePack in an invitation.
pub(crate) fn offer(invitation: &mut Propose) {
    if let Ok(encodings) = RawJson::parse(&format!("[\"{ASP_MSGPACK}\"]")) {
        invitation.other.set(OFFER, encodings);
    }
}

/// Accepts the offer of MessagePack, if the invitation has one. Other acceptances are not changed.
pub(crate) fn accept_offer(state: &SessionState, body: &mut Body) {
    if let Body::Accept(accept) = body
        && state.state() == State::Invited
        && first_bodies(state).next().is_some_and(|body| is_offered(&body))
        && let Ok(encoding) = RawJson::parse(&format!("\"{ASP_MSGPACK}\""))
    {
        accept.other.set(CHOICE, encoding);
    }
}

impl SessionState {
    /// Returns whether both sides agreed on MessagePack. Before they have introduced themselves, messages are JSON.
    pub(crate) fn uses_message_pack(&mut self) -> bool {
        if let Some(is_agreed) = self.message_pack {
            return is_agreed;
        }
        // An invitation can be escalated before it is accepted.
        if matches!(self.state(), State::Idle | State::Invited | State::Escalated) {
            return false;
        }
        let mut bodies = first_bodies(self);
        let is_agreed = bodies.next().is_some_and(|body| is_offered(&body))
            && bodies.any(|body| matches!(body, Body::Accept(Accept { other, .. }) if is_chosen(&other)));
        drop(bodies);
        *self.message_pack.insert(is_agreed)
    }
}

fn first_bodies(state: &SessionState) -> impl Iterator<Item = Body> {
    let messages = state.participant.record().into_iter().flat_map(|record| record.transcript().messages());
    let mut reader = Authenticator::default();
    let bodies = messages.take(MAX_MESSAGES_BEFORE_ACCEPTANCE);
    bodies.filter_map(move |text| Some(reader.parse_unauthenticated(text).ok()?.body))
}

fn is_offered(body: &Body) -> bool {
    let Body::Propose(invitation) = body else { return false };
    let Some(offer) = invitation.other.get(OFFER) else { return false };
    let mut tape = Tape::default();
    tape.read(offer.as_str())
        .is_ok_and(|doc| doc.root().items().any(|encoding| encoding.is_text(ASP_MSGPACK)))
}

fn is_chosen(other: &ExtraMembers) -> bool {
    let Some(choice) = other.get(CHOICE) else { return false };
    let mut tape = Tape::default();
    tape.read(choice.as_str()).is_ok_and(|doc| doc.root().is_text(ASP_MSGPACK))
}
