import { beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { UnavailableError } from '#kernel/errors.js';
import { decodePicture, PictureError, type Decoding } from '#kernel/picture-decoder.js';
import { eventually } from './support/jest/eventually.js';
import { jpegSegment, jpegWithScans, plainPng, quarters } from './support/fixtures/pictures.js';
import { startProgram } from './support/services/program.js';

const LIMITS = {
  pixels: 25_000_000,
  scans: 100,
  memoryBytes: 384 * 1024 * 1024,
  timeMs: 60_000,
};
const decoding = (limits: Partial<Decoding['limits']> = {}): Decoding => ({
  width: 90,
  height: 30,
  limits: { ...LIMITS, ...limits },
});

/** Takes minutes of a processor, in a megabyte. */
let slow: Buffer;
let small: Buffer;

beforeAll(async () => {
  slow = jpegWithScans(24_000, 4000);
  small = await quarters(300, 100).png().toBuffer();
});

/** The processes that decode pictures for the given one; Linux only. */
function decodersOf(parent: number): number[] {
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

const running = async (parent = process.pid) => {
  const [pid = 0] = await eventually(
    () => decodersOf(parent),
    ({ length }) => length > 0,
  );
  return pid;
};

const failureOf = (decoded: Promise<Buffer>) => decoded.catch((error: unknown) => error);

describe('the process that decodes pictures', () => {
  it('makes a PNG of the size that was asked for', async () => {
    for (const type of ['png', 'jpeg', 'webp'] as const) {
      const picture = await quarters(300, 100).toFormat(type).toBuffer();
      const { width, height, format } = await sharp(
        await decodePicture(picture, decoding()),
      ).metadata();
      expect([format, width, height]).toEqual(['png', 90, 30]);
    }
  });

  it('is killed at the time limit, and the next picture gets a new process', async () => {
    const decoded = decodePicture(slow, decoding({ scans: Infinity, timeMs: 2_000 }));
    await expect(decoded).rejects.toThrow(PictureError);
    expect(decodersOf(process.pid)).toEqual([]);
    expect((await decodePicture(small, decoding())).length).toBeGreaterThan(100);
  });

  it('is killed at the limit of time even when it does not run', async () => {
    const decoded = decodePicture(slow, decoding({ scans: Infinity, timeMs: 2_000 }));
    const failure = failureOf(decoded);
    process.kill(await running(), 'SIGSTOP');
    expect(await failure).toBeInstanceOf(PictureError);
    expect(decodersOf(process.pid)).toEqual([]);
  });

  it('is killed at the limit of memory', async () => {
    const decoded = decodePicture(slow, decoding({ scans: Infinity, memoryBytes: 1024 * 1024 }));
    await expect(decoded).rejects.toThrow('1048576 bytes of memory');
    expect(decodersOf(process.pid)).toEqual([]);
  });

  it('refuses pictures of too many pixels', async () => {
    await expect(decodePicture(plainPng(200, 200), decoding({ pixels: 39_999 }))).rejects.toThrow(
      PictureError,
    );
  });

  it('is not started for a JPEG of more scans than the limit, whatever is between them', async () => {
    const fill = Buffer.alloc(300, 0xff);
    const betweens: [string, Buffer][] = [
      ['nothing', Buffer.alloc(0)],
      ['fill bytes', fill],
      ['a restart marker', Buffer.from([0xff, 0xd3])],
      ['a comment', jpegSegment(0xfe, [1, 2, 3])],
      ['a comment of the length 0', Buffer.from([0xff, 0xfe, 0, 0])],
      ['a reserved marker with a length', Buffer.from([0xff, 0x02, 0xff, 0xff])],
    ];
    for (const [what, between] of betweens) {
      const jpeg = jpegWithScans(101, 64, between);
      const refused = decodePicture(jpeg, decoding()).then(
        () => 'decoded',
        (error: Error) => error.message,
      );
      expect(decodersOf(process.pid)).toEqual([]);
      expect([what, await refused]).toEqual([what, 'has more than 100 scans']);
    }
    expect((await decodePicture(jpegWithScans(100, 64), decoding())).length).toBeGreaterThan(0);
    expect((await decodePicture(jpegWithScans(9, 64, fill), decoding())).length).toBeGreaterThan(0);
  });

  it('takes the largest pictures, turned upright, in less than its limits', async () => {
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

  it('does not blame the picture when another process kills it', async () => {
    const killed = failureOf(decodePicture(slow, decoding({ scans: Infinity })));
    process.kill(await running(), 'SIGKILL');
    expect(await killed).toBeInstanceOf(UnavailableError);
    const crashed = decodePicture(slow, decoding({ scans: Infinity }));
    const failure = failureOf(crashed);
    process.kill(await running(), 'SIGSEGV');
    expect(await failure).toBeInstanceOf(PictureError);
  });

  it('inherits no environment, and is the first to be killed when memory runs out', async () => {
    process.env['MASTER_KEY_OF_TEST'] = 'secret';
    try {
      const decoded = decodePicture(slow, decoding({ scans: Infinity, timeMs: 3_000 }));
      const failure = failureOf(decoded);
      const decoder = await running();
      const environment = readFileSync(`/proc/${decoder}/environ`, 'latin1');
      expect(environment).not.toContain('secret');
      await eventually(
        () => readFileSync(`/proc/${decoder}/oom_score_adj`, 'latin1').trim(),
        (score) => score === '1000',
        10_000,
      );
      expect(await failure).toBeInstanceOf(PictureError);
    } finally {
      delete process.env['MASTER_KEY_OF_TEST'];
    }
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)('ends with its parent at %s', async (signal) => {
    const folder = await mkdtemp(join(tmpdir(), 'picture-'));
    const module = createRequire(import.meta.url).resolve('#kernel/picture-decoder.js');
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
    const decoder = await running(Number(output.trim()));
    await parent.kill(signal);
    await eventually(
      () => isAlive(decoder),
      (alive) => !alive,
      10_000,
    );
    await rm(folder, { recursive: true });
  });

  it('leaves nothing behind', async () => {
    const open = () => process.getActiveResourcesInfo().filter((kind) => /Pipe|Process/.test(kind));
    const before = open().length;
    for (let i = 0; i < 5; i++) await decodePicture(small, decoding());
    await expect(decodePicture(Buffer.from('no picture'), decoding())).rejects.toThrow(
      PictureError,
    );
    expect(decodersOf(process.pid)).toEqual([]);
    await eventually(
      () => open().length,
      (count) => count <= before,
      10_000,
    );
  });
});
