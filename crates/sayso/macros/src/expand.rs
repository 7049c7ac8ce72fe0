//! Generates the decorated function.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, LitStr, Result};

use crate::attributes::{Attributes, Risk};
use crate::function::{Argument, ArgumentBinding, Function};
use crate::placeholders::placeholder_names;

/// Returns the decorated function, or the original function with a compile error. The original avoids follow-up errors.
pub(crate) fn tool(attributes: TokenStream, function: &TokenStream) -> TokenStream {
    let item: ItemFn = match syn::parse2(function.clone()) {
        Ok(item) => item,
        Err(error) => {
            let error =
                Error::new(error.span(), format!("a tool must be an async function with a body: {error}"));
            let error = error.to_compile_error();
            return quote!(#function #error);
        }
    };
    match Attributes::parse(attributes).and_then(|attributes| expand_tool(&attributes, &item)) {
        Ok(expanded) => expanded,
        Err(error) => {
            let error = error.to_compile_error();
            quote!(#error #[allow(unused)] #item)
        }
    }
}

fn expand_tool(attributes: &Attributes, item: &ItemFn) -> Result<TokenStream> {
    let function = Function::parse(item, attributes)?;
    let call = build_call(attributes, item, &function)?;
    let session = Ident::new("session", Span::mixed_site());
    let use_current = quote! {
        let #session = ::sayso::decorator::current_session()?;
        let #session: &::sayso::Session = &#session;
    };
    let use_argument = |argument| quote!(let #session: &::sayso::Session = #argument;);
    let bind_session = function.session.map_or(use_current, use_argument);
    let (return_type, caller_return_type) = (function.return_type, function.caller_return_type());
    let (other_attributes, visibility, block) = (&item.attrs, &item.vis, &item.block);
    let mut signature = item.sig.clone();
    signature.output = syn::parse2(quote!(-> #caller_return_type))?;
    Ok(quote! {
        #(#other_attributes)*
        #visibility #signature {
            #bind_session
            #call.run(#session, async move {
                if let ::core::option::Option::Some(returned) = ::sayso::decorator::expected_return::<#return_type>() {
                    return returned;
                }
                #block
            }).await
        }
    })
}

/// Generates the expression that builds the call. It only borrows the arguments, so the body can still move them.
fn build_call(attributes: &Attributes, item: &ItemFn, function: &Function<'_>) -> Result<TokenStream> {
    let name = match &attributes.name {
        Some(name) => name.clone(),
        None => LitStr::new(&item.sig.ident.unraw().to_string(), item.sig.ident.span()),
    };
    // Without an explicit risk, an irreversible tool is high-risk.
    let default_risk = if attributes.irreversible { Risk::High } else { Risk::Low };
    let risk = match attributes.risk.unwrap_or(default_risk) {
        Risk::Low => quote!(Low),
        Risk::Medium => quote!(Medium),
        Risk::High => quote!(High),
    };
    let mut call = quote!(::sayso::decorator::DecoratedCall::new(#name, ::sayso::Risk::#risk));
    let mut mentioned = Vec::new();
    if let Some(action) = &attributes.action {
        let text = format_text(action, function, &mut mentioned)?;
        call.extend(quote!(.says(#text)));
    }
    if let (Some(_), Some(consequence)) = (attributes.consent_span, &attributes.consequence) {
        let consequence = format_text(consequence, function, &mut mentioned)?;
        let irreversible = attributes.irreversible;
        let some = |time| quote!(::core::option::Option::Some(#time));
        let answer_timeout = attributes.answer_timeout.map(duration_tokens);
        let answer_timeout = answer_timeout.map_or_else(|| quote!(::core::option::Option::None), some);
        call.extend(quote!(.require_consent(#consequence, #irreversible, #answer_timeout)));
        for argument in &function.arguments {
            call.extend(bind_argument(argument, !mentioned.contains(&argument.name)));
        }
    }
    if let Some(done) = &attributes.done {
        let text = format_text(done, function, &mut Vec::new())?;
        call.extend(quote!(.success_summary(#text)));
    }
    if let Some(timeout) = attributes.timeout.map(duration_tokens) {
        call.extend(quote!(.timeout(#timeout)));
    }
    Ok(call)
}

/// Generates the expression that formats a text, and adds the names of the arguments in the text to `mentioned`.
fn format_text(text: &LitStr, function: &Function<'_>, mentioned: &mut Vec<String>) -> Result<TokenStream> {
    let mut values = TokenStream::new();
    for name in placeholder_names(text)? {
        let Some(argument) = function.argument(&name) else {
            let all: Vec<_> = function.arguments.iter().map(|one| format!("`{}`", one.name)).collect();
            let all = if all.is_empty() {
                "it has none".to_owned()
            } else {
                format!("its arguments: {}", all.join(", "))
            };
            let message = format!("`{name}` is not an argument of the tool; {all}");
            return Err(Error::new(text.span(), message));
        };
        let message = match argument.binding {
            ArgumentBinding::Confidential => "confidential, so it must not be in a text",
            ArgumentBinding::Skipped => {
                "skipped, so it must not be in a text: the person's answer is not bound to it"
            }
            ArgumentBinding::Value | ArgumentBinding::Shown => {
                let ident = argument.ident;
                values.extend(quote!(, #ident = #ident));
                mentioned.push(name);
                continue;
            }
        };
        return Err(Error::new(text.span(), format!("`{name}` is {message}")));
    }
    Ok(quote!(::std::format!(#text #values)))
}

/// Generates the call that binds an argument. An argument that no text mentions is added to the question, unless it is confidential.
fn bind_argument(argument: &Argument<'_>, is_unmentioned: bool) -> Option<TokenStream> {
    let Argument { ident, name, kind, binding } = argument;
    // If the argument cannot be bound, the compiler's error points at its type.
    let span = kind.span();
    let bound = match binding {
        ArgumentBinding::Value => quote_spanned!(span=> ::sayso::Argument::to_json_text(&#ident)),
        ArgumentBinding::Shown => quote_spanned!(span=> ::sayso::JsonText::from_display(&#ident)),
        ArgumentBinding::Confidential => {
            quote_spanned!(span=> ::sayso::JsonText::confidential(&::sayso::Argument::to_json_text(&#ident)))
        }
        ArgumentBinding::Skipped => return None,
    };
    let is_added_to_question = is_unmentioned && *binding != ArgumentBinding::Confidential;
    Some(quote!(.bind_argument(#name, #bound, #is_added_to_question)))
}

fn duration_tokens(time: Duration) -> TokenStream {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    quote!(::core::time::Duration::from_millis(#milliseconds))
}
