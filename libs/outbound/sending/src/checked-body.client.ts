import { Readable } from 'node:stream';
import { OutdatedError } from './response.js';

/**
 * Gives a body away piece by piece, unless it went out of date: asks right before each piece is written, once the
 * connection is there and everything else has been said. Both can take seconds, and a process can stand still.
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
  // Not `for await`, which would wait until the rest is given up: what `fetch` makes of a body never says so.
  const pieces = body[Symbol.asyncIterator]();
  for (;;) {
    const piece = await pieces.next();
    if (piece.done === true) return;
    if (!mayBeSent()) throw new OutdatedError();
    yield piece.value;
  }
}
