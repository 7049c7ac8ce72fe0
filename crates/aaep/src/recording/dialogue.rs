//! The handshake as a recording shows it (chapter 5): every request answered, no terms wider than asked, and what was
//! agreed kept.

use std::collections::VecDeque;

use seal::UnixMillis;

use super::Place;
use crate::event::Verbosity;
use crate::message::{
    Boundary, Capabilities, CognitiveLoad, DEFAULT_BOUNDARIES, DEFAULT_LANGUAGE, DEFAULT_LEVEL, EventFilters,
    Message, SubscriptionRequest,
};
use crate::rule::{self, Finding, Findings, Rule, Severity};
use crate::session::{Body, Step};

/// Subscriptions and open requests beyond this are not followed.
const MOST: usize = 1024;

/// The subscriptions of a recording.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    requests: Vec<(SubscriptionRequest, Place)>,
    subscriptions: Vec<Subscription>,
    /// There was more than is followed, and it has been told.
    full: bool,
}

#[derive(Debug)]
struct Subscription {
    id: Box<str>,
    requested: Capabilities,
    honored: Capabilities,
    renegotiation: Option<(Capabilities, Place)>,
    closed: bool,
    /// The times of the last events that were not critical, as many as may come in [`WINDOW_MILLIS`].
    times: VecDeque<UnixMillis>,
}

/// A rate is judged over so long, and a fifth more is let pass, as the protocol's own suite does (C-C22).
const WINDOW_MILLIS: i64 = 5000;
/// Faster than this the rate is not judged.
const FASTEST: u64 = 10_000;

impl Dialogue {
    pub(super) fn message(&mut self, message: &Message, place: Place, findings: &mut Findings) {
        match message {
            Message::SubscriptionRequest(request) if self.requests.len() < MOST => {
                self.requests.push((request.clone(), place));
            }
            Message::SubscriptionRequest(_) => self.tell_full("requests wait for an answer", findings),
            Message::SubscriptionAccepted(accepted) => {
                let id = accepted.subscription_id.as_str();
                let honored = &accepted.honored_capabilities;
                let again =
                    self.subscriptions.iter_mut().find(|it| &*it.id == id && it.renegotiation.is_some());
                if let Some(subscription) = again {
                    subscription.renegotiated(honored, findings);
                } else if !self.requests.is_empty() {
                    let (request, _) = self.requests.remove(0);
                    let version = (major(&request.aaep_version), major(&accepted.aaep_version));
                    if version.0 != version.1 {
                        let found = format!(
                            "{} was asked for, found {}",
                            request.aaep_version, accepted.aaep_version
                        );
                        findings.push(rule::VERSION_COMMON, "/aaep_version".to_owned(), found);
                    }
                    if request.capabilities.accept_signed_manifests_only == Some(true)
                        && accepted.signed_manifest.is_none()
                    {
                        let found = "signed_manifest is missing".to_owned();
                        findings.push(rule::SIGNED_WHEN_ASKED, String::new(), found);
                    }
                    not_wider(&request.capabilities, honored, findings);
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
                        subscription.closed = true;
                    }
                    _ if !self.requests.is_empty() => {
                        self.requests.remove(0);
                    }
                    _ => {}
                }
            }
            Message::SubscriptionRenegotiate(wish) => {
                if let Some(subscription) = self.find(wish.subscription_id.as_str()) {
                    subscription.renegotiation = Some((wish.capabilities.clone(), place));
                }
            }
            Message::SubscriptionClose(close) => {
                if let Some(subscription) = self.find(close.subscription_id.as_str()) {
                    subscription.closed = true;
                    subscription.renegotiation = None;
                }
            }
            Message::ConfirmationReply(reply) => self.replied(reply.subscription_id.as_str(), findings),
            Message::ClarificationReply(reply) => self.replied(reply.subscription_id.as_str(), findings),
            _ => {}
        }
    }

    fn open(&mut self, id: &str, requested: Capabilities, honored: &Capabilities, findings: &mut Findings) {
        if self.subscriptions.len() >= MOST {
            return self.tell_full("subscriptions were accepted", findings);
        }
        self.subscriptions.push(Subscription {
            id: id.into(),
            requested,
            honored: honored.clone(),
            renegotiation: None,
            closed: false,
            times: VecDeque::new(),
        });
    }

    /// What is not followed is told, once.
    fn tell_full(&mut self, what: &str, findings: &mut Findings) {
        if !std::mem::replace(&mut self.full, true) {
            let found = format!("more than {MOST} {what}; further ones are not judged");
            findings.push(rule::READABLE, String::new(), found);
        }
    }

    fn find(&mut self, id: &str) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|subscription| &*subscription.id == id)
    }

    /// A reply names a live subscription, where the recording has any (C-C3).
    fn replied(&mut self, id: &str, findings: &mut Findings) {
        let live =
            self.subscriptions.iter().any(|subscription| &*subscription.id == id && !subscription.closed);
        if !live && !self.subscriptions.is_empty() && self.subscriptions.len() < MOST {
            findings.push(
                rule::REPLY_SUBSCRIPTION,
                "/subscription_id".to_owned(),
                format!("{id} is not active"),
            );
        }
    }

    /// An event that was sent. Whose terms it must keep is known only where the recording has one subscription.
    pub(super) fn event(&mut self, step: &Step<&str>, findings: &mut Findings) {
        let [subscription] = &mut *self.subscriptions else { return };
        let body = &step.body;
        let pointer = || "/type".to_owned();
        if subscription.closed {
            let found = format!("{} is closed", subscription.id);
            return findings.push(rule::AFTER_CLOSE, String::new(), found);
        }
        if let (Some(at), Some(_)) = (step.at, filterable(body)) {
            subscription.paced(at.unix_millis(), findings);
        }
        match body {
            Body::Confirmation(_) if !subscription.replies(|it| it.supports_confirmation_reply) => {
                findings.push(rule::CONFIRMATION_WITHHELD, pointer(), String::new());
            }
            Body::Clarification(_) if !subscription.replies(|it| it.supports_clarification_reply) => {
                findings.push(rule::CLARIFICATION_WITHHELD, pointer(), String::new());
            }
            _ => {}
        }
        if let Some(name) = filterable(body)
            && let Some(filters) =
                subscription.honored.event_filters.as_ref().or(subscription.requested.event_filters.as_ref())
            && !filters.lets_through(name)
        {
            findings.push(rule::EXCLUDED, pointer(), format!("found {name}"));
        }
        if let Body::Output { hint: Some(hint), complete, .. } = body {
            let boundaries = boundaries(&subscription.honored).or(boundaries(&subscription.requested));
            let allowed =
                boundaries.unwrap_or(&DEFAULT_BOUNDARIES).iter().any(|boundary| boundary.as_str() == *hint)
                    || *complete && *hint == "completion";
            if !allowed {
                findings.push(rule::BOUNDARY_HONORED, "/coalesce_hint".to_owned(), format!("found {hint:?}"));
            }
        }
    }

    pub(super) fn finish(&mut self, severity: Severity) -> impl Iterator<Item = (Place, Finding)> {
        let unanswered =
            move |rule: Rule, found: String| Finding { rule, severity, pointer: String::new(), found };
        let requests = self.requests.drain(..).map(move |(request, place)| {
            (place, unanswered(rule::ANSWERED, format!("{} got no answer", request.subscriber_id)))
        });
        let renegotiations = self.subscriptions.iter_mut().filter_map(move |subscription| {
            let (_, place) = subscription.renegotiation.take()?;
            Some((
                place,
                unanswered(rule::RENEGOTIATION_ANSWERED, format!("{} got no answer", subscription.id)),
            ))
        });
        requests.chain(renegotiations)
    }
}

