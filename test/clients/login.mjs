// Has the TypeScript SDK find out where tokens for a bridge are to be had, have one made, and call
// with it: login.mjs URL OTHER ISSUER, where OTHER is another resource of the same issuer.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, other, expectedIssuer] = process.argv.slice(2);
const require = createRequire(`${process.env.CLIENTS}/`);
const load = path => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/client/${path}.js`)));
const { Client } = await load('index');
const { StreamableHTTPClientTransport } = await load('streamableHttp');
const { ClientCredentialsProvider } = await load('auth-extensions');

const secret = 'for-this-test-alone';
const authProvider = new ClientCredentialsProvider({ clientId: 'agent', clientSecret: secret, expectedIssuer });
const client = new Client({ name: 'mcp-bridge-test', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
const tools = (await client.listTools()).tools.map(t => t.name);
await client.close();
if (!tools.includes('run_python')) {
	throw new Error(`${tools}`);
}

// What else the issuer makes isn't taken.
const refused = await fetch(url, { method: 'POST' });
const metadata = /resource_metadata="([^"]*)"/.exec(refused.headers.get('www-authenticate'))[1];
const { authorization_servers: [issuer] } = await (await fetch(metadata)).json();
const { token_endpoint: endpoint } = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const made = async resource => {
	const answer = await fetch(endpoint, {
		method: 'POST', headers: { Authorization: `Basic ${btoa(`agent:${secret}`)}` },
		body: new URLSearchParams({ grant_type: 'client_credentials', ...resource && { resource } }),
	});
	return (await answer.json()).access_token;
};
const status = async token => (await fetch(url, {
	method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{' +
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},' +
		'"io.modelcontextprotocol/clientCapabilities":{}}}}',
	headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
		'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'server/discover' },
})).status;
const good = await made(url);
const [head, claims, signature] = good.split('.');
const forged = JSON.parse(atob(claims.replace(/-/g, '+').replace(/_/g, '/')));
for (const [name, token, want] of [
	['for the bridge', good, 200], ['for another resource', await made(other), 401], ['opaque', await made(), 401],
	['changed', [head, btoa(JSON.stringify({ ...forged, sub: 'root' })).replace(/=/g, ''), signature].join('.'), 401],
	['without a signature', [btoa('{"alg":"none"}').replace(/=/g, ''), claims, ''].join('.'), 401],
]) {
	const got = await status(token);
	if (got !== want) {
		throw new Error(`a token ${name} is answered with ${got}: ${token}`);
	}
}
console.log('ok   tokens of oidc-provider: found, made and sent by the TypeScript SDK; four others are refused');
