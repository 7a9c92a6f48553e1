import { createHmac } from 'node:crypto';
import { Agent, request } from 'undici';

const DEADLINE_MS = 10_000;

/**
 * A well-written sender of signed webhooks with undici: one keep-alive agent, HMAC by node:crypto, a deadline, and the
 * body of the response read to its end so that the connection can be used again.
 * @param {{ url: string, secret: string }[]} endpoints
 */
export function poster(endpoints) {
  const agent = new Agent({
    keepAliveTimeout: 10_000,
    headersTimeout: DEADLINE_MS,
    bodyTimeout: DEADLINE_MS,
    connect: { timeout: DEADLINE_MS },
  });
  const targets = endpoints.map(({ url, secret }) => ({
    url,
    key: Buffer.from(secret.slice('whsec_'.length), 'base64'),
  }));
  /** @returns {Promise<number>} the status; rejects unless it is 2xx */
  return async ({ endpoint, event }) => {
    const { url, key } = targets[endpoint];
    const body = JSON.stringify(event);
    const timestamp = String(Math.floor(Date.now() / 1000));
    const mac = createHmac('sha256', key).update(`${event.id}.${timestamp}.${body}`);
    const { statusCode, body: responseBody } = await request(url, {
      dispatcher: agent,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'peer-webhooks/1.0',
        'webhook-id': event.id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${mac.digest('base64')}`,
      },
      body,
    });
    await responseBody.dump();
    if (statusCode < 200 || statusCode > 299) throw new Error(`responded with ${statusCode}`);
    return statusCode;
  };
}

/** The message that configures a peer; both processes of a peer get the same one. */
export function configured() {
  return new Promise((resolve) => process.once('message', resolve));
}
