//! How much an endpoint, a model and a tool may take.

use std::time::Duration;

seal::defaults! {
    /// Bounds of a loop. Whatever an endpoint or a model can grow has one.
    ///
    /// ```
    /// use sayso::openai::{Agent, Limits};
    /// let limits = Limits { rounds: 4, ..Limits::default() };
    /// let agent = Agent::new("http://127.0.0.1:11434/v1").limits(limits);
    /// # let _ = agent;
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// How often the model is asked for one request: once, and once for each time that it wanted tools.
        pub rounds: usize = 16,
        /// Calls of tools that a model may want in one answer.
        pub calls: usize = 32,
        /// How often one question to the model is sent, where the endpoint is busy, broken or not there.
        pub attempts: usize = 3,
        /// The longest pause between two attempts. An endpoint that wants a longer one is given up.
        pub pause: Duration = Duration::from_secs(30),
        /// Time until a connection is there.
        pub connect: Duration = Duration::from_secs(10),
        /// Time until the answer begins.
        pub first_byte: Duration = Duration::from_mins(2),
        /// Time without a single byte in the middle of an answer.
        pub stall: Duration = Duration::from_mins(1),
        /// Bytes of one line, and of one event, of an answer.
        pub line_bytes: usize = 1024 * 1024,
        /// Bytes of a whole answer, as they are sent.
        pub answer_bytes: usize = 16 * 1024 * 1024,
        /// Bytes of a tool's result that are given to the model; the rest is cut, and the model is told so.
        pub result_bytes: usize = 64 * 1024,
        /// Time of a tool that has no limit of its own.
        pub tool_time: Duration = Duration::from_mins(2),
    }
}
