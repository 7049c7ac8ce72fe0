"""Reports a small agent run with OpenTelemetry's own SDK. Usage: otlp_report.py ENDPOINT [gzip]"""

import json
import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode

endpoint = sys.argv[1]
compression = Compression.Gzip if "gzip" in sys.argv else Compression.NoCompression
resource = Resource.create({"service.name": "python-shop"})
traces = TracerProvider(resource=resource)
traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint + "/v1/traces", compression=compression)))
logs = LoggerProvider(resource=resource)
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=endpoint + "/v1/logs", compression=compression)))
tracer, logger = traces.get_tracer("test"), logs.get_logger("test")

with tracer.start_as_current_span("invoke_agent Clerk") as agent:
    agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Clerk", "gen_ai.conversation.id": "c-7"})
    with tracer.start_as_current_span("execute_tool look_up") as tool:
        tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"})
        tool.set_attribute("gen_ai.tool.call.arguments", json.dumps({"order": 17}))
    with tracer.start_as_current_span("execute_tool refund") as tool:
        tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"})
        tool.set_status(Status(StatusCode.ERROR, "the bank is closed"))
    with tracer.start_as_current_span("chat model-1") as chat:
        chat.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-1"})
        messages = [{"role": "assistant", "parts": [{"type": "text", "content": "The refund failed."}]}]
        logger.emit(
            LogRecord(
                event_name="gen_ai.client.inference.operation.details",
                attributes={"gen_ai.output.messages": json.dumps(messages), "gen_ai.conversation.id": "c-7"},
            )
        )
assert traces.force_flush() and logs.force_flush()
traces.shutdown()
logs.shutdown()
