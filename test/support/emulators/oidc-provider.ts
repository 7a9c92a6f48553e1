import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Claims = Record<string, unknown>;
type AuthMethod = 'client_secret_basic' | 'client_secret_post' | 'none';
type PendingSignIn = { nonce: string; challenge: string; redirectUri: string; claims: Claims };

/** An identity provider of a company that signs real tokens and checks what a client has to send. */
export class CompanyProvider {
  /** The claims of the user in front of the browser. */
  person: Claims = { sub: '1', email: 'grace@company.example', email_verified: true };
  /** In place of what an honest provider says. */
  lies: Claims = {};
  readonly clientId = 'inkpad';
  readonly clientSecret = 'a secret: 100% of the cömpany + friends/=&_-.~';
  /** The ways to send the secret that it names and accepts; undefined: it names none, and accepts the default. */
  authMethods: readonly string[] | undefined = ['client_secret_post', 'client_secret_basic'];
  /** The claims that UserInfo responds with; undefined: there is no UserInfo. */
  userInfo: Claims | undefined;
  /** What UserInfo does in place of a response: a status, or ending the connection, or nothing at all. */
  userInfoFailure: number | 'reset' | 'silence' | undefined;
  /** The status of its responses for tokens, in place of what the request deserves. */
  failure: { status: number; body: string } | undefined;
  /** The ways in which clients have sent the secret. */
  readonly authentications: AuthMethod[] = [];
  private readonly keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  private readonly accessTokens = new Map<string, Claims>();
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
    if (url.pathname === '/userinfo') return this.describePerson(request, response);
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
      ...(this.authMethods && { token_endpoint_auth_methods_supported: this.authMethods }),
      ...(this.userInfo && { userinfo_endpoint: `${this.issuer}/userinfo` }),
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
    if (this.failure) {
      response.writeHead(this.failure.status, { 'content-type': 'text/html' });
      response.end(this.failure.body);
      return;
    }
    const form = new URLSearchParams(text);
    if (!this.authenticateClient(request.headers.authorization, form, response)) return;
    const signIn = this.pendingSignIns.get(form.get('code') ?? '');
    this.pendingSignIns.delete(form.get('code') ?? '');
    const verifier = createHash('sha256').update(form.get('code_verifier') ?? '');
    const fit =
      signIn?.challenge === verifier.digest('base64url') &&
      form.get('redirect_uri') === signIn.redirectUri;
    if (!fit || !signIn) return json(response, { error: 'invalid_grant' }, 400);
    const now = Math.floor(Date.now() / 1000);
    const claims: Claims = {
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
    const accessToken = randomBytes(16).toString('hex');
    this.accessTokens.set(accessToken, { sub: claims['sub'], ...this.userInfo });
    json(response, {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: 300,
      id_token: `${signed}.${signature.toString('base64url')}`,
    });
  }

  /**
   * Authenticates the client by one method alone (RFC 6749, section 2.3), and one that it accepts.
   * @returns false when it has sent the error (section 5.2)
   */
  private authenticateClient(
    authorization: string | undefined,
    form: URLSearchParams,
    response: ServerResponse,
  ): boolean {
    const [id, secret, method]: [string | null, string | null, AuthMethod] =
      authorization !== undefined
        ? [...parseBasic(authorization), 'client_secret_basic']
        : form.has('client_secret')
          ? [form.get('client_id'), form.get('client_secret'), 'client_secret_post']
          : [form.get('client_id'), null, 'none'];
    const accepted = this.authMethods?.length ? this.authMethods : ['client_secret_basic'];
    const isRight = id === this.clientId && (method === 'none' || secret === this.clientSecret);
    const isOnlyOne = authorization === undefined || !form.has('client_secret');
    this.authentications.push(method);
    if (isRight && isOnlyOne && accepted.includes(method)) return true;
    if (authorization !== undefined)
      response.setHeader('www-authenticate', 'Basic realm="company"');
    json(response, { error: 'invalid_client', error_description: `not ${String(secret)}` }, 401);
    return false;
  }

  /** Responds to UserInfo with the claims of the person whose token it gets (OpenID Connect Core 1.0, section 5.3). */
  private describePerson(request: IncomingMessage, response: ServerResponse): void {
    const { userInfoFailure: failure } = this;
    if (failure === 'silence') return;
    if (failure === 'reset') return void request.socket.destroy();
    if (failure !== undefined) return void response.writeHead(failure).end('<h1>no</h1>');
    const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    const claims = this.accessTokens.get(token);
    if (claims) return json(response, claims);
    response.setHeader('www-authenticate', 'Bearer error="invalid_token"');
    response.writeHead(401).end();
  }
}

/** Parses credentials that were encoded like a form before Base64 (RFC 6749, section 2.3.1). */
function parseBasic(authorization: string): [string, string] {
  const [, encoded = ''] = /^Basic (.+)$/.exec(authorization) ?? [];
  const [id = '', secret = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  const decode = (text: string) => new URLSearchParams(`x=${text}`).get('x') ?? '';
  return [decode(id), decode(secret)];
}

function json(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
