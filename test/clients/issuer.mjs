// Is an authorization server on a free port of loopback, by oidc-provider: issuer.mjs AUDIENCE…
//
// It prints its URL, and makes JWTs for the resources that are named, and opaque tokens for others.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.env.CLIENTS}/`);
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));
const audiences = process.argv.slice(2);
const server = createServer();
await new Promise(listens => server.listen(0, '127.0.0.1', listens));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
	clients: [{
		client_id: 'agent', client_secret: 'for-this-test-alone', grant_types: ['client_credentials'],
		redirect_uris: [], response_types: [],
	}],
	features: {
		clientCredentials: { enabled: true },
		devInteractions: { enabled: false },
		resourceIndicators: {
			enabled: true,
			getResourceServerInfo: (_, resource) => ({
				scope: 'mcp', audience: resource,
				accessTokenFormat: audiences.includes(resource) ? 'jwt' : 'opaque',
				jwt: { sign: { alg: 'RS256' } },
			}),
		},
	},
});
server.on('request', provider.callback());
console.log(issuer);
