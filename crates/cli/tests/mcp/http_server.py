"""A scripted MCP server over streamable HTTP.

It logs the HTTP method, the MCP, authorization and Last-Event-ID headers, and the body of every request to the file LOG.

Usage: http_server.py LOG      prints its port"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = open(sys.argv[1], "a", buffering=1)
# The answers to elicitations of the server.
ANSWERS = {}
ANSWERED = threading.Condition()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def log_call(self, body):
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower().startswith(("mcp-", "auth", "last-"))}
        LOG.write(json.dumps({"http": self.command, "headers": headers, "body": body}) + "\n")

    def reply(self, status, content_type, body, headers=()):
        data = body.encode()
        self.send_response(status)
        if content_type:
            self.send_header("Content-Type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.log_call(None)
        self.reply(405, None, "")

    def do_DELETE(self):
        self.log_call(None)
        self.reply(200, None, "")

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.log_call(message)
        if "method" not in message and "id" in message:
            with ANSWERED:
                ANSWERS[message["id"]] = message["result"]
                ANSWERED.notify_all()
        if "method" not in message or "id" not in message:
            return self.reply(202, None, "")
        method, params, id_ = message["method"], message.get("params", {}), message["id"]
        response = lambda result: {"jsonrpc": "2.0", "id": id_, "result": result}
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s"}, "capabilities": {}}
            # White space and line breaks are allowed.
            return self.reply(200, "application/json", json.dumps(response(result), indent=2), [("Mcp-Session-Id", "s-1")])
        if method == "tools/list":
            region = {"type": "string", "x-mcp-header": "Region"}
            schema = {"type": "object", "properties": {"region": region}}
            tools = [{"name": "read", "annotations": {"readOnlyHint": True}, "inputSchema": schema}, {"name": "write"}]
            return self.reply(200, "application/json", json.dumps(response({"tools": tools})))
        if method == "broken":
            return self.reply(500, "text/plain", "oops")
        if method == "elicit":
            # Asks in the stream of the response, and answers when it has the input.
            question = f"elicit-{id_}"
            request = {"jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": params["request"]}
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(f"data: {json.dumps(request)}\n\n".encode())
            self.wfile.flush()
            with ANSWERED:
                ANSWERED.wait_for(lambda: question in ANSWERS)
            self.wfile.write(f"data: {json.dumps(response({'given': ANSWERS[question]}))}\n\n".encode())
            self.close_connection = True
            return None
        if method == "tools/call" and params["name"] == "form" and "inputResponses" not in params:
            schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            form = {"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": schema}}
            result = {"resultType": "input_required", "requestState": "1", "inputRequests": {"q": form}}
            return self.reply(200, "application/json", json.dumps(response(result)))
        if method == "tools/call" and params["name"] == "form":
            result = {"content": [{"type": "text", "text": json.dumps(params["inputResponses"])}]}
            return self.reply(200, "application/json", json.dumps(response(result)))
        if method == "tools/call":
            log_notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "working"}}
            result = response({"content": [{"type": "text", "text": params["name"] + " done"}]})
            events = f"event: message\nid: 1\ndata: {json.dumps(log_notification)}\n\ndata: {json.dumps(result)}\n\n"
            return self.reply(200, "text/event-stream", events)
        return self.reply(200, "application/json", json.dumps(response({})))


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
