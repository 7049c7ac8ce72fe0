//! Every request and output survives its encoding.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep::consent::{ConsentMessage, IgnoreReason, QuestionAnswer, Receipt, ResolvedBy};
use aaep::event::{AgentState, Decision};
use aaep::message::{ClarificationResponse, Message};
use aaep::rule::{Finding, Rule, Severity};
use aaep::{ReplyToken, SessionId, SubscriptionId, ToolCallId};
use proptest::prelude::*;
use seal::{Digest, UnixMillis};

use super::*;
use crate::command::{
    AgentNotice, ClosedItem, EndReason, HandoffOutcome, HandoffResult, HubReply, LimitReached, MalformedRequest,
    QuestionOutcome, ReplacedCallId, SubscriberMessage, TurnOutput, Unavailable,
};
use crate::delivery::{CloseReason, Frame, OrderingClass};
use crate::{AgentConnectionId, AgentNaming, DeliveryGroupId, ListenerId, Role, Scope, SignIn};

const SUBSCRIPTION_REQUEST: &str = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"test","capabilities":{"languages":["de"],"x":1},"extensions":{"sayso":{"a":[1,2.5]}}}"#;
const ACCEPTED: &str = r#"{"type":"subscription.accepted","subscription_id":"sub_1","aaep_version":"1.0.0","producer":{"agent_id":"hub"},"honored_capabilities":{"pace_wpm":160}}"#;
const REJECTED: &str = r#"{"type":"subscription.rejected","reason_code":"rate_limit","reason_message":"Later.","retry_after_seconds":3}"#;
const RENEGOTIATE: &str =
    r#"{"type":"subscription.renegotiate","subscription_id":"sub_1","capabilities":{"pace_wpm":90}}"#;
const CONSENT_MESSAGES: [&str; 6] = [
    r#"{"type":"confirmation.reply","reply_token":"rpl_1","decision":"accept","subscription_id":"sub_1","timestamp":"2026-11-19T20:00:00.25Z","decided_by":"ada"}"#,
    r#"{"type":"clarification.reply","reply_token":"rpl_1","response":2.5,"subscription_id":"sub_1","timestamp":"2026-11-19T20:00:00Z","confidence":0.5}"#,
    r#"{"type":"sayso:deadline.extend","reply_token":"rpl_1","subscription_id":"sub_1","timestamp":"2026-11-19T20:00:00Z","seconds":30}"#,
    r#"{"type":"sayso:session.stop","session_id":"sess_1","subscription_id":"sub_1","timestamp":"2026-11-19T20:00:00Z"}"#,
    r#"{"type":"handoff.acknowledge","reply_token":"rpl_1","subscription_id":"sub_1","timestamp":"2026-11-19T20:00:00Z","note":"I do it."}"#,
    r#"{"type":"handoff.reject","reply_token":"rpl_1","subscription_id":"sub_1","timestamp":"2026-11-19T20:00:00Z"}"#,
];

const RECEIPT: &str = r#"{"agent_id":"bank","asked_at":"2026-11-19T20:00:00.000Z","by":"stopped","deadline":"2026-11-19T20:01:00.000Z","decision":"reject","event_id":"evt_1","reply_token":"rpl_1","resolved_at":"2026-11-19T20:00:30.000Z","session_id":"sess_1","type":"sayso:receipt"}"#;

fn text() -> BoxedStrategy<String> {
    prop_oneof!["[a-z]{0,8}", ".{0,20}", Just("\u{0}\"\\\n é".to_owned())].boxed()
}

fn optional_text() -> BoxedStrategy<Option<String>> {
    prop::option::of(text()).boxed()
}

fn session() -> BoxedStrategy<SessionId> {
    "sess_[a-z0-9]{1,20}".prop_map(|id| SessionId::parse(&id).unwrap()).boxed()
}

fn token() -> BoxedStrategy<ReplyToken> {
    "rpl_[a-z0-9]{1,20}".prop_map(|id| ReplyToken::parse(&id).unwrap()).boxed()
}

fn subscription() -> BoxedStrategy<SubscriptionId> {
    "sub_[a-z0-9]{1,20}".prop_map(|id| SubscriptionId::parse(&id).unwrap()).boxed()
}

fn millis() -> BoxedStrategy<UnixMillis> {
    prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX)].prop_map(UnixMillis::new).boxed()
}

