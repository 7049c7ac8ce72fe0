//! Valid bodies of each kind, and invalid values for each member.

use asp::Performative;
use asp::message::Body;

/// The type of value that a member accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemberType {
    Text,
    Object,
    Time,
    Bool,
    Percent,
    Seconds,
    Obligations,
    /// One of a fixed set of words.
    EnumValue,
    Agent,
    Amount,
    Currency,
    Reference,
    Proposal,
    Commitment,
    Query,
}

impl MemberType {
    /// Returns invalid values for such a member.
    pub(crate) fn invalid_values(self) -> Vec<&'static str> {
        const LONG: &str = concat!(
            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""
        );
        let mut invalid = vec!["null"];
        invalid.extend_from_slice(match self {
            Self::Text => &["1", "true", "[]", "{}", "\"\"", "\"  \"", "[\"x\"]"],
            Self::Object => &["1", "true", "[]", "\"x\"", "\"{}\""],
            Self::Time => &[
                "1767322800",
                "true",
                "{}",
                "\"\"",
                "\"tomorrow\"",
                "\"2026-01-02\"",
                "\"2026-01-02T03:04:05+00:00\"",
                "\"2026-01-02T03:04:05z\"",
                "\"2026-13-02T03:04:05Z\"",
                "\"2026-02-30T03:04:05Z\"",
                "\"2026-01-02T25:04:05Z\"",
            ],
            Self::Bool => &["1", "0", "\"true\"", "[]", "{}"],
            Self::Percent => &["-1", "100.5", "101", "\"50\"", "1e300", "true", "[]"],
            Self::Seconds => &["0", "-1", "1.5", "31622401", "1e12", "\"60\"", "true", "[]"],
            Self::Obligations => &["1", "{}", "\"x\"", "[]", "[1]", "[null]", "[{}]", "[[]]"],
            Self::EnumValue => {
                &["1", "true", "[]", "{}", "\"\"", "\"other\"", "\"Identity\"", "\"LOW\"", "\" full\""]
            }
            Self::Agent => &[
                "1",
                "[]",
                "{}",
                "\"\"",
                "\"agent://\"",
                "\"https://a.example\"",
                "\"agent://a b\"",
                "\"agent://é\"",
            ],
            Self::Amount => &[
                "10",
                "10.5",
                "0",
                "-1",
                "1e3",
                "true",
                "{}",
                "\"\"",
                "\"0\"",
                "\"0.000\"",
                "\"-1\"",
                "\"+1\"",
                "\"-0.01\"",
                "\"NaN\"",
                "\"Infinity\"",
                "\"inf\"",
                "\"1e3\"",
                "\"1,000\"",
                "\"1_000\"",
                "\"10 EUR\"",
                "\"EUR 10\"",
                "\"$10\"",
                "\" 10\"",
                "\"10 \"",
                "\"010\"",
                "\".5\"",
                "\"5.\"",
                "\"1.2.3\"",
                "\"0x10\"",
                "\"١٠\"",
                "\"1000000000000000\"",
                "\"99999999999999999999999999999999999999999\"",
                "\"1.0000000001\"",
            ],
            Self::Currency => {
                &["1", "840", "{}", "\"\"", "\"usd\"", "\"US\"", "\"USDT\"", "\"U D\"", "\"€\"", "\"EUR \""]
            }
            Self::Reference => &["1", "[]", "{}", "\"\"", "\"a b\"", "\"a/b\"", "\"é\"", LONG],
            Self::Proposal => &["1", "{}", "\"\"", "\"p1\"", "\"prop_\"", "\"cmt_1\"", "\"prop_ü\"", LONG],
            Self::Commitment => &["1", "{}", "\"\"", "\"c1\"", "\"cmt_\"", "\"prop_1\"", "\"cmt_a b\"", LONG],
            Self::Query => &["1", "{}", "\"\"", "\"q1\"", "\"qry_\"", "\"prop_1\"", "\"qry_*\"", LONG],
        });
        invalid
    }
}