fn boundaries(capabilities: &Capabilities) -> Option<&[Boundary]> {
    capabilities.coalesce_boundaries.as_deref()
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

/// The type of an event that filters can keep out: not a critical one (C-C5), not one that cannot be named here.
fn filterable(body: &Body<&str>) -> Option<&'static str> {
    Some(match body {
        Body::Started => "aaep:agent.session.started",
        Body::Completed => "aaep:agent.session.completed",
        Body::Cancelled => "aaep:agent.session.cancelled",
        Body::State { .. } => "aaep:agent.state.changed",
        Body::Progress { .. } => "aaep:agent.progress.updated",
        Body::ToolInvoked { .. } => "aaep:agent.tool.invoked",
        Body::ToolCompleted { .. } => "aaep:agent.tool.completed",
        Body::Output { .. } => "aaep:agent.output.streaming",
        Body::Errored | Body::Confirmation(_) | Body::Clarification(_) | Body::Handoff | Body::Other => {
            return None;
        }
    })
}

impl Subscription {
    /// An event that the rate counts.
    fn paced(&mut self, now: UnixMillis, findings: &mut Findings) {
        let rate = self.honored.max_events_per_second.or(self.requested.max_events_per_second);
        let Some(rate) = rate.filter(|rate| *rate <= FASTEST) else { return };
        let most = usize::try_from(rate * 6).unwrap_or(usize::MAX);
        if self.times.len() >= most
            && let Some(first) = self.times.pop_front()
            && now.millis_since(first) < WINDOW_MILLIS
        {
            let found = format!("more than {most} came within 5 seconds, at {rate} a second");
            findings.push(rule::RATE_KEPT, "/timestamp".to_owned(), found);
            self.times.clear();
        }
        self.times.push_back(now);
    }

    /// Whether it can answer: as honored, else as requested (C-C6), else not.
    fn replies(&self, flag: impl Fn(&Capabilities) -> Option<bool>) -> bool {
        flag(&self.honored).or(flag(&self.requested)).unwrap_or(false)
    }

