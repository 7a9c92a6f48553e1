import { randomBytes, randomUUID } from 'node:crypto';
import type { Service } from '../services/service.js';

export type BrowserResponse = {
  status: number;
  headers: Headers;
  text: string;
  location: string | null;
};

/** Acts like a browser without scripts: keeps cookies, follows no redirects by itself, sends forms with their origin. */
export class Browser {
  readonly cookies = new Map<string, string>();
  private page = '';
  /** Each has an address of its own, where the service trusts a proxy. */
  address = `2001:db8:${randomBytes(2).toString('hex')}:${randomBytes(2).toString('hex')}::1`;

  /** @param origin of PUBLIC_URL */
  constructor(
    readonly service: Pick<Service, 'baseUrl'>,
    readonly origin = 'https://cards.example',
  ) {}

  get(path: string, headers: Record<string, string> = {}): Promise<BrowserResponse> {
    return this.sendRequest('GET', path, headers);
  }

  /** Sends the token of the page shown before it. Each form counts as one that was not sent before. */
  post(
    path: string,
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
  ): Promise<BrowserResponse> {
    const body = new URLSearchParams({ _csrf: this.csrf, form_key: randomUUID(), ...fields });
    return this.sendRequest(
      'POST',
      path,
      { origin: this.origin, 'sec-fetch-site': 'same-origin', ...headers },
      body,
    );
  }

  async signIn(email: string, password: string): Promise<BrowserResponse> {
    await this.get('/app/sign-in');
    return this.post('/app/sign-in', { email, password });
  }

  /** Of the last page. */
  get csrf(): string {
    return /name="_csrf" value="([^"]*)"/.exec(this.page)?.[1] ?? '';
  }

  private async sendRequest(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: URLSearchParams,
  ): Promise<BrowserResponse> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(this.service.baseUrl + path, {
      method,
      redirect: 'manual',
      headers: {
        accept: 'text/html',
        'x-forwarded-for': this.address,
        ...(cookie && { cookie }),
        ...headers,
      },
      ...(body && { body }),
    });
    for (const set of response.headers.getSetCookie()) this.keep(set);
    const text = await response.text();
    if (text !== '') this.page = text;
    const location = response.headers.get('location');
    return { status: response.status, headers: response.headers, text, location };
  }

  private keep(set: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
    if (/; Max-Age=0(;|$)/.test(set)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}
