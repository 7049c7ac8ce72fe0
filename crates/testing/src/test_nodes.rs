/// Runs an example of `sayso::asp`, with the address of the agent's own node and the URI of another agent.
#[macro_export]
macro_rules! asp_example {
    ($url:ident, $peer:ident, { $($body:tt)* }) => {{
        $crate::declare_test_nodes!();
        $crate::run_example!({
            let nodes = TestNodes::start();
            #[allow(unused_variables, reason = "not every example needs both")]
            let ($url, $peer) = (nodes.own_url.clone(), nodes.peer.clone());
            $($body)*
        })
    }};
}

/// Declares `TestNodes`: two ASP nodes in this process, for examples and tests of the `sayso` crate.
#[macro_export]
macro_rules! declare_test_nodes {
    () => {
        /// Two nodes that know each other's cards. Nobody is asked before a commitment.
        #[allow(dead_code, reason = "each example has its own copy and uses only parts of it")]
        struct TestNodes {
            own_url: String,
            peer_url: String,
            /// The URI of the other agent.
            peer: String,
            _folder: tempfile::TempDir,
        }

        impl TestNodes {
            fn start() -> Self {
                let folder = tempfile::tempdir().unwrap();
                let mut sides = Vec::new();
                for name in ["buyer", "press"] {
                    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
                    listener.set_nonblocking(true).unwrap();
                    let address = listener.local_addr().unwrap().to_string();
                    let profile = asp::AgentProfile {
                        agent_id: asp::AgentUri::parse(&format!("agent://{address}/{name}")).unwrap(),
                        name: name.to_owned(),
                        description: String::new(),
                        organization: String::new(),
                        capabilities: Vec::new(),
                        level: asp::ConformanceLevel::Full,
                        endpoints: asp::AgentEndpoints { asp: None },
                        max_transaction_value: None,
                        currency: None,
                    };
                    let identity = node::Identity::create(&folder.path().join(name), &profile).unwrap();
                    sides.push((listener, address, identity));
                }
                let cards: Vec<_> = sides.iter().map(|(_, _, identity)| identity.card.clone()).collect();
                let mut urls = Vec::new();
                for (listener, address, identity) in sides {
                    let own = identity.card.agent_id().clone();
                    let config = node::NodeConfig {
                        identity,
                        pinned: cards.iter().filter(|card| card.agent_id() != &own).cloned().collect(),
                        trusts_on_first_use: false,
                        is_registry: false,
                        policy: node::Policy::new(node::ConsentPolicy::NEVER_ASK),
                        limits: node::NodeLimits::default(),
                        trust_roots: client::TrustRoots::default(),
                        uses_message_pack: false,
                        clients_use_tls: false,
                        peer_transport: node::PeerTransport::default(),
                    };
                    urls.push(format!("http://{address}"));
                    // Each node has a thread of its own, which ends with the process.
                    std::thread::spawn(move || {
                        let runtime =
                            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                        runtime.block_on(async {
                            let journal = Box::new(journal::MemoryJournal::default());
                            let node = node::Node::open(config, journal, None).unwrap();
                            let server = wire::HttpServer::new(
                                node::NodeService(node.clone()),
                                wire::AuthPolicy::Open,
                                wire::ServerLimits::default(),
                                vec![address],
                                std::sync::Arc::default(),
                            );
                            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                            tokio::join!(std::sync::Arc::new(server).serve(listener), node.run());
                        });
                    });
                }
                let [own_url, peer_url] = <[String; 2]>::try_from(urls).unwrap();
                Self { own_url, peer_url, peer: cards[1].agent_id().to_string(), _folder: folder }
            }
        }

        /// Makes the other agent accept the next invitation.
        #[allow(dead_code, reason = "each example has its own copy and uses only parts of it")]
        async fn accept_invitation(peer: &str) {
            let address = peer.strip_prefix("agent://").and_then(|rest| rest.split('/').next()).unwrap();
            let node = sayso::asp::Node::connect(format!("http://{address}")).open().unwrap();
            let session = node.next_invitation(&[]).await.unwrap();
            let invitation = asp::Reference::parse(&format!("prop_{}", session.id())).unwrap();
            session.send(sayso::asp::message::Accept::new(invitation)).await.unwrap();
        }
    };
}