    /// New terms: none wider than asked, and what was not asked about is kept (§5.7.1).
    fn renegotiated(&mut self, honored: &Capabilities, findings: &mut Findings) {
        let Some((wish, _)) = self.renegotiation.take() else { return };
        let (before, after) = (&self.honored, honored);
        let kept = [
            kept(
                wish.max_events_per_second.as_ref(),
                before.max_events_per_second.as_ref(),
                after.max_events_per_second.as_ref(),
            ),
            kept(
                wish.preferred_verbosity.as_ref(),
                before.preferred_verbosity.as_ref(),
                after.preferred_verbosity.as_ref(),
            ),
            kept(wish.languages.as_ref(), before.languages.as_ref(), after.languages.as_ref()),
            kept(
                wish.coalesce_boundaries.as_ref(),
                before.coalesce_boundaries.as_ref(),
                after.coalesce_boundaries.as_ref(),
            ),
            kept(wish.event_filters.as_ref(), before.event_filters.as_ref(), after.event_filters.as_ref()),
            kept(wish.cognitive_load.as_ref(), before.cognitive_load.as_ref(), after.cognitive_load.as_ref()),
            kept(wish.pace_wpm.as_ref(), before.pace_wpm.as_ref(), after.pace_wpm.as_ref()),
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
        for (name, _) in names.iter().zip(kept).filter(|(_, kept)| !kept) {
            let pointer = format!("/honored_capabilities/{name}");
            findings.push(rule::TERMS_KEPT, pointer, "it changed, and nobody asked for that".to_owned());
        }
        self.times.clear();
        overlay(&mut self.requested, wish);
        not_wider(&self.requested, honored, findings);
        overlay(&mut self.honored, honored.clone());
    }
}

/// A term that nobody asked to change has not changed.
fn kept<T: PartialEq>(wish: Option<&T>, before: Option<&T>, after: Option<&T>) -> bool {
    wish.is_some() || before.is_none() || after.is_none() || before == after
}

/// What `newer` says replaces what `base` said.
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

/// Honored terms are never wider than requested ones (§5.4.4), for every capability (C-C7). What is not honored
/// expressly holds as requested (C-C6).
fn not_wider(requested: &Capabilities, honored: &Capabilities, findings: &mut Findings) {
    let mut wider = |rule: Rule, name: &str, found: String| {
        findings.push(rule, format!("/honored_capabilities/{name}"), found);
    };
    if let (Some(asked), Some(given)) = (requested.max_events_per_second, honored.max_events_per_second)
        && given > asked
    {
        wider(rule::RATE_NOT_WIDER, "max_events_per_second", format!("{asked} was asked for, found {given}"));
    }
    let default_languages = [DEFAULT_LANGUAGE.to_owned()];
    let asked = requested.languages.as_deref().unwrap_or(&default_languages);
    for language in honored.languages.iter().flatten().filter(|language| !asked.contains(language)) {
        wider(rule::LANGUAGES_NOT_WIDER, "languages", format!("{language} was not asked for"));
    }
    let asked = boundaries(requested).unwrap_or(&DEFAULT_BOUNDARIES);
    for boundary in
        boundaries(honored).unwrap_or_default().iter().filter(|boundary| !asked.contains(boundary))
    {
        wider(rule::BOUNDARIES_NOT_WIDER, "coalesce_boundaries", format!("{boundary} was not asked for"));
    }
    let everything = EventFilters::new();
    if let Some(given) = &honored.event_filters
        && !given.is_within(requested.event_filters.as_ref().unwrap_or(&everything))
    {
        wider(
            rule::FILTERS_NOT_WIDER,
            "event_filters",
            "they let through more than was asked for".to_owned(),
        );
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
    for (name, asked, given) in flags {
        if given == Some(true) && asked != Some(true) {
            wider(rule::NOT_WIDER, name, "it was not asked for".to_owned());
        }
    }
    let asked = requested.supported_conformance_levels.as_deref().unwrap_or(&[DEFAULT_LEVEL]);
    for level in honored.supported_conformance_levels.iter().flatten().filter(|level| !asked.contains(level))
    {
        wider(rule::NOT_WIDER, "supported_conformance_levels", format!("{level} was not asked for"));
    }
    let asked = requested.supported_extensions.as_deref().unwrap_or_default();
    for uri in honored.supported_extensions.iter().flatten().filter(|uri| !asked.contains(uri)) {
        wider(rule::NOT_WIDER, "supported_extensions", format!("{uri} was not asked for"));
    }
    if requested.accept_signed_manifests_only == Some(true)
        && honored.accept_signed_manifests_only == Some(false)
    {
        wider(rule::NOT_WIDER, "accept_signed_manifests_only", "true was asked for".to_owned());
    }
}
