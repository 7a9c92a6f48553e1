import { beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { UnavailableError } from '#platform/kernel/errors.js';
import { decodePicture, PictureError, type Decoding } from '#platform/kernel/picture-decoder.js';
import { eventually } from '../support/jest/eventually.js';
import { jpegSegment, jpegWithScans, plainPng, quarters } from '../support/fixtures/pictures.js';
import { startProgram } from '../support/services/program.js';

const LIMITS = {
  pixels: 25_000_000,
  scans: 100,
  memoryBytes: 384 * 1024 * 1024,
  cpuMs: 240_000,
  timeMs: 240_000,
};
const decoding = (limits: Partial<Decoding['limits']> = {}): Decoding => ({
  width: 90,
  height: 30,
  fit: 'cover',
  limits: { ...LIMITS, ...limits },
});

/** A JPEG of a megabyte that takes minutes to decode. */
let slow: Buffer;
let small: Buffer;

beforeAll(async () => {
  slow = jpegWithScans(24_000, 4000);
  small = await quarters(300, 100).png().toBuffer();
});

/** Finds the processes that decode pictures for a parent process. Reads /proc, so it needs Linux. */
function findDecoders(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      if (!pid) return false;
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
        return state !== 'Z' && Number(ppid) === parent && command.includes('picture-process.js');
      } catch {
        return false;
      }
    });
}

const isAlive = (pid: number) => {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
};

const waitForDecoder = async (parent = process.pid) => {
  const [pid = 0] = await eventually(
    () => findDecoders(parent),
    ({ length }) => length > 0,
  );
  return pid;
};

const catchError = (decoded: Promise<Buffer>) => decoded.catch((error: unknown) => error);

