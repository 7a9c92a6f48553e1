import jsqr from 'jsqr';
import sharp from 'sharp';

/** What the QR code in a picture says. */
export async function decoded(picture: Uint8Array, widest = 1200): Promise<string | undefined> {
  const { data, info } = await sharp(picture)
    .resize({ width: widest, withoutEnlargement: true })
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return jsqr.default(new Uint8ClampedArray(data), info.width, info.height)?.data;
}
