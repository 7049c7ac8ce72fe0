//! Requirements that can be checked only on a running system: a recording alone does not show whether they were met.

use aaep::rule::Severity;

/// A requirement on the behaviour of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Behaviour {
    id: &'static str,
    severity: Severity,
    sentence: &'static str,
}

macro_rules! behaviours {
    ($($name:ident: $id:literal $severity:ident $sentence:literal;)*) => {
        impl Behaviour {
            $(pub(super) const $name: Behaviour =
                Behaviour { id: $id, severity: Severity::$severity, sentence: $sentence };)*
            /// All requirements that `sayso check` reports in addition to the rules of `sayso validate`.
            pub(crate) const ALL: &'static [Behaviour] = &[$(Self::$name),*];
        }
    };
}

behaviours! {
    UNKNOWN_CAPABILITY_IGNORED: "AAEP-5.3.2-1" Error "a request must not be rejected because of a capability that the producer does not know";
    REQUEST_SERVED: "AAEP-5.4-1" Error "a request that can be served must be answered with subscription.accepted";
    REQUEST_CHECKED: "AAEP-5.2.1-1" Error "a request without a required member must not be accepted";
    VERSION_REFUSED: "AAEP-5.5.3-1" Error "a request for an unknown major version must be rejected with version_unsupported";
    SIGNATURE_REFUSED: "AAEP-5.3.1.12-1" Error "a producer without a signed manifest must reject a request that demands one, with manifest_signature_required";
    CRITICAL_DELIVERED: "AAEP-5.5.4-1" Error "a critical event must reach every subscription, whatever its filters and its rate";
    RENEGOTIATION_ANSWERED: "AAEP-5.7-1" Error "subscription.renegotiate must be answered";
    MANIFEST_PUBLISHED: "AAEP-9.5.1-6" Error "a producer of level 3 must publish its manifest";
    MANIFEST_FORM: "AAEP-5.10.1-1" Error "a manifest must have the shape of section 5.10.1";
    MANIFEST_MATCHES: "AAEP-10.4.2-4" Error "the manifest must fit what the producer offers";
    MANIFEST_SIGNATURE: "AAEP-10.4.2-2" Error "the signature of the manifest must be valid";
    SENDER_AUTHENTICATED: "AAEP-10.2.2-8" Error "every message must be authenticated, and the id of a subscription is not a credential";
    INVALID_REPLY_IGNORED: "AAEP-6.3.4-7" Error "a reply that fails a check must be ignored";
    LATE_REPLY_IGNORED: "AAEP-6.3.4-4" Error "a reply after the deadline must be ignored";
    FIRST_REPLY_COUNTS: "AAEP-6.3.5-1" Error "only the first reply to a question may count";
    REPLY_HONOURED: "AAEP-6.1-3" Error "a valid reply must take effect, and listeners must learn of it";
    RESOLUTION_SHOWN: "AAEP-9.4.1-3" Error "an event must follow when a question is answered or expires";
    REASON_HIDDEN: "AAEP-6.3.4-8" Error "the sender of a reply must not learn which check it failed";
}

impl Behaviour {
    /// Returns the id of the requirement, as docs/conformance.md lists it.
    pub(crate) fn id(self) -> &'static str {
        self.id
    }

    /// Returns the severity of a finding about this behaviour.
    pub(crate) fn severity(self) -> Severity {
        self.severity
    }

    /// Returns the requirement as a sentence.
    pub(crate) fn sentence(self) -> &'static str {
        self.sentence
    }
}
