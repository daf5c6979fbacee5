// Calls run_python with the TypeScript SDK: client.mjs NAME URL, or client.mjs NAME COMMAND ARGUMENT…
//
// NAME of v2 is for the SDK's second version and 2026-07-28, another one for its first and a session.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [name, ...server] = process.argv.slice(2);
const require = createRequire(`${process.env.CLIENTS}/`);
const load = path => import(pathToFileURL(require.resolve(path)));

const code = 'import time\nprint("news", flush=True)\ntime.sleep(1.2)\nprint(6 * 7)';
const about = { name: 'mcp-bridge-test', version: '1' };
let client, call, transport;
const news = [];
const options = { onprogress: p => news.push(p.message) };
if (name === 'v2') {
	const sdk = await load('@modelcontextprotocol/client');
	client = new sdk.Client(about, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
	transport = new sdk.StreamableHTTPClientTransport(new URL(server[0]));
	call = request => client.callTool(request, options);
} else {
	const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
	client = new Client(about);
	if (server.length > 1) {
		const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
		transport = new StdioClientTransport({ command: server[0], args: server.slice(1), env: process.env, stderr: 'ignore' });
	} else {
		const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
		transport = new StreamableHTTPClientTransport(new URL(server[0]));
	}
	call = request => client.callTool(request, undefined, options);
}
await client.connect(transport);
const tools = (await client.listTools()).tools.map(t => t.name);
const result = await call({ name: 'run_python', arguments: { code } });
const text = result.content[0].text;
if (transport.terminateSession) {
	await transport.terminateSession();
}
await client.close();
if (!tools.includes('run_python') || !text.includes('42') || !news.some(m => m.includes('news'))) {
	throw new Error(`${tools}\n${text}\n${news}`);
}
console.log(`ok   TypeScript SDK, ${name}: 42, after ${news.length} reports`);
