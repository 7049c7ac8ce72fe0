//! The receiver: OTLP over HTTP (`POST /v1/traces`, `POST /v1/logs`), in protobuf or JSON, optionally compressed with gzip.

use std::io::Read;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use aaep::SessionId;
use data_encoding::HEXLOWER;
use flate2::read::GzDecoder;
use hub::command::{HubCommand, HubReply};
use hub::{Principal, Role};
use prost::Message;
use seal::json::write_object;
use tokio::sync::Mutex;
use wire::http::{HttpResponse, Method, RequestHead, StatusCode};
use wire::{Access, HttpService, HubHandle, ServiceOutcome, ServiceRequest};

use super::event::{self, Publication};
use super::json::JsonError;
use super::message_count::{CountError, LOGS_REQUEST, TRACE_REQUEST, check_protobuf};
use super::proto::{ExportResponse, LogsRequest, PartialSuccess, RpcStatus, TraceRequest};
use super::report::{ExtractedReports, Report, extract_logs, extract_spans};
use super::session_table::{SeenReports, SessionTable};
use super::{OtlpLimits, json};
use crate::phrases::{GateText, texts};

/// The interval between searches for quiet sessions.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(500);

/// Narrates what agents report over OTLP.
pub struct OtlpService {
    hub: HubHandle,
    limits: OtlpLimits,
    /// Locked while a request is handled, so that the reports of a session stay in order.
    state: Mutex<OtlpState>,
}

struct OtlpState {
    sessions: SessionTable<NarratedSession>,
    seen: SeenReports,
}

struct NarratedSession {
    id: SessionId,
    principal: Principal,
}

/// A signal of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtlpSignal {
    Traces,
    Logs,
}

impl OtlpSignal {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/traces" => Some(Self::Traces),
            "/v1/logs" => Some(Self::Logs),
            _ => None,
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Logs => "/v1/logs",
        }
    }

    /// Returns the name of the member that says how many records were rejected.
    fn rejected_member(self) -> &'static str {
        match self {
            Self::Traces => "rejectedSpans",
            Self::Logs => "rejectedLogRecords",
        }
    }
}

/// The encoding of a request. The response has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

