"""A server made with FastMCP: it supports both eras and sends no list changes.

To whoever does not shake hands it ends a call with its questions; in a session it asks by `Context.elicit`, as most
tools that were made with FastMCP do.
"""

from dataclasses import dataclass

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import common
import tools

server = FastMCP("fastmcp", version="1.0.0")


class Unanswered(Exception):
    """Ends a run of a tool whose input request has no response yet."""

    def __init__(self, request):
        super().__init__("the question has no answer yet")
        self.request = request


@dataclass
class Name:
    """The form of the tool `greet`."""

    name: str


class Means:
    """Progress notifications and input requests of FastMCP within a call."""

    def __init__(self, context):
        self.context = context
        self.shakes = context.session.protocol_version not in MODERN_PROTOCOL_VERSIONS
        self.progress = context.report_progress
        self.answers = context.input_responses or {}

    def answer(self, request):
        if "asked" not in self.answers:
            raise Unanswered(request)
        return common.plain(self.answers["asked"])

    async def elicit(self, message, schema):
        if self.shakes:
            answer = await self.context.elicit(message, response_type=Name)
            accepted = {"content": {"name": answer.data.name}} if answer.action == "accept" else {}
            return {"action": answer.action} | accepted
        params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        return self.answer(types.ElicitRequest(params=params))

    async def sample(self, prompt):
        said = types.TextContent(type="text", text=prompt)
        messages = [types.SamplingMessage(role="user", content=said)]
        if self.shakes:
            thought = await self.context.session.create_message(
                messages, max_tokens=100, related_request_id=self.context.request_id
            )
            return thought.content.text
        params = types.CreateMessageRequestParams(messages=messages, max_tokens=100)
        content = self.answer(types.CreateMessageRequest(params=params))["content"]
        return (content[0] if isinstance(content, list) else content)["text"]


async def run(name, arguments, context):
    """Runs one of the tools of all servers."""
    try:
        result = await tools.call(name, arguments, Means(context))
    except Unanswered as question:
        return types.InputRequiredResult(input_requests={"asked": question.request})
    said = [types.TextContent(**block) for block in result["content"]]
    return ToolResult(content=said, structured_content=result.get("structuredContent"))


@server.tool
async def echo(text: str, context: Context):
    return await run("echo", {"text": text}, context)


@server.tool(output_schema=tools.TOOLS["weather"]["outputSchema"])
async def weather(context: Context):
    return await run("weather", {}, context)


@server.tool
async def count(context: Context):
    return await run("count", {}, context)


@server.tool
async def greet(context: Context):
    return await run("greet", {}, context)


@server.tool
async def think(context: Context):
    return await run("think", {}, context)


@server.tool
async def wait(file: str, context: Context):
    return await run("wait", {"file": file}, context)


async def over_stdio():
    await server.run_stdio_async(show_banner=False)


tools.serve(over_stdio, server.http_app)
