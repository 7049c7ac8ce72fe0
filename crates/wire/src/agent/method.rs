//! Which call means what: the names, and what stands in the parameters.

use aaep::json::{Kind, Scribe, Value};
use aaep::{ReplyToken, SessionId};
use hub::command::{Command, RequestBody};

use super::rpc::{Fault, doubled};
use crate::server::not_found;

/// No key is longer, in bytes.
const LONGEST_KEY: usize = 1024;

/// What the hub is asked.
pub(super) fn command(method: &str, params: Option<Value<'_>>) -> Result<Command, Fault> {
    let params = Params(params);
    match method {
        "session.start" => {
            params.check(None)?;
            let key = params.key()?;
            Ok(Command::Start { body: params.rest(&["idempotency_key"]), key })
        }
        "session.event" => {
            params.check(Some(&["session_id", "event", "events", "idempotency_key"]))?;
            let (session, key) = (params.session()?, params.key()?);
            Ok(Command::Publish { session, events: params.events()?, key })
        }
        "session.output" => {
            let known = [
                "session_id",
                "text",
                "output_id",
                "language",
                "content_type",
                "complete",
                "stays",
                "idempotency_key",
            ];
            params.check(Some(&known))?;
            let (complete, stays) = (params.flag("complete")?, params.flag("stays")?);
            let text = params.text("text")?.unwrap_or_default();
            let (session, output_id, key) = (params.session()?, params.text("output_id")?, params.key()?);
            let (language, content_type) = (params.text("language")?, params.text("content_type")?);
            Ok(Command::Output { session, output_id, text, language, content_type, complete, stays, key })
        }
        method @ ("session.ask" | "session.clarify") => {
            params.check(None)?;
            let (session, key) = (params.session()?, params.key()?);
            let body = params.rest(&["session_id", "idempotency_key"]);
            Ok(Command::Ask { session, body, clarify: method == "session.clarify", key })
        }
        "session.withdraw" => {
            params.check(Some(&["session_id", "reply_token"]))?;
            let token = params.text("reply_token")?;
            let token = token.ok_or_else(|| Fault::params("reply_token says which question."))?;
            let token = ReplyToken::parse(&token).map_err(|_| Fault::of(not_found()))?;
            Ok(Command::Withdraw { session: params.session()?, token })
        }
        "session.follow" => {
            params.check(Some(&["session_id"]))?;
            Ok(Command::Follow { session: params.session()? })
        }
        other => Err(Fault::method(other)),
    }
}

/// The parameters, if there are any.
struct Params<'d>(Option<Value<'d>>);

impl<'d> Params<'d> {
    /// Named, each once, and if not all are taken then these only.
    fn check(&self, known: Option<&[&str]>) -> Result<(), Fault> {
        let Some(params) = &self.0 else { return Ok(()) };
        if params.kind() != Kind::Object {
            return Err(Fault::params("params are an object: they are given by name."));
        }
        if let Some(name) = doubled(params) {
            return Err(Fault::params(&format!("{name:?} stands twice.")));
        }
        let strange = |name: &Value<'_>| known.is_some_and(|known| !known.iter().any(|one| name.is(one)));
        match params.members().find(|(name, _)| strange(name)) {
            Some((name, _)) => {
                let name: String = name.text().unwrap_or_default().chars().take(64).collect();
                Err(Fault::params(&format!("the parameter {name:?} is not known here.")))
            }
            None => Ok(()),
        }
    }

