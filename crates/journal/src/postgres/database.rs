//! Connections to the database, and the thread that drives them.
//!
//! The journal is synchronous, and the hub may call it on a thread of its own Tokio runtime, where blocking on another
//! runtime panics. So connections run on a thread of their own, and the caller parks its thread until the answer is there.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error_mapping::{DatabaseFailure, describe, from_postgres};
use super::pool::ConnectionPool;
use super::settings::PostgresSettings;
use super::{durability, schema};
use crate::JournalError;

/// How much longer than the server's own limit the client waits for a statement.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);

/// A database for journals. Clones share the thread that drives the connections.
#[derive(Clone, Debug)]
pub struct PostgresDatabase {
    shared: Arc<SharedDatabase>,
}

struct SharedDatabase {
    settings: PostgresSettings,
    tls: MakeRustlsConnect,
    runtime: Handle,
    pool: ConnectionPool,
    /// Dropping it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl std::fmt::Debug for SharedDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedDatabase").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A connection that is configured and checked.
pub(super) struct Session {
    pub(super) client: Client,
    /// Differs for every server, and for every start of the same server.
    pub(super) server: String,
    /// The settings that were checked when the connection was opened.
    pub(super) settings: String,
    /// The query that shows whether the server's configuration was loaded again. Only if standbys must confirm commits.
    pub(super) load_time: Option<Statement>,
    /// Set when the server warns that a commit is stored on the primary only.
    has_warning: Arc<AtomicBool>,
}

impl PostgresDatabase {
    /// Connects, checks the settings that durability depends on, and creates or migrates the tables.
    pub fn open(settings: PostgresSettings) -> Result<Self, JournalError> {
        let database = Self::new(settings)?;
        let mut session = database.connect()?;
        let limit = database.answer_timeout();
        wait(schema::migrate(&mut session.client, schema::MIGRATIONS), limit).ok_or_else(timed_out)??;
        Ok(database)
    }

    /// Connects, and checks that [`open`](Self::open) would succeed, without changing anything. Returns the database, and whether
    /// it has the current tables.
    pub fn check(settings: PostgresSettings) -> Result<(Self, bool), JournalError> {
        let database = Self::new(settings)?;
        let session = database.connect()?;
        let limit = database.answer_timeout();
        let check = schema::check(&session.client, schema::MIGRATIONS);
        let is_current = wait(check, limit).ok_or_else(timed_out)??;
        Ok((database, is_current))
    }

    fn new(settings: PostgresSettings) -> Result<Self, JournalError> {
        let tls = MakeRustlsConnect::new(tls_config(&settings)?);
        let runtime = Builder::new_current_thread().enable_all().build().map_err(io_error)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("journal-postgres".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
            })
            .map_err(io_error)?;
        let pool = ConnectionPool::new(settings.connections);
        let shared = SharedDatabase { settings, tls, runtime: handle, pool, _stop: stop };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &PostgresSettings {
        &self.shared.settings
    }

    /// Opens a connection and checks the server's settings: after a failover, it may be another server with other settings.
    pub(super) fn connect(&self) -> Result<Session, JournalError> {
        let database = self.clone();
        let task = self.shared.runtime.spawn(async move { database.connect_async().await });
        // Several hosts are tried one after the other.
        let hosts = u32::try_from(self.settings().config().get_hosts().len()).unwrap_or(1).max(1);
        let limit = self.settings().timeouts.connect * hosts + self.answer_timeout();
        wait(task, limit).ok_or_else(timed_out)?.map_err(|error| JournalError::Io(error.into()))?
    }

    pub(super) async fn connect_async(&self) -> Result<Session, JournalError> {
        let settings = self.settings();
        let connect = settings.config().connect(self.shared.tls.clone()).await;
        let (client, mut connection) = connect.map_err(|error| {
            let reason = describe(&error).to_string();
            let hint = if reason.contains("certificate") {
                "; sslrootcert=FILE names the certificate of your authority, and sslmode=disable turns TLS off"
            } else if reason.contains("does not support TLS") {
                "; sslmode=prefer connects without TLS, so use it only on a network that you trust"
            } else {
                ""
            };
            JournalError::Io(DatabaseFailure::new(format!("cannot connect to {settings}: {reason}{hint}")).into())
        })?;
        let has_warning = Arc::new(AtomicBool::new(false));
        let warning = has_warning.clone();
        self.shared.runtime.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notice(notice) = message
                    && *notice.code() == SqlState::WARNING
                {
                    warning.store(true, Ordering::SeqCst);
                }
            }
        });
        let statement_ms = settings.timeouts.statement.as_millis();
        // The statements of a journal touch few rows by index. Plans without an index, made while the tables were small,
        // would stay in use when they are large.
        let configure = format!(
            "SET statement_timeout = {statement_ms}; SET lock_timeout = {statement_ms};
             SET idle_in_transaction_session_timeout = {statement_ms};
             SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
             SET plan_cache_mode = force_generic_plan; SET search_path = pg_catalog; SET client_min_messages = warning"
        );
        client.batch_execute(&configure).await.map_err(from_postgres)?;
        let checked = durability::check(&client, settings.replicas).await?;
        let load_time = match settings.replicas {
            0 => None,
            _ => Some(durability::prepare_load_time(&client).await?),
        };
        let row = client.query_one("SELECT pg_postmaster_start_time()::text", &[]).await;
        let server = row.map_err(from_postgres)?.get(0);
        Ok(Session { client, server, settings: checked, load_time, has_warning })
    }

    pub(super) fn pool(&self) -> &ConnectionPool {
        &self.shared.pool
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.shared.runtime
    }

    /// How long to wait for the answer to one statement.
    pub(super) fn answer_timeout(&self) -> Duration {
        self.settings().timeouts.statement + ANSWER_MARGIN
    }
}

impl Session {
    /// Returns whether the server has sent a warning since the last call. After a commit, a warning means that the
    /// commit may be stored on the primary only.
    pub(super) fn take_warning(&self) -> bool {
        self.has_warning.swap(false, Ordering::SeqCst)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

pub(super) fn timed_out() -> JournalError {
    JournalError::Io(DatabaseFailure::new("the database did not answer in time").into())
}

/// Parks the thread until the future is ready, or returns `None` after `limit`. Works on any thread, including those of a
/// Tokio runtime.
pub(super) fn wait<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let deadline = Instant::now() + limit;
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let remaining = deadline.checked_duration_since(Instant::now())?;
        thread::park_timeout(remaining);
    }
}

fn tls_config(settings: &PostgresSettings) -> Result<ClientConfig, JournalError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = settings.root_certificates() {
        let unreadable = |reason: String| {
            JournalError::InvalidAddress(format!("sslrootcert: cannot read {}: {reason}", path.display()))
        };
        for certificate in
            CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?
        {
            let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(unreadable("it contains no certificate".to_owned()));
        }
    } else if settings.uses_tls() {
        let (_, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| JournalError::Io(error.into()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn io_error(error: std::io::Error) -> JournalError {
    JournalError::Io(error.into())
}
