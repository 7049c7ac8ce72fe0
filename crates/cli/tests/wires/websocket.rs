//! A WebSocket of the subprotocol `aaep.v1`.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tungstenite::{Message, WebSocket};

use crate::stage::Hub;
use crate::wire::{Back, Heard, Sign, Wire, answer, sorted};

pub(crate) struct Socket {
    frames: WebSocket<TcpStream>,
    token: String,
    kept: VecDeque<Heard>,
}

impl Socket {
    /// Connects; the status if it is refused.
    pub(crate) fn connect(address: &str, token: &str) -> Result<Self, u16> {
        let bearer = format!("Bearer {token}");
        let headers = [("Sec-WebSocket-Protocol", "aaep.v1"), ("Authorization", &bearer)];
        let headers = if token.is_empty() { &headers[..1] } else { &headers };
        let (socket, answer) = testing::websocket::upgrade(address, "/aaep/v1/ws", headers)?;
        assert_eq!(answer.headers()["Sec-WebSocket-Protocol"], "aaep.v1");
        socket.get_ref().set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        Ok(Self { frames: socket, token: token.to_owned(), kept: VecDeque::new() })
    }

    fn read(socket: &mut WebSocket<TcpStream>) -> Heard {
        match socket.read() {
            Ok(Message::Text(text)) => sorted(serde_json::from_str(&text).unwrap()),
            Ok(Message::Ping(_)) => Heard::Alive,
            Ok(Message::Close(Some(frame))) => Heard::End(Sign::Code(frame.code.into())),
            other => panic!("not what is said here: {other:?}"),
        }
    }
}

impl Wire for Socket {
    fn subscribe(&mut self, request: &str) -> Value {
        self.ask(request)
    }

    fn say(&mut self, message: &str) {
        // Whether anybody reads is seen by what comes back.
        let _ = self.frames.send(Message::text(message));
    }

    fn ask(&mut self, message: &str) -> Value {
        self.say(message);
        let Self { frames, kept, .. } = self;
        answer(kept, || Self::read(frames))
    }

    fn next(&mut self) -> Heard {
        self.kept.pop_front().unwrap_or_else(|| Self::read(&mut self.frames))
    }

    fn sign(&mut self) -> Sign {
        loop {
            match self.next() {
                Heard::End(sign) => return sign,
                Heard::Alive => {}
                other => panic!("not yet over: {other:?}"),
            }
        }
    }

    fn is_alive(&mut self) -> bool {
        assert!(matches!(self.next(), Heard::Alive), "a ping");
        true
    }

    fn come_back(&mut self, hub: &mut Hub, request: &str) -> Back {
        *self = Self::connect(&hub.address, &self.token).unwrap();
        let accepted = self.subscribe(request);
        Back::Afresh(accepted["subscription_id"].as_str().unwrap().to_owned())
    }

    fn lose(&mut self) -> bool {
        self.frames.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
        true
    }
}
