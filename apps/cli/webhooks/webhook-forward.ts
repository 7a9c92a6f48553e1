import type { IncomingHttpHeaders } from 'node:http';
import { errors, request } from 'undici';
import { getErrorMessage } from '#platform/kernel/errors.js';

/** As much of a response as Inkpad reads. */
const BODY_READ = 65_536;

/** These belong to a connection or are made anew, all others are passed on. */
const OF_A_CONNECTION = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The receiver's response to a webhook, or 502 when there was none. */
export type ForwardedResponse = {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** For people to read. */
  note: string;
};

/**
 * Passes a webhook on as it came.
 * @param timeoutMs for the whole response
 * @param ending gives up at once
 */
export async function forward(
  url: string,
  webhook: { headers: IncomingHttpHeaders; body: Buffer },
  timeoutMs: number,
  ending: AbortSignal,
): Promise<ForwardedResponse> {
  const start = performance.now();
  const deadline = AbortSignal.timeout(timeoutMs);
  const took = () => `${Math.round(performance.now() - start)} ms`;
  try {
    const response = await request(url, {
      method: 'POST',
      headers: selectRequestHeaders(webhook.headers),
      body: webhook.body,
      signal: AbortSignal.any([deadline, ending]),
    });
    const body = await readStart(response.body);
    return {
      status: response.statusCode,
      headers: selectResponseHeaders(response.headers),
      body,
      note: `${url} responded with ${response.statusCode} in ${took()}`,
    };
  } catch (error) {
    const reason = deadline.aborted ? `no response within ${timeoutMs} ms` : describeError(error);
    const note = `${url} FAILED after ${took()}: ${reason}`;
    return { status: 502, headers: {}, body: Buffer.from(note), note };
  }
}

function selectRequestHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || OF_A_CONNECTION.has(name) ? [] : [[name, value]],
    ),
  );
}

/** Headers that Inkpad evaluates or that describe the body. */
function selectResponseHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    ['content-type', 'retry-after'].flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}

async function readStart(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= BODY_READ) break;
  }
  return Buffer.concat(chunks).subarray(0, BODY_READ);
}

function describeError(error: unknown): string {
  if (error instanceof errors.SocketError) return 'the connection was closed without a response';
  const { code } = Object(error) as { code?: unknown };
  if (code === 'ECONNREFUSED') return 'nothing listens there';
  return getErrorMessage(error);
}