fn digest() -> BoxedStrategy<Digest> {
    any::<u64>().prop_map(|seed| Digest::of(&seed.to_be_bytes())).boxed()
}

fn principal() -> BoxedStrategy<Principal> {
    let naming = prop_oneof![
        Just(AgentNaming::SelfDeclared),
        Just(AgentNaming::InProcess),
        text().prop_map(|name| AgentNaming::Token(name.into())),
    ];
    let sign_in = (any::<[u8; 16]>(), millis()).prop_map(|(id, expires_at)| SignIn { id, expires_at });
    let scope = prop::collection::vec("(agent|person):[a-z]{1,5}", 0..4).prop_map(|entries| {
        let mut scope = Scope::default();
        for entry in &entries {
            scope.add(entry).unwrap();
        }
        scope
    });
    let rest = (prop::option::of(millis()), prop::option::of(sign_in), naming);
    (text(), prop::sample::select(Role::ALL.to_vec()), optional_text(), scope, any::<bool>(), prop::option::of(digest()), rest)
        .prop_map(|(name, role, agent_id, scope, is_local, token_digest, (expires_at, sign_in, naming))| Principal {
            name: name.into(),
            role,
            agent_id: agent_id.map(Into::into),
            scope: Arc::new(scope),
            is_local,
            token_digest,
            expires_at,
            sign_in,
            naming,
        })
        .boxed()
}

fn findings() -> Vec<Finding> {
    Rule::all()
        .take(3)
        .map(|rule| Finding {
            rule,
            severity: Severity::Error,
            pointer: "/a/0".to_owned(),
            actual: "it is \"so\"".to_owned(),
        })
        .collect()
}

fn message() -> BoxedStrategy<SubscriberMessage> {
    let ignored = [IgnoreReason::NotJson, IgnoreReason::NotAReply, IgnoreReason::Malformed(findings())];
    prop_oneof![
        Just(SubscriberMessage::parse(RENEGOTIATE)),
        subscription().prop_map(SubscriberMessage::Close),
        prop::sample::select(ignored.to_vec()).prop_map(|reason| SubscriberMessage::Consent(Err(reason))),
        prop::sample::select(CONSENT_MESSAGES.to_vec()).prop_map(SubscriberMessage::parse),
    ]
    .boxed()
}

