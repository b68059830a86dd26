"""A server made with version 1 of the Python SDK: it uses the handshake, and sends input requests during a call."""

import contextlib

from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

import common
import tools

server = Server("python-v1", version="1.0.0")


class Means:
    """Progress notifications and input requests of version 1 within a call."""

    def __init__(self, context):
        self.session = context.session
        self.request = context.request_id
        self.token = context.meta and context.meta.progressToken

    async def progress(self, at, total):
        if self.token is not None:
            await self.session.send_progress_notification(
                self.token, at, total, related_request_id=str(self.request)
            )

    async def elicit(self, message, schema):
        return common.plain(await self.session.elicit(message, schema, related_request_id=self.request))

    async def sample(self, prompt):
        said = types.TextContent(type="text", text=prompt)
        messages = [types.SamplingMessage(role="user", content=said)]
        thought = await self.session.create_message(
            messages, max_tokens=100, related_request_id=self.request
        )
        return thought.content.text

    async def changed(self):
        await self.session.send_tool_list_changed()


@server.list_tools()
async def list_tools():
    return [types.Tool(**tool) for tool in tools.listed()]


@server.call_tool()
async def call_tool(name, arguments):
    result = await tools.call(name, arguments, Means(server.request_context))
    return types.CallToolResult(**result)


async def converse(read, write):
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    await server.run(read, write, options)


async def over_stdio():
    async with stdio_server() as (read, write):
        await converse(read, write)


def application():
    # The manager creates the options itself, without list changes.
    made = server.create_initialization_options
    server.create_initialization_options = lambda: made(NotificationOptions(tools_changed=True))
    sessions = StreamableHTTPSessionManager(server)

    @contextlib.asynccontextmanager
    async def running(_):
        async with sessions.run():
            yield

    return Starlette(routes=[Mount("/", app=sessions.handle_request)], lifespan=running)


def streaming():
    """The application with the transport of 2024-11-05."""
    streams = SseServerTransport("/messages/")

    async def opened(request):
        async with streams.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await converse(read, write)
        return Response()

    taken = Mount("/messages/", app=streams.handle_post_message)
    return Starlette(routes=[Route("/sse", endpoint=opened), taken])


tools.serve(over_stdio, application, streaming)
