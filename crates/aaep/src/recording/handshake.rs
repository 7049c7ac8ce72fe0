//! Checks of the handshakes in a recording (chapter 5): every request is answered, no terms are
//! wider than requested, and the terms are honored.

use std::collections::VecDeque;

use seal::UnixMillis;

use super::InputPosition;
use crate::event::Verbosity;
use crate::message::{
    Boundary, Capabilities, CognitiveLoad, DEFAULT_BOUNDARIES, DEFAULT_LANGUAGE, DEFAULT_LEVEL, EventFilters,
    Message, SubscriptionRequest,
};
use crate::rule::{self, Findings, Rule};
use crate::session::{SessionEvent, SessionEventBody};

/// Maximum number of tracked subscriptions and of open requests.
const MAX_TRACKED: usize = 1024;

/// The subscriptions of a recording.
#[derive(Debug, Default)]
pub(super) struct HandshakeTracker {
    requests: Vec<(SubscriptionRequest, InputPosition)>,
    subscriptions: Vec<TrackedSubscription>,
    /// Whether the limit was exceeded and reported.
    is_full: bool,
}

#[derive(Debug)]
struct TrackedSubscription {
    id: Box<str>,
    requested: Capabilities,
    honored: Capabilities,
    renegotiation: Option<(Capabilities, InputPosition)>,
    is_closed: bool,
    /// The times of the most recent non-critical events: at most as many as are allowed within
    /// [`RATE_WINDOW_MILLIS`].
    recent_event_times: VecDeque<UnixMillis>,
}

/// The window for checking the rate. The rate may be exceeded by a fifth, as in the protocol's own
/// test suite (C-C22).
const RATE_WINDOW_MILLIS: i64 = 5000;
/// Higher rates are not checked.
const MAX_CHECKED_RATE: u64 = 10_000;

impl HandshakeTracker {
    pub(super) fn check_message(
        &mut self,
        message: &Message,
        position: InputPosition,
        findings: &mut Findings,
    ) {
        match message {
            Message::SubscriptionRequest(request) if self.requests.len() < MAX_TRACKED => {
                self.requests.push((request.clone(), position));
            }
            Message::SubscriptionRequest(_) => self.report_full("requests wait for an answer", findings),
            Message::SubscriptionAccepted(accepted) => {
                let id = accepted.subscription_id.as_str();
                let honored = &accepted.honored_capabilities;
                let renegotiated =
                    self.subscriptions.iter_mut().find(|it| &*it.id == id && it.renegotiation.is_some());
                if let Some(subscription) = renegotiated {
                    subscription.apply_renegotiation(honored, findings);
                } else if !self.requests.is_empty() {
                    let (request, _) = self.requests.remove(0);
                    if major_version(&request.aaep_version) != major_version(&accepted.aaep_version) {
                        let found =
                            format!("requested {}, found {}", request.aaep_version, accepted.aaep_version);
                        findings.push(rule::VERSION_COMMON, "/aaep_version".to_owned(), found);
                    }
                    if request.capabilities.accept_signed_manifests_only == Some(true)
                        && accepted.signed_manifest.is_none()
                    {
                        let found = "signed_manifest is missing".to_owned();
                        findings.push(rule::SIGNED_MANIFEST_REQUIRED, String::new(), found);
                    }
                    check_grants_at_most_what_was_requested(&request.capabilities, honored, findings);
                    self.open(id, request.capabilities, honored, findings);
                } else {
                    self.open(id, Capabilities::new(), honored, findings);
                }
            }
            Message::SubscriptionRejected(_) => {
                match self.subscriptions.iter_mut().find(|subscription| subscription.renegotiation.is_some())
                {
                    Some(subscription) if self.requests.is_empty() => {
                        subscription.renegotiation = None;
                        subscription.is_closed = true;
                    }
                    _ if !self.requests.is_empty() => {
                        self.requests.remove(0);
                    }
                    _ => {}
                }
            }
            Message::SubscriptionRenegotiate(request) => {
                if let Some(subscription) = self.find(request.subscription_id.as_str()) {
                    subscription.renegotiation = Some((request.capabilities.clone(), position));
                }
            }
            Message::SubscriptionClose(close) => {
                if let Some(subscription) = self.find(close.subscription_id.as_str()) {
                    subscription.is_closed = true;
                    subscription.renegotiation = None;
                }
            }
            Message::ConfirmationReply(reply) => self.check_reply(reply.subscription_id.as_str(), findings),
            Message::ClarificationReply(reply) => self.check_reply(reply.subscription_id.as_str(), findings),
            _ => {}
        }
    }

