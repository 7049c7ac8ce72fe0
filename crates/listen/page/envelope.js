// The envelope of an event (AAEP §3.2).

const CORE_CONTEXT = "https://aaep-protocol.org/context/v1";

/** Whether a value from the stream is an event: its envelope has everything that an event must have. */
export function isEvent(value) {
  const { type, event_id: id, session_id: session, timestamp, producer } = value;
  return (
    hasCoreContext(value["@context"]) &&
    typeof type === "string" &&
    type !== "" &&
    isId("evt", id) &&
    isId("sess", session) &&
    isTimestamp(timestamp) &&
    producer !== null &&
    typeof producer === "object" &&
    typeof producer.agent_id === "string" &&
    producer.agent_id !== ""
  );
}

/** The core context is the only one, or it comes first, so that another vocabulary cannot replace it. */
function hasCoreContext(context) {
  return context === CORE_CONTEXT || (Array.isArray(context) && context[0] === CORE_CONTEXT && context.every((one) => typeof one === "string"));
}

function isId(prefix, id) {
  return typeof id === "string" && new RegExp(`^${prefix}_[A-Za-z0-9]{1,64}$`).test(id);
}

function isTimestamp(text) {
  return typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) && Number.isFinite(Date.parse(text));
}
