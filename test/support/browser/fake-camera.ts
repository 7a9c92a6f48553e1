import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { create } from 'qrcode';

const SIZE = 320;
const WHITE = 235;
const BLACK = 16;
/** White around a code, in modules. */
const MARGIN = 4;

/**
 * What the camera sees, and for how many frames.
 * @property code null: nothing
 * @property beside another code, on its left
 */
export type Scene = { code: string | null; beside?: string; frames: number };

/**
 * Writes a film of QR codes that Chromium takes for a camera (YUV4MPEG2). It begins again at its end.
 * @param perSecond frames a second
 * @returns the arguments for Chromium
 */
export async function writeFakeCamera(
  path: string,
  scenes: readonly Scene[],
  perSecond: number,
): Promise<string[]> {
  const file = createWriteStream(path);
  file.write(`YUV4MPEG2 W${SIZE} H${SIZE} F${perSecond}:1 Ip A1:1 C420jpeg\n`);
  for (const { code, beside, frames } of scenes) {
    const codes = [beside, code].filter((candidate) => typeof candidate === 'string');
    const picture = Buffer.concat([Buffer.from('FRAME\n'), drawFrame(codes)]);
    for (let i = 0; i < frames; i++) if (!file.write(picture)) await once(file, 'drain');
  }
  file.end();
  await finished(file);
  return [
    '--use-fake-ui-for-media-stream',
    '--use-fake-device-for-media-stream',
    `--use-file-for-fake-video-capture=${path}`,
  ];
}

/** Draws a frame: brightness of each pixel, then colours of every second one, which are grey. */
function drawFrame(codes: readonly string[]): Buffer {
  const luma = Buffer.alloc(SIZE * SIZE, WHITE);
  const chroma = Buffer.alloc((SIZE * SIZE) / 2, 128);
  const width = Math.floor(SIZE / codes.length);
  for (const [i, code] of codes.entries()) drawCode(luma, code, { left: i * width, width });
  return Buffer.concat([luma, chroma]);
}

function drawCode(
  luma: Buffer,
  code: string,
  { left, width }: { left: number; width: number },
): void {
  const { modules } = create(code, { errorCorrectionLevel: 'M' });
  const scale = Math.floor(width / (modules.size + 2 * MARGIN));
  const [x, y] = [width, SIZE].map((length) => Math.floor((length - modules.size * scale) / 2));
  for (let row = 0; row < modules.size; row++) {
    for (let column = 0; column < modules.size; column++) {
      if (!modules.get(row, column)) continue;
      for (let line = 0; line < scale; line++) {
        const at = ((y ?? 0) + row * scale + line) * SIZE + left + (x ?? 0) + column * scale;
        luma.fill(BLACK, at, at + scale);
      }
    }
  }
}