/// Every kind of command, except for those inside `OnConnection`.
fn simple_command() -> BoxedStrategy<HubCommand> {
    let Some(Message::SubscriptionRequest(request)) = Message::parse(SUBSCRIPTION_REQUEST) else {
        panic!("not a request")
    };
    let listener = || any::<u64>().prop_map(ListenerId);
    let stream = (session(), optional_text(), optional_text(), text(), optional_text(), optional_text());
    let stream_end = (optional_text(), any::<bool>(), any::<bool>(), optional_text());
    prop_oneof![
        prop::option::of(Just(Box::new(request))).prop_map(|request| HubCommand::Subscribe { request }),
        text().prop_map(|accepted| HubCommand::AddSubscription { accepted }),
        (subscription(), optional_text(), listener()).prop_map(|(subscription, last_event_id, listener)| {
            HubCommand::Attach { subscription, last_event_id, listener }
        }),
        (subscription(), listener())
            .prop_map(|(subscription, listener)| HubCommand::AttachFromStart { subscription, listener }),
        (listener(), any::<bool>())
            .prop_map(|(listener, is_too_slow)| HubCommand::Detach { listener, is_too_slow }),
        Just(HubCommand::ShutDown),
        Just(HubCommand::PauseCheckpoints),
        Just(HubCommand::ResumeCheckpoints),
        prop::collection::vec(principal(), 0..3)
            .prop_map(|principals| HubCommand::SetValidTokens { principals }),
        (digest(), any::<Option<[u8; 16]>>())
            .prop_map(|(token_digest, id)| HubCommand::EndSignIn { token_digest, id }),
        message().prop_map(|message| HubCommand::SendMessage { message }),
        (subscription(), message()).prop_map(|(subscription, message)| {
            HubCommand::SendMessageOnSubscription { subscription, message }
        }),
        (text(), optional_text())
            .prop_map(|(body, idempotency_key)| HubCommand::Start { body: body.into(), idempotency_key }),
        (text(), optional_text()).prop_map(|(body, idempotency_key)| {
            HubCommand::StartWithForeignParent { body: body.into(), idempotency_key }
        }),
        session().prop_map(|session| HubCommand::CheckParent { session }),
        (text(), text()).prop_map(|(body, idempotency_key)| HubCommand::FindResponse {
            body: body.into(),
            idempotency_key
        }),
        text().prop_map(|document| HubCommand::PublishManifest { document }),
        Just(HubCommand::DeleteManifest),
        (text(), optional_text())
            .prop_map(|(agent, document)| HubCommand::ReplicateManifest { agent, document }),
        text().prop_map(|file_name| HubCommand::FindManifest { file_name }),
        (session(), prop::collection::vec(text(), 0..4), optional_text()).prop_map(
            |(session, events, idempotency_key)| HubCommand::Publish {
                session,
                events: events.into_iter().map(Into::into).collect(),
                idempotency_key,
            }
        ),
        (stream, stream_end).prop_map(
            |(
                (session, output_id, producer, text, language, content_type),
                (coalesce_hint, complete, agent_reports_next_state, idempotency_key),
            )| HubCommand::StreamOutput {
                session,
                output_id,
                producer,
                text,
                language,
                content_type,
                coalesce_hint,
                complete,
                agent_reports_next_state,
                idempotency_key,
            }
        ),
        (session(), text(), any::<bool>(), optional_text()).prop_map(
            |(session, body, is_clarification, idempotency_key)| HubCommand::Ask {
                session,
                body: body.into(),
                is_clarification,
                idempotency_key,
            }
        ),
        (0..3_u8, session(), text(), optional_text()).prop_map(|(kind, session, body, idempotency_key)| {
            let body = body.into();
            match kind {
                0 => HubCommand::HandOff { session, body, idempotency_key },
                1 => HubCommand::Invite { session, body, idempotency_key },
                _ => HubCommand::Join { session, body, idempotency_key },
            }
        }),
        (session(), token(), millis())
            .prop_map(|(session, token, until)| HubCommand::Wait { session, token, until }),
        (session(), token()).prop_map(|(session, token)| HubCommand::Withdraw { session, token }),
        any::<u64>().prop_map(|id| HubCommand::CancelWait { request: RequestId(id) }),
        session().prop_map(|session| HubCommand::Follow { session }),
        any::<u64>().prop_map(|id| HubCommand::DisconnectAgent { connection: AgentConnectionId(id) }),
    ]
    .boxed()
}

fn command() -> BoxedStrategy<HubCommand> {
    let on_connection = (any::<u64>(), simple_command()).prop_map(|(id, command)| HubCommand::OnConnection {
        connection: AgentConnectionId(id),
        command: Box::new(command),
    });
    prop_oneof![20 => simple_command(), 2 => on_connection].boxed()
}

/// Returns the name of the kind of a command. A new kind must be added here and to [`simple_command`].
fn kind(command: &HubCommand) -> &'static str {
    match command {
        HubCommand::Subscribe { .. } => "Subscribe",
        HubCommand::AddSubscription { .. } => "AddSubscription",
        HubCommand::Attach { .. } => "Attach",
        HubCommand::AttachFromStart { .. } => "AttachFromStart",
        HubCommand::Detach { .. } => "Detach",
        HubCommand::ShutDown => "ShutDown",
        HubCommand::PauseCheckpoints => "PauseCheckpoints",
        HubCommand::ResumeCheckpoints => "ResumeCheckpoints",
        HubCommand::SetValidTokens { .. } => "SetValidTokens",
        HubCommand::EndSignIn { .. } => "EndSignIn",
        HubCommand::SendMessage { .. } => "SendMessage",
        HubCommand::SendMessageOnSubscription { .. } => "SendMessageOnSubscription",
        HubCommand::Start { .. } => "Start",
        HubCommand::StartWithForeignParent { .. } => "StartWithForeignParent",
        HubCommand::CheckParent { .. } => "CheckParent",
        HubCommand::FindResponse { .. } => "FindResponse",
        HubCommand::PublishManifest { .. } => "PublishManifest",
        HubCommand::DeleteManifest => "DeleteManifest",
        HubCommand::ReplicateManifest { .. } => "ReplicateManifest",
        HubCommand::FindManifest { .. } => "FindManifest",
        HubCommand::Publish { .. } => "Publish",
        HubCommand::StreamOutput { .. } => "StreamOutput",
        HubCommand::Ask { .. } => "Ask",
        HubCommand::HandOff { .. } => "HandOff",
        HubCommand::Invite { .. } => "Invite",
        HubCommand::Join { .. } => "Join",
        HubCommand::Wait { .. } => "Wait",
        HubCommand::Withdraw { .. } => "Withdraw",
        HubCommand::CancelWait { .. } => "CancelWait",
        HubCommand::OnConnection { .. } => "OnConnection",
        HubCommand::Follow { .. } => "Follow",
        HubCommand::DisconnectAgent { .. } => "DisconnectAgent",
    }
}

