/// Declares `Person`, somebody who listens to a hub of `sayso` in this process and answers, and what examples ask of them.
#[macro_export]
macro_rules! person {
    () => {
        /// A hub at which somebody listens and says yes, and a session of it.
        #[allow(dead_code, reason = "each example has its own copy, and needs some of it")]
        async fn heard() -> (sayso::Hub, sayso::Session) {
            let hub = sayso::Hub::embedded().listen("127.0.0.1:0").open().unwrap();
            Person::listen(&hub).await.agrees("ben_a");
            let session = hub.session("Pay Ben.").start().await.unwrap();
            (hub, session)
        }

        /// Something to ask for.
        #[allow(dead_code, reason = "each example has its own copy, and needs some of it")]
        fn sending() -> sayso::Action {
            let action = sayso::Action::new("send", r#"{"to":"Ben"}"#);
            action.says("Send 5 euro to Ben.").consequence("They are gone at once.")
        }

        /// The yes to it.
        #[allow(dead_code, reason = "each example has its own copy, and needs some of it")]
        async fn granted(session: &sayso::Session) -> sayso::Granted {
            match session.ask(sending()).await.unwrap() {
                sayso::Answer::Granted(granted) => granted,
                sayso::Answer::Refused(why) => panic!("{why}"),
            }
        }

        /// Hears all that a hub in this process says.
        struct Person {
            socket: tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>,
            subscription: String,
        }

        #[allow(dead_code, reason = "each example has its own copy, and needs some of it")]
        impl Person {
            async fn listen(hub: &sayso::Hub) -> Self {
                let address = hub.address().unwrap().to_string();
                let uri = format!("ws://{address}/aaep/v1/ws").parse().unwrap();
                let wanted = tokio_tungstenite::tungstenite::ClientRequestBuilder::new(uri).with_sub_protocol("aaep.v1");
                let stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let (socket, _) = tokio_tungstenite::client_async(wanted, stream).await.unwrap();
                let mut person = Self { socket, subscription: String::new() };
                let capabilities =
                    serde_json::json!({"supports_confirmation_reply": true, "supports_clarification_reply": true});
                let request = serde_json::json!({
                    "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "person",
                    "capabilities": capabilities,
                });
                person.says(request).await;
                let accepted = person.hears().await.unwrap();
                person.subscription = accepted["subscription_id"].as_str().unwrap().to_owned();
                person
            }

            /// Goes on listening, and says yes to every question; where a text is wanted, this one.
            fn agrees(mut self, text: &'static str) {
                tokio::spawn(async move {
                    while let Some(event) = self.hears().await {
                        let (kind, name, value) = match event["type"].as_str() {
                            Some("aaep:agent.awaiting.confirmation") => ("confirmation.reply", "decision", "accept"),
                            Some("aaep:agent.awaiting.clarification") => ("clarification.reply", "response", text),
                            _ => continue,
                        };
                        self.says(serde_json::json!({"type": kind, name: value, "reply_token": event["reply_token"]})).await;
                    }
                });
            }

            /// Stops a session.
            async fn stops(&mut self, session: &str) {
                self.says(serde_json::json!({"type": "sayso:session.stop", "session_id": session})).await;
            }

            async fn says(&mut self, mut message: serde_json::Value) {
                if !self.subscription.is_empty() {
                    let now = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
                    message["timestamp"] = now.to_string().into();
                    message["subscription_id"] = self.subscription.as_str().into();
                }
                let message = tokio_tungstenite::tungstenite::Message::text(message.to_string());
                futures_util::SinkExt::send(&mut self.socket, message).await.unwrap();
            }

            /// The next message; none when the hub is gone.
            async fn hears(&mut self) -> Option<serde_json::Value> {
                loop {
                    let message = futures_util::StreamExt::next(&mut self.socket).await?.ok()?;
                    if let tokio_tungstenite::tungstenite::Message::Text(text) = message {
                        return serde_json::from_str(&text).ok();
                    }
                }
            }
        }
    };
}
