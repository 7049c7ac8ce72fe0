//! What stands in the brackets.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Result, Token, parenthesized};

/// What stands in the brackets.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) risk: Option<Risk>,
    pub(crate) irreversible: bool,
    /// The place of what makes it a tool that is asked for.
    pub(crate) asks: Option<Span>,
    pub(crate) action: Option<LitStr>,
    pub(crate) consequence: Option<LitStr>,
    pub(crate) done: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) within: Option<Duration>,
    pub(crate) answer_within: Option<Duration>,
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

const KNOWN: &str = "`risk`, `irreversible`, `action`, `consequence`, `done`, `name`, `within`, `answer_within`, `shown`, \
                     `confidential` and `skip`";

impl Attributes {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let entries = Punctuated::<Entry, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut seen: Vec<&Ident> = Vec::new();
        let mut all = Self::default();
        for entry in &entries {
            if seen.contains(&&entry.name) {
                return Err(Error::new(entry.name.span(), format!("`{}` is said twice", entry.name)));
            }
            seen.push(&entry.name);
            all.take(entry)?;
        }
        all.together(&seen)?;
        Ok(all)
    }

    fn take(&mut self, entry: &Entry) -> Result<()> {
        match entry.name.to_string().as_str() {
            "risk" => {
                let text = entry.text()?;
                let risk = match text.value().as_str() {
                    "low" => Risk::Low,
                    "medium" => Risk::Medium,
                    "high" => Risk::High,
                    _ => return Err(Error::new(text.span(), "a risk is `low`, `medium` or `high`")),
                };
                self.risk = Some(risk);
                if risk == Risk::High {
                    self.asks.get_or_insert(text.span());
                }
            }
            "irreversible" => {
                entry.alone()?;
                self.irreversible = true;
                self.asks.get_or_insert(entry.name.span());
            }
            "action" => self.action = Some(entry.words()?),
            "consequence" => self.consequence = Some(entry.words()?),
            "done" => self.done = Some(entry.words()?),
            "name" => self.name = Some(entry.words()?),
            "within" => self.within = Some(entry.time()?),
            "answer_within" => {
                let time = entry.time()?;
                if time < Duration::from_secs(1) {
                    return Err(Error::new(entry.text()?.span(), "a person has one second at least"));
                }
                self.answer_within = Some(time);
            }
            "shown" => self.shown = entry.names()?,
            "confidential" => self.confidential = entry.names()?,
            "skip" => self.skip = entry.names()?,
            other => {
                let why = format!("`{other}` is not known here; what is known: {KNOWN}");
                return Err(Error::new(entry.name.span(), why));
            }
        }
        Ok(())
    }

    /// What does not go together.
    fn together(&self, seen: &[&Ident]) -> Result<()> {
        if let Some(span) = self.asks {
            for (text, hears, add) in [
                (&self.action, "what the tool does", "action = \"Delete record {id}.\""),
                (&self.consequence, "what comes of it", "consequence = \"Nobody can bring it back.\""),
            ] {
                if text.is_none() {
                    let why = format!("the person is asked before this, and must hear {hears}: add `{add}`");
                    return Err(Error::new(span, why));
                }
            }
            return Ok(());
        }
        match seen.iter().find(|name| ["consequence", "answer_within"].iter().any(|only| **name == only)) {
            None => Ok(()),
            Some(name) => {
                let why = format!(
                    "nobody is asked before this, so nobody would hear of `{name}`; a tool is asked for if it is \
                     `irreversible` or `risk = \"high\"`"
                );
                Err(Error::new(name.span(), why))
            }
        }
    }
}

/// One of them: `name`, `name = "text"` or `name(one, another)`.
struct Entry {
    name: Ident,
    value: Value,
}

enum Value {
    Nothing,
    Text(LitStr),
    Names(Vec<Ident>),
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            let text: Result<LitStr> = input.parse();
            Value::Text(text.map_err(|error| {
                Error::new(error.span(), format!("`{name}` is a text in quotes, written out here"))
            })?)
        } else if input.peek(syn::token::Paren) {
            let inside;
            parenthesized!(inside in input);
            let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(&inside, Ident::parse_any);
            Value::Names(names?.into_iter().collect())
        } else {
            Value::Nothing
        };
        Ok(Self { name, value })
    }
}

impl Entry {
    fn alone(&self) -> Result<()> {
        match &self.value {
            Value::Nothing => Ok(()),
            _ => Err(self.wrong("stands alone")),
        }
    }

    fn text(&self) -> Result<&LitStr> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong("is a text: write `= \"…\"` after it")),
        }
    }

    fn words(&self) -> Result<LitStr> {
        let text = self.text()?;
        if text.value().trim().is_empty() {
            return Err(Error::new(text.span(), format!("`{}` says nothing", self.name)));
        }
        Ok(text.clone())
    }

    fn names(&self) -> Result<Vec<Ident>> {
        match &self.value {
            Value::Names(names) => Ok(names.clone()),
            _ => Err(self.wrong("names arguments: write them after it, in parentheses")),
        }
    }

    fn time(&self) -> Result<Duration> {
        let text = self.text()?;
        let value = text.value();
        let digits = value.chars().take_while(char::is_ascii_digit).count();
        let (number, unit) = value.split_at(digits);
        let wrong =
            || Error::new(text.span(), "a time is like `500ms`, `30s`, `2m` or `1h`, and not nothing");
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        let time = number.checked_mul(milliseconds).filter(|&time| time > 0).ok_or_else(wrong)?;
        Ok(Duration::from_millis(time))
    }

    fn wrong(&self, what: &str) -> Error {
        Error::new(self.name.span(), format!("`{}` {what}", self.name))
    }
}
