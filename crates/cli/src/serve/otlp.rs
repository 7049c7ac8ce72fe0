//! `--otlp-listen`: receives what agents report over OpenTelemetry, on an address of its own.

use std::sync::Arc;

use gate::otlp::OtlpService;
use tokio::net::TcpListener;
use wire::auth::Tokens;
use wire::telemetry::Telemetry;
use wire::{AuthPolicy, HttpServer, HubHandle, Server, ServerLimits, TokenChanges};

use super::config::Config;
use super::reload::Reloadable;
use crate::output::{describe_io_error, print_stderr};

/// The receiver, if the configuration has an address for it.
pub(super) struct OtlpReceiver {
    server: Arc<HttpServer<OtlpService>>,
    listener: TcpListener,
}

impl OtlpReceiver {
    /// Creates the receiver, with the tokens, the TLS certificate and the limits of the hub. `only_user` is the only user whom a
    /// personal hub serves.
    pub(super) fn new(
        listener: TcpListener,
        hub: &HubHandle,
        config: &Config,
        policy: AuthPolicy,
        limits: &ServerLimits,
        tls: Option<wire::Tls>,
        only_user: Option<u32>,
    ) -> Result<Self, String> {
        let address = listener.local_addr().map_err(|error| describe_io_error(&error))?;
        let mut hosts = config.host.clone();
        hosts.push(address.to_string());
        if address.ip().is_loopback() {
            hosts
                .extend(["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{}", address.port())));
        }
        let limits = ServerLimits { body_bytes: config.otlp.body_bytes, ..*limits };
        let service = OtlpService::new(hub.clone(), config.otlp);
        let server = HttpServer::new(service, policy, limits, hosts, hub.telemetry().clone())
            .with_proxy(config.behind_proxy)
            .with_only_user(only_user)
            .with_tls(tls);
        let scheme = if config.tls_cert.is_some() { "https" } else { "http" };
        print_stderr(&format!("receiving OpenTelemetry on {scheme}://{address}"));
        Ok(Self { server: Arc::new(server), listener })
    }

    /// Returns the server.
    pub(super) fn server(&self) -> Arc<HttpServer<OtlpService>> {
        self.server.clone()
    }

    /// Receives until the future is dropped.
    pub(super) async fn run(self) {
        let server = self.server.clone();
        tokio::select! {
            () = self.server.serve(self.listener) => {}
            () = server.service.run() => {}
        }
    }
}

/// Returns a second policy with the same tokens.
pub(super) fn copy_policy(policy: &AuthPolicy) -> AuthPolicy {
    match policy {
        AuthPolicy::Open => AuthPolicy::Open,
        AuthPolicy::Tokens(tokens) => AuthPolicy::Tokens(tokens.clone()),
    }
}

/// The hub's server and the receiver, whose tokens change together.
pub(super) struct HubAndReceiver<'s> {
    pub(super) hub: &'s Server,
    pub(super) receiver: Option<Arc<HttpServer<OtlpService>>>,
}

impl Reloadable for HubAndReceiver<'_> {
    async fn replace_tokens(&self, tokens: Tokens) -> TokenChanges {
        if let Some(receiver) = &self.receiver {
            receiver.replace_tokens(tokens.clone());
        }
        self.hub.replace_tokens(tokens).await
    }

    fn telemetry(&self) -> &Telemetry {
        self.hub.hub.telemetry()
    }
}
