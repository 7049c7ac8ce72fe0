//! Requests that the program around the server answers, on paths of its own.

use std::fmt;
use std::pin::Pin;

use hub::Principal;

use crate::http::Response;

/// What a handler comes to.
pub(crate) type Handling<T> = Pin<Box<dyn Future<Output = T> + Send>>;

type Answer = Box<dyn Fn(Principal, String) -> Handling<Response> + Send + Sync>;

/// Answers `POST` requests to one path.
pub(crate) struct Handler {
    pub(crate) path: &'static str,
    pub(crate) answer: Answer,
}

impl Handler {
    pub(crate) fn new<F>(
        path: &'static str,
        answer: impl Fn(Principal, String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response> + Send + 'static,
    {
        Self { path, answer: Box::new(move |who, body| Box::pin(answer(who, body))) }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handler").field(&self.path).finish()
    }
}
