// The tools of the servers made with the TypeScript SDK: one for each feature of a call.
//
// ../README.md describes them. A server passes the functions of its SDK for progress, input requests and cancellation.

import { writeFileSync } from 'node:fs';

const text = said => ({ content: [{ type: 'text', text: said }] });
const object = (properties = {}) => ({ type: 'object', properties, required: Object.keys(properties) });

const TOOLS = {
  echo: {
    inputSchema: object({ text: { type: 'string' } }),
    run: ({ text: said }) => text(said),
  },
  weather: {
    inputSchema: object(),
    outputSchema: object({ city: { type: 'string' }, temperature: { type: 'number' } }),
    run: () => {
      const structuredContent = { city: 'Berlin', temperature: 21.5 };
      return { ...text(JSON.stringify(structuredContent)), structuredContent };
    },
  },
  count: {
    inputSchema: object(),
    run: async (_, { progress }) => {
      for (const at of [1, 2, 3]) await progress(at, 3);
      return text('counted');
    },
  },
  greet: {
    inputSchema: object(),
    run: async (_, { elicit }) => {
      const requestedSchema = object({ name: { type: 'string' } });
      const { action, content } = await elicit({ message: 'Who are you?', requestedSchema });
      return text(action === 'accept' ? `Hello, ${content.name}!` : `Nobody: ${action}.`);
    },
  },
  think: {
    inputSchema: object(),
    run: async (_, { sample }) => {
      const content = { type: 'text', text: 'Think.' };
      const thought = await sample({ messages: [{ role: 'user', content }], maxTokens: 100 });
      return text(`Thought: ${[thought.content].flat()[0].text}`);
    },
  },
  grow: {
    inputSchema: object(),
    run: async (_, { changed }) => {
      await changed();
      return text('grown');
    },
  },
  wait: {
    inputSchema: object({ file: { type: 'string' } }),
    run: async ({ file }, { progress, signal }) => {
      await progress(1, 2);
      await new Promise(resolve => signal.addEventListener('abort', resolve));
      writeFileSync(file, 'cancelled');
      return text('waited');
    },
  },
};

/** The number of added tools: each changes the list of tools. */
let grown = 0;

/** The list of tools. */
export function list() {
  const tools = Object.entries(TOOLS);
  for (let number = 1; number <= grown; number += 1) {
    tools.push([`grown${number}`, { inputSchema: object() }]);
  }
  return tools.map(([name, { inputSchema, outputSchema }]) => ({ name, inputSchema, outputSchema }));
}

/** Runs the tool of a call. */
export async function call({ name, arguments: given }, means) {
  const changed = () => {
    grown += 1;
    return means.changed();
  };
  return TOOLS[name].run(given ?? {}, { ...means, changed });
}

/** Prints the address of a server in the form that the tests expect. */
export function listens(server, path = '/mcp') {
  server.listen(0, '127.0.0.1', () => {
    process.stderr.write(`it listens on http://127.0.0.1:${server.address().port}${path}\n`);
  });
}

/** The capabilities of the servers. */
export const CAPABILITIES = { tools: { listChanged: true } };
