import { Readable } from 'node:stream';
import { Agent, fetch, type RequestInit, type Response } from 'undici';
import { OutdatedError } from './http-response.js';

const agent = new Agent();

/**
 * Fetches, unless the body went out of date before it was written.
 * @throws TypeError when no response comes, also because nothing was sent
 */
export function fetchChecked(
  url: string,
  request: RequestInit,
  mayBeSent: () => boolean,
): Promise<Response> {
  const dispatcher = agent.compose((dispatch) => (options, handler) => {
    const { body } = options;
    // `fetch` turns every body into an async iterable, and sends its length in a header.
    const isIterable = typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
    return dispatch(
      isIterable ? { ...options, body: createCheckedBody(body, mayBeSent) } : options,
      handler,
    );
  });
  return fetch(url, { ...request, dispatcher });
}

/**
 * Creates a body that is written piece by piece, unless it goes out of date. The check is right before each piece, when
 * the connection is open and the headers are sent: both can take seconds, and a process can stall.
 */
export function createCheckedBody(
  body: AsyncIterable<Uint8Array | string>,
  mayBeSent: () => boolean,
): Readable {
  return Readable.from(checkPieces(body, mayBeSent), { objectMode: false });
}

async function* checkPieces(
  body: AsyncIterable<Uint8Array | string>,
  mayBeSent: () => boolean,
): AsyncGenerator<Uint8Array | string> {
  // Not `for await`, which waits for the iterator to return: that of `fetch` never does.
  const pieces = body[Symbol.asyncIterator]();
  for (;;) {
    const piece = await pieces.next();
    if (piece.done === true) return;
    if (!mayBeSent()) throw new OutdatedError();
    yield piece.value;
  }
}