describe('the process that decodes pictures', () => {
  it('turns a PNG, JPEG or WebP into a PNG of the requested size', async () => {
    for (const type of ['png', 'jpeg', 'webp'] as const) {
      const picture = await quarters(300, 100).toFormat(type).toBuffer();
      const { width, height, format } = await sharp(
        await decodePicture(picture, decoding()),
      ).metadata();
      expect([format, width, height]).toEqual(['png', 90, 30]);
    }
  });

  it('is killed at the limit of processor time, and the next picture gets a new process', async () => {
    const decoded = decodePicture(slow, decoding({ scans: Infinity, cpuMs: 2_000 }));
    await expect(decoded).rejects.toThrow(
      new PictureError('takes more than 2 seconds of processor time'),
    );
    expect(findDecoders(process.pid)).toEqual([]);
    expect((await decodePicture(small, decoding())).length).toBeGreaterThan(100);
  });

  it('is killed at the time limit even while SIGSTOP pauses it', async () => {
    // Long enough to find it before.
    const decoded = decodePicture(slow, decoding({ scans: Infinity, timeMs: 10_000 }));
    const failure = catchError(decoded);
    process.kill(await waitForDecoder(), 'SIGSTOP');
    expect(await failure).toBeInstanceOf(UnavailableError);
    expect(findDecoders(process.pid)).toEqual([]);
  });

  it('is killed at the memory limit', async () => {
    const decoded = decodePicture(slow, decoding({ scans: Infinity, memoryBytes: 1024 * 1024 }));
    await expect(decoded).rejects.toThrow('1048576 bytes of memory');
    expect(findDecoders(process.pid)).toEqual([]);
  });

  it('rejects a picture with more pixels than the limit', async () => {
    await expect(decodePicture(plainPng(200, 200), decoding({ pixels: 39_999 }))).rejects.toThrow(
      PictureError,
    );
  });

  it('is not started for a JPEG with more scans than the limit, whatever lies between the scans', async () => {
    const fill = Buffer.alloc(300, 0xff);
    const separators: [string, Buffer][] = [
      ['nothing', Buffer.alloc(0)],
      ['fill bytes', fill],
      ['a restart marker', Buffer.from([0xff, 0xd3])],
      ['a comment', jpegSegment(0xfe, [1, 2, 3])],
      ['a comment of the length 0', Buffer.from([0xff, 0xfe, 0, 0])],
      ['a reserved marker with a length', Buffer.from([0xff, 0x02, 0xff, 0xff])],
    ];
    for (const [name, separator] of separators) {
      const jpeg = jpegWithScans(101, 64, separator);
      const result = decodePicture(jpeg, decoding()).then(
        () => 'decoded',
        (error: Error) => error.message,
      );
      expect(findDecoders(process.pid)).toEqual([]);
      expect([name, await result]).toEqual([name, 'has more than 100 scans']);
    }
    expect((await decodePicture(jpegWithScans(100, 64), decoding())).length).toBeGreaterThan(0);
    expect((await decodePicture(jpegWithScans(9, 64, fill), decoding())).length).toBeGreaterThan(0);
  });

  it('decodes the largest allowed pictures within its limits', async () => {
    const options = { create: { width: 5000, height: 5000, background: '#A1B2C3' } } as const;
    const wide = sharp({ create: { ...options.create, channels: 4 as const } });
    const deep = await wide.toColourspace('rgb16').png().toBuffer();
    const progressive = await sharp({ create: { ...options.create, channels: 3 as const } })
      .withMetadata({ orientation: 6 })
      .jpeg({ progressive: true, chromaSubsampling: '4:4:4' })
      .toBuffer();
    for (const picture of [deep, progressive]) {
      expect((await decodePicture(picture, decoding())).length).toBeGreaterThan(0);
    }
  });

  it('reports an UnavailableError when it is killed, and a PictureError when it crashes', async () => {
    const killed = catchError(decodePicture(slow, decoding({ scans: Infinity })));
    process.kill(await waitForDecoder(), 'SIGKILL');
    expect(await killed).toBeInstanceOf(UnavailableError);
    const crashed = decodePicture(slow, decoding({ scans: Infinity }));
    const failure = catchError(crashed);
    process.kill(await waitForDecoder(), 'SIGSEGV');
    expect(await failure).toBeInstanceOf(PictureError);
  });

  it('inherits no secret from the environment, and sets its oom_score_adj to 1000 and its priority to nice 10 or more', async () => {
    process.env['MASTER_KEY_OF_TEST'] = 'secret';
    try {
      const decoded = decodePicture(slow, decoding({ scans: Infinity }));
      const failure = catchError(decoded);
      const decoder = await waitForDecoder();
      const environment = readFileSync(`/proc/${decoder}/environ`, 'latin1');
      expect(environment).not.toContain('secret');
      await eventually(
        () => readFileSync(`/proc/${decoder}/oom_score_adj`, 'latin1').trim(),
        (score) => score === '1000',
      );
      expect(getPriority(decoder)).toBe(Math.max(getPriority(), 10));
      process.kill(decoder, 'SIGSEGV');
      expect(await failure).toBeInstanceOf(PictureError);
    } finally {
      delete process.env['MASTER_KEY_OF_TEST'];
    }
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)('ends when its parent gets a %s', async (signal) => {
    const folder = await mkdtemp(join(tmpdir(), 'picture-'));
    const module = createRequire(import.meta.url).resolve('#platform/kernel/picture-decoder.js');
    const file = join(folder, 'parent.mjs');
    writeFileSync(join(folder, 'slow.jpg'), slow);
    writeFileSync(
      file,
      `import { readFileSync } from 'node:fs';
       import { decodePicture } from ${JSON.stringify(module)};
       console.log(process.pid);
       await decodePicture(readFileSync(process.argv[2]), JSON.parse(process.argv[3]));`,
    );
    const limits = { ...LIMITS, scans: 1_000_000 };
    const parent = startProgram(file, {}, [
      join(folder, 'slow.jpg'),
      JSON.stringify({ ...decoding(), limits }),
    ]);
    const output = await eventually(parent.output, (text) => /^\d+\n/.test(text));
    const decoder = await waitForDecoder(Number(output.trim()));
    await parent.kill(signal);
    await eventually(
      () => isAlive(decoder),
      (alive) => !alive,
    );
    await rm(folder, { recursive: true });
  });

  it('leaves no process or pipe open', async () => {
    const open = () => process.getActiveResourcesInfo().filter((kind) => /Pipe|Process/.test(kind));
    const before = open().length;
    for (let i = 0; i < 5; i++) await decodePicture(small, decoding());
    await expect(decodePicture(Buffer.from('no picture'), decoding())).rejects.toThrow(
      PictureError,
    );
    expect(findDecoders(process.pid)).toEqual([]);
    await eventually(
      () => open().length,
      (count) => count <= before,
    );
  });
});
