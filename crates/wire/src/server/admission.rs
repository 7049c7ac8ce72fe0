//! The authentication policy, and the handling of changed tokens.

use std::time::Duration;

use hub::Principal;
use hub::command::{HubCommand, HubReply};
use seal::UnixMillis;
use tokio::sync::watch;

use super::Server;
use super::routes::unix_now;
use crate::auth::Tokens;

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
pub(super) struct SharedAuthPolicy(watch::Sender<AuthPolicy>);

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
    pub(super) fn borrow(&self) -> watch::Ref<'_, AuthPolicy> {
        self.0.borrow()
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

impl Server {
    /// Replaces all tokens. Connections and browser sign-ins of tokens that are no longer valid end; others
    /// are not affected.
    pub async fn replace_tokens(&self, tokens: Tokens) -> TokenChanges {
        let principals = tokens.principals();
        let mut changes = TokenChanges { total: tokens.len(), ..TokenChanges::default() };
        self.auth_policy.0.send_modify(|policy| {
            if let AuthPolicy::Tokens(before) = policy {
                changes.added =
                    tokens.principals().iter().filter(|principal| !before.is_current(principal)).count();
                changes.removed =
                    before.principals().iter().filter(|principal| !tokens.is_current(principal)).count();
            }
            *policy = AuthPolicy::Tokens(tokens);
        });
        self.send_principals(principals).await;
        changes
    }

    /// Tells the hub which tokens are valid, for example after a restart. Until this call, restored
    /// subscriptions of removed tokens stay open.
    pub async fn sync_tokens_to_hub(&self) {
        let principals = match &*self.auth_policy.borrow() {
            AuthPolicy::Tokens(tokens) => tokens.principals(),
            AuthPolicy::Open => return,
        };
        self.send_principals(principals).await;
    }

    async fn send_principals(&self, principals: Vec<Principal>) {
        // A failed write needs no handling, because removed tokens are no longer accepted and all their connections have
        // ended.
        let _: HubReply = self.hub.ask(Principal::local(), HubCommand::SetValidTokens { principals }).await;
    }

    /// Returns the caller that a bearer token identifies, or `None` if it is not valid.
    #[cfg(feature = "grpc")]
    pub(crate) fn authenticate_token(&self, token: Option<&str>) -> Option<Principal> {
        match &*self.auth_policy.borrow() {
            AuthPolicy::Open => Some(Principal::local()),
            AuthPolicy::Tokens(tokens) => tokens.principal(token?, unix_now()).cloned(),
        }
    }

    /// Waits until the principal's token or browser sign-in is no longer valid.
    pub(crate) async fn wait_for_revocation(&self, principal: &Principal) {
        tokio::select! {
            () = self.auth_policy.wait_for_revocation(principal) => {}
            () = wait_until(principal.valid_until()) => {}
            () = self.browser_sessions.wait_for_sign_out(principal, self.sign_in_lifetime_ms()) => {}
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
