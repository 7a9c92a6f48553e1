import jsqr from 'jsqr';
import sharp from 'sharp';

/** Of the width that a picture is read at first: a camera tries it from several distances as well. */
const SCALES = [1, 0.75, 0.5];

/** Reads the QR code in a picture. */
export async function readQrCode(picture: Uint8Array, widest = 1200): Promise<string | undefined> {
  for (const scale of SCALES) {
    const { data, info } = await sharp(picture)
      .resize({ width: Math.round(widest * scale), withoutEnlargement: true })
      .ensureAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true });
    const code = jsqr.default(new Uint8ClampedArray(data), info.width, info.height);
    if (code) return code.data;
  }
  return undefined;
}