/// Why a request is refused as a whole.
struct Refusal {
    status: StatusCode,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl OtlpService {
    /// Creates the service. Call [`run`](Self::run) too, which ends quiet sessions.
    pub fn new(hub: HubHandle, limits: OtlpLimits) -> Self {
        let state = OtlpState {
            sessions: SessionTable::default(),
            seen: SeenReports::new(limits.remembered_records),
        };
        Self { hub, limits, state: Mutex::new(state) }
    }

    /// Ends sessions that have received no reports for `quiet_time`. Runs until the future is dropped.
    pub async fn run(&self) {
        let mut interval = tokio::time::interval(EXPIRY_INTERVAL);
        loop {
            interval.tick().await;
            let mut state = self.state.lock().await;
            for number in state.sessions.quiet(self.limits.quiet_time, Instant::now()) {
                if let Some(session) = state.sessions.remove(number) {
                    let seconds = self.limits.quiet_time.as_secs().max(1);
                    let reason = texts::NO_FURTHER_REPORTS.with(&[&seconds.to_string()]);
                    self.end(session, &reason).await;
                }
            }
        }
    }

    /// Ends all sessions, because the hub stops.
    pub async fn end_all(&self) {
        let sessions: Vec<_> = self.state.lock().await.sessions.drain().collect();
        for session in sessions {
            self.end(session, &(&texts::HUB_STOPS).into()).await;
        }
    }

    async fn end(&self, session: NarratedSession, reason: &GateText) {
        let events = vec![event::session_end(reason).into()];
        let publish = HubCommand::Publish { session: session.id, events, idempotency_key: None };
        // If the session has already ended, there is nothing to do.
        let _ = self.hub.ask(session.principal, publish).await;
    }

    async fn receive(
        &self,
        signal: OtlpSignal,
        encoding: Encoding,
        request: ServiceRequest,
    ) -> Result<ExtractedReports, Refusal> {
        let principal = request.principal.unwrap_or_else(Principal::local);
        if !matches!(principal.role, Role::Agent | Role::Admin) {
            return Err(Refusal::new(StatusCode::Forbidden, "The token must belong to an agent."));
        }
        let body = decompress(&request.head, request.body, self.limits.body_bytes)?;
        let max_records = self.limits.records;
        let max_messages = self.limits.messages;
        if encoding == Encoding::Protobuf {
            let fields = match signal {
                OtlpSignal::Traces => &TRACE_REQUEST,
                OtlpSignal::Logs => &LOGS_REQUEST,
            };
            check_protobuf(&body, fields, max_messages).map_err(|error| refuse_count(error, max_messages))?;
        }
        let refuse_json = |error| match error {
            JsonError::Malformed(message) => bad_request(message),
            JsonError::Count(error) => refuse_count(error, max_messages),
        };
        let mut extracted = match (signal, encoding) {
            (OtlpSignal::Traces, Encoding::Protobuf) => extract_spans(
                TraceRequest::decode(body.as_slice()).map_err(|error| malformed(&error))?,
                max_records,
            ),
            (OtlpSignal::Logs, Encoding::Protobuf) => extract_logs(
                LogsRequest::decode(body.as_slice()).map_err(|error| malformed(&error))?,
                max_records,
            ),
            (OtlpSignal::Traces, Encoding::Json) => extract_spans(
                json::read_traces(text(&body)?, max_messages).map_err(refuse_json)?,
                max_records,
            ),
            (OtlpSignal::Logs, Encoding::Json) => {
                extract_logs(json::read_logs(text(&body)?, max_messages).map_err(refuse_json)?, max_records)
            }
        };
        drop(body);
        let mut state = self.state.lock().await;
        for report in std::mem::take(&mut extracted.reports) {
            if state.seen.contains(&principal.name, report.identity) {
                continue;
            }
            match self.narrate(&mut state, &principal, &report).await? {
                Ok(()) => state.seen.insert(&principal.name, report.identity),
                Err(reason) => extracted.reject(reason),
            }
        }
        Ok(extracted)
    }

    /// Narrates one report. The inner error refuses only this report; the outer one refuses the whole request.
    async fn narrate(
        &self,
        state: &mut OtlpState,
        principal: &Principal,
        report: &Report,
    ) -> Result<Result<(), String>, Refusal> {
        // A session that a person stopped, or that the hub ended, is replaced once, because reports must be heard.
        for _ in 0..2 {
            let found = state.sessions.find(&principal.name, report, Instant::now());
            let (number, session) = match found {
                Some((number, session)) => (Some(number), session.id.clone()),
                None => match self.start(state, principal, report).await? {
                    Ok(session) => (None, session),
                    Err(reason) => return Ok(Err(reason)),
                },
            };
            match self.publish(principal, session, report).await {
                HubReply::NotFound | HubReply::SessionEnded => {
                    if let Some(number) = number {
                        state.sessions.remove(number);
                        continue;
                    }
                    return Ok(Err("the session has ended".to_owned()));
                }
                reply => return outcome_of(&reply),
            }
        }
        Ok(Err("the session has ended".to_owned()))
    }

    async fn start(
        &self,
        state: &mut OtlpState,
        principal: &Principal,
        report: &Report,
    ) -> Result<Result<SessionId, String>, Refusal> {
        if state.sessions.len() >= self.limits.sessions
            && let Some(session) = state
                .sessions
                .quietest_of_largest(&principal.name)
                .and_then(|number| state.sessions.remove(number))
        {
            self.end(session, &(&texts::TOO_MANY_SESSIONS).into()).await;
        }
        let body = event::session_start(report, principal.agent_id.is_some());
        let start = HubCommand::Start { body: body.into(), idempotency_key: None };
        match self.hub.ask(principal.clone(), start).await {
            HubReply::SessionStarted { session_id } => {
                let session = NarratedSession { id: session_id.clone(), principal: principal.clone() };
                state.sessions.insert(&principal.name, report, session, Instant::now());
                Ok(Ok(session_id))
            }
            reply => outcome_of(&reply)
                .map(|outcome| outcome.and_then(|()| Err("the hub sent no session".to_owned()))),
        }
    }

    async fn publish(&self, principal: &Principal, session: SessionId, report: &Report) -> HubReply {
        let command = match event::publication(report) {
            Publication::Events(events) => {
                let events = events.into_iter().map(Into::into).collect();
                HubCommand::Publish { session, events, idempotency_key: None }
            }
            Publication::Output(text) => HubCommand::StreamOutput {
                session,
                // Each text is an output of its own.
                output_id: Some(format!("out_{}", HEXLOWER.encode(&report.identity))),
                producer: None,
                text,
                language: None,
                content_type: Some("text/markdown".to_owned()),
                coalesce_hint: None,
                complete: true,
                agent_reports_next_state: false,
                idempotency_key: None,
            },
        };
        self.hub.ask(principal.clone(), command).await
    }
}

/// Returns whether the hub stored a report, or why it refused this report. The outer error refuses the whole request: the token
/// lacks the permission, a limit is reached, or the hub cannot store anything now.
fn outcome_of(reply: &HubReply) -> Result<Result<(), String>, Refusal> {
    match reply {
        HubReply::EventsPublished { .. } | HubReply::SessionStarted { .. } | HubReply::Done => Ok(Ok(())),
        HubReply::RuleViolations(findings) => {
            let rules: Vec<_> = findings.iter().map(|finding| finding.rule.id()).collect();
            Ok(Err(format!("the report breaks the rules {}", rules.join(", "))))
        }
        HubReply::Malformed(error) => Ok(Err(error.to_string())),
        HubReply::Forbidden => Err(Refusal::new(StatusCode::Forbidden, "The token does not permit this.")),
        HubReply::LimitReached(limit) => Err(Refusal::new(StatusCode::TooManyRequests, limit.to_string())),
        HubReply::Unavailable(_) => {
            Err(Refusal::new(StatusCode::ServiceUnavailable, "The hub cannot store this now; try again."))
        }
        _ => Ok(Err("the hub refused the report".to_owned())),
    }
}

fn malformed(error: &prost::DecodeError) -> Refusal {
    bad_request(format!("The body is not a protobuf message of OTLP: {error}."))
}

fn refuse_count(error: CountError, max_messages: usize) -> Refusal {
    match error {
        CountError::TooMany => {
            let message = format!("The request has more than {max_messages} records, attributes and values.");
            Refusal::new(StatusCode::ContentTooLarge, message)
        }
        CountError::Malformed => bad_request("The body is not a protobuf message of OTLP.".to_owned()),
    }
}

fn bad_request(message: String) -> Refusal {
    Refusal::new(StatusCode::BadRequest, message)
}

fn text(body: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(body).map_err(|_| bad_request("The body must be UTF-8.".to_owned()))
}

/// Returns the body without its content encoding. The limit applies to what comes out, too.
fn decompress(head: &RequestHead, body: Vec<u8>, max_bytes: usize) -> Result<Vec<u8>, Refusal> {
    match head.header("content-encoding").map(str::trim) {
        None | Some("" | "identity") => Ok(body),
        Some(encoding) if encoding.eq_ignore_ascii_case("gzip") => {
            let mut decoded = Vec::new();
            let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
            let read = GzDecoder::new(body.as_slice()).take(limit).read_to_end(&mut decoded);
            read.map_err(|_| bad_request("The body is not valid gzip.".to_owned()))?;
            if decoded.len() > max_bytes {
                let message = format!("The body has more than {max_bytes} bytes.");
                return Err(Refusal::new(StatusCode::ContentTooLarge, message));
            }
            Ok(decoded)
        }
        Some(_) => Err(Refusal::new(
            StatusCode::UnsupportedMediaType,
            "The content encoding must be gzip or identity.",
        )),
    }
}

impl Encoding {
    fn of(head: &RequestHead) -> Option<Self> {
        match head.media_type().as_deref() {
            Some("application/x-protobuf") => Some(Self::Protobuf),
            Some("application/json") => Some(Self::Json),
            _ => None,
        }
    }

