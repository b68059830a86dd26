"""A peer made with version 1 of the Python SDK, which supports the revisions up to 2025-11-25."""

from contextlib import asynccontextmanager

import httpx
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

import common
import login


class Peer:
    """The steps, with the functions of version 1."""

    def __init__(self, session, notes):
        self.session = session
        self.notes = notes

    async def every(self, page, field):
        """All entries of a list, page by page."""
        entries, cursor = [], None
        while True:
            result = await page(params=types.PaginatedRequestParams(cursor=cursor))
            entries += getattr(result, field)
            cursor = result.nextCursor
            if not cursor:
                return entries

    async def tools(self):
        return [tool.name for tool in await self.every(self.session.list_tools, "tools")]

    async def resources(self):
        listed = await self.every(self.session.list_resources, "resources")
        return [str(resource.uri) for resource in listed]

    async def prompts(self):
        return [prompt.name for prompt in await self.every(self.session.list_prompts, "prompts")]

    async def call(self, name, arguments, heard=None):
        return common.plain(await self.session.call_tool(name, arguments, progress_callback=heard))

    async def read(self, uri):
        return common.plain(await self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments):
        return common.plain(await self.session.get_prompt(name, arguments))

    async def cancelled(self):
        # This version stops waiting and sends no cancellation.
        last = types.CancelledNotificationParams(requestId=self.session._request_id - 1)
        told = types.CancelledNotification(params=last)
        await self.session.send_notification(types.ClientNotification(told))

    async def changed(self, calling):
        result = await calling
        await self.notes.tools_changed.wait()
        return result


@asynccontextmanager
async def connected(options):
    """The two streams to the server, over HTTP or over the stdio of its process.

    An address that ends in `/sse` has the transport of 2024-11-05."""
    if options.url and options.url.endswith("/sse"):
        async with sse_client(options.url) as (read, write):
            yield read, write
    elif options.login:
        auth = login.provider(options, lambda returned: (returned["code"], returned.get("state")))
        async with httpx.AsyncClient(auth=auth) as client:
            async with streamable_http_client(options.url, http_client=client) as (read, write, _):
                yield read, write
    elif options.url:
        async with streamable_http_client(options.url) as (read, write, _):
            yield read, write
    else:
        parameters = common.server_parameters(StdioServerParameters, options)
        async with stdio_client(parameters) as (read, write):
            yield read, write


async def talk(options, notes):
    """Connects and performs the requested steps."""
    if options.mode not in ("default", "legacy"):
        raise SystemExit(f"version 1 of the Python SDK cannot be made to speak {options.mode}")

    async def elicit(_context, params):
        notes.elicited = True
        schema = getattr(params, "requestedSchema", None)
        return types.ElicitResult(action="accept", content=common.answer(schema))

    async def sample(_context, _params):
        notes.sampled = True
        said = types.TextContent(type="text", text=common.SAMPLED)
        return types.CreateMessageResult(role="assistant", content=said, model="peer-model")

    async def roots(_context):
        notes.rooted = True
        return types.ListRootsResult(roots=[types.Root(**common.ROOT)])

    async def message(heard):
        if isinstance(heard, Exception):
            notes.failed("transport", heard)
        elif isinstance(getattr(heard, "root", None), types.ToolListChangedNotification):
            notes.tools_changed.set()

    async with connected(options) as (read, write):
        async with ClientSession(
            read,
            write,
            sampling_callback=sample,
            elicitation_callback=elicit,
            list_roots_callback=roots,
            message_handler=message,
        ) as session:
            welcome = await session.initialize()
            done = await common.perform(Peer(session, notes), notes, options)
            return {
                "protocol": welcome.protocolVersion,
                "server": common.plain(welcome.serverInfo),
            } | done


if __name__ == "__main__":
    common.main("python-v1", talk)
