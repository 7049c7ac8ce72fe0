//! One thing in several languages: everybody hears their own.

use sayso::{Action, Answer, Failure, Words};
use serde_json::{Value, json};

use crate::stage::{Person, Stage};

fn rain() -> Words {
    Words::new("It rains.").terse("Rain.").in_language("es", Words::new("Llueve.").terse("Lluvia."))
}

fn of<'e>(heard: &'e [Value], kind: &str) -> &'e Value {
    heard.iter().find(|event| event["type"] == format!("aaep:agent.{kind}")).unwrap()
}

fn language(event: &Value) -> &Value {
    &event["localization_hints"]["primary_language"]
}

pub(crate) async fn everybody_hears_their_own_language(mut stage: Stage) {
    let mut ana = Person::listen_in(&stage.address(), "es-MX").await;
    let begin = stage.hub.session("Weather, please.");
    let words = Words::new("Looking at the sky.")
        .in_language("es", "Mirando el cielo.")
        .in_language("pt-BR", "Olhando.");
    let session = begin.says(words).start().await.unwrap();
    let tool = session.tool("look").says(rain()).with("Oslo").start().await.unwrap();
    // A length that the other language lacks is said in its normal words.
    let done = Words::new("Seen.").terse("Done.").detailed("All was seen.").in_language("es", "Visto.");
    tool.done(done).await.unwrap();
    session.think("Only in English.").await.unwrap();
    session.fail(Failure::new(rain()).hint("Wait.")).await.unwrap();
    let (ben, ana) =
        tokio::join!(stage.person.hears_until("session.errored"), ana.hears_until("session.errored"));
    for (kind, english, spanish) in [
        ("session.started", "Looking at the sky.", "Mirando el cielo."),
        ("tool.invoked", "It rains.", "Llueve."),
        ("tool.completed", "Seen.", "Visto."),
        ("session.errored", "It rains.", "Llueve."),
    ] {
        let (ben, ana) = (of(&ben, kind), of(&ana, kind));
        assert_eq!((&ben["summary_normal"], language(ben)), (&json!(english), &json!("en")), "{kind}");
        assert_eq!((&ana["summary_normal"], language(ana)), (&json!(spanish), &json!("es")), "{kind}");
    }
    assert_eq!(of(&ben, "tool.invoked")["summary_terse"], "Rain.");
    assert_eq!(of(&ana, "tool.invoked")["summary_terse"], "Lluvia.");
    let seen = of(&ana, "tool.completed");
    assert_eq!((&seen["summary_terse"], &seen["summary_detailed"]), (&json!("Visto."), &json!("Visto.")));
    assert_eq!(of(&ben, "session.started")["summary_normal_pt_br"], "Olhando.");
    let thought = ana.iter().find(|event| event["summary_normal"] == "Only in English.").unwrap();
    assert_eq!(language(thought), "en", "what has no other words keeps its own");
}

pub(crate) async fn a_question_is_heard_in_a_language_that_all_of_it_is_in(mut stage: Stage) {
    let mut ana = Person::listen_in(&stage.address(), "es").await;
    let session = stage.session().await;
    let says = || Words::new("Send 5 euro to Ben.").in_language("es", "Enviar 5 euros a Ben.");
    let gone = Words::new("It is gone.").in_language("es", "Se va.");
    let whole = Action::new("send", r#"{"to":"Ben"}"#).says(says()).consequence(gone).irreversible();
    let half = Action::new("send", r#"{"to":"Ben"}"#).says(says()).consequence("It is gone.");
    let asks = async {
        let Answer::Granted(granted) = session.ask(whole).await.unwrap() else { panic!("refused") };
        session.begin(granted).await.unwrap().done("Sent.").await.unwrap();
        assert!(matches!(session.ask(half).await.unwrap(), Answer::Refused(_)));
    };
    let answers = async {
        let asked = ana.hears_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!(asked["action"], "Enviar 5 euros a Ben.");
        assert_eq!(asked["consequence"], "Se va.");
        assert_eq!(asked["summary_normal"], "Enviar 5 euros a Ben. Se va.");
        assert_eq!(language(&asked), "es");
        ana.answers(&asked, "accept").await;
        let called = ana.hears_until("tool.invoked").await.pop().unwrap();
        assert_eq!(called["summary_normal"], "Enviar 5 euros a Ben.");
        let asked = ana.hears_until("awaiting.confirmation").await.pop().unwrap();
        assert_eq!((&asked["action"], language(&asked)), (&json!("Send 5 euro to Ben."), &json!("en")));
        ana.answers(&asked, "reject").await;
    };
    tokio::join!(asks, answers);
    let asked = stage.person.hears_until("awaiting.confirmation").await.pop().unwrap();
    assert_eq!(asked["summary_normal"], "Send 5 euro to Ben. It is gone.");
    session.finish("Done.").await.unwrap();
}

pub(crate) async fn what_is_no_language_is_refused(mut stage: Stage) {
    let session = stage.session().await;
    let refused = session.think(Words::new("Thinking.").in_language("no tag at all", "?")).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("summary_normal_no tag at all")));
    session.finish("Done.").await.unwrap();
}