    fn success(self, signal: OtlpSignal, extracted: &ExtractedReports) -> HttpResponse {
        let rejected = i64::try_from(extracted.rejected).unwrap_or(i64::MAX);
        let error_message = extracted.error.clone().unwrap_or_default();
        let response = HttpResponse::new(StatusCode::Ok);
        match self {
            Self::Protobuf => {
                let partial_success = (rejected > 0).then_some(PartialSuccess { rejected, error_message });
                response.body("application/x-protobuf", ExportResponse { partial_success }.encode_to_vec())
            }
            Self::Json => response.json(write_object(|out| {
                if rejected > 0 {
                    out.key("partialSuccess").object(|out| {
                        // In protobuf's JSON encoding, 64-bit integers are strings.
                        out.key(signal.rejected_member()).text(&rejected.to_string());
                        out.key("errorMessage").text(&error_message);
                    });
                }
            })),
        }
    }

    /// Returns an error as `google.rpc.Status`, which OTLP requires.
    fn failure(self, refusal: Refusal) -> HttpResponse {
        let Refusal { status, message } = refusal;
        let code = match status {
            StatusCode::Forbidden => 7,
            StatusCode::TooManyRequests => 8,
            StatusCode::ServiceUnavailable => 14,
            _ => 3,
        };
        let mut response = HttpResponse::new(status);
        if matches!(status, StatusCode::TooManyRequests | StatusCode::ServiceUnavailable) {
            response = response.header("Retry-After", "5");
        }
        match self {
            Self::Protobuf => {
                response.body("application/x-protobuf", RpcStatus { code, message }.encode_to_vec())
            }
            Self::Json => response.json(write_object(|out| {
                out.key("code").integer(code.into());
                out.key("message").text(&message);
            })),
        }
    }
}

impl HttpService for OtlpService {
    type Caller = ();

