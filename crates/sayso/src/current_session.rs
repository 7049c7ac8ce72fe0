//! The current session, for functions that are called deep inside an agent and receive no session as an argument.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use crate::session::Session;

tokio::task_local! {
    static CURRENT: CurrentSession;
}

/// Makes a session the current one for everything that `work` calls: functions with `#[sayso::tool]` use it, and [`current`] returns
/// it. The caller still owns the session and ends it afterwards.
///
/// A task that `work` spawns has no current session, unless it is wrapped in `within` too, with the result of [`current`].
///
/// ```
/// # testing::run_example!(hub, {
/// let session = hub.session("What time is it?").start().await?;
/// let id = sayso::within(&session, async {
///     sayso::current().map(|session| session.id().to_owned())
/// });
/// assert_eq!(id.await.as_deref(), Some(session.id()));
/// session.finish("It is noon.").await?;
/// # });
/// ```
pub fn within<F: Future>(session: &Session, work: F) -> impl Future<Output = F::Output> + use<F> {
    CURRENT.scope(CurrentSession::from_handle(session.non_owning()), work)
}

/// Returns the current session, which [`within`] or the middleware sets, or `None` if there is none.
///
/// ```
/// assert!(sayso::current().is_none());
/// ```
pub fn current() -> Option<CurrentSession> {
    CURRENT.try_with(Clone::clone).ok()
}

/// A handle to the current session. It can do everything that a [`Session`] can, except end it. After the session has
/// ended, reports through the handle return an error.
///
/// ```compile_fail,E0507
/// async fn not_mine(session: sayso::CurrentSession) -> Result<(), sayso::Error> {
///     session.finish("Done.").await
/// }
/// ```
///
/// A spawned task has a current session only if it is wrapped in [`within`]:
///
/// ```
/// # testing::run_example!(hub, session, {
/// sayso::within(&session, async {
///     let session: sayso::CurrentSession = sayso::current().ok_or(sayso::Error::NoSession)?;
///     let task = tokio::spawn(sayso::within(&session, async { sayso::current().is_some() }));
///     assert!(task.await.unwrap_or_default());
///     Ok::<_, sayso::Error>(())
/// })
/// .await?;
/// session.finish("It is noon.").await?;
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct CurrentSession(Arc<Session>);

impl CurrentSession {
    /// Wraps a handle that does not end its session.
    pub(crate) fn from_handle(handle: Session) -> Self {
        Self(Arc::new(handle))
    }
}

impl Deref for CurrentSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}
