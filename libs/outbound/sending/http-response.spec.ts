import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import http from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { sample, sampleRuns } from '../../../test/support/jest/sample.js';
import { HttpResponse } from './http-response.js';

const MAX_START = 1_000_000;
/** The llhttp of Node.js 20 reads some responses differently from later ones, so that it is no oracle. */
const IS_ORACLE =
  '9.4'.localeCompare(process.versions['llhttp'] ?? '', 'en', { numeric: true }) <= 0;

/** A response as either parser reads it; null when it is refused or its head is incomplete. */
type Reading = {
  status: number;
  fields: string[];
  /** Null where it did not end as it should. */
  body: string | null;
  isReusable: boolean;
} | null;

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = 'transfer-encoding: chunked\r\n';
const EMPTY = 'content-length: 0\r\n\r\n';

/** Responses that Node.js accepts and this parser refuses, each with an example. All others are read alike. */
const STRICTER: [string, RegExp, string][] = [
  [
    'another protocol than HTTP/1.0 or HTTP/1.1',
    /^(?!HTTP\/1\.[01] )/m,
    `HTTP/2.0 200 OK\r\n${EMPTY}`,
  ],
  ['an empty line in front', /^\r\n/, `\r\n${OK}${EMPTY}`],
  [
    'a control character in the reason',
    // eslint-disable-next-line no-control-regex
    /^HTTP\/1\.[01] \d{3} .*[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/m,
    `HTTP/1.1 200 O\x01K\r\n${EMPTY}`,
  ],
  ['a status below 100', /^HTTP\/1\.[01] 0\d\d/m, `HTTP/1.1 099 OK\r\n${EMPTY}`],
  ['status 101', /^HTTP\/1\.[01] 101/m, `HTTP/1.1 101 OK\r\nupgrade: x\r\n${EMPTY}`],
  [
    'a length of more than 15 digits',
    /^content-length:[ \t]*\d{16}/im,
    `${OK}content-length: ${'0'.repeat(16)}\r\n\r\n`,
  ],
  [
    'a size of more than 8 digits',
    /^[\da-f]{9}/im,
    `${OK}${CHUNKED}\r\n000000001\r\na\r\n0\r\n\r\n`,
  ],
  [
    'a coding that is no token',
    /^transfer-encoding:(?![ \t]*[\w-]+[ \t]*(,[ \t]*[\w-]+[ \t]*)*\r\n)/im,
    `${OK}transfer-encoding: gzip;a=b\r\n\r\n`,
  ],
  [
    'a tab after a coding',
    /^transfer-encoding:[ \t]*[^\s].*\t/im,
    `${OK}transfer-encoding: chunked\t\r\n\r\n0\r\n\r\n`,
  ],
  [
    'chunked more than once or not last',
    /^transfer-encoding:[^]*chunked[^]*(,|^transfer-encoding:)/im,
    `${OK}${CHUNKED}${CHUNKED}\r\n0\r\n\r\n`,
  ],
  [
    'Transfer-Encoding in trailers',
    /^0+(;.*)?\r\n[^]*transfer-encoding:/im,
    `${OK}${CHUNKED}\r\n0\r\n${CHUNKED}\r\n`,
  ],
];

/** Responses after which the connection is not reused. */
const NOT_REUSED = [
  [
    'HTTP/1.0, whatever it says',
    'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n',
  ],
  ['bytes after the end', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok\r\n'],
  [
    'a second response after the end',
    `${'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'.repeat(2)}`,
  ],
] as const;

let server: Server;
let responseText = '';

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.end(responseText, 'latin1'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
});

function parse(text: string, cuts: number[] = []): HttpResponse {
  const bytes = Buffer.from(text, 'latin1');
  const response = new HttpResponse(MAX_START);
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length];
  let from = 0;
  for (const end of ends.toSorted((a, b) => a - b)) {
    response.read(bytes.subarray(from, end));
    from = end;
  }
  response.end();
  return response;
}