/// A member of a body: its path, whether it is required, and its type.
pub(crate) type MemberSpec = (&'static str, bool, MemberType);

/// Returns a body of this kind with all its members, except `card` in INFORM and `answer` in CLARIFY.
pub(crate) fn full_body(performative: Performative) -> &'static str {
    match performative {
        Performative::Propose => {
            r#"{"proposalId":"prop_1","type":"work","subject":"menus","terms":{"pages":4},"validUntil":"2026-01-02T04:00:00Z"}"#
        }
        Performative::Accept => {
            r#"{"referenceId":"prop_0","note":"gladly","consent":{"receipt":{},"signature":"a..b"}}"#
        }
        Performative::Reject => {
            r#"{"code":"policy_violation","reason":"too expensive","referenceId":"prop_0"}"#
        }
        Performative::Counter => {
            r#"{"proposalId":"prop_2","counters":"prop_0","subject":"menus","terms":{},"validUntil":"2026-01-02T04:00:00Z"}"#
        }
        Performative::Inform => {
            r#"{"informType":"answer","inReplyTo":"qry_0","data":{"a":1},"recoverable":true,"percent":50,"resolvedBy":"Marisol"}"#
        }
        Performative::Query => {
            r#"{"queryId":"qry_1","queryType":"price","subject":"menus","parameters":{"n":12}}"#
        }
        Performative::Clarify => r#"{"inReplyTo":"qry_0","question":"Which?"}"#,
        Performative::Commit => COMMIT,
        Performative::Delegate => {
            r#"{"delegationId":"del_1","targetAgent":"agent://c.example/third","scope":"proof","authority":"limited","protocol":"asp","expires":"2026-01-02T04:00:00Z"}"#
        }
        Performative::Observe => r#"{"subject":"weather","data":{"rain":true}}"#,
        Performative::Withdraw => r#"{"reason":"no time","referenceId":"prop_0"}"#,
        Performative::Escalate => {
            r#"{"reason":"too much money","urgency":"high","timeout":60,"handler":"Marisol"}"#
        }
        Performative::Close => r#"{"reason":"done","outcome":"nothing","summary":"We talked."}"#,
    }
}

pub(crate) const COMMIT: &str = r#"{"commitmentId":"cmt_1","terms":{"obligations":[
{"party":"agent://b.example/seller","action":"print","deadline":"2026-01-05T00:00:00Z","verificationMethod":"by eye"},
{"party":"agent://a.example/buyer","action":"pay","deadline":"2026-01-06T00:00:00Z"}],
"penalties":{"lateFulfillment":"half","nonDelivery":"all"}},"deadline":"2026-01-06T00:00:00Z",
"escrow":{"amount":"10.50","currency":"USD","releaseCondition":"delivered"},"proposalId":"prop_0","consent":{"receipt":{},"signature":"a..b"}}"#;

