"""A server made with version 2 of the Python SDK: it supports both eras.

To whoever does not shake hands it ends a call with its questions; in a session it asks while the call waits.
"""

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import common
import tools

bus = InMemorySubscriptionBus()


class Unanswered(Exception):
    """Ends a run of a tool whose input request has no response yet."""

    def __init__(self, request):
        super().__init__("the question has no answer yet")
        self.request = request


class Means:
    """Progress notifications and input requests of version 2 within a call."""

    def __init__(self, context, answers):
        self.session = context.session
        self.request = context.request_id
        self.answers = answers or {}
        self.shakes = context.session.protocol_version not in MODERN_PROTOCOL_VERSIONS

    async def progress(self, at, total):
        await self.session.report_progress(at, total)

    def answer(self, request):
        if "asked" not in self.answers:
            raise Unanswered(request)
        return common.plain(self.answers["asked"])

    async def elicit(self, message, schema):
        if self.shakes:
            return common.plain(await self.session.elicit(message, schema, self.request))
        params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        return self.answer(types.ElicitRequest(params=params))

    async def sample(self, prompt):
        said = types.TextContent(type="text", text=prompt)
        messages = [types.SamplingMessage(role="user", content=said)]
        if self.shakes:
            thought = await self.session.create_message(
                messages, max_tokens=100, related_request_id=self.request
            )
            return thought.content.text
        params = types.CreateMessageRequestParams(messages=messages, max_tokens=100)
        content = self.answer(types.CreateMessageRequest(params=params))["content"]
        return (content[0] if isinstance(content, list) else content)["text"]

    async def changed(self):
        if self.shakes:
            await self.session.send_tool_list_changed()
        await bus.publish(ToolsListChanged())


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=[types.Tool(**tool) for tool in tools.listed()])


async def call_tool(context, params):
    means = Means(context, params.input_responses)
    try:
        return types.CallToolResult(**await tools.call(params.name, params.arguments or {}, means))
    except Unanswered as question:
        return types.InputRequiredResult(input_requests={"asked": question.request})


server = Server(
    "python-v2",
    version="1.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(bus),
)


async def over_stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


tools.serve(over_stdio, server.streamable_http_app)
