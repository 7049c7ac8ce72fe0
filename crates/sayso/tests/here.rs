//! A hub in this process is asked where its agents speak: what one of them breaks is its own.

use std::borrow::Cow;

/// Breaks down over one word.
struct Fragile;

impl sayso::Redact for Fragile {
    fn redact<'t>(&self, text: &'t str) -> (Cow<'t, str>, u64) {
        assert!(!text.contains("porcelain"), "it is broken");
        (text.into(), 0)
    }
}

#[tokio::test]
async fn who_breaks_down_at_the_desk_breaks_nobody_elses_session() {
    let hub = sayso::Hub::embedded().redact(Fragile).open().unwrap();
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
async fn many_speak_at_once_and_each_is_answered() {
    let hub = sayso::Hub::embedded().open().unwrap();
    let mut agents = Vec::new();
    for _ in 0..16 {
        let hub = hub.clone();
        agents.push(tokio::spawn(async move {
            let session = hub.session("Count.").start().await.unwrap();
            for at in 1..=50 {
                session.progress(sayso::Progress::says("Counting.").step(at, 50)).await.unwrap();
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
