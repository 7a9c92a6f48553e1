import { writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import type { Sharp } from 'sharp';
import type { DecodingRequest, DecodingResult } from './picture-decoder.js';
import { findContent } from './picture-margin.js';

/**
 * Decodes one picture: a program that `decodePicture` starts. Whoever starts it kills it too. It kills itself when that
 * process has gone, and ignores the signals that a terminal sends to all processes, since requests are still served
 * then. Never `process.exit()`, which waits for the decoder's thread.
 */
const CHECK_INTERVAL_MS = 10;
/** How much larger than its final size a picture stays while its margin is cut off. */
const SPARE = 4;

process.on('disconnect', end);
// Requests go first: a picture may keep one of two processors busy for seconds. With the lowest priority, a busy
// machine would give a picture next to nothing. A service that is nicer already may not raise its priority.
setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
raiseOomScore();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.once('message', (request) => void run(request as DecodingRequest));
if (!process.connected) end();

async function run(request: DecodingRequest): Promise<void> {
  const watch = setInterval(() => {
    const error = findExceededLimit(request.limits);
    if (error === undefined) return;
    clearInterval(watch);
    send({ error });
  }, CHECK_INTERVAL_MS);
  send(await decode(request));
}

function findExceededLimit({ memoryBytes, cpuMs }: DecodingRequest['limits']): string | undefined {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  if ((userCPUTime + systemCPUTime) / 1000 > cpuMs) {
    return `takes more than ${cpuMs / 1000} seconds of processor time`;
  }
  return process.memoryUsage.rss() > memoryBytes
    ? `takes more than ${memoryBytes} bytes of memory`
    : undefined;
}

async function decode({
  bytes,
  width,
  height,
  fit,
  limits,
}: DecodingRequest): Promise<DecodingResult> {
  const { sharp } = await import('./pictures.js');
  try {
    const picture = sharp(bytes, {
      failOn: 'error',
      limitInputPixels: limits.pixels,
    }).autoOrient();
    const content = fit === 'content' ? await cutMargin(picture, { width, height }) : picture;
    const png = await content
      .resize(
        width,
        height,
        fit === 'cover' ? { fit } : { fit: 'inside', withoutEnlargement: true },
      )
      .toColourspace('srgb')
      .png()
      .toBuffer();
    return { png };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** Cuts off the empty margin. Very large pictures shrink first, so that they are decoded once and fit into memory. */
async function cutMargin(picture: Sharp, size: { width: number; height: number }): Promise<Sharp> {
  const { sharp } = await import('./pictures.js');
  const { data, info } = await picture
    .resize(SPARE * size.width, SPARE * size.height, { fit: 'inside', withoutEnlargement: true })
    .toColourspace('srgb')
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const { width, height } = info;
  const content = sharp(data, { raw: { width, height, channels: 4 } });
  return content.extract(findContent({ data, width, height }));
}

/**
 * Makes Linux kill this process first when memory runs out, not the one that serves requests (proc(5),
 * oom_score_adj).
 */
function raiseOomScore(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Other systems have no such thing.
  }
}

/** Sends the result; later ones are ignored. */
function send(result: DecodingResult): void {
  process.send?.(result);
}

function end(): void {
  process.kill(process.pid, 'SIGKILL');
}
