import { randomBytes, randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { SESSION_COOKIE, Sessions } from '#identity/sessions.service.js';
import type { LocalService, Service } from '../services/service.js';

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

  /**
   * Opens a browser in which somebody is signed in, without the password that takes long to verify.
   * @param baseUrl of another process of the service
   */
  static async signedIn(
    service: LocalService,
    email: string,
    baseUrl = service.baseUrl,
  ): Promise<Browser> {
    const { rows } = await service.database.query<{ id: string }>(
      'select id from users where email = $1',
      [email],
    );
    const source = service.app.get(DataSource, { strict: false });
    const sessions = service.app.get(Sessions, { strict: false });
    const token = await source.transaction((manager) =>
      sessions.begin(manager, Number(rows[0]?.id), { awaitsCode: false }),
    );
    const browser = new Browser({ baseUrl });
    browser.cookies.set(`__Host-${SESSION_COOKIE}`, token);
    return browser;
  }

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
    return this.sendForm(path, body, headers);
  }

  /** Sends the form that stands on a page, with the key that it has there. */
  async submit(
    page: string,
    action: string,
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
  ): Promise<BrowserResponse> {
    const { text } = await this.get(page);
    return this.sendForm(
      action,
      new URLSearchParams({ ...readHiddenFields(text), ...fields }),
      headers,
    );
  }

  /** Sends the form with files that stands on a page. */
  async upload(
    page: string,
    action: string,
    fields: Record<string, string> = {},
    files: Record<string, Buffer> = {},
  ): Promise<BrowserResponse> {
    const hidden = readHiddenFields((await this.get(page)).text);
    const body = new FormData();
    for (const [name, value] of Object.entries({ ...hidden, ...fields })) body.append(name, value);
    for (const [name, bytes] of Object.entries(files)) {
      body.append(name, new Blob([new Uint8Array(bytes)]), name);
    }
    return this.sendForm(action, body);
  }

  async signIn(email: string, password: string): Promise<BrowserResponse> {
    await this.get('/app/sign-in');
    return this.post('/app/sign-in', { email, password });
  }

  /** Of the last page. */
  get csrf(): string {
    return readCsrf(this.page);
  }

  /** The header with all cookies. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  private sendForm(
    path: string,
    body: URLSearchParams | FormData,
    headers: Record<string, string> = {},
  ): Promise<BrowserResponse> {
    const own = { origin: this.origin, 'sec-fetch-site': 'same-origin' };
    return this.sendRequest('POST', path, { ...own, ...headers }, body);
  }

  private async sendRequest(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: URLSearchParams | FormData,
  ): Promise<BrowserResponse> {
    const { cookie } = this;
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

/** Reads what every form of a page has. */
function readHiddenFields(text: string): Record<string, string> {
  return { _csrf: readCsrf(text), form_key: readFormKey(text) };
}

function readCsrf(text: string): string {
  return /name="_csrf" value="([^"]*)"/.exec(text)?.[1] ?? '';
}

/** Reads the key that the forms of a page share. */
export function readFormKey(text: string): string {
  return /name="form_key" value="([^"]+)"/.exec(text)?.[1] ?? '';
}
