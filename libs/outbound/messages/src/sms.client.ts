import { Injectable } from '@nestjs/common';
import type { RequestInit, Response } from 'undici';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#kernel/errors.js';
import { fetchChecked } from '#sending/checked-fetch.client.js';
import { parseSmsOutcome, type SmsOutcome } from './sms-response.js';
import { createSmsCallbackUrl } from './sms-callback.js';

/** From looking up the name to the end of the answer. */
const DEADLINE_MS = 15_000;
const MOST_BYTES = 64 * 1024;
const MESSAGING_SERVICE = /^MG/;

/** Sends SMS through a provider with the interface of Twilio (2010-04-01, Messages). */
@Injectable()
export class SmsClient {
  constructor(private readonly config: Config) {}

  /**
   * Never throws: every failure is an outcome. The interface knows no ids of ours, so a message whose answer is lost is
   * sent again.
   * @param id of the message, which the provider names when it reports what became of it
   * @param to E.164
   * @param cut ends the attempt early
   * @param mayBeSent asked right before the first byte is written
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
      const answer = await fetchChecked(url, request, mayBeSent);
      const retryAfter = answer.headers.get('retry-after');
      return parseSmsOutcome(answer.status, await textOf(answer), retryAfter);
    } catch (error) {
      return { kind: 'failed', error: `no answer: ${reasonOf(error)}` };
    }
  }
}

/** What there is of it until it is too much. */
async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MOST_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}

/** `fetch` hides in the cause why a connection failed. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return getErrorMessage(cause ?? error);
}
