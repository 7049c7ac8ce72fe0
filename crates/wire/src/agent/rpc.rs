//! JSON-RPC 2.0: calls in, answers and notifications out.

use std::borrow::Cow;
use std::collections::HashSet;

use aaep::json::{Kind, Tape, Value};
use hub::command::Command;

use super::method::command;
use crate::http::{Response, Status};
use crate::json_rpc::{self, NULL};

/// What a message holds.
#[derive(Debug)]
pub(super) enum Message {
    One(Call),
    /// One message back, when all of it is settled (§6).
    Batch(Vec<Call>),
}

/// A call, or why it is none.
#[derive(Debug)]
pub(super) struct Call {
    /// Its name, as JSON. A notification has none, and no answer.
    pub(super) id: Option<String>,
    /// What the hub is asked.
    pub(super) command: Result<Command, Fault>,
}

/// Why something is refused: a code of JSON-RPC, and the problem that HTTP would answer.
#[derive(Debug)]
pub(super) struct Fault {
    code: i64,
    problem: Response,
}

impl Fault {
    fn new(code: i64, status: Status, title: &str) -> Self {
        Self { code, problem: Response::problem(status, title) }
    }

    pub(super) fn parse(why: &str) -> Self {
        Self::new(json_rpc::PARSE_ERROR, Status::BadRequest, why)
    }

    pub(super) fn request(why: &str) -> Self {
        Self::new(json_rpc::INVALID_REQUEST, Status::BadRequest, why)
    }

    pub(super) fn method(name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        Self::new(json_rpc::METHOD_NOT_FOUND, Status::NotFound, &format!("There is no method {name:?}."))
    }

    pub(super) fn params(why: &str) -> Self {
        Self::new(json_rpc::INVALID_PARAMS, Status::BadRequest, why)
    }

    /// What the hub answered, if it is no result.
    pub(super) fn of(problem: Response) -> Self {
        let code = match problem.status {
            Status::BadRequest => json_rpc::INVALID_PARAMS,
            Status::Forbidden => -32003,
            Status::NotFound => -32004,
            Status::Conflict => -32009,
            Status::UnprocessableContent => -32022,
            Status::TooManyRequests => -32029,
            Status::Unavailable => -32053,
            _ => -32603,
        };
        Self { code, problem }
    }

    /// The answer that says so.
    pub(super) fn answer(&self, id: Option<&str>) -> String {
        let data = String::from_utf8_lossy(self.problem.content());
        let title = self.problem.title.as_deref().unwrap_or("It cannot be done.");
        let data = if data.is_empty() { NULL } else { &*data };
        let error = json_rpc::error(self.code, title, Some(data));
        json_rpc::message(&[("id", id.unwrap_or(NULL)), ("error", &error)])
    }
}

/// The answer that something was done.
pub(super) fn result(id: &str, json: &str) -> String {
    json_rpc::message(&[("id", id), ("result", json)])
}

/// Something that nobody asked for; the method needs no escapes.
pub(super) fn notification(method: &str, params: &str) -> String {
    json_rpc::message(&[("method", &format!("\"{method}\"")), ("params", params)])
}

/// All answers of a batch.
pub(super) fn batch(answers: &[String]) -> String {
    format!("[{}]", answers.join(","))
}

/// Reads a message; `most` calls at most are taken in a batch.
pub(super) fn read(text: &str, most: usize) -> Result<Message, Fault> {
    let mut tape = Tape::default();
    let doc = tape.read(text).map_err(|error| Fault::parse(&format!("not JSON: {error}")))?;
    let root = doc.root();
    if root.kind() != Kind::Array {
        return Ok(Message::One(call(&root)));
    }
    match root.items().take(most.saturating_add(1)).count() {
        0 => Err(Fault::request("A batch has at least one call.")),
        count if count > most => Err(Fault::request(&format!("A batch has at most {most} calls."))),
        _ => Ok(Message::Batch(root.items().map(|item| call(&item)).collect())),
    }
}