function readWithOurs(text: string, cuts?: number[]): Reading {
  const { head, start, isOver, isReusable, error } = parse(text, cuts);
  if (!head) return null;
  const body = isOver && error === undefined ? Buffer.concat(start).toString('latin1') : null;
  return { ...head, body, isReusable };
}

/** Reads a response with the client of Node.js, whose parser is llhttp. */
async function readWithNode(text: string): Promise<Reading> {
  responseText = text;
  const agent = new http.Agent({ keepAlive: true });
  const { port } = server.address() as AddressInfo;
  try {
    return await new Promise<Reading>((resolve) => {
      const request = http.request({ host: '127.0.0.1', port, agent, method: 'POST' });
      let reading: Reading = null;
      request.on('upgrade', () => resolve(null));
      request.on('error', () => resolve(reading));
      request.on('response', (response) => {
        const chunks: Buffer[] = [];
        const { statusCode: status = 0, rawHeaders: fields } = response;
        // Its reusability is known with the head, and this list is filled later by trailers.
        reading = { status, fields: [...fields], body: null, isReusable: false };
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', () => resolve(reading));
        response.on('end', () => {
          const body = Buffer.concat(chunks).toString('latin1');
          const isReusable = response.complete && request.shouldKeepAlive;
          resolve(reading && { ...reading, body: response.complete ? body : null, isReusable });
        });
      });
      request.end('{}');
    });
  } finally {
    agent.destroy();
  }
}

/** Finds what the two read differently, apart from what `STRICTER` lists; null when nothing. */
async function findDifference(text: string, at?: number[]): Promise<unknown> {
  const our = readWithOurs(text, at);
  const theirs = await readUnfoldedWithNode(text);
  const isListed = STRICTER.some(([, pattern]) => pattern.test(text));
  const difference = { text, our, theirs };
  if (our === null) return isListed || (await readWithNode(text)) === null ? null : difference;
  if (our.status !== theirs?.status || our.fields.join() !== theirs.fields.join())
    return difference;
  if (our.isReusable && !theirs.isReusable) return difference;
  if (our.body === theirs.body) return null;
  const isForgiven = our.body === null ? isListed : theirs.body === null && hasSurplus(text);
  return isForgiven ? null : difference;
}

/** Tells whether bytes follow the end. Node.js sometimes refuses them; here they only end the reuse. */
function hasSurplus(text: string): boolean {
  const response = new HttpResponse(MAX_START);
  response.read(Buffer.from(text.slice(0, -1), 'latin1'));
  return response.isOver;
}

const SAMPLES = [
  `${OK}content-length: 5\r\nRetry-After:  7 \r\n\r\nhello`,
  `${OK}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0a;a=b;c="d\\"e";f\r\n0123456789\r\n0\r\nx: y\r\n\r\n`,
  `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}content-length: 2\r\n\r\nok`,
  `${OK}\r\nuntil the end`,
  'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n',
  'HTTP/1.1 304\r\n\r\n',
  'HTTP/1.0 500 \xe4\r\nX-\xc4: \r\ncontent-length: 1\r\n\r\n\xff',
  'HTTP/1.0 500 \xe4\r\nX: \xe4\r\ncontent-length: 1\r\n\r\n\xff',
  `${OK}connection: keep-alive, Close\r\ncontent-length: 0\r\n\r\n`,
];