    fn member(&self, name: &str) -> Option<Value<'d>> {
        self.0?.member(name)
    }

    fn text(&self, name: &str) -> Result<Option<String>, Fault> {
        let Some(value) = self.member(name) else { return Ok(None) };
        value.text().map(|text| Some(text.into_owned())).ok_or_else(|| wrong(name, "a string"))
    }

    fn flag(&self, name: &str) -> Result<bool, Fault> {
        let Some(value) = self.member(name) else { return Ok(false) };
        value.boolean().ok_or_else(|| wrong(name, "true or false"))
    }

    fn session(&self) -> Result<SessionId, Fault> {
        let id = self.text("session_id")?.ok_or_else(|| Fault::params("session_id says which session."))?;
        SessionId::parse(&id).map_err(|_| Fault::of(not_found()))
    }

    fn key(&self) -> Result<Option<String>, Fault> {
        let key = self.text("idempotency_key")?;
        match &key {
            Some(key) if key.is_empty() || key.len() > LONGEST_KEY => {
                Err(wrong("idempotency_key", &format!("a string of 1 to {LONGEST_KEY} bytes")))
            }
            _ => Ok(key),
        }
    }

    fn events(&self) -> Result<Vec<RequestBody>, Fault> {
        let document = |event: Value<'_>| {
            let mut document = Box::<Scribe>::default();
            document.copy(&event);
            RequestBody::Document(document)
        };
        match (self.member("event"), self.member("events")) {
            (Some(event), None) => Ok(vec![document(event)]),
            (None, Some(events)) if events.kind() == Kind::Array => {
                Ok(events.items().map(document).collect())
            }
            (None, Some(_)) => Err(wrong("events", "a list")),
            _ => Err(Fault::params("Either event or events says what happened.")),
        }
    }

    /// What HTTP has in the body: all but what it has elsewhere.
    fn rest(&self, but: &[&str]) -> RequestBody {
        let mut rest = Scribe::with_capacity(self.0.as_ref().map_or(0, |params| params.source().len()));
        rest.open_object();
        for (name, value) in self.0.iter().flat_map(Value::members) {
            if !but.iter().any(|one| name.is(one)) {
                rest.copy_key(&name);
                rest.copy(&value);
            }
        }
        rest.close_object();
        RequestBody::Document(Box::new(rest))
    }
}

fn wrong(name: &str, right: &str) -> Fault {
    Fault::params(&format!("{name} is {right}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, params: &str) -> String {
        let params = aaep::json::Kept::read(params).unwrap();
        match command(method, Some(params.doc().root())) {
            Ok(command) => format!("{command:?}"),
            Err(fault) => fault.answer(None),
        }
    }

    #[test]
    fn parameters_are_what_http_has_in_body_address_and_headers() {
        for (method, params, expected) in [
            (
                "session.start",
                r#"{"summary_normal":"a", "idempotency_key":"k"}"#,
                r#"Start { body: "{\"summary_normal\":\"a\"}", key: Some("k") }"#,
            ),
            (
                "session.event",
                r#"{"session_id":"sess_1","event":{"type":"t"}}"#,
                r#"Publish { session: sess_1, events: ["{\"type\":\"t\"}"], key: None }"#,
            ),
            (
                "session.event",
                r#"{"session_id":"sess_1","events":[1,{}]}"#,
                r#"Publish { session: sess_1, events: ["1", "{}"], key: None }"#,
            ),
            (
                "session.output",
                r#"{"session_id":"sess_1","text":"a\nb","language":"es","complete":true,"output_id":"o"}"#,
                r#"Output { session: sess_1, output_id: Some("o"), text: "a\nb", language: Some("es"), content_type: None, complete: true, stays: false, key: None }"#,
            ),
            (
                "session.clarify",
                r#"{"session_id":"sess_1","question":"a"}"#,
                r#"Ask { session: sess_1, body: "{\"question\":\"a\"}", clarify: true, key: None }"#,
            ),
            (
                "session.withdraw",
                r#"{"session_id":"sess_1","reply_token":"rpl_1"}"#,
                "Withdraw { session: sess_1, token: rpl_1 }",
            ),
            ("session.follow", r#"{"session_id":"sess_1"}"#, "Follow { session: sess_1 }"),
        ] {
            assert_eq!(asked(method, params), expected);
        }
    }

    #[test]
    fn parameters_that_mean_nothing_are_refused() {
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
            ("session.withdraw", r#"{"session_id":"sess_1"}"#),
            ("session.withdraw", r#"{"session_id":"sess_1","reply_token":7}"#),
        ] {
            let answer = asked(method, params);
            assert!(answer.contains(r#""code":-32602"#), "{method} {params}: {answer}");
        }
        assert!(asked("session.sing", "{}").contains(r#""code":-32601"#));
    }
}
