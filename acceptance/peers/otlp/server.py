"""A server with the OpenTelemetry SDK of Python. It writes the spans of its process to the file of its argument.

The MCP SDK makes a span for each request, whose parent is the context in `_meta`. The tool `greet` elicits a name.
"""

import json
import sys

from mcp.server.mcpserver import Context, MCPServer
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from pydantic import BaseModel


class Lines(SpanExporter):
    """Writes one line for each span."""

    def export(self, spans):
        with open(sys.argv[1], "a", encoding="utf-8") as file:
            for span in spans:
                told = {
                    "name": span.name,
                    "trace_id": f"{span.context.trace_id:032x}",
                    "span_id": f"{span.context.span_id:016x}",
                    "parent": f"{span.parent.span_id:016x}" if span.parent else "",
                }
                file.write(json.dumps(told) + "\n")
        return SpanExportResult.SUCCESS


class Name(BaseModel):
    name: str


server = MCPServer("traced")


@server.tool()
async def echo(text: str) -> str:
    return text


@server.tool()
async def greet(context: Context) -> str:
    answer = await context.elicit("Your name?", Name)
    return f"Hello, {answer.data.name}!"


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(Lines()))
trace.set_tracer_provider(provider)
server.run("stdio")
