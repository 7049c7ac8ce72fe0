//! The limits of the gate. `docs/mcp.md` says what happens when one is exceeded.

use std::time::Duration;

/// Maximum length of a line from the host, in bytes. A longer one is refused.
///
/// A longer line from the server is passed on, but not inspected.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// Maximum length of a message that waits for an answer, in bytes.
pub const MAX_HELD_MESSAGE_BYTES: usize = 1 << 20;

/// Maximum size of the arguments of a call that a person is asked about, in bytes. The hub has the same default limit, because a
/// person could not listen to more.
pub const MAX_QUESTION_ARGUMENT_BYTES: usize = 32 << 10;

/// Maximum number of open questions.
pub const MAX_OPEN_QUESTIONS: usize = 64;

/// Maximum number of requests that wait for the same answer.
pub const MAX_WAITERS_PER_QUESTION: usize = 16;

/// Maximum number of late answers that are remembered. The oldest is forgotten first.
pub const MAX_REMEMBERED_ANSWERS: usize = 16;

/// How long a late yes is remembered.
pub const REMEMBERED_ANSWER_LIFETIME: Duration = Duration::from_mins(5);

/// How long a person has to answer. The person can ask for more time.
pub const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

/// How long the gate waits for the retry of a call that needs input.
pub const RETRY_LIFETIME: Duration = Duration::from_mins(10);

/// Maximum number of calls that wait for their retry. The oldest is forgotten first.
pub const MAX_PENDING_RETRIES: usize = 64;

/// Maximum number of requests for input in one answer of the server that listeners can be asked. More are left to the host.
pub const MAX_INPUT_REQUESTS: usize = 16;

/// How often listeners can be asked for input to the same call. After that, the host is asked.
pub const MAX_INPUT_ROUNDS: u8 = 8;

/// Maximum number of calls that are narrated at the same time. Further calls of harmless tools pass and are not narrated; listeners
/// are told that calls are missing.
pub const MAX_NARRATED_CALLS: usize = 128;

/// Maximum number of requests whose answers the gate waits for: calls of harmless tools, and as many others, such as `tools/list`.
/// Further ones pass, but the gate does not look at their answers.
pub const MAX_TRACKED_REQUESTS: usize = 1024;

/// Maximum number of tools of one server that the gate knows. Further tools count as unknown.
pub const MAX_TOOLS: usize = 4096;

/// Maximum number of tools of one server whose definitions are pinned. Further tools are always asked about.
pub const MAX_PINNED_TOOLS: usize = 4096;

/// Maximum size of the file with the pinned definitions, in bytes.
pub const MAX_PIN_FILE_BYTES: u64 = 1 << 20;

/// Maximum size of the trust file, in bytes.
pub const MAX_TRUST_FILE_BYTES: u64 = 256 << 10;

/// Maximum number of messages in a batch that contains a gated call.
pub const MAX_BATCH_MESSAGES: usize = 256;

/// Maximum number of batches that wait for answers.
pub const MAX_OPEN_BATCHES: usize = 64;

/// Time between two progress notifications while a question is open.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// How long the gate tries to reach the hub for a question.
pub const HUB_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the gate tries to reach a hub again that it has lost.
pub const HUB_RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long calls are not narrated after the hub could not be reached.
pub const HUB_RETRY_DELAY: Duration = Duration::from_secs(2);

/// Maximum number of requests to a server behind a URL that are not answered yet. Further messages wait.
pub const MAX_HTTP_REQUESTS: usize = 64;
