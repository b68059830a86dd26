"""A client with the OpenTelemetry SDK of Python: calls a tool within a span, and prints the spans of its own process.

    client.py URL TOOL JSON

The MCP SDK makes a span for each request and sends its context in `_meta`. The client answers elicitations.
"""

import asyncio
import json
import sys

import mcp_types as types
from mcp import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


async def call(url, tool, arguments):
    async def elicit(_context, _params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with Client(url, mode="2026-07-28", elicitation_callback=elicit) as client:
        return await client.call_tool(tool, arguments)


def main():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    url, tool, arguments = sys.argv[1:]
    with trace.get_tracer("test").start_as_current_span("test"):
        result = asyncio.run(call(url, tool, json.loads(arguments)))
    spans = [
        {
            "name": span.name,
            "trace_id": f"{span.context.trace_id:032x}",
            "span_id": f"{span.context.span_id:016x}",
            "parent": f"{span.parent.span_id:016x}" if span.parent else "",
        }
        for span in exporter.get_finished_spans()
    ]
    text = [block.text for block in result.content]
    print(json.dumps({"spans": spans, "text": text, "is_error": result.is_error}))


main()
