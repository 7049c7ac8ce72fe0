/// Declares `TestListener`, which listens to a `sayso` hub in this process and answers questions, and helper functions for
/// examples.
#[macro_export]
macro_rules! declare_test_listener {
    () => {
        /// Returns a hub whose listener accepts every question, and a session.
        #[allow(dead_code, reason = "each example has its own copy and uses only parts of it")]
        async fn hub_with_listener() -> (sayso::Hub, sayso::Session) {
            let hub = sayso::Hub::embedded().listen("127.0.0.1:0").open().unwrap();
            TestListener::connect(&hub).await.accept_all("ben_a");
            let session = hub.session("Pay Ben.").start().await.unwrap();
            (hub, session)
        }

        /// Returns a sample action to ask for.
        #[allow(dead_code, reason = "each example has its own copy and uses only parts of it")]
        fn sample_action() -> sayso::Action {
            let action = sayso::Action::new("send", r#"{"to":"Ben"}"#);
            action.says("Send 5 euros to Ben.").consequence("The money is gone immediately.")
        }

        /// Asks for the sample action and returns the grant.
        #[allow(dead_code, reason = "each example has its own copy and uses only parts of it")]
        async fn ask_and_expect_granted(session: &sayso::Session) -> sayso::Granted {
            match session.ask(sample_action()).await.unwrap() {
                sayso::Answer::Granted(granted) => granted,
                sayso::Answer::Refused(reason) => panic!("{reason}"),
            }
        }

        /// Receives everything that a hub in this process sends.
        struct TestListener {
            socket: tokio_tungstenite::WebSocketStream<tokio::net::TcpStream>,
            subscription: String,
        }

        #[allow(dead_code, reason = "each example has its own copy and uses only parts of it")]
        impl TestListener {
            async fn connect(hub: &sayso::Hub) -> Self {
                let address = hub.address().unwrap().to_string();
                let uri = format!("ws://{address}/aaep/v1/ws").parse().unwrap();
                let upgrade = tokio_tungstenite::tungstenite::ClientRequestBuilder::new(uri).with_sub_protocol("aaep.v1");
                let stream = tokio::net::TcpStream::connect(address).await.unwrap();
                let (socket, _) = tokio_tungstenite::client_async(upgrade, stream).await.unwrap();
                let mut listener = Self { socket, subscription: String::new() };
                let capabilities =
                    serde_json::json!({"supports_confirmation_reply": true, "supports_clarification_reply": true});
                let request = serde_json::json!({
                    "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "person",
                    "capabilities": capabilities,
                });
                listener.send(request).await;
                let accepted = listener.next_message().await.unwrap();
                listener.subscription = accepted["subscription_id"].as_str().unwrap().to_owned();
                listener
            }

            /// Keeps listening, accepts every confirmation, and answers every clarification with `text`.
            fn accept_all(mut self, text: &'static str) {
                tokio::spawn(async move {
                    while let Some(event) = self.next_message().await {
                        let (reply_type, name, value) = match event["type"].as_str() {
                            Some("aaep:agent.awaiting.confirmation") => ("confirmation.reply", "decision", "accept"),
                            Some("aaep:agent.awaiting.clarification") => ("clarification.reply", "response", text),
                            _ => continue,
                        };
                        self.send(serde_json::json!({"type": reply_type, name: value, "reply_token": event["reply_token"]})).await;
                    }
                });
            }

            /// Stops a session.
            async fn stop_session(&mut self, session: &str) {
                self.send(serde_json::json!({"type": "sayso:session.stop", "session_id": session})).await;
            }

            async fn send(&mut self, mut message: serde_json::Value) {
                if !self.subscription.is_empty() {
                    let now = seal::Timestamp::from_unix_millis(std::time::SystemTime::now().into()).unwrap();
                    message["timestamp"] = now.to_string().into();
                    message["subscription_id"] = self.subscription.as_str().into();
                }
                let message = tokio_tungstenite::tungstenite::Message::text(message.to_string());
                futures_util::SinkExt::send(&mut self.socket, message).await.unwrap();
            }

            /// Returns the next message, or `None` after the hub has closed the connection.
            async fn next_message(&mut self) -> Option<serde_json::Value> {
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
