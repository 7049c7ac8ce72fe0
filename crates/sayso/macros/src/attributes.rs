//! Parses the keys of the attribute.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Result, Token, parenthesized};

/// The parsed keys of the attribute.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) risk: Option<Risk>,
    pub(crate) irreversible: bool,
    /// The span of the key that makes consent necessary.
    pub(crate) consent_span: Option<Span>,
    pub(crate) action: Option<LitStr>,
    pub(crate) consequence: Option<LitStr>,
    pub(crate) done: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) answer_timeout: Option<Duration>,
    pub(crate) shown: Vec<Ident>,
    pub(crate) confidential: Vec<Ident>,
    pub(crate) skip: Vec<Ident>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Risk {
    Low,
    Medium,
    High,
}

const KNOWN_KEYS: &str = "`risk`, `irreversible`, `action`, `consequence`, `done`, `name`, `timeout`, `answer_timeout`, \
                          `shown`, `confidential` and `skip`";

impl Attributes {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let entries = Punctuated::<AttributeEntry, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut seen: Vec<&Ident> = Vec::new();
        let mut attributes = Self::default();
        for entry in &entries {
            if seen.contains(&&entry.name) {
                return Err(Error::new(entry.name.span(), format!("`{}` is set twice", entry.name)));
            }
            seen.push(&entry.name);
            attributes.apply(entry)?;
        }
        attributes.validate(&seen)?;
        Ok(attributes)
    }

    fn apply(&mut self, entry: &AttributeEntry) -> Result<()> {
        match entry.name.to_string().as_str() {
            "risk" => {
                let text = entry.expect_text()?;
                let risk = match text.value().as_str() {
                    "low" => Risk::Low,
                    "medium" => Risk::Medium,
                    "high" => Risk::High,
                    _ => return Err(Error::new(text.span(), "the risk must be `low`, `medium` or `high`")),
                };
                self.risk = Some(risk);
                if risk == Risk::High {
                    self.consent_span.get_or_insert(text.span());
                }
            }
            "irreversible" => {
                entry.expect_flag()?;
                self.irreversible = true;
                self.consent_span.get_or_insert(entry.name.span());
            }
            "action" => self.action = Some(entry.expect_nonempty_text()?),
            "consequence" => self.consequence = Some(entry.expect_nonempty_text()?),
            "done" => self.done = Some(entry.expect_nonempty_text()?),
            "name" => self.name = Some(entry.expect_nonempty_text()?),
            "timeout" => self.timeout = Some(entry.expect_duration()?),
            "answer_timeout" => {
                let timeout = entry.expect_duration()?;
                if timeout < Duration::from_secs(1) {
                    return Err(Error::new(
                        entry.expect_text()?.span(),
                        "`answer_timeout` must be at least one second",
                    ));
                }
                self.answer_timeout = Some(timeout);
            }
            "shown" => self.shown = entry.expect_names()?,
            "confidential" => self.confidential = entry.expect_names()?,
            "skip" => self.skip = entry.expect_names()?,
            other => {
                let message = format!("unknown key `{other}`; the keys are {KNOWN_KEYS}");
                return Err(Error::new(entry.name.span(), message));
            }
        }
        Ok(())
    }

    /// Checks for combinations that are not allowed.
    fn validate(&self, seen: &[&Ident]) -> Result<()> {
        if let Some(span) = self.consent_span {
            for (text, missing, example) in [
                (&self.action, "what the tool does", "action = \"Delete record {id}.\""),
                (&self.consequence, "what the consequence is", "consequence = \"It cannot be restored.\""),
            ] {
                if text.is_none() {
                    let message = format!(
                        "this tool needs consent, so the person must hear {missing}: add `{example}`"
                    );
                    return Err(Error::new(span, message));
                }
            }
            return Ok(());
        }
        match seen.iter().find(|name| ["consequence", "answer_timeout"].iter().any(|key| **name == key)) {
            None => Ok(()),
            Some(name) => {
                let message = format!(
                    "`{name}` has no effect, because this tool does not ask for consent; a tool asks if it is `irreversible` \
                     or has `risk = \"high\"`"
                );
                Err(Error::new(name.span(), message))
            }
        }
    }
}

/// One key with its value: `name`, `name = "text"` or `name(one, another)`.
struct AttributeEntry {
    name: Ident,
    value: AttributeValue,
}

enum AttributeValue {
    Flag,
    Text(LitStr),
    Names(Vec<Ident>),
}

impl Parse for AttributeEntry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            let text: Result<LitStr> = input.parse();
            AttributeValue::Text(
                text.map_err(|error| Error::new(error.span(), format!("`{name}` must be a string literal")))?,
            )
        } else if input.peek(syn::token::Paren) {
            let inside;
            parenthesized!(inside in input);
            let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(&inside, Ident::parse_any);
            AttributeValue::Names(names?.into_iter().collect())
        } else {
            AttributeValue::Flag
        };
        Ok(Self { name, value })
    }
}

impl AttributeEntry {
    fn expect_flag(&self) -> Result<()> {
        match &self.value {
            AttributeValue::Flag => Ok(()),
            _ => Err(self.error("takes no value")),
        }
    }

    fn expect_text(&self) -> Result<&LitStr> {
        match &self.value {
            AttributeValue::Text(text) => Ok(text),
            _ => Err(self.error("needs a string value: `= \"…\"`")),
        }
    }

    fn expect_nonempty_text(&self) -> Result<LitStr> {
        let text = self.expect_text()?;
        if text.value().trim().is_empty() {
            return Err(Error::new(text.span(), format!("`{}` must not be empty", self.name)));
        }
        Ok(text.clone())
    }

    fn expect_names(&self) -> Result<Vec<Ident>> {
        match &self.value {
            AttributeValue::Names(names) => Ok(names.clone()),
            _ => Err(self.error("needs a list of arguments in parentheses")),
        }
    }

    fn expect_duration(&self) -> Result<Duration> {
        let text = self.expect_text()?;
        let value = text.value();
        let digit_count = value.chars().take_while(char::is_ascii_digit).count();
        let (number, unit) = value.split_at(digit_count);
        let invalid = || {
            Error::new(text.span(), "write a duration as `500ms`, `30s`, `2m` or `1h`; it must not be zero")
        };
        let number: u64 = number.parse().map_err(|_| invalid())?;
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(invalid()),
        };
        let total_ms = number.checked_mul(unit_ms).filter(|&total_ms| total_ms > 0).ok_or_else(invalid)?;
        Ok(Duration::from_millis(total_ms))
    }

    fn error(&self, problem: &str) -> Error {
        Error::new(self.name.span(), format!("`{}` {problem}", self.name))
    }
}
