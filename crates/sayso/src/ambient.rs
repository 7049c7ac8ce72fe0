//! The session of whatever runs, for what is called deep inside and is handed none.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use crate::session::Session;

tokio::task_local! {
    static CURRENT: Current;
}

/// Carries a session to all that `work` calls: functions with `#[sayso::tool]` find it, and so does [`current`]. The session
/// stays its owner's, who ends it afterwards.
///
/// A task that `work` spawns is not carried along; it is if it is wrapped itself, with [`current`] as its session.
///
/// ```
/// # testing::example!(hub, {
/// let session = hub.session("What time is it?").start().await?;
/// let id = sayso::within(&session, async {
///     sayso::current().map(|session| session.id().to_owned())
/// });
/// assert_eq!(id.await.as_deref(), Some(session.id()));
/// session.finish("It is noon.").await?;
/// # });
/// ```
pub fn within<F: Future>(session: &Session, work: F) -> impl Future<Output = F::Output> + use<F> {
    CURRENT.scope(Current::of(session.handle()), work)
}

/// The session that is carried to here by [`within`] or by the middleware; `None` where there is none.
///
/// ```
/// assert!(sayso::current().is_none());
/// ```
pub fn current() -> Option<Current> {
    CURRENT.try_with(Clone::clone).ok()
}

/// A session that is carried along. It says what a [`Session`] says, but does not end it; what is said after the session's
/// end is refused.
///
/// ```compile_fail,E0507
/// async fn not_mine(session: sayso::Current) -> Result<(), sayso::Error> {
///     session.finish("Done.").await
/// }
/// ```
///
/// What is spawned has it if it is wrapped in it:
///
/// ```
/// # testing::example!(hub, session, {
/// sayso::within(&session, async {
///     let carried: sayso::Current = sayso::current().ok_or(sayso::Error::NoSession)?;
///     let spawned = tokio::spawn(sayso::within(&carried, async { sayso::current().is_some() }));
///     assert!(spawned.await.unwrap_or_default());
///     Ok::<_, sayso::Error>(())
/// })
/// .await?;
/// session.finish("It is noon.").await?;
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Current(Arc<Session>);

impl Current {
    /// Of a handle that does not end its session.
    pub(crate) fn of(handle: Session) -> Self {
        Self(Arc::new(handle))
    }
}

impl Deref for Current {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}
