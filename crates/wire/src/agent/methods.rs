//! Maps JSON-RPC methods and their parameters to hub commands.

use std::borrow::Cow;

use aaep::json::{JsonKind, JsonValue, TapeWriter};
use aaep::{ReplyToken, SessionId};
use hub::command::{HubCommand, RequestBody};

use super::rpc::{RpcError, duplicate_member};
use crate::server::{invitation_not_found, question_not_found, session_not_found};

/// Parses the method and parameters of a call into a hub command.
pub(super) fn parse_command(method: &str, params: Option<JsonValue<'_>>) -> Result<HubCommand, RpcError> {
    let params = Params(params);
    match method {
        "session.start" => {
            params.check_names(None)?;
            let key = params.idempotency_key()?;
            Ok(HubCommand::Start { body: params.body_without(&["idempotency_key"]), idempotency_key: key })
        }
        "agent.manifest" => {
            params.check_names(Some(&["manifest"]))?;
            let manifest = params.member("manifest");
            let manifest = manifest.ok_or_else(|| RpcError::invalid_params("manifest is required."))?;
            // A signed manifest is a string.
            let document = manifest.text().map_or_else(|| manifest.source().to_owned(), Cow::into_owned);
            Ok(HubCommand::PublishManifest { document })
        }
        "session.event" => {
            params.check_names(Some(&["session_id", "event", "events", "idempotency_key"]))?;
            let (session, key) = (params.session_id()?, params.idempotency_key()?);
            Ok(HubCommand::Publish { session, events: params.events()?, idempotency_key: key })
        }
        "session.output" => {
            let known = [
                "session_id",
                "text",
                "output_id",
                "producer",
                "language",
                "content_type",
                "coalesce_hint",
                "complete",
                "stays",
                "idempotency_key",
            ];
            params.check_names(Some(&known))?;
            let (complete, stays) = (params.flag("complete")?, params.flag("stays")?);
            let text = params.text("text")?.unwrap_or_default();
            let (session, output_id, key) =
                (params.session_id()?, params.text("output_id")?, params.idempotency_key()?);
            let producer = params.text("producer")?;
            let (language, content_type) = (params.text("language")?, params.text("content_type")?);
            Ok(HubCommand::StreamOutput {
                session,
                output_id,
                producer,
                text,
                language,
                content_type,
                coalesce_hint: params.text("coalesce_hint")?,
                complete,
                agent_reports_next_state: stays,
                idempotency_key: key,
            })
        }
        method @ ("session.ask" | "session.clarify") => {
            params.check_names(None)?;
            let (session, key) = (params.session_id()?, params.idempotency_key()?);
            let body = params.body_without(&["session_id", "idempotency_key"]);
            Ok(HubCommand::Ask {
                session,
                body,
                is_clarification: method == "session.clarify",
                idempotency_key: key,
            })
        }
        "session.hand_off" => {
            params.check_names(None)?;
            let (session, key) = (params.session_id()?, params.idempotency_key()?);
            let body = params.body_without(&["session_id", "idempotency_key"]);
            Ok(HubCommand::HandOff { session, body, idempotency_key: key })
        }
        "session.invite" => {
            params.check_names(Some(&["session_id", "producer", "expires_in_seconds", "idempotency_key"]))?;
            let (session, key) = (params.session_id()?, params.idempotency_key()?);
            let body = params.body_without(&["session_id", "idempotency_key"]);
            Ok(HubCommand::Invite { session, body, idempotency_key: key })
        }
        "session.join" => {
            params.check_names(Some(&["session_id", "invitation", "producer", "idempotency_key"]))?;
            let key = params.idempotency_key()?;
            let session = params.text("session_id")?;
            let session = session.ok_or_else(|| RpcError::invalid_params("session_id is required."))?;
            let session =
                SessionId::parse(&session).map_err(|_| RpcError::from_problem(invitation_not_found()))?;
            let body = params.body_without(&["session_id", "idempotency_key"]);
            Ok(HubCommand::Join { session, body, idempotency_key: key })
        }
        "session.withdraw" => {
            params.check_names(Some(&["session_id", "reply_token"]))?;
            let token = params.text("reply_token")?;
            let token = token.ok_or_else(|| RpcError::invalid_params("reply_token is required."))?;
            let token =
                ReplyToken::parse(&token).map_err(|_| RpcError::from_problem(question_not_found()))?;
            Ok(HubCommand::Withdraw { session: params.session_id()?, token })
        }
        "session.follow" => {
            params.check_names(Some(&["session_id"]))?;
            Ok(HubCommand::Follow { session: params.session_id()? })
        }
        other => Err(RpcError::method_not_found(other)),
    }
}

