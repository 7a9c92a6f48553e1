import { Injectable } from '@nestjs/common';
import type { RequestInit, Response } from 'undici';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { OutboundHttp } from '#outbound/sending/outbound-http.client.js';
import { parseSmsOutcome, type SmsOutcome } from './sms-response.js';
import { createSmsCallbackUrl } from './sms-callback.js';

/** The time from the lookup of the name to the end of the response. */
const DEADLINE_MS = 15_000;
const MAX_BYTES = 64 * 1024;
const MESSAGING_SERVICE = /^MG/;

/** Sends SMS through a provider with the interface of Twilio (2010-04-01, Messages). */
@Injectable()
export class SmsClient {
  private readonly http: OutboundHttp;

  constructor(private readonly config: Config) {
    this.http = new OutboundHttp(config.outboundProxy);
  }

  /**
   * Sends an SMS. Never throws: every failure is an outcome. The interface accepts no id of ours, so nobody knows
   * of a message without a response whether it arrived.
   * @param id the message's, which is part of the URL that the provider reports to
   * @param to E.164
   * @param cut aborts the attempt
   * @param mayBeSent called right before the first byte is written
   */
  async send(
    { id, to, text }: { id: string; to: string; text: string },
    cut: AbortSignal,
    mayBeSent: () => boolean,
  ): Promise<SmsOutcome> {
    const { sms, publicUrl } = this.config;
    if (sms === null) return { kind: 'failed', error: 'No SMS provider is configured' };
    const sender = MESSAGING_SERVICE.test(sms.from) ? 'MessagingServiceSid' : 'From';
    const login = Buffer.from(`${sms.account}:${sms.token}`).toString('base64');
    const report = createSmsCallbackUrl(publicUrl, id);
    const account = encodeURIComponent(sms.account);
    let hasBegun = false;
    const begin = () => {
      const isAllowed = mayBeSent();
      hasBegun ||= isAllowed;
      return isAllowed;
    };
    try {
      const url = `${sms.url}/2010-04-01/Accounts/${account}/Messages.json`;
      const request: RequestInit = {
        method: 'POST',
        headers: {
          accept: 'application/json',
          authorization: `Basic ${login}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({
          To: to,
          [sender]: sms.from,
          Body: text,
          ...(report !== undefined && { StatusCallback: report }),
        }).toString(),
        redirect: 'error',
        signal: AbortSignal.any([cut, AbortSignal.timeout(DEADLINE_MS)]),
      };
      const response = await this.http.fetchChecked(url, request, begin);
      const retryAfter = response.headers.get('retry-after');
      return parseSmsOutcome(response.status, await readBoundedText(response), retryAfter);
    } catch (error) {
      const failure = { kind: 'failed', error: `no response: ${describeError(error)}` } as const;
      return hasBegun ? { ...failure, mayHaveArrived: true } : failure;
    }
  }
}

/** Reads a body up to the maximum length. */
async function readBoundedText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}

/** Formats the cause of a failed `fetch`, which is why the connection failed. */
function describeError(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return getErrorMessage(cause ?? error);
}
