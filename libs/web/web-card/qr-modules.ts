import qrcode from 'qrcode';

/** ISO/IEC 18004 requires four white modules on every side. */
const QUIET_ZONE = 4;

/**
 * Computes the dark modules of a QR code as one path of horizontal runs, so that no hairlines show between them. Each
 * module has side 1, and `side` includes the quiet zone.
 * @param level how much of the code may be damaged: M 15 %, Q 25 %
 */
export function findDarkModules(text: string, level: 'M' | 'Q'): { path: string; side: number } {
  const { size, data } = qrcode.create(text, { errorCorrectionLevel: level }).modules;
  const runs: string[] = [];
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size;) {
      const begin = x;
      while (x < size && data[y * size + x]) x++;
      if (x > begin)
        runs.push(`M${begin + QUIET_ZONE} ${y + QUIET_ZONE}h${x - begin}v1h-${x - begin}z`);
      else x++;
    }
  }
  return { path: runs.join(''), side: size + 2 * QUIET_ZONE };
}
