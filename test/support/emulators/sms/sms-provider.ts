import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type ReceivedSms = {
  sid: string;
  to: string;
  from: string | null;
  service: string | null;
  body: string;
  /** The URL for delivery reports. */
  callback: string | null;
};

export const SMS_ACCOUNT = 'AC0123456789abcdef0123456789abcdef';
export const SMS_TOKEN = 'a token of the provider';

const E164 = /^\+[1-9]\d{4,14}$/;
const MOST_CHARACTERS = 1_600;

type ErrorResponse = { status: number; code: number; headers?: Record<string, string> };

/** Accepts SMS as Twilio does, and refuses what Twilio refuses. */
export class SmsProvider {
  readonly received: ReceivedSms[] = [];
  /** How many requests were read, including refused ones. */
  requests = 0;
  /** Numbers that are refused, with the code. */
  readonly refused = new Map<string, number>();
  /** The response to every request during an outage. */
  outage: ErrorResponse | null = null;
  /** Accepts the message, and closes the connection without a response. */
  losesResponses = false;
  private server: Server | undefined;
  private port = 0;

  static async start(): Promise<SmsProvider> {
    const provider = new SmsProvider();
    const server = createServer((request, response) => void provider.take(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    provider.server = server;
    provider.port = (server.address() as AddressInfo).port;
    return provider;
  }

  get settings(): NodeJS.ProcessEnv {
    return {
      SMS_URL: `http://127.0.0.1:${this.port}/`,
      SMS_ACCOUNT,
      SMS_TOKEN,
      SMS_FROM: '+15005550006',
    };
  }

  to(number: string): ReceivedSms[] {
    return this.received.filter(({ to }) => to === number);
  }

  /** Sends a signed delivery report. @param baseUrl of the service, instead of its public address */
  async report(
    { sid, callback }: ReceivedSms,
    fields: Record<string, string>,
    { baseUrl, token = SMS_TOKEN }: { baseUrl: string; token?: string },
  ): Promise<number> {
    const form = { MessageSid: sid, ...fields };
    const sorted = Object.entries(form).sort(([a], [b]) => (a < b ? -1 : 1));
    const signature = createHmac('sha1', token)
      .update(`${callback}${sorted.flat().join('')}`)
      .digest('base64');
    const response = await fetch(baseUrl + new URL(callback ?? '').pathname, {
      method: 'POST',
      headers: { 'x-twilio-signature': signature },
      body: new URLSearchParams(form),
    });
    return response.status;
  }

  async stop(): Promise<void> {
    const { server } = this;
    if (!server) return;
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    this.requests++;
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    const error = this.outage ?? this.findError(request, form);
    if (error) {
      const { status, code, headers = {} } = error;
      // Twilio's message contains the number.
      const message = `The 'To' number ${form.get('To')} is not taken`;
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify({ code, message, more_info: '', status }));
      return;
    }
    const sid = `SM${String(this.received.length + 1).padStart(32, '0')}`;
    this.received.push({
      sid,
      callback: form.get('StatusCallback'),
      to: form.get('To') ?? '',
      from: form.get('From'),
      service: form.get('MessagingServiceSid'),
      body: form.get('Body') ?? '',
    });
    if (this.losesResponses) {
      response.destroy();
      return;
    }
    response.writeHead(201, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ sid, status: 'queued', error_code: null }));
  }

  private findError(
    { method, url, headers }: IncomingMessage,
    form: URLSearchParams,
  ): ErrorResponse | null {
    const login = Buffer.from(`${SMS_ACCOUNT}:${SMS_TOKEN}`).toString('base64');
    if (headers.authorization !== `Basic ${login}`) return { status: 401, code: 20003 };
    const path = `/2010-04-01/Accounts/${SMS_ACCOUNT}/Messages.json`;
    if (url !== path) return { status: 404, code: 20404 };
    if (method !== 'POST') return { status: 405, code: 20004 };
    if (headers['content-type'] !== 'application/x-www-form-urlencoded') {
      return { status: 400, code: 20001 };
    }
    const to = form.get('To') ?? '';
    const body = form.get('Body') ?? '';
    if (form.has('From') === form.has('MessagingServiceSid')) return { status: 400, code: 21603 };
    if (!E164.test(to)) return { status: 400, code: 21211 };
    if (body === '') return { status: 400, code: 21602 };
    if ([...body].length > MOST_CHARACTERS) return { status: 400, code: 21617 };
    const code = this.refused.get(to);
    return code === undefined ? null : { status: 400, code };
  }
}
