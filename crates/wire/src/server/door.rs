//! Who is let in, and what becomes of those whose token is taken away.

use hub::Principal;
use hub::command::{Command, Reply};
use tokio::sync::watch;

use super::Server;
use crate::auth::Tokens;

/// Who is let in.
#[derive(Debug)]
pub enum Door {
    /// Whoever has a token.
    Tokens(Tokens),
    /// Everybody; only for loopback.
    Open,
}

/// A door of which others may hear that it has changed.
#[derive(Debug)]
pub(super) struct Watched(watch::Sender<Door>);

/// What has become of the tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// So many hold now.
    pub known: usize,
    /// So many of them did not before.
    pub added: usize,
    /// So many do not hold any more, or not for the same.
    pub removed: usize,
}

impl Watched {
    pub(super) fn new(door: Door) -> Self {
        Self(watch::Sender::new(door))
    }

    /// Whoever waits for it to change waits meanwhile, so it is not to be held for long.
    pub(super) fn borrow(&self) -> watch::Ref<'_, Door> {
        self.0.borrow()
    }

    /// Ends when this one's token holds no more; never for who needs none.
    async fn dismissed(&self, who: &Principal) {
        let gone = |door: &Door| match door {
            Door::Tokens(tokens) => who.token.is_some() && !tokens.has(who),
            Door::Open => false,
        };
        if self.0.subscribe().wait_for(gone).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Server {
    /// From now on these tokens hold, and no others. What was let in by one that holds no more ends, and so does what it
    /// was signed in by; everybody else notices nothing.
    pub async fn know(&self, tokens: Tokens) -> Changed {
        let principals = tokens.principals();
        let mut changed = Changed { known: tokens.len(), ..Changed::default() };
        self.door.0.send_modify(|door| {
            if let Door::Tokens(before) = door {
                changed.added = tokens.principals().iter().filter(|who| !before.has(who)).count();
                changed.removed = before.principals().iter().filter(|who| !tokens.has(who)).count();
            }
            *door = Door::Tokens(tokens);
        });
        self.tell_hub(principals).await;
        changed
    }

    /// The hub is told which tokens hold. Until it has been, what it kept of others is open.
    pub async fn open_door(&self) {
        let principals = match &*self.door.borrow() {
            Door::Tokens(tokens) => tokens.principals(),
            Door::Open => return,
        };
        self.tell_hub(principals).await;
    }

    async fn tell_hub(&self, principals: Vec<Principal>) {
        // What cannot be written down now is of no use to anybody: nobody else is let in, and all connections have ended.
        let _: Reply = self.bridge.ask(Principal::anybody(), Command::Know { principals }).await;
    }

    /// Ends when this one's token holds no more.
    pub(crate) async fn dismissed(&self, who: &Principal) {
        self.door.dismissed(who).await;
    }
}
