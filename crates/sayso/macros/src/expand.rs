//! The function that comes of it.

use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, LitStr, Result};

use crate::attributes::{Attributes, Risk};
use crate::function::{Argument, Function, How};
use crate::words::said;

/// The function, or the function as it was with what is wrong beside it: then the compiler complains of nothing else.
pub(crate) fn tool(attributes: TokenStream, function: &TokenStream) -> TokenStream {
    let item: ItemFn = match syn::parse2(function.clone()) {
        Ok(item) => item,
        Err(error) => {
            let error = Error::new(error.span(), format!("a tool is an async function with a body: {error}"));
            let error = error.to_compile_error();
            return quote!(#function #error);
        }
    };
    match Attributes::parse(attributes).and_then(|attributes| expanded(&attributes, &item)) {
        Ok(expanded) => expanded,
        Err(error) => {
            let error = error.to_compile_error();
            quote!(#error #[allow(unused)] #item)
        }
    }
}

fn expanded(attributes: &Attributes, item: &ItemFn) -> Result<TokenStream> {
    let function = Function::read(item, attributes)?;
    let call = call(attributes, item, &function)?;
    let session = Ident::new("session", Span::mixed_site());
    let carried = quote! {
        let #session = ::sayso::decorator::session()?;
        let #session: &::sayso::Session = &#session;
    };
    let given = |given| quote!(let #session: &::sayso::Session = #given;);
    let found = function.session.map_or(carried, given);
    let (returned, called) = (function.returned, function.called());
    let (given, visibility, block) = (&item.attrs, &item.vis, &item.block);
    let mut signature = item.sig.clone();
    signature.output = syn::parse2(quote!(-> #called))?;
    Ok(quote! {
        #(#given)*
        #visibility #signature {
            #found
            #call.run(#session, async move {
                if let ::core::option::Option::Some(returned) = ::sayso::decorator::expected::<#returned>() {
                    return returned;
                }
                #block
            }).await
        }
    })
}

/// What is known of the call before it is made. The arguments are only looked at here; the body takes them as they are.
fn call(attributes: &Attributes, item: &ItemFn, function: &Function<'_>) -> Result<TokenStream> {
    let name = match &attributes.name {
        Some(name) => name.clone(),
        None => LitStr::new(&item.sig.ident.unraw().to_string(), item.sig.ident.span()),
    };
    // Whoever says only that it cannot be undone has not said that it does little harm.
    let unsaid = if attributes.irreversible { Risk::High } else { Risk::Low };
    let risk = match attributes.risk.unwrap_or(unsaid) {
        Risk::Low => quote!(Low),
        Risk::Medium => quote!(Medium),
        Risk::High => quote!(High),
    };
    let mut call = quote!(::sayso::decorator::Decorated::new(#name, ::sayso::Risk::#risk));
    let mut heard = Vec::new();
    if let Some(action) = &attributes.action {
        let text = text(action, function, &mut heard)?;
        call.extend(quote!(.says(#text)));
    }
    if let (Some(_), Some(consequence)) = (attributes.asks, &attributes.consequence) {
        let consequence = text(consequence, function, &mut heard)?;
        let irreversible = attributes.irreversible;
        let some = |time| quote!(::core::option::Option::Some(#time));
        let patience = attributes.answer_within.map(duration);
        let patience = patience.map_or_else(|| quote!(::core::option::Option::None), some);
        call.extend(quote!(.asks(#consequence, #irreversible, #patience)));
        for argument in &function.arguments {
            call.extend(bound(argument, !heard.contains(&argument.name)));
        }
    }
    if let Some(done) = &attributes.done {
        let text = text(done, function, &mut Vec::new())?;
        call.extend(quote!(.done(#text)));
    }
    if let Some(within) = attributes.within.map(duration) {
        call.extend(quote!(.within(#within)));
    }
    Ok(call)
}

/// A text with its arguments; what it says is noted.
fn text(text: &LitStr, function: &Function<'_>, heard: &mut Vec<String>) -> Result<TokenStream> {
    let mut values = TokenStream::new();
    for name in said(text)? {
        let Some(argument) = function.argument(&name) else {
            let all: Vec<_> = function.arguments.iter().map(|one| format!("`{}`", one.name)).collect();
            let all = if all.is_empty() { "there is none".to_owned() } else { all.join(", ") };
            let why = format!("`{name}` is no argument of the tool; its arguments: {all}");
            return Err(Error::new(text.span(), why));
        };
        let why = match argument.how {
            How::Confidential => "confidential, so it is not said",
            How::Skipped => "skipped, so it cannot be said: the person's answer is not bound to it",
            How::Plain | How::Shown => {
                let ident = argument.ident;
                values.extend(quote!(, #ident = #ident));
                heard.push(name);
                continue;
            }
        };
        return Err(Error::new(text.span(), format!("`{name}` is {why}")));
    }
    Ok(quote!(::std::format!(#text #values)))
}

fn bound(argument: &Argument<'_>, unsaid: bool) -> Option<TokenStream> {
    let Argument { ident, name, kind, how } = argument;
    // An argument that cannot be bound is shown where its type stands.
    let span = kind.span();
    let bound = match how {
        How::Plain => quote_spanned!(span=> ::sayso::Argument::bound(&#ident)),
        How::Shown => quote_spanned!(span=> ::sayso::Bound::shown(&#ident)),
        How::Confidential => {
            quote_spanned!(span=> ::sayso::Bound::confidential(&::sayso::Argument::bound(&#ident)))
        }
        How::Skipped => return None,
    };
    let unsaid = unsaid && *how != How::Confidential;
    Some(quote!(.bind(#name, #bound, #unsaid)))
}

fn duration(time: Duration) -> TokenStream {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    quote!(::core::time::Duration::from_millis(#milliseconds))
}
