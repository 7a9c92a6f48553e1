import { DataSource } from 'typeorm';
import { SESSION_COOKIE, Sessions } from '#identity/sessions.service.js';
import type { LocalService } from '../services/service.js';

export type ConsolePage = { status: number; text: string; location: string | null };

/** A browser in which somebody has signed in. */
export class Console {
  private constructor(
    private readonly baseUrl: string,
    readonly cookie: string,
    private readonly origin: string,
  ) {}

  /** @param baseUrl of another process of the service */
  static async of(
    service: LocalService,
    email: string,
    baseUrl = service.baseUrl,
  ): Promise<Console> {
    const { rows } = await service.database.query<{ id: string }>(
      'select id from users where email = $1',
      [email],
    );
    const source = service.app.get(DataSource, { strict: false });
    const sessions = service.app.get(Sessions, { strict: false });
    const token = await source.transaction((manager) =>
      sessions.begin(manager, Number(rows[0]?.id), { awaitsCode: false }),
    );
    return new Console(baseUrl, `__Host-${SESSION_COOKIE}=${token}`, 'https://cards.example');
  }

  get(path: string, headers: Record<string, string> = {}): Promise<ConsolePage> {
    return this.send(path, { headers });
  }

  /** Sends the form that stands on a page, as a browser does. */
  async submit(
    page: string,
    action: string,
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
  ): Promise<ConsolePage> {
    const hidden = readHiddenFields((await this.get(page)).text);
    const type = 'application/x-www-form-urlencoded';
    return this.send(action, {
      method: 'POST',
      headers: { origin: this.origin, 'content-type': type, ...headers },
      body: new URLSearchParams({ ...hidden, ...fields }).toString(),
    });
  }

  /** Sends the form with files that stands on a page. */
  async upload(
    page: string,
    action: string,
    fields: Record<string, string> = {},
    files: Record<string, Buffer> = {},
  ): Promise<ConsolePage> {
    const hidden = readHiddenFields((await this.get(page)).text);
    const body = new FormData();
    for (const [name, value] of Object.entries({ ...hidden, ...fields })) body.append(name, value);
    for (const [name, bytes] of Object.entries(files)) {
      body.append(name, new Blob([new Uint8Array(bytes)]), name);
    }
    return this.send(action, { method: 'POST', headers: { origin: this.origin }, body });
  }

  private async send(
    path: string,
    init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> },
  ): Promise<ConsolePage> {
    const response = await fetch(this.baseUrl + path, {
      redirect: 'manual',
      ...init,
      headers: { accept: 'text/html', cookie: this.cookie, ...init.headers },
    });
    const location = response.headers.get('location');
    return { status: response.status, text: await response.text(), location };
  }
}

/** Reads what every form of a page has. */
function readHiddenFields(text: string): Record<string, string> {
  const [, csrf = ''] = /name="_csrf" value="([^"]+)"/.exec(text) ?? [];
  return { _csrf: csrf, form_key: readFormKey(text) };
}

/** Reads the key that the forms of a page share. */
export function readFormKey(text: string): string {
  return /name="form_key" value="([^"]+)"/.exec(text)?.[1] ?? '';
}