const KINDS: usize = 32;

#[test]
fn the_generated_commands_include_every_kind() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = BTreeSet::new();
    for _ in 0..4_000 {
        let tree = command().new_tree(&mut runner).unwrap();
        kinds.insert(kind(&proptest::strategy::ValueTree::current(&tree)));
    }
    assert_eq!(kinds.len(), KINDS, "{kinds:?}");
}

proptest! {
    #[test]
    fn a_request_survives_its_encoding(principal in principal(), command in command()) {
        let request = Request { id: RequestId(7), principal, command };
        let decoded = decode_request(RequestId(7), &encode_request(&request).unwrap()).unwrap();
        prop_assert_eq!(format!("{decoded:?}"), format!("{request:?}"));
    }

    #[test]
    fn any_bytes_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_request(RequestId(1), &bytes);
        let _ = decode_output(&bytes);
    }

    #[test]
    fn a_cut_request_is_an_error(command in command(), cut in any::<prop::sample::Index>()) {
        let request = Request { id: RequestId(7), principal: Principal::local(), command };
        let bytes = encode_request(&request).unwrap();
        prop_assert!(decode_request(RequestId(7), &bytes[..cut.index(bytes.len())]).is_err());
    }
}

fn outcome(answer: QuestionAnswer) -> QuestionOutcome {
    let receipt = Receipt::parse(RECEIPT).map(Arc::new);
    assert!(receipt.is_some());
    QuestionOutcome { answer, by: ResolvedBy::Stopped, receipt, receipt_signature: Some("a..b".into()) }
}

fn outcomes() -> Vec<QuestionOutcome> {
    [
        QuestionAnswer::Decision(Decision::Accept),
        QuestionAnswer::Decision(Decision::Reject),
        QuestionAnswer::Response(ClarificationResponse::Text("yes".to_owned())),
        QuestionAnswer::Response(ClarificationResponse::YesNo(false)),
        QuestionAnswer::Response(ClarificationResponse::Number(-0.1)),
        QuestionAnswer::Unavailable,
    ]
    .into_iter()
    .map(outcome)
    .collect()
}

fn handoff(result: HandoffResult) -> HandoffOutcome {
    HandoffOutcome { result, note: Some("Done.".to_owned()), principal: Some("ada".into()) }
}

/// Every kind of reply. Errors are in the form in which they arrive.
fn replies() -> Vec<HubReply> {
    let (session_id, at) = (SessionId::parse("sess_1x2").unwrap(), UnixMillis::new(1_700_000_000_123));
    let reply_token = ReplyToken::parse("rpl_1x2").unwrap();
    let (Some(Message::SubscriptionAccepted(accepted)), Some(Message::SubscriptionRejected(rejected))) =
        (Message::parse(ACCEPTED), Message::parse(REJECTED))
    else {
        panic!("not messages of the handshake")
    };
    let forwarded = || "a \"reason\"".to_owned();
    let replaced = ReplacedCallId { given: "7".into(), id: ToolCallId::parse("call_7").unwrap() };
    let closed = vec![
        ClosedItem::Tool { tool: "pay".into(), call_id: None, event_id: "evt_1".into() },
        ClosedItem::Output { output_id: Some("out_1".into()), event_id: "evt_2".into() },
    ];
    let mut replies = vec![
        HubReply::Subscribed { accepted: Box::new(accepted.clone()), sends_resume_positions: true },
        HubReply::Renegotiated(Box::new(accepted)),
        HubReply::SubscriptionRejected(Box::new(rejected)),
        HubReply::Done,
        HubReply::SessionStarted { session_id: session_id.clone() },
        HubReply::ManifestPublished { agent_id: "bank".into(), manifest_uri: None, is_verified: true },
        HubReply::ManifestFound { json: "{}".to_owned(), signed: Some("a.b.c".to_owned()) },
        HubReply::InvitationCreated {
            session_id: session_id.clone(),
            producer: "post".into(),
            secret: "inv_1".into(),
            expires_at: at,
        },
        HubReply::SessionJoined { session_id: session_id.clone(), producer: "post".into() },
        HubReply::SessionFollowed { session_id, state: AgentState::parse("auditing") },
        HubReply::EventsPublished { event_ids: vec!["evt_1".into()], replaced_call_ids: vec![replaced], closed },
        HubReply::QuestionOpened { reply_token, deadline: at },
        HubReply::QuestionPending,
        HubReply::RuleViolations(findings()),
        HubReply::Malformed(MalformedRequest::Forwarded(forwarded())),
        HubReply::NotFound,
        HubReply::InvitationNotFound,
        HubReply::SessionEnded,
        HubReply::QuestionNotFound,
        HubReply::Forbidden,
        HubReply::Conflict,
        HubReply::LimitReached(LimitReached::Forwarded(forwarded())),
        HubReply::Unavailable(Unavailable::Forwarded(forwarded())),
    ];
    replies.extend(outcomes().into_iter().map(HubReply::QuestionResolved));
    replies.extend(HandoffResult::ALL.map(handoff).map(HubReply::HandoffResolved));
    replies
}

