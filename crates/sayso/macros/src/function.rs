//! What the function must be, and its arguments.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, Result, ReturnType, Type};

use crate::attributes::Attributes;

/// What the attribute needs to know of a function.
pub(crate) struct Function<'f> {
    /// The argument that is the session, if one is.
    pub(crate) session: Option<&'f Ident>,
    pub(crate) arguments: Vec<Argument<'f>>,
    /// What it returns, as it is written.
    pub(crate) returned: &'f Type,
}

/// An argument of the tool.
pub(crate) struct Argument<'f> {
    pub(crate) ident: &'f Ident,
    /// Its name as people write it.
    pub(crate) name: String,
    pub(crate) kind: &'f Type,
    pub(crate) how: How,
}

/// How an answer is bound to an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Plain,
    Shown,
    Confidential,
    Skipped,
}

impl<'f> Function<'f> {
    pub(crate) fn read(function: &'f ItemFn, attributes: &Attributes) -> Result<Self> {
        let signature = &function.sig;
        if signature.asyncness.is_none() {
            let why = "a tool waits for a person and for its own end: write `async fn`";
            return Err(Error::new(signature.fn_token.span(), why));
        }
        let ReturnType::Type(_, returned) = &signature.output else {
            let why = "a tool returns a `Result`, so that it can be told whether it failed";
            return Err(Error::new(signature.ident.span(), why));
        };
        if mentions_impl(quote!(#returned)) {
            let why = "a tool cannot return an `impl` type; name it, or box it";
            return Err(Error::new(returned.span(), why));
        }
        let asks = attributes.asks.is_some();
        let mut this = Self { session: None, arguments: Vec::new(), returned };
        let mut typed = Vec::new();
        for input in &signature.inputs {
            match input {
                FnArg::Typed(one) => typed.push(one),
                FnArg::Receiver(receiver) => {
                    if asks && !attributes.skip.iter().any(|name| name == "self") {
                        let why = "the person's answer is not bound to `self`; if it is no part of what is done, say \
                                   `skip(self)`";
                        return Err(Error::new(receiver.self_token.span(), why));
                    }
                }
            }
        }
        for (at, one) in typed.into_iter().enumerate() {
            let Pat::Ident(pattern) = &*one.pat else {
                if asks {
                    let why = "an argument that the person's answer is bound to needs a name";
                    return Err(Error::new(one.pat.span(), why));
                }
                continue;
            };
            let ident = &pattern.ident;
            let name = ident.unraw().to_string();
            let skipped = among(&attributes.skip, &name);
            if at == 0 && !skipped && is_session(&one.ty) {
                this.session = Some(ident);
                continue;
            }
            let ways = [
                (skipped, How::Skipped),
                (among(&attributes.confidential, &name), How::Confidential),
                (among(&attributes.shown, &name), How::Shown),
            ];
            let mut ways = ways.into_iter().filter_map(|(is, how)| is.then_some(how));
            let how = ways.next().unwrap_or(How::Plain);
            if ways.next().is_some() {
                let why = format!("`{name}` can be one of `shown`, `confidential` and `skip`");
                return Err(Error::new(ident.span(), why));
            }
            this.arguments.push(Argument { ident, name, kind: &one.ty, how });
        }
        let named = [&attributes.skip, &attributes.confidential, &attributes.shown];
        for name in named.into_iter().flatten() {
            if name != "self" && this.argument(&name.unraw().to_string()).is_none() {
                return Err(Error::new(name.span(), format!("there is no argument `{name}`")));
            }
        }
        Ok(this)
    }

    pub(crate) fn argument(&self, name: &str) -> Option<&Argument<'f>> {
        self.arguments.iter().find(|one| one.name == name)
    }

    /// What the caller gets.
    pub(crate) fn called(&self) -> TokenStream {
        let returned = self.returned;
        if let Type::Path(path) = returned
            && let Some(last) = path.path.segments.last()
            && last.ident == "Result"
            && let PathArguments::AngleBracketed(given) = &last.arguments
            && given.args.len() == 2
            && let (Some(GenericArgument::Type(value)), Some(GenericArgument::Type(error))) =
                (given.args.first(), given.args.last())
        {
            return quote!(::core::result::Result<#value, ::sayso::CallError<#error>>);
        }
        // An alias, like `io::Result`.
        quote_spanned!(returned.span()=> ::core::result::Result<
            <#returned as ::sayso::decorator::Returns>::Value,
            ::sayso::CallError<<#returned as ::sayso::decorator::Returns>::Error>,
        >)
    }
}

fn among(names: &[Ident], name: &str) -> bool {
    names.iter().any(|one| one.unraw() == name)
}

/// `&Session`, whatever path leads to it.
fn is_session(kind: &Type) -> bool {
    let Type::Reference(reference) = kind else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    reference.mutability.is_none() && path.path.segments.last().is_some_and(|last| last.ident == "Session")
}

fn mentions_impl(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(ident) => ident == "impl",
        proc_macro2::TokenTree::Group(group) => mentions_impl(group.stream()),
        _ => false,
    })
}
