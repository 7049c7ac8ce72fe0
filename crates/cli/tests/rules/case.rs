//! A case: the lines, what `sayso validate` must report about them, and how it is run.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use aaep::Timestamp;
use aaep::rule::{Rule, ValidationMode};
use libtest_mimic::Failed;
use seal::UnixMillis;
use serde_json::{Map, Value};

use crate::{BASE, read_json};

/// Input lines and the one rule that they break, or no rule for a valid case.
pub(crate) struct RuleCase {
    pub(crate) rule: Option<String>,
    description: String,
    severity: Option<String>,
    /// What is reported, as (rule, severity), while the rule is switched off.
    otherwise: BTreeSet<(String, String)>,
    arguments: Vec<String>,
    lines: Vec<Value>,
}

impl RuleCase {
    pub(crate) fn parse(case: &Value) -> Option<Self> {
        let text = |name: &str| Some(case.get(name)?.as_str()?.to_owned());
        let arguments = case.get("args").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            rule: text("rule"),
            description: text("description")?,
            severity: text("severity"),
            otherwise: match case.get("otherwise") {
                Some(other) => serde_json::from_value(other.clone()).ok()?,
                None => BTreeSet::new(),
            },
            arguments: arguments
                .map(|argument| argument.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
            lines: case.get("lines")?.as_array()?.clone(),
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.rule.as_deref().unwrap_or("valid:"), self.description)
    }

    pub(crate) fn base_lines(&self) -> impl Iterator<Item = String> {
        self.lines.iter().filter_map(|line| line.as_str().or(line["of"].as_str()).map(str::to_owned))
    }

    pub(crate) fn run(&self, base: &BaseLines) -> Result<(), Failed> {
        let input = self.input(base)?;
        let output = self.validate(&input)?;
        let actual = ValidateResult::from_output(&output)?;
        let expected = self.expected()?;
        if actual == expected {
            return Ok(());
        }
        let (input, output) = (excerpt(&input), excerpt(&output.stdout));
        Err(format!("expected {expected:?}\nfound {actual:?}\ninput:\n{input}\noutput:\n{output}").into())
    }

    fn input(&self, base: &BaseLines) -> Result<Vec<u8>, String> {
        Ok(self.line_bytes(base)?.into_iter().flat_map(|line| [line, b"\n".to_vec()].concat()).collect())
    }

    /// Returns the bytes of each line.
    pub(crate) fn line_bytes(&self, base: &BaseLines) -> Result<Vec<Vec<u8>>, String> {
        let mut stamp = LineStamp { line: 0, millis: 0 };
        self.lines.iter().map(|line| base.line_bytes(line, &mut stamp)).collect()
    }

    fn validate(&self, input: &[u8]) -> Result<Output, Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
        command.args(["validate", "--json"]).args(&self.arguments);
        if let Some(rule) = switched_off_rule() {
            command.args(["--ignore", &rule]);
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        // `validate` reads all of its input and prints little, so no pipe fills up.
        child.stdin.take().ok_or("no standard input")?.write_all(input)?;
        Ok(child.wait_with_output()?)
    }

    fn expected(&self) -> Result<ValidateResult, String> {
        let Some(id) = &self.rule else {
            return Ok(ValidateResult { findings: BTreeSet::new(), exit_code: Some(0) });
        };
        let rule = Rule::find(id).ok_or_else(|| format!("unknown rule {id}"))?;
        if switched_off_rule().as_ref() == Some(id) {
            let has_error = self.otherwise.iter().any(|(_, severity)| severity == "error");
            return Ok(ValidateResult {
                findings: self.otherwise.clone(),
                exit_code: Some(i32::from(has_error)),
            });
        }
        let is_receive_mode = self.arguments.iter().any(|argument| argument == "--receive");
        let mode = if is_receive_mode { ValidationMode::Receive } else { ValidationMode::Strict };
        let severity = self.severity.clone().unwrap_or_else(|| rule.severity(mode).as_str().to_owned());
        let exit_code = Some(i32::from(severity == "error"));
        Ok(ValidateResult { findings: BTreeSet::from([(id.clone(), severity)]), exit_code })
    }
}

fn switched_off_rule() -> Option<String> {
    std::env::var("SAYSO_TEST_SWITCH_OFF").ok()
}

/// Returns the first 4000 characters, to keep failure messages short.
fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(4000).collect()
}

/// The result of a run of `sayso validate`: each reported rule with its severity, and the exit code.
#[derive(Debug, PartialEq)]
struct ValidateResult {
    findings: BTreeSet<(String, String)>,
    exit_code: Option<i32>,
}

impl ValidateResult {
    fn from_output(output: &Output) -> Result<Self, Failed> {
        let mut findings = BTreeSet::new();
        for line in std::str::from_utf8(&output.stdout)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            if let (Some(rule), Some(severity)) = (line["rule"].as_str(), line["severity"].as_str()) {
                findings.insert((rule.to_owned(), severity.to_owned()));
            }
        }
        Ok(Self { findings, exit_code: output.status.code() })
    }
}

/// Valid events and messages by name.
pub(crate) struct BaseLines(pub(crate) Map<String, Value>);

/// The number and the time of the next line. Its event id and its timestamp are derived from them.
struct LineStamp {
    line: u32,
    /// Milliseconds since the first line.
    millis: i64,
}

impl LineStamp {
    fn event_id(&self) -> String {
        format!("evt_5e1f9a0c4b7d{:020x}", self.line)
    }

    fn timestamp(&self) -> Result<String, String> {
        const FIRST_TIMESTAMP: UnixMillis = UnixMillis::new(1_779_632_531_342); // 2026-05-24T14:22:11.342Z
        let time = Timestamp::from_unix_millis(FIRST_TIMESTAMP + self.millis);
        time.map(|time| time.to_string())
            .ok_or_else(|| format!("{} ms is out of range for a timestamp", self.millis))
    }
}

