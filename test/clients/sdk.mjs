// Connects with the TypeScript SDK: to a URL, or by standard input and output to a command.
//
// NAME of v2 is for the SDK's second version and 2026-07-28, another one for its first and a session.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.env.CLIENTS}/`);
const load = path => import(pathToFileURL(require.resolve(path)));
const about = { name: 'mcp-bridge-test', version: '1' };

/** Returns a client that is connected, its transport, and what calls a tool. */
export async function connect(name, server, options) {
	if (name === 'v2') {
		const sdk = await load('@modelcontextprotocol/client');
		const client = new sdk.Client(about, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
		const transport = new sdk.StreamableHTTPClientTransport(new URL(server[0]));
		await client.connect(transport);
		return { client, transport, call: request => client.callTool(request, options) };
	}
	const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
	const client = new Client(about);
	let transport;
	if (server.length > 1) {
		const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
		transport = new StdioClientTransport({ command: server[0], args: server.slice(1), env: process.env, stderr: 'ignore' });
	} else {
		const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
		transport = new StreamableHTTPClientTransport(new URL(server[0]));
	}
	await client.connect(transport);
	return { client, transport, call: request => client.callTool(request, undefined, options) };
}
