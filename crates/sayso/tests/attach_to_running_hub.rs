//! Agents attached to a hub that other code runs in the same process. The hub outlives its agents.

use std::sync::Arc;

use crate::support::fixture::TestListener;
use aaep::event::Producer;
use sayso::{Error, Hub};
use seal::{Random, SystemRandom};
use wire::{AuthPolicy, HubHandle, Server};

/// Starts a hub with an in-memory journal and returns it with its address.
async fn start_hub() -> (HubHandle, String) {
    let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
    let journal = Box::new(journal::MemoryJournal::default());
    let core =
        hub::Core::new(journal, Producer::new("hub"), hub::HubLimits::default(), random, wire::unix_now())
            .unwrap();
    let hub = HubHandle::start(core, wire::fanout::FanoutLimits::default(), wire::unix_now).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let hosts = vec![address.clone()];
    let server =
        Server::new(hub.clone(), AuthPolicy::Open, wire::ServerLimits::default(), hosts, "{}".to_owned());
    tokio::spawn(Arc::new(server).serve(listener));
    (hub, address)
}

#[tokio::test]
async fn closing_one_agent_does_not_affect_another() {
    let (hub, address) = start_hub().await;
    let mut listener = TestListener::listen(&address).await;
    let bank = Hub::embedded().agent("bank").agent_name("Your bank").attach(&hub).unwrap();
    let shop = Hub::embedded().agent("shop").attach(&hub).unwrap();
    let purchase = shop.session("Buy milk.").start().await.unwrap();
    bank.session("Pay Ben.").start().await.unwrap().finish("Paid.").await.unwrap();
    bank.close().await;
    purchase.finish("Bought.").await.unwrap();
    shop.session("Buy bread.").start().await.unwrap().finish("Bought, too.").await.unwrap();
    let mut events = Vec::new();
    while events.len() < 6 {
        let event = listener.next_event().await;
        events.push((event["producer"]["agent_id"].clone(), event["type"].clone()));
    }
    let kinds = ["started", "started", "completed", "completed", "started", "completed"];
    let agents = ["shop", "bank", "bank", "shop", "shop", "shop"];
    let expected: Vec<_> = agents
        .into_iter()
        .zip(kinds)
        .map(|(agent, kind)| (agent.into(), format!("aaep:agent.session.{kind}").into()))
        .collect();
    assert_eq!(events, expected);
}

#[tokio::test]
async fn an_agent_cannot_start_a_session_for_another_agent() {
    let (hub, _) = start_hub().await;
    let bank = Hub::embedded().agent("bank").attach(&hub).unwrap();
    let refused = bank.session("Pay Ben.").agent("shop").start().await.unwrap_err();
    assert!(matches!(refused, Error::Malformed(_)), "{refused}");
}

#[tokio::test]
async fn attach_refuses_settings_that_belong_to_the_running_hub() {
    let (hub, _) = start_hub().await;
    for builder in
        [Hub::embedded().journal("x"), Hub::embedded().listen("127.0.0.1:0"), Hub::embedded().tokens("x")]
    {
        assert!(matches!(builder.attach(&hub), Err(Error::Malformed(_))));
    }
}