const REFUSED = [
  ['two lengths', `${OK}content-length: 2\r\ncontent-length: 2\r\n\r\nok`],
  ['two lengths that differ', `${OK}content-length: 2\r\ncontent-length: 3\r\n\r\nok`],
  ['a list of lengths', `${OK}content-length: 2, 2\r\n\r\nok`],
  ['a length with a sign', `${OK}content-length: +2\r\n\r\nok`],
  ['a negative length', `${OK}content-length: -2\r\n\r\nok`],
  ['a length in hexadecimal', `${OK}content-length: 0x2\r\n\r\nok`],
  ['no length where one is announced', `${OK}content-length:\r\n\r\nok`],
  ['a length and chunks', `${OK}content-length: 2\r\n${CHUNKED}\r\n0\r\n\r\n`],
  ['chunks and a length', `${OK}${CHUNKED}content-length: 2\r\n\r\n0\r\n\r\n`],
  ['a length and another coding', `${OK}content-length: 2\r\ntransfer-encoding: gzip\r\n\r\nok`],
  ['a space before the first field', `${OK} a: b\r\n\r\n`],
  ['a folded length', `${OK}content-length: 2\r\n 2\r\n\r\nok`],
  ['a NUL in the second line of a field', `${OK}a: b\r\n c\0\r\n\r\n`],
  ['a space before the colon', `${OK}a : b\r\n\r\n`],
  ['a field without a colon', `${OK}ab\r\n\r\n`],
  ['a field without a name', `${OK}: b\r\n\r\n`],
  ['a name that is no token', `${OK}a(b): c\r\n\r\n`],
  ['a status line without CR', 'HTTP/1.1 200 OK\n\n'],
  ['a field without CR', `${OK}a: b\n\r\n`],
  ['an end of the head without CR', `${OK}a: b\r\n\n`],
  ['a CR in a field', `${OK}a: b\rc\r\n\r\n`],
  ['a NUL in a field', `${OK}a: b\0c\r\n\r\n`],
  ['a control character in a field', `${OK}a: b\x7f\r\n\r\n`],
  ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['two spaces before the status', 'HTTP/1.1  200 OK\r\n\r\n'],
  ['another version', 'HTTP/1.2 200 OK\r\n\r\n'],
  ['small letters', 'http/1.1 200 OK\r\n\r\n'],
  ['an interim response that closes', `HTTP/1.1 103 A\r\nconnection: close\r\n\r\n${OK}\r\n`],
] as const;

/** Fields folded over several lines, and the values they are read as (RFC 9112, section 5.2). */
const FOLDED = [
  ['a: b\r\n c', 'b c'],
  ['a: b\r\n\tc', 'b c'],
  ['a: b \t\r\n \t  c \t', 'b c'],
  ['a: b\r\n c\r\n d', 'b c d'],
  ['a:\r\n b', 'b'],
  ['a: b\r\n ', 'b'],
  ['a: b\r\n c: d', 'b c: d'],
] as const;

const FOLDED_ENDS = [
  ['content-length:\r\n 2\r\n', 'ok', 'ok'],
  ['transfer-encoding:\r\n chunked\r\n', '2\r\nok\r\n0\r\n\r\n', 'ok'],
  ['transfer-encoding: gzip,\r\n\tchunked\r\n', '2\r\nok\r\n0\r\na: b\r\n c\r\n\r\n', 'ok'],
  ['transfer-encoding: chunked\r\n', '3\r\n\tok\r\n0\r\na: b\r\n c\r\n d\r\n\r\n', '\tok'],
] as const;

/** Reads with Node.js, which refuses folds, after unfolding those before the place that it refuses, but none in a body. */
async function readUnfoldedWithNode(text: string): Promise<Reading> {
  const theirs = await readWithNode(text);
  const isRefused = theirs === null || (theirs.body === null && !hasSurplus(text));
  const from = theirs === null ? 0 : findTrailers(text);
  const unfoldedText =
    text.slice(0, from) + text.slice(from).replace(/(?<=[^\r\n\t ])[ \t]*\r\n[ \t]+/, ' ');
  return isRefused && unfoldedText !== text ? readUnfoldedWithNode(unfoldedText) : theirs;
}

/** Finds what follows the line of the last chunk; the end when there is no such line. */
function findTrailers(text: string): number {
  const lastChunks = [...text.matchAll(/(?<=\r\n)0+(?:;[^\r\n]*)?\r\n/g)];
  const last = lastChunks.at(-1);
  return last ? last.index + last[0].length : text.length;
}

