/**
 * The widths of bars and spaces of each symbol in modules, by its value (ISO/IEC 15417, table 1): 103 to 105 begin a
 * code in set A, B or C, and 106 ends it.
 */
// prettier-ignore
const SYMBOLS = [
  '212222', '222122', '222221', '121223', '121322', '131222', '122213', '122312', '132212', '221213', '221312',
  '231212', '112232', '122132', '122231', '113222', '123122', '123221', '223211', '221132', '221231', '213212',
  '223112', '312131', '311222', '321122', '321221', '312212', '322112', '322211', '212123', '212321', '232121',
  '111323', '131123', '131321', '112313', '132113', '132311', '211313', '231113', '231311', '112133', '112331',
  '132131', '113123', '113321', '133121', '313121', '211331', '231131', '213113', '213311', '213131', '311123',
  '311321', '331121', '312113', '312311', '332111', '314111', '221411', '431111', '111224', '111422', '121124',
  '121421', '141122', '141221', '112214', '112412', '122114', '122411', '142112', '142211', '241211', '221114',
  '413111', '241112', '134111', '111242', '121142', '121241', '114212', '124112', '124211', '411212', '421112',
  '421211', '212141', '214121', '412121', '111143', '111341', '131141', '114113', '114311', '411113', '411311',
  '113141', '114131', '311141', '411131', '211412', '211214', '211232', '2331112',
];
const START_B = 104;
const STOP = 106;
const CHECK_MODULUS = 103;
/** The character of value 0 in set B. */
const FIRST_CHARACTER = 0x20;

/** ISO/IEC 15417 requires ten white modules on both sides. */
const QUIET_ZONE = 10;
const HEIGHT = 50;

/**
 * Computes the bars of a Code 128 as one path. Each module is 1 wide, and `width` includes the quiet zone.
 * @param text printable ASCII, see `findBarcodeIssue`
 */
export function findBars(text: string): { path: string; width: number; height: number } {
  const values = [...text].map((character) => (character.codePointAt(0) ?? 0) - FIRST_CHARACTER);
  const check = values.reduce((sum, value, i) => sum + value * (i + 1), START_B) % CHECK_MODULUS;
  const widths = [START_B, ...values, check, STOP].map((value) => SYMBOLS[value] ?? '').join('');
  const bars: string[] = [];
  let x = QUIET_ZONE;
  for (const [i, digit] of [...widths].entries()) {
    const width = Number(digit);
    if (i % 2 === 0) bars.push(`M${x} 0h${width}v${HEIGHT}h-${width}z`);
    x += width;
  }
  return { path: bars.join(''), width: x + QUIET_ZONE, height: HEIGHT };
}