fn call(value: &Value<'_>) -> Call {
    if value.kind() != Kind::Object {
        return Call { id: Some(NULL.to_owned()), command: Err(Fault::request("A call is a JSON object.")) };
    }
    let id = value.member("id");
    let named = id.as_ref().is_some_and(json_rpc::is_id);
    let called = method_and_params(value).and_then(|called| match id {
        Some(_) if !named => Err(Fault::request("An id is a string, a number or null.")),
        _ => Ok(called),
    });
    let id = match (id, &called) {
        (Some(id), _) if named => Some(id.source().to_owned()),
        // What is no call is told so, with or without a name.
        (_, Err(_)) => Some(NULL.to_owned()),
        _ => None,
    };
    Call { id, command: called.and_then(|(method, params)| command(&method, params)) }
}

fn method_and_params<'d>(value: &Value<'d>) -> Result<(Cow<'d, str>, Option<Value<'d>>), Fault> {
    if let Some(name) = doubled(value) {
        return Err(Fault::request(&format!("{name:?} stands twice.")));
    }
    if !json_rpc::is_version_2(value) {
        return Err(Fault::request("jsonrpc is \"2.0\"."));
    }
    let Some(method) = value.member("method").and_then(|method| method.text()) else {
        return Err(Fault::request("A call names its method."));
    };
    let params = value.member("params");
    if params.is_some_and(|params| !matches!(params.kind(), Kind::Object | Kind::Array)) {
        return Err(Fault::request("params are an object."));
    }
    Ok((method, params))
}

/// A name that stands twice among the members of an object.
pub(super) fn doubled(value: &Value<'_>) -> Option<String> {
    let mut names = HashSet::new();
    let mut all = value.members().filter_map(|(name, _)| name.text());
    all.find(|name| !names.insert(name.clone())).map(|name| name.chars().take(64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer to a message that holds no call.
    fn answer(text: &str) -> String {
        match read(text, 3) {
            Err(fault) => fault.answer(None),
            Ok(Message::One(Call { id, command: Err(fault) })) => fault.answer(id.as_deref()),
            Ok(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_call_is_told_so() {
        for (text, code, id) in [
            ("", -32700, "null"),
            ("{", -32700, "null"),
            ("[]", -32600, "null"),
            ("[1,2,3,4]", -32600, "null"),
            ("1", -32600, "null"),
            ("null", -32600, "null"),
            ("{}", -32600, "null"),
            (r#"{"jsonrpc":"1.0","method":"a","id":1}"#, -32600, "1"),
            (r#"{"method":"a","id":"x"}"#, -32600, r#""x""#),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","method":7,"id":1.5}"#, -32600, "1.5"),
            (r#"{"jsonrpc":"2.0","method":"a","params":"x","id":1}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","method":"a","id":{}}"#, -32600, "null"),
            (r#"{"jsonrpc":"2.0","method":"a","id":true}"#, -32600, "null"),
            (r#"{"jsonrpc":"2.0","method":"a","method":"b","id":1}"#, -32600, "1"),
            (r#"{"jsonrpc":"2.0","method":7}"#, -32600, "null"),
        ] {
            let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":""#);
            let answer = answer(text);
            assert!(answer.starts_with(&expected), "{text}: {answer}");
            assert!(answer.contains(r#""data":{"title":""#), "{answer}");
        }
    }

    #[test]
    fn names_come_back_as_they_were_and_notifications_have_none() {
        for id in ["1", "1.50", "null", r#""\u0041""#] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"session.start","id":{id}}}"#);
            let Ok(Message::One(Call { id: Some(read), command: Ok(_) })) = read(&text, 3) else {
                panic!("{text}")
            };
            assert_eq!(read, id);
        }
        for (method, is_known) in [("session.start", true), ("a", false)] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
            let Ok(Message::One(call)) = read(&text, 3) else { panic!("{text}") };
            assert_eq!((call.id, call.command.is_ok()), (None, is_known));
        }
    }

    #[test]
    fn a_batch_is_its_calls_one_by_one() {
        let text = r#"[{"jsonrpc":"2.0","method":"session.start","id":1},7,{"jsonrpc":"2.0","method":"session.start"}]"#;
        let Ok(Message::Batch(calls)) = read(text, 3) else { panic!() };
        let ids: Vec<_> = calls.iter().map(|call| (call.id.as_deref(), call.command.is_ok())).collect();
        assert_eq!(ids, [(Some("1"), true), (Some("null"), false), (None, true)]);
    }
}