impl BaseLines {
    pub(crate) fn read() -> Result<Self, String> {
        match read_json(BASE)? {
            Value::Object(lines) => Ok(Self(lines)),
            _ => Err(format!("{BASE} is not an object")),
        }
    }

    /// Returns the bytes of a line and advances the stamp.
    fn line_bytes(&self, line: &Value, stamp: &mut LineStamp) -> Result<Vec<u8>, String> {
        if let Some(raw) = line["raw"].as_str() {
            return Ok(raw.into());
        }
        if let Some(hex) = line["hex"].as_str() {
            return decode_hex(hex).ok_or_else(|| format!("{hex} is not hexadecimal"));
        }
        if let Some(seconds) = line["at"].as_f64() {
            stamp.millis = to_millis(seconds);
        }
        let text = self.line_text(line, stamp)?;
        stamp.line += 1;
        stamp.millis += 1000;
        Ok(text.into())
    }

    fn line_text(&self, line: &Value, stamp: &LineStamp) -> Result<String, String> {
        let name =
            line.as_str().or(line["of"].as_str()).ok_or_else(|| format!("{line} is not a valid line"))?;
        let mut members = self.0.get(name).cloned().ok_or_else(|| format!("unknown base line {name}"))?;
        for (pointer, value) in [("/event_id", stamp.event_id()), ("/timestamp", stamp.timestamp()?)] {
            if let Some(member) = members.pointer_mut(pointer) {
                *member = value.into();
            }
        }
        for (pointer, value) in line["set"].as_object().into_iter().flatten() {
            set_member(&mut members, pointer, expand_directives(value))?;
        }
        for pointer in line["drop"].as_array().into_iter().flatten() {
            drop_member(&mut members, pointer.as_str().unwrap_or_default())?;
        }
        let mut text = write_object(&members, &line["first"])?;
        for (old, new) in line["replace"].as_object().into_iter().flatten() {
            if !text.contains(old.as_str()) {
                return Err(format!("{old} is not in {text}"));
            }
            text = text.replacen(old.as_str(), new.as_str().unwrap_or_default(), 1);
        }
        Ok(text)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "cases use small numbers of seconds")]
fn to_millis(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn decode_hex(hex: &str) -> Option<Vec<u8>> {
    let pairs = (0..hex.len()).step_by(2).map(|at| hex.get(at..at + 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

fn set_member(members: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    let (parent, name) = parent_of(members, pointer)?;
    match parent {
        Value::Object(members) => {
            members.insert(name, value);
        }
        Value::Array(items) => match name.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
            Some(item) => *item = value,
            None => items.push(value),
        },
        _ => return Err(format!("{pointer} cannot be set")),
    }
    Ok(())
}

fn drop_member(members: &mut Value, pointer: &str) -> Result<(), String> {
    let (parent, name) = parent_of(members, pointer)?;
    let dropped = parent.as_object_mut().and_then(|members| members.remove(&name));
    dropped.map(|_| ()).ok_or_else(|| format!("{pointer} not found"))
}

fn parent_of<'v>(members: &'v mut Value, pointer: &str) -> Result<(&'v mut Value, String), String> {
    let not_found = || format!("{pointer} not found");
    let (parent, name) = pointer.rsplit_once('/').ok_or_else(not_found)?;
    let parent = members.pointer_mut(parent).ok_or_else(not_found)?;
    Ok((parent, name.replace("~1", "/").replace("~0", "~")))
}

/// Returns the value with `$repeat`, `$list` and `$deep` expanded.
fn expand_directives(value: &Value) -> Value {
    let count = |name: &str| usize::try_from(value[name][1].as_u64()?).ok();
    if let (Some(text), Some(count)) = (value["$repeat"][0].as_str(), count("$repeat")) {
        return text.repeat(count).into();
    }
    if let Some(count) = count("$list") {
        return (0..count).map(|at| with_number(&value["$list"][0], at)).collect();
    }
    if let Some(depth) = value["$deep"].as_u64() {
        let wrap = |value| Value::Object(Map::from_iter([("in".to_owned(), value)]));
        return (0..depth).fold(Value::Object(Map::new()), |value, _| wrap(value));
    }
    match value {
        Value::Array(items) => items.iter().map(expand_directives).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), expand_directives(value))).collect()
        }
        _ => value.clone(),
    }
}

/// Returns the value with each `#` replaced by the number.
fn with_number(value: &Value, number: usize) -> Value {
    match value {
        Value::String(text) => text.replace('#', &number.to_string()).into(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), with_number(value, number))).collect()
        }
        _ => value.clone(),
    }
}

/// Serializes an object: the members in `first`, then the rest in the order that §3.6 recommends.
fn write_object(members: &Value, first: &Value) -> Result<String, String> {
    const RECOMMENDED_ORDER: [&str; 12] = [
        "@context",
        "aaep_version",
        "type",
        "event_id",
        "session_id",
        "sequence_number",
        "timestamp",
        "producer",
        "verbosity",
        "urgency",
        "localization_hints",
        "correlation_id",
    ];
    let members = members.as_object().ok_or("a line must be an object")?;
    let rank = |name: &str| {
        if first.as_array().is_some_and(|first| first.iter().any(|member| member == name)) {
            return 0;
        }
        match RECOMMENDED_ORDER.iter().position(|recommended| *recommended == name) {
            Some(at) => at + 1,
            None => RECOMMENDED_ORDER.len() + 1 + usize::from(name == "extensions"),
        }
    };
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| rank(name));
    let members: Vec<_> =
        members.into_iter().map(|(name, value)| format!("{}:{value}", Value::from(&**name))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}
