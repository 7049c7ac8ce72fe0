//! An embedded hub dispatches commands on the agents' own tasks. A panic in one agent does not affect the others.

use std::borrow::Cow;

/// A redactor that panics on the word `porcelain`.
struct PanickingRedactor;

impl sayso::Redact for PanickingRedactor {
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        assert!(!text.contains("porcelain"), "panicking on purpose");
        (text.into(), 0)
    }
}

#[tokio::test]
async fn a_panic_during_dispatch_does_not_affect_other_sessions() {
    let hub = sayso::Hub::embedded().redact(PanickingRedactor).open().unwrap();
    let session = hub.session("Carry this.").start().await.unwrap();
    let other = hub.session("Carry that.").start().await.unwrap();
    let broken = tokio::spawn(async move { session.output("a piece of porcelain, ").await });
    assert!(broken.await.unwrap_err().is_panic());
    other.output("a piece of wood, ").await.unwrap();
    other.think("It is carried.").await.unwrap();
    other.finish("Done.").await.unwrap();
    let third = hub.session("Carry more.").start().await.unwrap();
    third.finish("Done.").await.unwrap();
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_agents_all_get_their_replies() {
    let hub = sayso::Hub::embedded().open().unwrap();
    let mut agents = Vec::new();
    for _ in 0..16 {
        let hub = hub.clone();
        agents.push(tokio::spawn(async move {
            let session = hub.session("Count.").start().await.unwrap();
            for step in 1..=50 {
                session.progress(sayso::ProgressUpdate::new("Counting.").step(step, 50)).await.unwrap();
                session.output("and one more, ").await.unwrap();
            }
            session.finish("Counted.").await.unwrap();
        }));
    }
    for agent in agents {
        agent.await.unwrap();
    }
    hub.close().await;
}