/** Invalid chunks after a valid head. */
const BROKEN = [
  ['a size without CR', '2\nok\r\n0\r\n\r\n'],
  ['a size with a space', '2 \r\nok\r\n0\r\n\r\n'],
  ['a size with a sign', '+2\r\nok\r\n0\r\n\r\n'],
  ['a size with a prefix', '0x2\r\nok\r\n0\r\n\r\n'],
  ['no size', '\r\nok\r\n0\r\n\r\n'],
  ['a chunk that is longer than its size', '2\r\noka\r\n0\r\n\r\n'],
  ['a chunk without an end', '2\r\nok0\r\n\r\n'],
  ['an extension without a name', '2;\r\nok\r\n0\r\n\r\n'],
  ['an extension with a control character', '2;a="\x01"\r\nok\r\n0\r\n\r\n'],
  ['a length among the trailers', '2\r\nok\r\n0\r\ncontent-length: 2\r\n\r\n'],
  ['a trailer without a colon', '2\r\nok\r\n0\r\na\r\n\r\n'],
] as const;

const LONG = 'b'.repeat(1_000);

const ENDLESS = [
  ['header lines', OK, `a: ${LONG}\r\n`, 20],
  ['fields', OK, 'a:\r\n', 257],
  ['interim responses', '', 'HTTP/1.1 103 A\r\n\r\n', 17],
  ['extensions', `${OK}${CHUNKED}\r\n`, `1;${LONG}\r\nx\r\n`, 20],
  ['trailers', `${OK}${CHUNKED}\r\n0\r\n`, `a: ${LONG}\r\n`, 20],
  ['letters in a line', OK, 'a', 17_000],
] as const;

