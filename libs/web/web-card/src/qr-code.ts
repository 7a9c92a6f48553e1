import { html, verbatim, type Html } from './html.js';
import { findDarkModules } from './qr-modules.js';

/**
 * Dark on white whatever the card's colours are, because scanners need it.
 * @param name what it is, for those who do not see it
 */
export function renderQrCode(text: string, name: string): Html {
  const { path, side } = findDarkModules(text, 'M');
  return html`<svg
    class="qr"
    role="img"
    aria-label="${name}"
    viewBox="0 0 ${side} ${side}"
    shape-rendering="crispEdges"
  >
    <path fill="#fff" d="M0 0h${side}v${side}H0z" />
    <path fill="#000" d="${verbatim(path)}" />
  </svg>`;
}