/// Returns the members of a body of this kind.
pub(crate) fn members(performative: Performative) -> &'static [MemberSpec] {
    use MemberType::*;
    match performative {
        Performative::Propose => &[
            ("proposalId", true, Proposal),
            ("type", true, Text),
            ("subject", true, Text),
            ("terms", true, Object),
            ("validUntil", false, Time),
        ],
        Performative::Accept => &[
            ("referenceId", true, Reference),
            ("note", false, Text),
            ("consent", false, Object),
            ("consent/receipt", true, Object),
            ("consent/signature", true, Text),
        ],
        Performative::Reject => {
            &[("code", true, Text), ("reason", true, Text), ("referenceId", false, Reference)]
        }
        Performative::Counter => &[
            ("proposalId", true, Proposal),
            ("counters", true, Reference),
            ("subject", true, Text),
            ("terms", true, Object),
            ("validUntil", false, Time),
        ],
        Performative::Inform => &[
            ("informType", true, EnumValue),
            ("inReplyTo", false, Reference),
            ("data", false, Object),
            ("recoverable", false, Bool),
            ("percent", false, Percent),
            ("card", false, Object),
            ("resolvedBy", false, Text),
        ],
        Performative::Query => &[
            ("queryId", true, Query),
            ("queryType", true, Text),
            ("subject", true, Text),
            ("parameters", false, Object),
        ],
        // CLARIFY needs a question or an answer. The full body has only a question, so the question is required here.
        Performative::Clarify => {
            &[("inReplyTo", true, Reference), ("question", true, Text), ("answer", false, Text)]
        }
        Performative::Commit => &[
            ("commitmentId", true, Commitment),
            ("terms", true, Object),
            ("terms/obligations", true, Obligations),
            ("terms/obligations/0/party", true, Agent),
            ("terms/obligations/0/action", true, Text),
            ("terms/obligations/0/deadline", true, Time),
            ("terms/obligations/0/verificationMethod", false, Text),
            ("terms/penalties", false, Object),
            ("terms/penalties/lateFulfillment", false, Text),
            ("terms/penalties/nonDelivery", false, Text),
            ("deadline", false, Time),
            ("escrow", false, Object),
            ("escrow/amount", true, Amount),
            ("escrow/currency", true, Currency),
            ("escrow/releaseCondition", false, Text),
            ("proposalId", false, Proposal),
            ("consent", false, Object),
            ("consent/receipt", true, Object),
            ("consent/signature", true, Text),
        ],
        Performative::Delegate => &[
            ("delegationId", true, Reference),
            ("targetAgent", true, Agent),
            ("scope", true, Text),
            ("authority", true, EnumValue),
            ("protocol", false, Text),
            ("expires", false, Time),
        ],
        Performative::Observe => &[("subject", true, Text), ("data", false, Object)],
        Performative::Withdraw => &[("reason", true, Text), ("referenceId", false, Reference)],
        Performative::Escalate => &[
            ("reason", true, Text),
            ("urgency", true, EnumValue),
            ("timeout", false, Seconds),
            ("handler", false, Text),
        ],
        Performative::Close => &[("reason", true, Text), ("outcome", false, Text), ("summary", false, Text)],
    }
}

pub(crate) fn body(performative: Performative, json: &str) -> Body {
    Body::parse(performative, json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

pub(crate) fn invitation() -> Body {
    body(
        Performative::Propose,
        r#"{"proposalId":"prop_inv","type":"session-invitation","subject":"menus","terms":{}}"#,
    )
}

pub(crate) fn propose(id: &str) -> Body {
    let json = format!(r#"{{"proposalId":"{id}","type":"work","subject":"menus","terms":{{}}}}"#);
    body(Performative::Propose, &json)
}

pub(crate) fn accept(reference: &str) -> Body {
    body(Performative::Accept, &format!(r#"{{"referenceId":"{reference}"}}"#))
}

pub(crate) fn reject(reference: &str) -> Body {
    body(
        Performative::Reject,
        &format!(r#"{{"code":"unspecified","reason":"no","referenceId":"{reference}"}}"#),
    )
}

pub(crate) fn counter(id: &str, reference: &str) -> Body {
    let json = format!(r#"{{"proposalId":"{id}","counters":"{reference}","subject":"menus","terms":{{}}}}"#);
    body(Performative::Counter, &json)
}

pub(crate) fn inform(kind: &str) -> Body {
    body(Performative::Inform, &format!(r#"{{"informType":"{kind}"}}"#))
}

pub(crate) fn query(id: &str) -> Body {
    let json = format!(r#"{{"queryId":"{id}","queryType":"price","subject":"menus"}}"#);
    body(Performative::Query, &json)
}

pub(crate) fn commit(id: &str) -> Body {
    body(Performative::Commit, &COMMIT.replace("cmt_1", id))
}

pub(crate) fn escalate() -> Body {
    body(Performative::Escalate, r#"{"reason":"too much money","urgency":"high"}"#)
}

pub(crate) fn observe(subject: &str) -> Body {
    body(Performative::Observe, &format!(r#"{{"subject":"{subject}"}}"#))
}

pub(crate) fn withdraw() -> Body {
    body(Performative::Withdraw, r#"{"reason":"no time"}"#)
}

pub(crate) fn close(reason: &str) -> Body {
    body(Performative::Close, &format!(r#"{{"reason":"{reason}"}}"#))
}