describe('HttpResponse', () => {
  it.each(SAMPLES)('reads the same as Node.js, wherever the response is cut: %j', async (text) => {
    const whole = readWithOurs(text);
    for (let cut = 0; cut <= text.length; cut++) expect(readWithOurs(text, [cut])).toEqual(whole);
    expect(
      readWithOurs(
        text,
        [...text].map((_, i) => i),
      ),
    ).toEqual(whole);
    if (!IS_ORACLE) return;
    expect(whole).toEqual(await readWithNode(text));
    for (let end = 0; end < text.length; end++) {
      expect(await findDifference(text.slice(0, end))).toBeNull();
    }
  });

  if (IS_ORACLE) {
    it('reads a valid response as Node.js does', async () => {
      await fc.assert(
        fc.asyncProperty(validResponses(), cuts(), async (text, at) => {
          expect(readWithOurs(text, at)).toEqual(await readWithNode(text));
        }),
        sampleRuns(400),
      );
    });

    it('refuses a changed response or reads it as Node.js does', async () => {
      await fc.assert(
        fc.asyncProperty(validResponses(), edits(), cuts(), async (text, changes, at) => {
          expect(await findDifference(changes.reduce(applyEdit, text), at)).toBeNull();
        }),
        sampleRuns(1_500),
      );
    });

    it('refuses a response with a surplus character or reads it as Node.js does', async () => {
      const texts = [...SAMPLES, ...FIELDS.map((field) => `${OK}${field}\r\n0\r\n\r\n`)];
      const changed = texts.flatMap((text) =>
        [...'\t ,;"\r\n\0a\x80'].flatMap((insertion) =>
          Array.from({ length: text.length + 1 }, (_, at) =>
            applyEdit(text, { at, deleteCount: 0, insertion }),
          ),
        ),
      );
      for (const text of sample(changed, 23)) expect(await findDifference(text)).toBeNull();
    });

    it('refuses a response of random pieces or reads it as Node.js does', async () => {
      const some = (pieces: string[], maxLength: number) =>
        fc.array(fc.constantFrom(...pieces), { maxLength }).map((parts) => parts.join(''));
      const texts = fc
        .tuple(some(LINES, 1), some(FIELDS, 4), some(CHUNKS, 6), some(PIECES, 8))
        .map(([line, fields, body, rest]) => `${line || OK}${fields}\r\n${body}${rest}`);
      await fc.assert(
        fc.asyncProperty(texts, cuts(), async (text, at) => {
          expect(await findDifference(text, at)).toBeNull();
        }),
        sampleRuns(2_000),
      );
    });

    it.each(REFUSED)('is as strict as Node.js, which refuses %s too', async (_what, text) => {
      expect(await readWithNode(text)).toBeNull();
    });

    it.each(FOLDED)(
      'reads the folded field %j as Node.js reads the unfolded one',
      async (field, _value) => {
        const text = `${OK}${field}\r\ncontent-length: 2\r\n\r\nok`;
        expect(readWithOurs(text)).toEqual(await readUnfoldedWithNode(text));
      },
    );

    it.each(FOLDED_ENDS)(
      'agrees with Node.js, which ends the body where the unfolded field %j says',
      async (field, rest, body) => {
        const text = `${OK}${field}\r\n${rest}`;
        expect(await readUnfoldedWithNode(text)).toMatchObject({ body });
      },
    );

    it.each(STRICTER)(
      'is stricter than Node.js, which accepts %s',
      async (_what, _pattern, text) => {
        expect(await readWithNode(text)).toMatchObject({ body: expect.any(String) });
      },
    );

    it.each(BROKEN)(
      'is as strict as Node.js, which aborts a body with %s too',
      async (_what, body) => {
        const text = `${OK}${CHUNKED}\r\n${body}`;
        expect(await readWithNode(text)).toMatchObject({ status: 200, body: null });
      },
    );
  }

  it.each(FOLDED)('reads the folded field %j with a space for each fold: %j', (field, value) => {
    const text = `${OK}${field}\r\ncontent-length: 2\r\n\r\nok`;
    for (let cut = 0; cut <= text.length; cut++) {
      expect(readWithOurs(text, [cut])).toEqual({
        status: 200,
        fields: ['a', value, 'content-length', '2'],
        body: 'ok',
        isReusable: true,
      });
    }
  });

  it.each(FOLDED_ENDS)('ends the body where the folded field %j says', (field, rest, body) => {
    const text = `${OK}${field}\r\n${rest}`;
    expect(readWithOurs(text)).toMatchObject({ body, isReusable: true });
  });

  it('does not reuse the connection when a folded field says close', () => {
    const text = `${OK}connection: keep-alive,\r\n close\r\ncontent-length: 2\r\n\r\nok`;
    expect(readWithOurs(text)).toMatchObject({ body: 'ok', isReusable: false });
  });

  it.each(REFUSED)('refuses %s', (_what, text) => {
    expect(parse(text)).toMatchObject({ head: undefined, error: 'invalid' });
  });

  it.each(STRICTER)('refuses %s, unlike Node.js', (_what, pattern, text) => {
    expect(text).toMatch(pattern);
    expect(parse(text).error).toBe('invalid');
  });

  it.each(BROKEN)('reports a body with %s as invalid', (_what, body) => {
    const text = `${OK}${CHUNKED}\r\n${body}`;
    expect(parse(text)).toMatchObject({ head: { status: 200 }, error: 'invalid' });
  });

  it.each(ENDLESS)('refuses too many %s', (_what, start, repeated, count) => {
    expect(parse(start + repeated.repeat(count)).error).toBeDefined();
    expect(parse(start + repeated.repeat(10)).error).toBeUndefined();
  });

  it.each(['SSH', 'HTTP/2', '\x15\x03\x01', '\r'])(
    'refuses a response that begins with %j before its line has ended',
    (text) => expect(parse(text).error).toBe('invalid'),
  );

  it.each(NOT_REUSED)('does not reuse the connection after %s', (_what, text) => {
    expect(parse(text)).toMatchObject({ isOver: true, isReusable: false });
  });
});

const LINES = [
  OK,
  'HTTP/1.1 200 OK',
  'HTTP/1.0 404 No\r\n',
  'HTTP/1.1 100 Continue\r\n',
  'HTTP/1.1 204 \r\n',
  'HTTP/1.1 304\r\n',
];

