//! The placeholders in texts.

use syn::ext::IdentExt;
use syn::{Error, Ident, LitStr, Result};

/// Returns the names of the arguments in a text, each once, in order. Only `{name}` and `{name:?}` are allowed, because other
/// formats could shorten or round a value. The person would then hear a value other than the one that the tool receives.
pub(crate) fn placeholder_names(text: &LitStr) -> Result<Vec<String>> {
    let value = text.value();
    let invalid = |message: String| Err(Error::new(text.span(), message));
    let mut names: Vec<String> = Vec::new();
    let mut rest = value.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        let (_, from) = rest.split_at(at);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            rest = after;
            continue;
        }
        let Some((inside, after)) = from.strip_prefix('{').and_then(|from| from.split_once('}')) else {
            return invalid("unmatched brace; write `{{` or `}}` for a literal brace".to_owned());
        };
        rest = after;
        let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
        if name.is_empty() {
            return invalid("a placeholder needs the name of an argument: `{name}`".to_owned());
        }
        if syn::parse_str::<IdentAny>(name).is_err() {
            return invalid(format!(
                "`{name}` is not the name of an argument; a placeholder is written `{{name}}`"
            ));
        }
        if !["", "?"].contains(&format) {
            return invalid(format!(
                "`{{{inside}}}` could show a value other than the one that the tool receives; write `{{{name}}}`"
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
