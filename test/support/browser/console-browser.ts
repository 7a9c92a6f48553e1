import { DataSource } from 'typeorm';
import { SESSION_COOKIE, Sessions } from '#identity/sessions.service.js';
import type { LocalService } from '../services/service.js';

export type ConsolePage = { status: number; text: string; location: string | null };

/** A browser in which somebody has signed in. */
export class Console {
  private constructor(
    private readonly service: LocalService,
    readonly cookie: string,
    private readonly origin: string,
  ) {}

  static async of(service: LocalService, email: string): Promise<Console> {
    const { rows } = await service.database.query<{ id: string }>(
      'select id from users where email = $1',
      [email],
    );
    const source = service.app.get(DataSource, { strict: false });
    const sessions = service.app.get(Sessions, { strict: false });
    const token = await source.transaction((manager) =>
      sessions.begin(manager, Number(rows[0]?.id), { awaitsCode: false }),
    );
    return new Console(service, `__Host-${SESSION_COOKIE}=${token}`, 'https://cards.example');
  }

  get(path: string, headers: Record<string, string> = {}): Promise<ConsolePage> {
    return this.send(path, { headers });
  }

  /** Sends the form that stands on a page, as a browser does. */
  async submit(
    page: string,
    action: string,
    fields: Record<string, string> = {},
  ): Promise<ConsolePage> {
    const { text } = await this.get(page);
    const [, csrf = ''] = /name="_csrf" value="([^"]+)"/.exec(text) ?? [];
    return this.send(action, {
      method: 'POST',
      headers: { origin: this.origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ _csrf: csrf, ...fields }).toString(),
    });
  }

  /** Sends the form with files that stands on a page. */
  async upload(
    page: string,
    action: string,
    fields: Record<string, string> = {},
    files: Record<string, Buffer> = {},
  ): Promise<ConsolePage> {
    const { text } = await this.get(page);
    const [, csrf = ''] = /name="_csrf" value="([^"]+)"/.exec(text) ?? [];
    const body = new FormData();
    for (const [name, value] of Object.entries({ _csrf: csrf, ...fields }))
      body.append(name, value);
    for (const [name, bytes] of Object.entries(files)) {
      body.append(name, new Blob([new Uint8Array(bytes)]), name);
    }
    return this.send(action, { method: 'POST', headers: { origin: this.origin }, body });
  }

  private async send(
    path: string,
    init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> },
  ): Promise<ConsolePage> {
    const response = await fetch(this.service.baseUrl + path, {
      redirect: 'manual',
      ...init,
      headers: { accept: 'text/html', cookie: this.cookie, ...init.headers },
    });
    const location = response.headers.get('location');
    return { status: response.status, text: await response.text(), location };
  }
}
