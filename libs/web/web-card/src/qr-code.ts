import { html, verbatim, type Html } from './html.js';
import { findDarkModules } from './qr-modules.js';

/**
 * Renders a QR code, always dark on white, because scanners need it.
 * @param name the label for screen readers
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
