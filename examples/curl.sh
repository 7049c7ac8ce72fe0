#!/bin/sh
# An agent written in shell with curl alone. It asks before it transfers money, and transfers it only after a yes.
# It needs a running `sayso serve`. SAYSO_URL is its address (default http://127.0.0.1:8787), SAYSO_TOKEN the agent's token.
# Exit codes: 0 if the script completed, whatever the answer was; 1 if something went wrong; 2 if there is no curl or no hub.
set -u
url=${SAYSO_URL:-http://127.0.0.1:8787} session='' wait=60
url=${url%/}

# call METHOD PATH [TYPE BODY]: stores the response in $answer, or exits with a message that gives the reason.
call() {
    method=$1 path=$2 type=${3:-application/json} body=${4:-}
    answer=$({ [ -z "${SAYSO_TOKEN:-}" ] || printf 'Authorization: Bearer %s\n' "$SAYSO_TOKEN"; } |
        curl -sS --max-time $((wait + 30)) -X "$method" -H @- -H "Content-Type: $type" -w '\n%{http_code}' \
            ${4:+--data-binary} ${4:+"$body"} "$url/agent/v1/sessions$path" 2>&1) ||
        die 2 "There is no hub at $url: $(printf '%s' "$answer" | sed -n 1p). Start one with: sayso serve"
    status=$(printf '%s\n' "$answer" | sed -n '$p')
    answer=$(printf '%s\n' "$answer" | sed '$d')
    case $status in
    2??) ;;
    401 | 403) die 1 "The hub at $url does not let this agent in. Set SAYSO_TOKEN to an agent's token: sayso token new" ;;
    404) session='' && die 1 "The session is over: the person stopped it, or the hub has ended it." ;;
    *) die 1 "The hub refused it ($status): $(member title) $(printf '%s' "$answer" | sed -n 's/.*"findings"://p')" ;;
    esac
}

# member NAME: prints a string member of $answer. The values read here contain no quotation marks.
member() { printf '%s' "$answer" | sed -n "s/.*\"$1\":\"\\([^\"]*\\)\".*/\\1/p"; }

# say EVENT…: sends the events. The hub accepts all of them or none.
say() { call POST "/$session/events" application/x-ndjson "$(printf '%s\n' "$@")"; }

event() { printf '{"type":"aaep:agent.%s","urgency":"normal",%s}' "$1" "$2"; }

# die CODE MESSAGE: prints the message, ends the open session, if any, and exits.
die() {
    code=$1 && shift
    printf '%s\n' "$*" >&2
    [ -z "$session" ] || (
        open_session=$session session=''
        call POST "/$open_session/events" application/json '{"type":"aaep:agent.session.errored","error_category":"unknown",
            "recoverable":false,"summary_normal":"The agent had to stop in the middle of its work."}'
    ) 2>/dev/null
    exit "$code"
}
trap 'die 1 "Interrupted. Nothing more will be done."' INT TERM

command -v curl >/dev/null || { echo "This needs curl." >&2 && exit 2; }
call POST '' application/json '{"summary_normal":"Moving 250 euros to your savings.","urgency":"normal",
    "producer":{"agent_name":"Savings assistant"},
    "localization_hints":{"primary_language":"en"}}'
session=$(member session_id)
say "$(event state.changed '"to_state":"thinking","summary_normal":"Looking at both accounts."')"

# The question and the call carry the same values, so the answer permits exactly this call.
bound='"tool":"transfer","arguments":{"amount":"250.00","from":"checking","to":"savings"},"risk_level":"high","irreversible":true'
call POST "/$session/confirmations" application/json "{$bound,\"timeout_seconds\":300,\"default_decision\":\"reject\",
    \"action\":\"Transfer 250 euros from checking to savings.\",\"consequence\":\"The money moves at once.\",
    \"summary_normal\":\"May I transfer 250 euros from checking to savings? The money moves at once.\"}"
question=$(member reply_token)
while call GET "/$session/replies/$question?wait=$wait" && [ "$(member status)" = pending ]; do :; done

if [ "$(member decision)" = accept ]; then
    say "$(event state.changed '"to_state":"calling_tool","summary_normal":"Transferring the money."')" \
        "$(event tool.invoked "$bound,\"tool_call_id\":\"call_1\",\"summary_normal\":\"Transferring 250 euros to savings.\"")"
    words='The money is in your savings.' # A real agent would call the bank here.
    say "$(event tool.completed '"tool":"transfer","tool_call_id":"call_1","status":"success","summary_normal":"Transferred."')" \
        "$(event state.changed '"to_state":"thinking","summary_normal":"Looking at the receipt."')"
else
    [ "$(member status)" != stopped ] || { session='' && die 1 "The person stopped the session. Nothing was transferred."; }
    case $(member by) in
        reply) words='Nothing was transferred, because the answer was no.' ;;
        *) words="Nothing was transferred, because nobody answered ($(member by))." ;;
    esac
fi
call POST "/$session/output?complete=true" text/plain "$words"
say "$(event session.completed "\"summary_normal\":\"$words\"")"
printf '%s\n' "$words"
