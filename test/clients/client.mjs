// Calls run_python with the TypeScript SDK: client.mjs NAME URL, or client.mjs NAME COMMAND ARGUMENT…
//
// What NAME means is said in sdk.mjs.
import { connect } from './sdk.mjs';

const [name, ...server] = process.argv.slice(2);
const code = 'import time\nprint("news", flush=True)\ntime.sleep(1.2)\nprint(6 * 7)';
const news = [];
const { client, transport, call } = await connect(name, server, { onprogress: p => news.push(p.message) });
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