/// The parameters of a call, if it has any.
struct Params<'d>(Option<JsonValue<'d>>);

impl<'d> Params<'d> {
    /// Checks that the parameters are an object without duplicate names. If `known` is given, other names are rejected.
    fn check_names(&self, known: Option<&[&str]>) -> Result<(), RpcError> {
        let Some(params) = &self.0 else { return Ok(()) };
        if params.kind() != JsonKind::Object {
            return Err(RpcError::invalid_params("params must be an object."));
        }
        if let Some(name) = duplicate_member(params) {
            return Err(RpcError::invalid_params(&format!("{name:?} appears twice.")));
        }
        let is_unknown =
            |name: &JsonValue<'_>| known.is_some_and(|known| !known.iter().any(|one| name.is_text(one)));
        match params.members().find(|(name, _)| is_unknown(name)) {
            Some((name, _)) => {
                let name: String = name.text().unwrap_or_default().chars().take(64).collect();
                let suggestion = seal::closest_name(&name, known.unwrap_or_default().iter().copied());
                Err(RpcError::invalid_params(&match suggestion {
                    Some(known) => format!("Unknown parameter {name:?}. Did you mean {known}?"),
                    None => format!("Unknown parameter {name:?}."),
                }))
            }
            None => Ok(()),
        }
    }

    fn member(&self, name: &str) -> Option<JsonValue<'d>> {
        self.0?.member(name)
    }

    fn text(&self, name: &str) -> Result<Option<String>, RpcError> {
        let Some(value) = self.member(name) else { return Ok(None) };
        value.text().map(|text| Some(text.into_owned())).ok_or_else(|| invalid_param(name, "a string"))
    }

    fn flag(&self, name: &str) -> Result<bool, RpcError> {
        let Some(value) = self.member(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| invalid_param(name, "true or false"))
    }

    fn session_id(&self) -> Result<SessionId, RpcError> {
        let id =
            self.text("session_id")?.ok_or_else(|| RpcError::invalid_params("session_id is required."))?;
        SessionId::parse(&id).map_err(|_| RpcError::from_problem(session_not_found()))
    }

    fn idempotency_key(&self) -> Result<Option<String>, RpcError> {
        let key = self.text("idempotency_key")?;
        match &key {
            Some(key) if key.is_empty() => {
                Err(invalid_param("idempotency_key", "a string that is not empty"))
            }
            _ => Ok(key),
        }
    }

    fn events(&self) -> Result<Vec<RequestBody>, RpcError> {
        let to_document = |event: JsonValue<'_>| {
            let mut document = Box::<TapeWriter>::default();
            document.copy(&event);
            RequestBody::Document(document)
        };
        match (self.member("event"), self.member("events")) {
            (Some(event), None) => Ok(vec![to_document(event)]),
            (None, Some(events)) if events.kind() == JsonKind::Array => {
                Ok(events.items().map(to_document).collect())
            }
            (None, Some(_)) => Err(invalid_param("events", "a list")),
            _ => Err(RpcError::invalid_params("Exactly one of event and events is required.")),
        }
    }

    /// Returns the parameters that form the body of the same request over HTTP. `excluded` names the parameters that HTTP
    /// sends in the path or in headers.
    fn body_without(&self, excluded: &[&str]) -> RequestBody {
        let mut body = TapeWriter::with_capacity(self.0.as_ref().map_or(0, |params| params.source().len()));
        body.open_object();
        for (name, value) in self.0.iter().flat_map(JsonValue::members) {
            if !excluded.iter().any(|one| name.is_text(one)) {
                body.copy_key(&name);
                body.copy(&value);
            }
        }
        body.close_object();
        RequestBody::Document(Box::new(body))
    }
}

