//! A hostile network between two nodes: nothing is accepted twice, and every session completes.

use testing::http::TestClient;
use testing::random::SplitMix64;

use crate::proxy::{Fault, Proxy};
use crate::script::{Script, assert_same_end, run_script};
use crate::test_node::{NodeBuilder, Storage, TestNode, Transport, start_builders};

/// Two nodes that reach each other only through proxies.
struct ProxiedPair {
    nodes: [TestNode; 2],
    proxies: [Proxy; 2],
}

impl ProxiedPair {
    /// `faults` creates the source of faults for each direction.
    fn start<F: FnMut(&[u8]) -> Fault + Send + 'static>(
        transport: Transport,
        storage: Storage,
        faults: impl Fn(usize) -> F,
    ) -> Self {
        let bound = [Proxy::bind(), Proxy::bind()];
        let builders =
            ["buyer", "press"].map(|name| NodeBuilder::new(name).transport(transport).storage(storage));
        let [first, second] = builders;
        let builders = [first.published_at(&bound[0].1), second.published_at(&bound[1].1)];
        let targets = builders.each_ref().map(|builder| builder.address.clone());
        let [first, second] = bound.map(|(listener, _)| listener);
        let proxies =
            [Proxy::start(first, &targets[0], faults(0)), Proxy::start(second, &targets[1], faults(1))];
        Self { nodes: start_builders(builders), proxies }
    }

    fn run(&self, script: &Script) -> String {
        let session = run_script(self.nodes.each_ref(), script, |_, _, _| {});
        assert_same_end(self.nodes.each_ref(), script, &session);
        session
    }

    /// Runs several sessions at the same time.
    fn run_many(&self, count: usize) {
        std::thread::scope(|scope| {
            for number in 0..count {
                scope.spawn(move || {
                    self.run(&Script::agreed(&self.nodes).with_subject(&format!("session {number}")));
                });
            }
        });
    }
}

/// Each message meets the fault once; its repetition passes.
fn once_for_each_message(fault: Fault) -> impl FnMut(&[u8]) -> Fault + Send + 'static {
    let mut seen = std::collections::HashSet::new();
    move |request: &[u8]| {
        let body = request.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        if seen.insert(request[body..].to_vec()) { fault } else { Fault::None }
    }
}

#[test]
fn a_session_completes_although_each_message_meets_the_same_fault() {
    let faults = [
        Fault::Duplicate,
        Fault::DropRequest,
        Fault::DropResponse,
        Fault::CutRequest,
        Fault::CutResponse,
        Fault::Hold,
    ];
    std::thread::scope(|scope| {
        for fault in faults {
            scope.spawn(move || {
                let pair =
                    ProxiedPair::start(Transport::Http, Storage::Memory, |_| once_for_each_message(fault));
                pair.run(&Script::agreed(&pair.nodes));
                for proxy in &pair.proxies {
                    let statuses = proxy.duplicate_statuses();
                    assert_eq!(statuses.is_empty(), fault != Fault::Duplicate);
                    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
                }
            });
        }
    });
}

fn random_faults(seed: u64) -> impl FnMut(&[u8]) -> Fault + Send + 'static {
    let mut random = SplitMix64::new(seed);
    move |_| {
        let faults = [
            Fault::Duplicate,
            Fault::DropRequest,
            Fault::DropResponse,
            Fault::CutRequest,
            Fault::CutResponse,
            Fault::Hold,
        ];
        if random.one_in(3) { *random.choose_one(&faults) } else { Fault::None }
    }
}

#[test]
fn concurrent_sessions_complete_although_requests_are_reordered_duplicated_lost_and_cut() {
    let pair = ProxiedPair::start(Transport::Http, Storage::Memory, |direction| {
        random_faults(u64::try_from(direction).unwrap() + 40)
    });
    pair.run_many(8);
    let duplicates: Vec<u16> = pair.proxies.iter().flat_map(Proxy::duplicate_statuses).collect();
    assert!(duplicates.len() > 5 && duplicates.iter().all(|status| *status == 401), "{duplicates:?}");
}

#[test]
fn concurrent_sessions_complete_although_websockets_are_cut() {
    let pair = ProxiedPair::start(Transport::WebSocket, Storage::Memory, |direction| {
        let mut random = SplitMix64::new(u64::try_from(direction).unwrap());
        move |_| if random.one_in(4) { Fault::None } else { Fault::CutSocket(random.below(6000)) }
    });
    pair.run_many(4);
    let sockets = |proxy: &Proxy| {
        let requests = proxy.requests();
        requests.iter().filter(|request| String::from_utf8_lossy(request).contains("/ws HTTP/1.1")).count()
    };
    // Without cuts, there would be four in each direction.
    assert!(pair.proxies.iter().map(sockets).sum::<usize>() > 12);
}

/// Sends recorded requests again, and checks that none is accepted.
fn replay(proxy: &Proxy, node: &TestNode) {
    let requests = proxy.requests();
    assert!(requests.len() > 8);
    for request in requests {
        let request = String::from_utf8(request).unwrap();
        let response = TestClient::new(&node.address)
            .send_raw(request.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes());
        let is_card = request.starts_with("GET ");
        assert!(is_card || response.starts_with("HTTP/1.1 401 "), "{request}\n{response}");
    }
}

#[test]
fn the_recorded_traffic_of_an_earlier_session_changes_nothing() {
    let pair = ProxiedPair::start(Transport::Http, Storage::Disk, |_| |_: &[u8]| Fault::None);
    let script = Script::agreed(&pair.nodes);
    let session = pair.run(&script);
    let before = pair.nodes[1].transcript(&session);
    replay(&pair.proxies[1], &pair.nodes[1]);
    // After a restart, the proofs of the day before are no longer remembered, but their nonce is no longer valid.
    pair.nodes[1].restart();
    replay(&pair.proxies[1], &pair.nodes[1]);
    assert_eq!(pair.nodes[1].transcript(&session), before);
    assert_eq!(pair.nodes[1].get("/agent/v1/asp/sessions").json()["sessions"], serde_json::json!([]));
    assert_same_end(pair.nodes.each_ref(), &script, &session);
    pair.run(&Script::agreed(&pair.nodes).with_subject("the next session"));
}
