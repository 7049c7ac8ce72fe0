//! Limits for the endpoint, the model and the tools.

use std::time::Duration;

seal::defaults! {
    /// The limits of an agent loop. Everything whose size an endpoint or a model controls is limited.
    ///
    /// ```
    /// use sayso::openai::{ChatAgent, LoopLimits};
    /// let limits = LoopLimits { max_rounds: 4, ..LoopLimits::default() };
    /// let agent = ChatAgent::new("http://127.0.0.1:11434/v1").limits(limits);
    /// # let _ = agent;
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LoopLimits {
        /// The maximum number of model calls for one request. Every round of tool calls needs another one.
        pub max_rounds: usize = 16,
        /// The maximum number of tool calls in one answer.
        pub max_calls_per_answer: usize = 32,
        /// The maximum number of attempts for one model call, if the endpoint is busy, fails or cannot be reached.
        pub max_attempts: usize = 3,
        /// The longest delay between two attempts. If the endpoint asks for a longer one, the loop gives up.
        pub max_backoff: Duration = Duration::from_secs(30),
        /// The time limit for connecting.
        pub connect_timeout: Duration = Duration::from_secs(10),
        /// The time limit until the answer starts.
        pub first_byte_timeout: Duration = Duration::from_mins(2),
        /// The longest time without a byte in the middle of an answer.
        pub stall_timeout: Duration = Duration::from_mins(1),
        /// The maximum number of bytes in one line, and in one event, of an answer.
        pub max_line_bytes: usize = 1024 * 1024,
        /// The maximum number of bytes in one answer, as transferred.
        pub max_answer_bytes: usize = 16 * 1024 * 1024,
        /// The maximum number of bytes of a tool's result that the model receives. A longer result is truncated, with a note.
        pub max_result_bytes: usize = 64 * 1024,
        /// The time limit for tools without a limit of their own.
        pub tool_timeout: Duration = Duration::from_mins(2),
    }
}
