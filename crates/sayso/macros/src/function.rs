//! Checks the function of a tool and reads its arguments.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericArgument, Ident, ItemFn, Pat, PathArguments, Result, ReturnType, Type};

use crate::attributes::Attributes;

/// The parts of a function that the attribute needs.
pub(crate) struct Function<'f> {
    /// The argument that is the session, if there is one.
    pub(crate) session: Option<&'f Ident>,
    pub(crate) arguments: Vec<Argument<'f>>,
    /// The return type as written.
    pub(crate) return_type: &'f Type,
}

/// An argument of the tool.
pub(crate) struct Argument<'f> {
    pub(crate) ident: &'f Ident,
    /// The name without `r#`.
    pub(crate) name: String,
    pub(crate) kind: &'f Type,
    pub(crate) binding: ArgumentBinding,
}

/// The form of one argument to which an answer is bound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentBinding {
    /// The argument's value.
    Value,
    /// The argument's `Display` text.
    Shown,
    /// A salted hash of the argument's value.
    Confidential,
    /// Nothing.
    Skipped,
}

impl<'f> Function<'f> {
    pub(crate) fn parse(function: &'f ItemFn, attributes: &Attributes) -> Result<Self> {
        let signature = &function.sig;
        if signature.asyncness.is_none() {
            let message = "a tool must be an `async fn`, because it may wait for a person";
            return Err(Error::new(signature.fn_token.span(), message));
        }
        let ReturnType::Type(_, returned) = &signature.output else {
            let message = "a tool returns a `Result`, so that a failure can be reported";
            return Err(Error::new(signature.ident.span(), message));
        };
        if mentions_impl(quote!(#returned)) {
            let message = "a tool cannot return an `impl` type; name the type, or box it";
            return Err(Error::new(returned.span(), message));
        }
        let needs_consent = attributes.consent_span.is_some();
        let mut this = Self { session: None, arguments: Vec::new(), return_type: returned };
        let mut typed_arguments = Vec::new();
        for input in &signature.inputs {
            match input {
                FnArg::Typed(argument) => typed_arguments.push(argument),
                FnArg::Receiver(receiver) => {
                    if needs_consent && !attributes.skip.iter().any(|name| name == "self") {
                        let message = "the person's answer is not bound to `self`; if `self` does not affect what is done, add \
                                   `skip(self)`";
                        return Err(Error::new(receiver.self_token.span(), message));
                    }
                }
            }
        }
        for (index, argument) in typed_arguments.into_iter().enumerate() {
            let Pat::Ident(pattern) = &*argument.pat else {
                if needs_consent {
                    let message = "an argument to which the person's answer is bound needs a name";
                    return Err(Error::new(argument.pat.span(), message));
                }
                continue;
            };
            let ident = &pattern.ident;
            let name = ident.unraw().to_string();
            let is_skipped = contains_name(&attributes.skip, &name);
            if index == 0 && !is_skipped && is_session(&argument.ty) {
                this.session = Some(ident);
                continue;
            }
            let bindings = [
                (is_skipped, ArgumentBinding::Skipped),
                (contains_name(&attributes.confidential, &name), ArgumentBinding::Confidential),
                (contains_name(&attributes.shown, &name), ArgumentBinding::Shown),
            ];
            let mut bindings =
                bindings.into_iter().filter_map(|(is_listed, binding)| is_listed.then_some(binding));
            let binding = bindings.next().unwrap_or(ArgumentBinding::Value);
            if bindings.next().is_some() {
                let message = format!("`{name}` can only be in one of `shown`, `confidential` and `skip`");
                return Err(Error::new(ident.span(), message));
            }
            this.arguments.push(Argument { ident, name, kind: &argument.ty, binding });
        }
        let listed = [&attributes.skip, &attributes.confidential, &attributes.shown];
        for name in listed.into_iter().flatten() {
            if name != "self" && this.argument(&name.unraw().to_string()).is_none() {
                return Err(Error::new(name.span(), format!("there is no argument `{name}`")));
            }
        }
        Ok(this)
    }

    pub(crate) fn argument(&self, name: &str) -> Option<&Argument<'f>> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// Returns the type that the caller of the tool gets, in which `CallError` wraps the error.
    pub(crate) fn caller_return_type(&self) -> TokenStream {
        let returned = self.return_type;
        if let Type::Path(path) = returned
            && let Some(last) = path.path.segments.last()
            && last.ident == "Result"
            && let PathArguments::AngleBracketed(generics) = &last.arguments
            && generics.args.len() == 2
            && let (Some(GenericArgument::Type(value)), Some(GenericArgument::Type(error))) =
                (generics.args.first(), generics.args.last())
        {
            return quote!(::core::result::Result<#value, ::sayso::CallError<#error>>);
        }
        // An alias such as `io::Result`.
        quote_spanned!(returned.span()=> ::core::result::Result<
            <#returned as ::sayso::decorator::ToolReturn>::Value,
            ::sayso::CallError<<#returned as ::sayso::decorator::ToolReturn>::Error>,
        >)
    }
}

fn contains_name(names: &[Ident], name: &str) -> bool {
    names.iter().any(|known| known.unraw() == name)
}

/// Whether a type is `&Session`, with any path.
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
