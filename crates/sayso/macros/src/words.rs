//! Texts with arguments in them.

use syn::ext::IdentExt;
use syn::{Error, Ident, LitStr, Result};

/// The arguments that a text says, each once, in their order. Only `{name}` and `{name:?}` are taken: whatever shortens or
/// rounds would say another value than the one that the tool is called with.
pub(crate) fn said(text: &LitStr) -> Result<Vec<String>> {
    let value = text.value();
    let wrong = |why: String| Err(Error::new(text.span(), why));
    let mut names: Vec<String> = Vec::new();
    let mut rest = value.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        let (_, from) = rest.split_at(at);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            rest = after;
            continue;
        }
        let Some((inside, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}')) else {
            return wrong("a brace has no partner; a brace that is to be said is written twice".to_owned());
        };
        rest = after;
        let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
        if name.is_empty() {
            return wrong("say which argument: `{name}`".to_owned());
        }
        if syn::parse_str::<IdentAny>(name).is_err() {
            return wrong(format!("`{name}` is no argument; only arguments can be said, as `{{name}}`"));
        }
        if !["", "?"].contains(&format) {
            return wrong(format!(
                "`{{{inside}}}` could say another value than the one that the tool is called with; write `{{{name}}}`"
            ));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

struct IdentAny;

impl syn::parse::Parse for IdentAny {
    fn parse(input: syn::parse::ParseStream<'_>) -> Result<Self> {
        input.call(Ident::parse_any).map(|_| Self)
    }
}
