import { fork, type ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { UnavailableError } from './errors.js';

/** Signals of a crash, as opposed to those that somebody sends. */
const CRASHES = new Set<NodeJS.Signals>(['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV']);
/** Resolved by name, because it is a program and must be the built file. */
const PROGRAM = '#platform/kernel/picture-process.js';

/**
 * How a picture takes its size: `cover` fills it, cut around the centre. `inside` fits into it without enlargement, and
 * `content` does so after a transparent or white margin was cut off.
 */
export type PictureFit = 'cover' | 'inside' | 'content';

/** Size of the decoded picture, and limits of decoding. */
export type Decoding = {
  width: number;
  height: number;
  fit: PictureFit;
  /**
   * @property scans of a JPEG; those of encoders have 6 to 12
   * @property cpuMs processor time of the picture; it does not depend on what else the machine does
   * @property timeMs until the result, for a machine that is busy and a process that hangs
   */
  limits: { pixels: number; scans: number; memoryBytes: number; cpuMs: number; timeMs: number };
};

/** Message to the process. */
export type DecodingRequest = Decoding & { bytes: Uint8Array };

/** Message from the process. */
export type DecodingResult = { png: Uint8Array } | { error: string };

/** Reports that a picture cannot be decoded within its limits. */
export class PictureError extends Error {}

/**
 * Decodes an untrusted picture in a process of its own. Decoders check time limits only between parts of a picture,
 * can be made to use any amount of memory, and may crash; a process can be killed. It has neither our environment nor
 * our connections, and ends with us.
 * @returns PNG
 * @throws PictureError, UnavailableError when the process could not run
 */
export async function decodePicture(bytes: Uint8Array, decoding: Decoding): Promise<Buffer> {
  const { scans } = decoding.limits;
  if (isJpeg(bytes) && countScans(bytes, scans + 1) > scans) {
    throw new PictureError(`has more than ${scans} scans`);
  }
  const child = fork(createRequire(import.meta.url).resolve(PROGRAM), [], {
    env: {},
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  try {
    const result = await requestDecoding(child, { ...decoding, bytes });
    if ('error' in result) throw new PictureError(result.error);
    return Buffer.from(result.png);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

function requestDecoding(child: ChildProcess, request: DecodingRequest): Promise<DecodingResult> {
  const { timeMs } = request.limits;
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(Object.assign(new UnavailableError('Pictures cannot be decoded now'), { cause }));
    const timeout = setTimeout(
      () => fail(new Error(`the process sent no result within ${timeMs / 1000} seconds`)),
      timeMs,
    );
    child.once('message', (result) => resolve(result as DecodingResult));
    child.on('error', fail);
    child.once('exit', (code, signal) => {
      clearTimeout(timeout);
      if (signal !== null && CRASHES.has(signal)) reject(new PictureError(`ended in ${signal}`));
      else fail(new Error(`the process ended with ${signal ?? code}`));
    });
    child.send(request, (error) => {
      if (error) fail(error);
    });
  });
}

function isJpeg([first, second]: Uint8Array): boolean {
  return first === 0xff && second === 0xd8;
}

const MARKER = 0xff;
const START_OF_SCAN = 0xda;
const END_OF_IMAGE = 0xd9;
/** From SOF0 on, markers are followed by a length (ITU-T T.81, table B.1). */
const FIRST_WITH_LENGTH = 0xc0;
/** Tells whether a marker has no length: RST0 to RST7 and SOI stand alone, as are those below SOF0. */
const isStandalone = (code: number) => code < FIRST_WITH_LENGTH || (code >= 0xd0 && code <= 0xd8);

/**
 * Counts the scans of a JPEG as libjpeg finds them, without decoding any. A progressive one may have any number, and each
 * is another pass over the whole picture: two megabytes hold enough for minutes.
 *
 * Where libjpeg would fail, this counts on: what is counted must never be less than what is decoded. So a length of less
 * than its own two bytes skips nothing, and neither do reserved markers, which libjpeg passes over within a scan.
 *
 * @param limit counts no further
 */
export function countScans(jpeg: Uint8Array, limit: number): number {
  let count = 0;
  let offset = 0;
  while (count < limit) {
    offset = jpeg.indexOf(MARKER, offset);
    if (offset < 0) break;
    // Any number of fill bytes may precede a marker (ITU-T T.81, section B.1.1.2).
    while (jpeg[offset] === MARKER) offset++;
    const code = jpeg[offset++];
    if (code === undefined || code === END_OF_IMAGE) break;
    if (isStandalone(code)) continue;
    if (code === START_OF_SCAN) count++;
    const length = (jpeg[offset] ?? 0) * 256 + (jpeg[offset + 1] ?? 0);
    offset += Math.max(length, 2);
  }
  return count;
}
