//! Agents beside a hub that somebody else runs in the same process: they come and go, and it stays.

use std::sync::Arc;

use crate::support::stage::Person;
use aaep::event::Producer;
use sayso::{Error, Hub};
use seal::{Random, SystemRandom};
use wire::{Bridge, Door, Server};

/// A hub in memory, and where listeners find it.
async fn running() -> (Bridge, String) {
    let random = |bytes: &mut [u8]| SystemRandom.fill(bytes);
    let journal = Box::new(journal::Memory::default());
    let core =
        hub::Core::new(journal, Producer::new("hub"), hub::Limits::default(), random, wire::clock()).unwrap();
    let bridge = Bridge::start(core, wire::fanout::Limits::default(), wire::clock).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let hosts = vec![address.clone()];
    let server = Server::new(bridge.clone(), Door::Open, wire::Limits::default(), hosts, "{}".to_owned());
    tokio::spawn(Arc::new(server).serve(listener));
    (bridge, address)
}

#[tokio::test]
async fn an_agent_that_leaves_takes_nobody_with_it() {
    let (bridge, address) = running().await;
    let mut person = Person::listen(&address).await;
    let one = Hub::embedded().agent("bank").name("Your bank").beside(&bridge).unwrap();
    let other = Hub::embedded().agent("shop").beside(&bridge).unwrap();
    let bought = other.session("Buy milk.").start().await.unwrap();
    one.session("Pay Ben.").start().await.unwrap().finish("Paid.").await.unwrap();
    one.close().await;
    bought.finish("Bought.").await.unwrap();
    other.session("Buy bread.").start().await.unwrap().finish("Bought, too.").await.unwrap();
    let mut told = Vec::new();
    while told.len() < 6 {
        let event = person.hears().await;
        told.push((event["producer"]["agent_id"].clone(), event["type"].clone()));
    }
    let kinds = ["started", "started", "completed", "completed", "started", "completed"];
    let agents = ["shop", "bank", "bank", "shop", "shop", "shop"];
    let wanted: Vec<_> = agents
        .into_iter()
        .zip(kinds)
        .map(|(agent, kind)| (agent.into(), format!("aaep:agent.session.{kind}").into()))
        .collect();
    assert_eq!(told, wanted);
}

#[tokio::test]
async fn sessions_of_one_agent_are_not_anothers() {
    let (bridge, _) = running().await;
    let one = Hub::embedded().agent("bank").beside(&bridge).unwrap();
    let refused = one.session("Pay Ben.").agent("shop").start().await.unwrap_err();
    assert!(matches!(refused, Error::Malformed(_)), "{refused}");
}

#[tokio::test]
async fn what_that_hub_has_already_cannot_be_wanted() {
    let (bridge, _) = running().await;
    for wanted in
        [Hub::embedded().journal("x"), Hub::embedded().listen("127.0.0.1:0"), Hub::embedded().tokens("x")]
    {
        assert!(matches!(wanted.beside(&bridge), Err(Error::Malformed(_))));
    }
}