const FIELDS = [
  CHUNKED,
  'a: b\r\n',
  'content-length: 3\r\n',
  'Content-Length:3 \r\n',
  'content-length: 03\r\n',
  'content-length: -1\r\n',
  'Transfer-Encoding:\tCHUNKED \r\n',
  'transfer-encoding: gzip, chunked\r\n',
  'transfer-encoding: chunked, gzip\r\n',
  'transfer-encoding: identity\r\n',
  'transfer-encoding: xchunked\r\n',
  'transfer-encoding: chunked;a=b\r\n',
  'transfer-encoding:\r\n',
  'transfer-encoding: ,chunked,\r\n',
  'connection: close\r\n',
  'connection: closed\r\n',
  'connection: a ,close\r\n',
  'connection: keep-alive\r\n',
  'proxy-connection: close\r\n',
  'upgrade: x\r\n',
  'connection: upgrade\r\n',
];

const CHUNKS = [
  '3\r\n',
  'abc',
  '3\r\nabc\r\n',
  '3;a=b\r\nabc\r\n',
  '003;a="b;c"\r\nabc\r\n',
  '0\r\n',
  '0\r\n\r\n',
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  ':',
];

const PIECES = [...LINES, ...FIELDS, ...CHUNKS];

function cuts(): fc.Arbitrary<number[]> {
  return fc.array(fc.nat(1_000), { maxLength: 5 });
}

type Edit = { at: number; deleteCount: number; insertion: string };

function edits(): fc.Arbitrary<Edit[]> {
  const insertion = fc.oneof(
    fc.constantFrom('', ...'\r\n\0\t :;,"\\=09afx+-\x7f\x80', '\r\n', '\n\n', '\r\n ', ...PIECES),
    fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)),
  );
  return fc.array(fc.record({ at: fc.nat(1_000), deleteCount: fc.nat(3), insertion }), {
    minLength: 1,
    maxLength: 3,
  });
}

function applyEdit(text: string, { at, deleteCount, insertion }: Edit): string {
  const from = at % (text.length + 1);
  return text.slice(0, from) + insertion + text.slice(from + deleteCount);
}

function validResponses(): fc.Arbitrary<string> {
  const bytes = (limit: number) =>
    fc.uint8Array({ maxLength: limit }).map((octets) => Buffer.from(octets).toString('latin1'));
  const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/).map((token) => `x-${token}`);
  const text = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{0,20}$/);
  const blank = fc.constantFrom('', ' ', '  ', '\t');
  const field = fc
    .tuple(name, blank, text)
    .map(([key, space, value]) => `${key}:${space}${value}\r\n`);
  const fields = fc.array(
    fc.oneof(
      { weight: 5, arbitrary: field },
      fc.constantFrom('Connection: close\r\n', 'connection: Keep-Alive\r\n', 'retry-after: 5\r\n'),
    ),
    { maxLength: 5 },
  );
  const interim = fc
    .tuple(fc.constantFrom(100, 102, 103), fc.array(field, { maxLength: 2 }))
    .map(([status, lines]) => `HTTP/1.1 ${status} Wait\r\n${lines.join('')}\r\n`);
  const size = (chunk: string) => chunk.length.toString(16);
  const chunked = fc
    .tuple(
      fc.array(
        bytes(30).filter((chunk) => chunk !== ''),
        { maxLength: 4 },
      ),
      fc.array(field, { maxLength: 2 }),
      fc.constantFrom('', ';a', ';a=b', ';a="b c"'),
    )
    .map(([chunks, trailers, extension]) => ({
      fields: 'Transfer-Encoding: chunked\r\n',
      body: `${chunks.map((chunk) => `${size(chunk)}${extension}\r\n${chunk}\r\n`).join('')}0\r\n${trailers.join('')}\r\n`,
    }));
  const framing = fc.oneof(
    chunked,
    bytes(100).map((body) => ({ fields: `content-length: ${body.length}\r\n`, body })),
    bytes(100).map((body) => ({ fields: '', body })),
  );
  const status = fc.integer({ min: 200, max: 999 });
  return fc
    .tuple(fc.array(interim, { maxLength: 3 }), status, text, fields, framing)
    .map(([before, code, reason, lines, { fields: framed, body }]) => {
      const content = code === 204 || code === 304 ? '' : body;
      return `${before.join('')}HTTP/1.1 ${code} ${reason}\r\n${lines.join('')}${framed}\r\n${content}`;
    });
}
