// Calls run_python with the TypeScript SDK until the bridge is killed, and says what has it called
// again: killed.mjs NAME URL, or killed.mjs NAME COMMAND ARGUMENT…, as client.mjs.
import { connect } from './sdk.mjs';

const [name, ...server] = process.argv.slice(2);
const pause = () => new Promise(done => setTimeout(done, 200));
const options = { timeout: 10_000 };
let { client, call } = await connect(name, server, options);
let made = 0;
const works = async () => {
	const result = await call({ name: 'run_python', arguments: { code: 'print(6 * 7)' } });
	if (!result.content[0].text.startsWith('42')) {
		throw new Error(result.content[0].text);
	}
	made++;
};
// attempt returns why a call fails, or nothing.
const attempt = async () => {
	try {
		await works();
	} catch (e) {
		return `${e.message}`.split('\n')[0].slice(0, 160) || e.name;
	}
};
let why = await attempt();
if (why) {
	throw new Error(why);
}
console.log('ready');
const end = Date.now() + 90_000;
while (!why && Date.now() < end) {
	why = await attempt();
}
const failures = [why];
const before = made;
// The same client is given twenty seconds from when the bridge is there again.
const url = server.find(word => word.startsWith('http'));
let again = 0;
while (failures.at(-1) && (!again || Date.now() - again < 20_000)) {
	await pause();
	again ||= await fetch(new URL('/healthz', url)).then(() => Date.now(), () => 0);
	const failed = await attempt();
	if (failed !== failures.at(-1)) {
		failures.push(failed);
	}
}
let by = 'the same client goes on by itself';
if (failures.at(-1)) {
	await client.close().catch(() => {});
	({ client, call } = await connect(name, server, options));
	await works();
	by = 'another client goes on';
}
await client.close();
console.log(`ok   TypeScript SDK, ${name}: ${before} calls, then ${failures.filter(Boolean).join(' | ')}; ${by}`);
process.exit();