    fn admit(&self, head: &RequestHead, _peer: IpAddr) -> Result<Access, HttpResponse> {
        if OtlpSignal::of(&head.path).is_none() {
            let text = "There is only /v1/traces and /v1/logs here.";
            return Err(HttpResponse::problem(StatusCode::NotFound, text));
        }
        if head.method != Method::Post {
            return Err(HttpResponse::method_not_allowed("POST"));
        }
        if Encoding::of(head).is_none() {
            let text = "The content type must be application/x-protobuf or application/json.";
            return Err(HttpResponse::problem(StatusCode::UnsupportedMediaType, text));
        }
        Ok(Access::Token)
    }

    async fn handle(&self, request: ServiceRequest) -> ServiceOutcome {
        let signal = OtlpSignal::of(&request.head.path);
        let (Some(signal), Some(encoding)) = (signal, Encoding::of(&request.head)) else {
            return HttpResponse::new(StatusCode::NotFound).into();
        };
        match self.receive(signal, encoding, request).await {
            Ok(extracted) => encoding.success(signal, &extracted).into(),
            Err(refusal) => encoding.failure(refusal).into(),
        }
    }

    fn route_template(&self, head: &RequestHead) -> Option<&'static str> {
        OtlpSignal::of(&head.path).map(OtlpSignal::path)
    }

    fn readiness(&self) -> Result<(), String> {
        Ok(())
    }
}

impl std::fmt::Debug for OtlpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpService").field("limits", &self.limits).finish_non_exhaustive()
    }
}
