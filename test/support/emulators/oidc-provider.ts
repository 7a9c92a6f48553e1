import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Claims = Record<string, unknown>;
type PendingSignIn = { nonce: string; challenge: string; redirectUri: string; claims: Claims };

/** An identity provider of a company that signs real tokens and checks what a client has to send. */
export class CompanyProvider {
  /** The claims of the user in front of the browser. */
  person: Claims = { sub: '1', email: 'grace@company.example', email_verified: true };
  /** In place of what an honest provider says. */
  lies: Claims = {};
  readonly clientId = 'inkpad';
  readonly clientSecret = 'a secret of the company';
  private readonly keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  private readonly pendingSignIns = new Map<string, PendingSignIn>();
  private server: Server | undefined;
  private issuer = '';

  /** @param host in its URLs */
  static async start(host = '127.0.0.1'): Promise<CompanyProvider> {
    const provider = new CompanyProvider();
    const server = createServer((request, response) => {
      provider.respond(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
    provider.server = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    provider.issuer = `http://${host}:${(server.address() as AddressInfo).port}`;
    return provider;
  }

  get environment(): NodeJS.ProcessEnv {
    return {
      OIDC_ISSUER: this.issuer,
      OIDC_CLIENT_ID: this.clientId,
      OIDC_CLIENT_SECRET: this.clientSecret,
    };
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.issuer);
    if (url.pathname === '/.well-known/openid-configuration') return json(response, this.metadata);
    if (url.pathname === '/keys') {
      const jwk = this.keys.publicKey.export({ format: 'jwk' });
      return json(response, { keys: [{ ...jwk, kid: 'one', alg: 'RS256', use: 'sig' }] });
    }
    if (url.pathname === '/authorize') return this.authorize(url.searchParams, response);
    if (url.pathname === '/token') return this.giveToken(request, response);
    response.writeHead(404).end();
  }

  private get metadata(): object {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      jwks_uri: `${this.issuer}/keys`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
    };
  }

  /** The person agrees at once. */
  private authorize(query: URLSearchParams, response: ServerResponse): void {
    const getParameter = (name: string) => query.get(name) ?? '';
    const fit =
      getParameter('client_id') === this.clientId &&
      getParameter('response_type') === 'code' &&
      getParameter('code_challenge_method') === 'S256' &&
      getParameter('scope').split(' ').includes('openid');
    if (!fit) return json(response, { error: 'invalid_request' }, 400);
    const code = randomBytes(16).toString('hex');
    this.pendingSignIns.set(code, {
      nonce: getParameter('nonce'),
      challenge: getParameter('code_challenge'),
      redirectUri: getParameter('redirect_uri'),
      claims: { ...this.person },
    });
    const back = new URL(getParameter('redirect_uri'));
    back.searchParams.set('code', code);
    back.searchParams.set('state', getParameter('state'));
    response.writeHead(302, { location: back.href }).end();
  }

  /** Each code once, to the client that has begun. */
  private async giveToken(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const form = new URLSearchParams(text);
    const signIn = this.pendingSignIns.get(form.get('code') ?? '');
    this.pendingSignIns.delete(form.get('code') ?? '');
    const verifier = createHash('sha256').update(form.get('code_verifier') ?? '');
    const fit =
      signIn?.challenge === verifier.digest('base64url') &&
      form.get('redirect_uri') === signIn.redirectUri &&
      form.get('client_id') === this.clientId &&
      form.get('client_secret') === this.clientSecret;
    if (!fit || !signIn) return json(response, { error: 'invalid_grant' }, 400);
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: this.issuer,
      aud: this.clientId,
      iat: now,
      exp: now + 300,
      nonce: signIn.nonce,
      ...signIn.claims,
      ...this.lies,
    };
    const parts = [{ alg: 'RS256', kid: 'one' }, claims].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    );
    const signed = parts.join('.');
    const signature = sign('sha256', Buffer.from(signed), this.keys.privateKey);
    json(response, {
      access_token: randomBytes(16).toString('hex'),
      token_type: 'Bearer',
      expires_in: 300,
      id_token: `${signed}.${signature.toString('base64url')}`,
    });
  }
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
