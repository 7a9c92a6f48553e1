import { Readable } from 'node:stream';
import { OutdatedError } from './response.js';

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