fn invalid_param(name: &str, expected: &str) -> RpcError {
    RpcError::invalid_params(&format!("{name} must be {expected}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_to_text(method: &str, params: &str) -> String {
        let params = aaep::json::OwnedDoc::read(params).unwrap();
        match parse_command(method, Some(params.doc().root())) {
            Ok(command) => format!("{command:?}"),
            Err(error) => error.to_response(None),
        }
    }

    #[test]
    fn calls_are_parsed_into_hub_commands() {
        for (method, params, expected) in [
            (
                "session.start",
                r#"{"summary_normal":"a", "idempotency_key":"k"}"#,
                r#"Start { body: "{\"summary_normal\":\"a\"}", idempotency_key: Some("k") }"#,
            ),
            (
                "session.event",
                r#"{"session_id":"sess_1","event":{"type":"t"}}"#,
                r#"Publish { session: sess_1, events: ["{\"type\":\"t\"}"], idempotency_key: None }"#,
            ),
            (
                "session.event",
                r#"{"session_id":"sess_1","events":[1,{}]}"#,
                r#"Publish { session: sess_1, events: ["1", "{}"], idempotency_key: None }"#,
            ),
            (
                "session.output",
                r#"{"session_id":"sess_1","text":"a\nb","language":"es","complete":true,"output_id":"o"}"#,
                r#"StreamOutput { session: sess_1, output_id: Some("o"), producer: None, text: "a\nb", language: Some("es"), content_type: None, coalesce_hint: None, complete: true, agent_reports_next_state: false, idempotency_key: None }"#,
            ),
            (
                "session.clarify",
                r#"{"session_id":"sess_1","question":"a"}"#,
                r#"Ask { session: sess_1, body: "{\"question\":\"a\"}", is_clarification: true, idempotency_key: None }"#,
            ),
            (
                "session.hand_off",
                r#"{"session_id":"sess_1","reason":"a","idempotency_key":"k"}"#,
                r#"HandOff { session: sess_1, body: "{\"reason\":\"a\"}", idempotency_key: Some("k") }"#,
            ),
            (
                "session.withdraw",
                r#"{"session_id":"sess_1","reply_token":"rpl_1"}"#,
                "Withdraw { session: sess_1, token: rpl_1 }",
            ),
            ("session.follow", r#"{"session_id":"sess_1"}"#, "Follow { session: sess_1 }"),
            ("agent.manifest", r#"{"manifest":"a.b.c"}"#, r#"PublishManifest { document: "a.b.c" }"#),
            ("agent.manifest", r#"{"manifest":{"a":1}}"#, r#"PublishManifest { document: "{\"a\":1}" }"#),
            (
                "session.invite",
                r#"{"session_id":"sess_1","producer":"helper"}"#,
                r#"Invite { session: sess_1, body: "{\"producer\":\"helper\"}", idempotency_key: None }"#,
            ),
            (
                "session.join",
                r#"{"session_id":"sess_1","invitation":"inv_1","idempotency_key":"k"}"#,
                r#"Join { session: sess_1, body: "{\"invitation\":\"inv_1\"}", idempotency_key: Some("k") }"#,
            ),
        ] {
            assert_eq!(parse_to_text(method, params), expected);
        }
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        for (method, params) in [
            ("session.start", "[]"),
            ("session.start", r#"{"idempotency_key":7}"#),
            ("session.start", r#"{"idempotency_key":""}"#),
            ("session.ask", "{}"),
            ("session.ask", r#"{"session_id":7}"#),
            ("session.ask", r#"{"session_id":"a","session_id":"b"}"#),
            ("session.event", r#"{"session_id":"sess_1"}"#),
            ("session.event", r#"{"session_id":"sess_1","event":{},"events":[]}"#),
            ("session.event", r#"{"session_id":"sess_1","events":{}}"#),
            ("session.output", r#"{"session_id":"sess_1","text":"a","complete":"yes"}"#),
            ("session.output", r#"{"session_id":"sess_1","text":7}"#),
            ("session.output", r#"{"session_id":"sess_1","text":"a","language":7}"#),
            ("session.output", r#"{"session_id":"sess_1","text":"a","stays":"yes"}"#),
            ("session.output", r#"{"session_id":"sess_1","txt":"a"}"#),
            ("session.follow", r#"{"session_id":"sess_1","wait":1}"#),
            ("agent.manifest", "{}"),
            ("session.withdraw", r#"{"session_id":"sess_1"}"#),
            ("session.withdraw", r#"{"session_id":"sess_1","reply_token":7}"#),
        ] {
            let response = parse_to_text(method, params);
            assert!(response.contains(r#""code":-32602"#), "{method} {params}: {response}");
        }
        assert!(parse_to_text("session.sing", "{}").contains(r#""code":-32601"#));
    }
}
