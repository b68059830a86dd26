"""A peer made with version 2 of the Python SDK, which supports 2026-07-28 and the earlier revisions."""

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.auth import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client

import common
import login

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}
"""The SDK's name of each mode; `modern` starts without `server/discover`."""


class Peer:
    """The steps, with the functions of version 2."""

    def __init__(self, client, notes):
        self.client = client
        self.notes = notes

    async def every(self, page, field):
        """All entries of a list, page by page."""
        entries, cursor = [], None
        while True:
            result = await page(cursor=cursor)
            entries += getattr(result, field)
            cursor = result.next_cursor
            if not cursor:
                return entries

    async def tools(self):
        return [tool.name for tool in await self.every(self.client.list_tools, "tools")]

    async def resources(self):
        listed = await self.every(self.client.list_resources, "resources")
        return [str(resource.uri) for resource in listed]

    async def prompts(self):
        return [prompt.name for prompt in await self.every(self.client.list_prompts, "prompts")]

    async def call(self, name, arguments, heard=None):
        return common.plain(await self.client.call_tool(name, arguments, progress_callback=heard))

    async def read(self, uri):
        return common.plain(await self.client.read_resource(uri))

    async def prompt(self, name, arguments):
        return common.plain(await self.client.get_prompt(name, arguments))

    async def changed(self, calling):
        if self.client.protocol_version < MODES["modern"]:
            result = await calling
            await self.notes.tools_changed.wait()
            return result
        async with self.client.listen(tools_list_changed=True) as subscription:
            result = await calling
            async for _ in subscription:
                self.notes.tools_changed.set()
                break
            return result


def target(options):
    """What the client connects to: a server on the network, with a login if that is wanted, or a process."""
    if options.login:
        auth = login.provider(options, lambda returned: AuthorizationCodeResult(**returned))
        return streamable_http_client(options.url, http_client=httpx2.AsyncClient(auth=auth))
    return options.url or common.server_parameters(StdioServerParameters, options)


async def talk(options, notes):
    """Connects and performs the requested steps."""

    async def elicit(_context, params):
        notes.elicited = True
        schema = getattr(params, "requested_schema", None)
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
        elif isinstance(heard, types.ToolListChangedNotification):
            notes.tools_changed.set()

    mode = {} if options.mode == "default" else {"mode": MODES[options.mode]}
    async with Client(
        target(options),
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        message_handler=message,
        **mode,
    ) as client:
        done = await common.perform(Peer(client, notes), notes, options)
        server = client.server_info
        return {
            "protocol": client.protocol_version,
            "server": common.plain(server) if server else None,
        } | done


if __name__ == "__main__":
    common.main("python-v2", talk)
