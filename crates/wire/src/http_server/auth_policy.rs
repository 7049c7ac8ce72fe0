//! The authentication policy, and the handling of changed tokens.

use std::time::Duration;

use hub::Principal;
use seal::UnixMillis;
use tokio::sync::watch;

use super::{ServerCore, unauthorized, unix_now};
use crate::auth::Tokens;
use crate::http::{HttpResponse, RequestHead};

/// Which requests are accepted.
#[derive(Debug)]
pub enum AuthPolicy {
    /// Requires a token from this set.
    Tokens(Tokens),
    /// Accepts every request without a token. For loopback addresses only.
    Open,
}

/// The authentication policy, with change notification.
#[derive(Debug)]
pub(crate) struct SharedAuthPolicy(watch::Sender<AuthPolicy>);

/// How a reload changed the set of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenChanges {
    /// Number of tokens that are valid now.
    pub total: usize,
    /// Number of tokens that are new or have changed.
    pub added: usize,
    /// Number of tokens that were removed or have changed.
    pub removed: usize,
}

impl SharedAuthPolicy {
    pub(super) fn new(policy: AuthPolicy) -> Self {
        Self(watch::Sender::new(policy))
    }

    /// Borrows the policy. Updates wait while the borrow is held, so callers must drop it soon.
    pub(crate) fn borrow(&self) -> watch::Ref<'_, AuthPolicy> {
        self.0.borrow()
    }

    /// Replaces all tokens.
    fn replace_tokens(&self, tokens: Tokens) -> TokenChanges {
        let mut changes = TokenChanges { total: tokens.len(), ..TokenChanges::default() };
        self.0.send_modify(|policy| {
            if let AuthPolicy::Tokens(before) = policy {
                changes.added =
                    tokens.principals().iter().filter(|principal| !before.is_current(principal)).count();
                changes.removed =
                    before.principals().iter().filter(|principal| !tokens.is_current(principal)).count();
            }
            *policy = AuthPolicy::Tokens(tokens);
        });
        changes
    }

    /// Waits until the principal's token is no longer valid. Never returns for a principal without a token.
    async fn wait_for_revocation(&self, principal: &Principal) {
        let is_revoked = |policy: &AuthPolicy| match policy {
            AuthPolicy::Tokens(tokens) => principal.token_digest.is_some() && !tokens.is_current(principal),
            AuthPolicy::Open => false,
        };
        if self.0.subscribe().wait_for(is_revoked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl ServerCore {
    /// Replaces all tokens. Streams and long polls of tokens that are no longer valid end.
    pub(crate) fn replace_tokens(&self, tokens: Tokens) -> TokenChanges {
        self.auth_policy.replace_tokens(tokens)
    }

    /// Identifies the caller by its bearer token. If the request has none, `fallback` identifies the caller. With an open
    /// policy, every caller is accepted.
    pub(crate) fn authenticate(
        &self,
        head: &RequestHead,
        fallback: impl FnOnce(&Tokens) -> Result<Option<Principal>, HttpResponse>,
    ) -> Result<Principal, HttpResponse> {
        let policy = self.auth_policy.borrow();
        let tokens = match &*policy {
            AuthPolicy::Open => return Ok(Principal::local()),
            AuthPolicy::Tokens(tokens) => tokens,
        };
        let principal = match head.bearer_token() {
            Some(token) => tokens.principal(token, unix_now()).cloned(),
            None => fallback(tokens)?,
        };
        principal.ok_or_else(unauthorized)
    }

    /// Waits until the principal's token is no longer valid.
    pub(crate) async fn wait_for_revocation(&self, principal: &Principal) {
        tokio::select! {
            () = self.auth_policy.wait_for_revocation(principal) => {}
            () = wait_until(principal.valid_until()) => {}
        }
    }
}

/// Maximum time between two readings of the clock, which bounds the effect of a clock jump or a suspended machine.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// Returns at this time. Never returns if there is none.
async fn wait_until(at: Option<UnixMillis>) {
    let Some(at) = at else { return std::future::pending().await };
    while let Ok(remaining @ 1..) = u64::try_from(at.millis_since(unix_now())) {
        tokio::time::sleep(Duration::from_millis(remaining).min(MAX_SLEEP)).await;
    }
}
