//! Tells the hub which tokens are valid.

use hub::Principal;
use hub::command::{HubCommand, HubReply};

use super::Server;
use crate::auth::Tokens;
use crate::http_server::{AuthPolicy, TokenChanges};

impl Server {
    /// Replaces all tokens. Ends the connections and browser sign-ins of tokens that are no longer valid; others are not
    /// affected.
    pub async fn replace_tokens(&self, tokens: Tokens) -> TokenChanges {
        let principals = tokens.principals();
        let changes = self.core.replace_tokens(tokens);
        self.send_principals(principals).await;
        changes
    }

    /// Tells the hub which tokens are valid, for example after a restart. Until this call, restored
    /// subscriptions of removed tokens stay open.
    pub async fn sync_tokens_to_hub(&self) {
        let principals = match &*self.core.auth_policy.borrow() {
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
        match &*self.core.auth_policy.borrow() {
            AuthPolicy::Open => Some(Principal::local()),
            AuthPolicy::Tokens(tokens) => tokens.principal(token?, crate::unix_now()).cloned(),
        }
    }

    /// Waits until the principal's token or browser sign-in is no longer valid.
    pub(crate) async fn wait_for_revocation(&self, principal: &Principal) {
        tokio::select! {
            () = self.core.wait_for_revocation(principal) => {}
            () = self.browser_sessions.wait_for_sign_out(principal, self.sign_in_lifetime_ms()) => {}
        }
    }
}
