import qrcode from 'qrcode';
import { html, verbatim, type Html } from './html.js';

/** ISO/IEC 18004 asks for four modules of white on every side. */
const QUIET = 4;

/**
 * Dark on white whatever the card's colours are, because scanners need it. One path of horizontal runs, so that no
 * hairlines show between modules.
 * @param name what it is, for those who do not see it
 */
export function qrCode(text: string, name: string): Html {
  const { size, data } = qrcode.create(text, { errorCorrectionLevel: 'M' }).modules;
  const side = size + 2 * QUIET;
  const runs: string[] = [];
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size;) {
      const begin = x;
      while (x < size && data[y * size + x]) x++;
      if (x > begin) runs.push(`M${begin + QUIET} ${y + QUIET}h${x - begin}v1h-${x - begin}z`);
      else x++;
    }
  }
  return html`<svg
    class="qr"
    role="img"
    aria-label="${name}"
    viewBox="0 0 ${side} ${side}"
    shape-rendering="crispEdges"
  >
    <path fill="#fff" d="M0 0h${side}v${side}H0z" />
    <path fill="#000" d="${verbatim(runs.join(''))}" />
  </svg>`;
}
