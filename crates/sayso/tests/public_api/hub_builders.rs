//! What the two hub builders accept, create and reject.

use std::time::Duration;

use sayso::{Action, Error, Hub};

#[test]
fn an_embedded_hub_has_an_address_if_it_listens() {
    assert!(Hub::embedded().listen("127.0.0.1:0").open().unwrap().address().is_some());
    assert!(Hub::embedded().open().unwrap().address().is_none());
}

#[test]
fn an_embedded_hub_without_tokens_listens_on_loopback_only() {
    let opened = Hub::embedded().listen("0.0.0.0:0").open();
    assert!(matches!(opened, Err(Error::Malformed(_))), "{opened:?}");
}

#[test]
fn a_journal_file_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.db");
    let _hub = Hub::embedded().journal(&file).open().unwrap();
    assert!(file.exists());
}

#[tokio::test]
async fn a_hub_without_a_key_sends_receipts_without_a_signature() {
    let hub = Hub::embedded().open().unwrap();
    let session = hub.session("Pay Ben.").start().await.unwrap();
    let action = Action::new("send", "{}").says("Send 5 euros.").consequence("They are gone.");
    let answer = session.ask(action).await.unwrap();
    assert!(answer.receipt().is_some_and(|receipt| receipt.contains("unreachable")), "{answer:?}");
    assert_eq!(answer.receipt_signature(), None);
}

#[test]
fn a_key_file_that_cannot_be_used_is_rejected() {
    let opened = Hub::embedded().receipt_key("no/such.key").open();
    assert!(matches!(opened, Err(Error::Malformed(_))), "{opened:?}");
}

#[tokio::test]
async fn an_invalid_address_or_ca_file_is_rejected() {
    let opened = Hub::connect("a hub somewhere").open().await;
    assert!(matches!(opened, Err(Error::Malformed(_))), "{opened:?}");
    let opened = Hub::connect("https://hub.example").ca_file("no/such/file.pem").open().await;
    assert!(matches!(opened, Err(Error::Malformed(_))), "{opened:?}");
}

#[tokio::test]
async fn a_hub_that_is_not_running_is_unreachable() {
    let opened = Hub::connect("http://127.0.0.1:1").connect_timeout(Duration::ZERO).open().await;
    assert!(matches!(opened, Err(Error::Unreachable(_))), "{opened:?}");
}

#[tokio::test]
async fn an_error_has_its_source_and_its_message() {
    let error = Hub::connect("https://hub.example").ca_file("no/such/file.pem").open().await.unwrap_err();
    let source = std::error::Error::source(&error).and_then(std::error::Error::source).unwrap();
    let io_error = source.downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(io_error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(error.to_string(), "cannot use no/such/file.pem: there is no such file");
}
