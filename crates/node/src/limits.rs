//! Limits on what peers and the agent's program can make the node use.

use std::time::Duration;

use asp::AspLimits;

seal::defaults! {
    /// The limits of a node.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NodeLimits {
        /// The limits of one session.
        pub session: AspLimits = AspLimits::default(),
        /// Maximum number of open sessions.
        pub sessions: usize = 10_000,
        /// Maximum number of open sessions with one peer.
        pub sessions_per_peer: usize = 1_000,
        /// Maximum number of pinned cards, including those that were pinned on first contact.
        pub pinned_cards: usize = 10_000,
        /// Maximum number of registered cards.
        pub registered_cards: usize = 10_000,
        /// Maximum number of DPoP proofs of requests that are remembered to detect replays.
        pub remembered_proofs: usize = 200_000,
        /// Maximum number of messages per minute and peer whose missing authenticity is recorded. Further ones are dropped
        /// without a record, so that a peer cannot fill the journal.
        pub violations_per_minute: u32 = 1,
        /// The same per day.
        pub violations_per_day: u32 = 24,
        /// Maximum number of messages of one session that are refused with a signed REJECT, which is recorded. Further messages from
        /// the peer are refused without a record, so nothing more is accepted in the session.
        pub refusals_per_session: usize = 1_000,
        /// Maximum number of registrations per minute and address.
        pub registrations_per_minute: u32 = 10,
        /// Maximum number of ended sessions that are kept in memory for clients that still read them.
        pub kept_ended_sessions: usize = 256,
        /// How long the records of an ended session are kept, from its invitation on. Trust, money and disputes are kept for ever.
        pub ended_session_retention: Duration = Duration::from_hours(365 * 24),
        /// Maximum number of ended sessions in the list for the agent's program.
        pub listed_ended_sessions: usize = 10_000,
        /// How long a peer may take to answer a request.
        pub peer_timeout: Duration = Duration::from_secs(10),
        /// The first delay before a message is sent again.
        pub retry_delay: Duration = Duration::from_millis(200),
        /// The longest delay before a message is sent again.
        pub max_retry_delay: Duration = Duration::from_mins(1),
        /// How long the node tries to deliver a message to a peer that does not answer.
        pub delivery_timeout: Duration = Duration::from_hours(7 * 24),
        /// Maximum time that one request from the agent's program waits for a change.
        pub max_wait: Duration = Duration::from_mins(5),
        /// Maximum number of messages in one response.
        pub page_messages: usize = 200,
        /// Maximum size of the messages in one response to a peer, unless one message alone is larger.
        pub page_bytes: usize = 512 * 1024,
    }
}

impl NodeLimits {
    /// Returns as many messages as one response to a peer may have: at least one, if there is one.
    pub(crate) fn page<'m>(&self, messages: impl Iterator<Item = &'m str>) -> impl Iterator<Item = &'m str> {
        let max_bytes = self.page_bytes;
        let mut bytes = 0_usize;
        messages.take(self.page_messages).take_while(move |message| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(message.len());
            is_first || bytes <= max_bytes
        })
    }
}