fn outputs() -> Vec<TurnOutput> {
    let (session, token) = (SessionId::parse("sess_1").unwrap(), ReplyToken::parse("rpl_1").unwrap());
    let event = Frame::event("evt_1", r#"{"a":"é"}"#, 12, true);
    let frames = [
        event.with_session("sess_1", OrderingClass::Terminal),
        Frame::message("{}"),
        Frame::gap("{}"),
        Frame::heartbeat(),
        Frame::resume_position("at_12"),
        Frame::close("sub_1", CloseReason::SlowConsumer),
    ]
    .map(Arc::new);
    let (listener, group, connection) = (ListenerId(3), DeliveryGroupId(1 << 48), AgentConnectionId(u64::MAX));
    let mut outputs: Vec<_> =
        replies().into_iter().map(|reply| TurnOutput::Reply(RequestId(1 << 40), reply)).collect();
    let (of_session, of_token) = (session.clone(), token.clone());
    let resolved = outcomes().into_iter().map(move |outcome| AgentNotice::QuestionResolved {
        session: of_session.clone(),
        token: of_token.clone(),
        outcome,
    });
    let reasons = [
        EndReason::User,
        EndReason::Producer,
        EndReason::Timeout,
        EndReason::System,
        EndReason::AgentGone,
        EndReason::Completed,
        EndReason::Errored,
        EndReason::Unknown,
    ];
    let of_session = session.clone();
    let ended = reasons.map(|reason| AgentNotice::SessionEnded { session: of_session.clone(), reason });
    let handoff = AgentNotice::HandoffResolved { session, token, outcome: handoff(HandoffResult::Timeout) };
    let notices = resolved.chain(ended).chain([handoff]);
    outputs.extend(notices.map(|notice| TurnOutput::Notify(connection, notice)));
    for frame in &frames {
        outputs.push(TurnOutput::Frame(group, frame.clone()));
        outputs.push(TurnOutput::Send(listener, frame.clone()));
    }
    outputs.push(TurnOutput::Join {
        listener,
        group,
        private_frames: frames.to_vec(),
        resume_position: Some(0),
        origin_id: Some("behind".into()),
    });
    outputs.push(TurnOutput::Move(listener, group));
    outputs.push(TurnOutput::Close(listener));
    outputs
}

#[test]
fn an_output_survives_its_encoding() {
    for output in outputs() {
        let decoded = decode_output(&encode_output(&output).unwrap().unwrap()).unwrap();
        assert_eq!(decoded, output);
        // Frames are equal if listeners receive the same. What orders them must survive, too.
        if let (TurnOutput::Frame(_, decoded), TurnOutput::Frame(_, frame)) = (&decoded, &output) {
            assert_eq!(
                (decoded.is_critical, decoded.is_gap(), decoded.close_reason()),
                (frame.is_critical, frame.is_gap(), frame.close_reason())
            );
            assert_eq!(format!("{:?}", decoded.to_form()), format!("{:?}", frame.to_form()));
        }
    }
    let log = TurnOutput::Log(crate::telemetry::LogEvent::WritesRecovered);
    assert!(encode_output(&log).unwrap().is_none(), "a log event stays on its node");
}

#[test]
fn an_error_arrives_with_the_same_text() {
    let errors = [
        HubReply::Malformed(MalformedRequest::NoTool { member: "arguments", misspelled: Some("tol".to_owned()) }),
        HubReply::LimitReached(LimitReached::SessionsPerPrincipal { max: 3 }),
        HubReply::Unavailable(Unavailable::ReadFailed(Arc::new(journal::JournalError::Full))),
    ];
    for error in errors {
        let output = TurnOutput::Reply(RequestId(1), error.clone());
        let decoded = decode_output(&encode_output(&output).unwrap().unwrap()).unwrap();
        let text = |reply: &HubReply| match reply {
            HubReply::Malformed(error) => error.to_string(),
            HubReply::LimitReached(error) => error.to_string(),
            HubReply::Unavailable(error) => error.to_string(),
            other => panic!("{other:?}"),
        };
        let TurnOutput::Reply(_, decoded) = decoded else { panic!("{decoded:?}") };
        assert_eq!(text(&decoded), text(&error));
    }
}

#[derive(serde::Serialize)]
struct LaterRequest {
    principal: LaterPrincipal,
    command: LaterCommand,
    priority: u8,
}

#[derive(serde::Serialize)]
struct LaterPrincipal {
    name: &'static str,
    role: &'static str,
    scope: [&'static str; 1],
    is_local: bool,
    naming: &'static str,
    department: &'static str,
}

#[derive(serde::Serialize)]
enum LaterCommand {
    Withdraw { session: &'static str, token: &'static str, because: &'static str },
    Telepathy { session: &'static str },
}

fn later_request(command: LaterCommand) -> Vec<u8> {
    let principal = LaterPrincipal {
        name: "ada",
        role: "listener",
        scope: ["agent:bank"],
        is_local: false,
        naming: "SelfDeclared",
        department: "sales",
    };
    encode(&LaterRequest { principal, command, priority: 1 }).unwrap()
}

#[test]
fn fields_of_a_later_version_are_ignored_and_commands_of_it_are_errors() {
    let bytes = later_request(LaterCommand::Withdraw { session: "sess_1", token: "rpl_1", because: "Late." });
    let request = decode_request(RequestId(1), &bytes).unwrap();
    assert!(matches!(request.command, HubCommand::Withdraw { .. }));
    assert_eq!((&*request.principal.name, request.principal.expires_at), ("ada", None));
    let error = decode_request(RequestId(1), &later_request(LaterCommand::Telepathy { session: "sess_1" }));
    assert!(error.unwrap_err().to_string().contains("Telepathy"));
}

#[derive(serde::Serialize)]
struct LaterOutput {
    kind: &'static str,
    to: u64,
    body: Blob,
}

#[test]
fn a_reply_of_a_later_version_is_an_error_and_an_unknown_output_is_refused() {
    let body = Blob::from(encode("Telepathy").unwrap());
    let reply = encode(&LaterOutput { kind: "reply", to: 7, body: body.clone() }).unwrap();
    let decoded = decode_output(&reply).unwrap();
    assert!(matches!(decoded, TurnOutput::Reply(RequestId(7), HubReply::Unavailable(_))), "{decoded:?}");
    let unknown = encode(&LaterOutput { kind: "telepathy", to: 7, body }).unwrap();
    assert!(decode_output(&unknown).is_err());
}

#[test]
fn a_scope_that_cannot_be_read_is_an_error() {
    // An entry that is ignored would make the scope larger.
    assert!(decode::<Scope>(&encode(&["group:all"]).unwrap()).is_err());
}

#[test]
fn only_commands_without_a_second_effect_are_repeatable() {
    let session = SessionId::parse("sess_1").unwrap();
    let ask = |key: Option<&str>| HubCommand::Ask {
        session: session.clone(),
        body: "{}".into(),
        is_clarification: false,
        idempotency_key: key.map(str::to_owned),
    };
    assert!(ask(Some("k")).is_repeatable() && !ask(None).is_repeatable());
    let send = |text: &str| HubCommand::SendMessage { message: SubscriberMessage::parse(text) };
    let is_repeatable = CONSENT_MESSAGES.map(|text| send(text).is_repeatable());
    assert_eq!(is_repeatable, [true, true, false, true, true, true]);
    assert!(CONSENT_MESSAGES.iter().all(|text| ConsentMessage::parse(text).is_ok()));
}