    fn open(&mut self, id: &str, requested: Capabilities, honored: &Capabilities, findings: &mut Findings) {
        if self.subscriptions.len() >= MAX_TRACKED {
            return self.report_full("subscriptions were accepted", findings);
        }
        self.subscriptions.push(TrackedSubscription {
            id: id.into(),
            requested,
            honored: honored.clone(),
            renegotiation: None,
            is_closed: false,
            recent_event_times: VecDeque::new(),
        });
    }

    /// Reports once that further items are not tracked.
    fn report_full(&mut self, excess: &str, findings: &mut Findings) {
        if !std::mem::replace(&mut self.is_full, true) {
            let found = format!("more than {MAX_TRACKED} {excess}; the rest are not checked");
            findings.push(rule::CHECK_LIMITS, String::new(), found);
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut TrackedSubscription> {
        self.subscriptions.iter_mut().find(|subscription| &*subscription.id == id)
    }

    /// Checks that a reply names an open subscription, if the recording has any (C-C3).
    fn check_reply(&mut self, id: &str, findings: &mut Findings) {
        let is_open =
            self.subscriptions.iter().any(|subscription| &*subscription.id == id && !subscription.is_closed);
        if !is_open && !self.subscriptions.is_empty() && self.subscriptions.len() < MAX_TRACKED {
            findings.push(
                rule::REPLY_SUBSCRIPTION,
                "/subscription_id".to_owned(),
                format!("{id} is not active"),
            );
        }
    }

    /// Checks an event against the terms. This is possible only if the recording has exactly one
    /// subscription.
    pub(super) fn check_event(&mut self, event: &SessionEvent<&str>, findings: &mut Findings) {
        let [subscription] = &mut *self.subscriptions else { return };
        let body = &event.body;
        let pointer = || "/type".to_owned();
        if subscription.is_closed {
            let found = format!("{} is closed", subscription.id);
            if findings.breaks(rule::AFTER_CLOSE, String::new(), found) {
                return;
            }
        }
        if let (Some(at), Some(_)) = (event.timestamp, filterable_type(body)) {
            subscription.check_rate(at.unix_millis(), findings);
        }
        match body {
            SessionEventBody::Confirmation(_)
                if !subscription.can_reply(|it| it.supports_confirmation_reply) =>
            {
                findings.push(rule::CONFIRMATION_WITHHELD, pointer(), String::new());
            }
            SessionEventBody::Clarification(_)
                if !subscription.can_reply(|it| it.supports_clarification_reply) =>
            {
                findings.push(rule::CLARIFICATION_WITHHELD, pointer(), String::new());
            }
            _ => {}
        }
        if let Some(name) = filterable_type(body)
            && let Some(filters) =
                subscription.honored.event_filters.as_ref().or(subscription.requested.event_filters.as_ref())
            && !filters.allows(name)
        {
            findings.push(rule::EXCLUDED_NOT_SENT, pointer(), format!("found {name}"));
        }
        if let SessionEventBody::OutputStreaming { coalesce_hint: Some(hint), complete, .. } = body {
            let boundaries = boundaries(&subscription.honored).or(boundaries(&subscription.requested));
            let is_allowed =
                boundaries.unwrap_or(&DEFAULT_BOUNDARIES).iter().any(|boundary| boundary.as_str() == *hint)
                    || *complete && *hint == "completion";
            if !is_allowed {
                findings.push(rule::BOUNDARY_HONORED, "/coalesce_hint".to_owned(), format!("found {hint:?}"));
            }
        }
    }

    pub(super) fn finish(&mut self) -> impl Iterator<Item = (InputPosition, Rule, String)> {
        let requests = self.requests.drain(..).map(|(request, position)| {
            (position, rule::REQUEST_ANSWERED, format!("{} got no answer", request.subscriber_id))
        });
        let renegotiations = self.subscriptions.iter_mut().filter_map(|subscription| {
            let (_, position) = subscription.renegotiation.take()?;
            Some((position, rule::RENEGOTIATION_ANSWERED, format!("{} got no answer", subscription.id)))
        });
        requests.chain(renegotiations)
    }
}

fn boundaries(capabilities: &Capabilities) -> Option<&[Boundary]> {
    capabilities.coalesce_boundaries.as_deref()
}

fn major_version(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

/// Returns the event's type if filters can exclude the event. Filters cannot exclude critical events
/// (C-C5) or events of an unknown type.
fn filterable_type(body: &SessionEventBody<&str>) -> Option<&'static str> {
    Some(match body {
        SessionEventBody::Started => "aaep:agent.session.started",
        SessionEventBody::Completed => "aaep:agent.session.completed",
        SessionEventBody::Cancelled => "aaep:agent.session.cancelled",
        SessionEventBody::StateChanged { .. } => "aaep:agent.state.changed",
        SessionEventBody::ProgressUpdated { .. } => "aaep:agent.progress.updated",
        SessionEventBody::ToolInvoked { .. } => "aaep:agent.tool.invoked",
        SessionEventBody::ToolCompleted { .. } => "aaep:agent.tool.completed",
        SessionEventBody::OutputStreaming { .. } => "aaep:agent.output.streaming",
        SessionEventBody::Errored
        | SessionEventBody::Confirmation(_)
        | SessionEventBody::Clarification(_)
        | SessionEventBody::Handoff
        | SessionEventBody::Other => {
            return None;
        }
    })
}

impl TrackedSubscription {
    /// Checks the rate for a non-critical event.
    fn check_rate(&mut self, now: UnixMillis, findings: &mut Findings) {
        let rate = self.honored.max_events_per_second.or(self.requested.max_events_per_second);
        let Some(rate) = rate.filter(|rate| *rate <= MAX_CHECKED_RATE) else { return };
        // Five seconds at the rate, plus a fifth.
        let max_events = usize::try_from(rate * 6).unwrap_or(usize::MAX);
        if self.recent_event_times.len() >= max_events
            && let Some(first) = self.recent_event_times.pop_front()
            && now.millis_since(first) < RATE_WINDOW_MILLIS
        {
            let found = format!(
                "more than {max_events} events within 5 seconds; the agreed rate is {rate} per second"
            );
            findings.push(rule::RATE_HONORED, "/timestamp".to_owned(), found);
            self.recent_event_times.clear();
        }
        self.recent_event_times.push_back(now);
    }

    /// Returns whether the subscription can reply. Uses the honored capability, or the requested
    /// capability if the honored one is absent (C-C6), or false if both are absent.
    fn can_reply(&self, flag: impl Fn(&Capabilities) -> Option<bool>) -> bool {
        flag(&self.honored).or(flag(&self.requested)).unwrap_or(false)
    }

    /// Applies renegotiated terms. Checks that they are not wider than requested, and that they
    /// differ only where a change was requested (§5.7.1).
    fn apply_renegotiation(&mut self, honored: &Capabilities, findings: &mut Findings) {
        let Some((requested, _)) = self.renegotiation.take() else { return };
        let (before, after) = (&self.honored, honored);
        let unchanged = [
            is_unchanged_unless_requested(
                requested.max_events_per_second.as_ref(),
                before.max_events_per_second.as_ref(),
                after.max_events_per_second.as_ref(),
            ),
            is_unchanged_unless_requested(
                requested.preferred_verbosity.as_ref(),
                before.preferred_verbosity.as_ref(),
                after.preferred_verbosity.as_ref(),
            ),
            is_unchanged_unless_requested(
                requested.languages.as_ref(),
                before.languages.as_ref(),
                after.languages.as_ref(),
            ),
            is_unchanged_unless_requested(
                requested.coalesce_boundaries.as_ref(),
                before.coalesce_boundaries.as_ref(),
                after.coalesce_boundaries.as_ref(),
            ),
            is_unchanged_unless_requested(
                requested.event_filters.as_ref(),
                before.event_filters.as_ref(),
                after.event_filters.as_ref(),
            ),
            is_unchanged_unless_requested(
                requested.cognitive_load.as_ref(),
                before.cognitive_load.as_ref(),
                after.cognitive_load.as_ref(),
            ),
            is_unchanged_unless_requested(
                requested.pace_wpm.as_ref(),
                before.pace_wpm.as_ref(),
                after.pace_wpm.as_ref(),
            ),
        ];
        let names = [
            "max_events_per_second",
            "preferred_verbosity",
            "languages",
            "coalesce_boundaries",
            "event_filters",
            "cognitive_load",
            "pace_wpm",
        ];
        for (name, _) in names.iter().zip(unchanged).filter(|(_, unchanged)| !unchanged) {
            let pointer = format!("/honored_capabilities/{name}");
            findings.push(rule::TERMS_UNCHANGED, pointer, "it changed without a request".to_owned());
        }
        self.recent_event_times.clear();
        overlay(&mut self.requested, requested);
        check_grants_at_most_what_was_requested(&self.requested, honored, findings);
        overlay(&mut self.honored, honored.clone());
    }
}

/// Returns whether a term is unchanged or its change was requested.
fn is_unchanged_unless_requested<T: PartialEq>(
    requested: Option<&T>,
    before: Option<&T>,
    after: Option<&T>,
) -> bool {
    requested.is_some() || before.is_none() || after.is_none() || before == after
}

/// Replaces capabilities in `base` with those present in `newer`.
fn overlay(base: &mut Capabilities, newer: Capabilities) {
    fn set<T>(base: &mut Option<T>, newer: Option<T>) {
        if newer.is_some() {
            *base = newer;
        }
    }
    set(&mut base.max_events_per_second, newer.max_events_per_second);
    set::<Verbosity>(&mut base.preferred_verbosity, newer.preferred_verbosity);
    set(&mut base.languages, newer.languages);
    set(&mut base.supports_confirmation_reply, newer.supports_confirmation_reply);
    set(&mut base.supports_clarification_reply, newer.supports_clarification_reply);
    set(&mut base.coalesce_boundaries, newer.coalesce_boundaries);
    set(&mut base.event_filters, newer.event_filters);
    set(&mut base.supported_conformance_levels, newer.supported_conformance_levels);
    set(&mut base.supported_extensions, newer.supported_extensions);
    set::<CognitiveLoad>(&mut base.cognitive_load, newer.cognitive_load);
    set(&mut base.pace_wpm, newer.pace_wpm);
    set(&mut base.accept_signed_manifests_only, newer.accept_signed_manifests_only);
}

/// Checks that no honored capability is wider than requested (§5.4.4, C-C7). If an honored
/// capability is absent, it is assumed to equal the requested one (C-C6).
fn check_grants_at_most_what_was_requested(
    requested: &Capabilities,
    honored: &Capabilities,
    findings: &mut Findings,
) {
    let mut report = |rule: Rule, name: &str, found: String| {
        findings.push(rule, format!("/honored_capabilities/{name}"), found);
    };
    if let (Some(allowed), Some(actual)) = (requested.max_events_per_second, honored.max_events_per_second)
        && actual > allowed
    {
        report(rule::RATE_NOT_WIDER, "max_events_per_second", format!("requested {allowed}, found {actual}"));
    }
    let default_languages = [DEFAULT_LANGUAGE.to_owned()];
    let allowed = requested.languages.as_deref().unwrap_or(&default_languages);
    for language in honored.languages.iter().flatten().filter(|language| !allowed.contains(language)) {
        report(rule::LANGUAGES_NOT_WIDER, "languages", format!("{language} was not requested"));
    }
    let allowed = boundaries(requested).unwrap_or(&DEFAULT_BOUNDARIES);
    for boundary in
        boundaries(honored).unwrap_or_default().iter().filter(|boundary| !allowed.contains(boundary))
    {
        report(rule::BOUNDARIES_NOT_WIDER, "coalesce_boundaries", format!("{boundary} was not requested"));
    }
    let default_filters = EventFilters::new();
    if let Some(actual) = &honored.event_filters
        && !actual.is_subset_of(requested.event_filters.as_ref().unwrap_or(&default_filters))
    {
        report(rule::FILTERS_NOT_WIDER, "event_filters", "they allow more than was requested".to_owned());
    }
    let flags = [
        (
            "supports_confirmation_reply",
            requested.supports_confirmation_reply,
            honored.supports_confirmation_reply,
        ),
        (
            "supports_clarification_reply",
            requested.supports_clarification_reply,
            honored.supports_clarification_reply,
        ),
    ];
    for (name, allowed, actual) in flags {
        if actual == Some(true) && allowed != Some(true) {
            report(rule::TERMS_NOT_WIDER, name, "it was not requested".to_owned());
        }
    }
    let allowed = requested.supported_conformance_levels.as_deref().unwrap_or(&[DEFAULT_LEVEL]);
    for level in
        honored.supported_conformance_levels.iter().flatten().filter(|level| !allowed.contains(level))
    {
        report(rule::TERMS_NOT_WIDER, "supported_conformance_levels", format!("{level} was not requested"));
    }
    let allowed = requested.supported_extensions.as_deref().unwrap_or_default();
    for uri in honored.supported_extensions.iter().flatten().filter(|uri| !allowed.contains(uri)) {
        report(rule::TERMS_NOT_WIDER, "supported_extensions", format!("{uri} was not requested"));
    }
    if requested.accept_signed_manifests_only == Some(true)
        && honored.accept_signed_manifests_only == Some(false)
    {
        report(rule::TERMS_NOT_WIDER, "accept_signed_manifests_only", "true was requested".to_owned());
    }
}
