import type { PassAppearance } from '#passes/pass-content.js';
import { computeContrast } from '#pages/colors.js';
import { html, type Html } from './html.js';

/** The minimum contrast of shapes (WCAG 2.2, success criterion 1.4.11). */
const MIN_CONTRAST = 3;

type Colors = Pick<PassAppearance, 'cardColor' | 'stampColor' | 'stampBackgroundColor'>;

/** Renders the icon for the home screen: a stamp, within the circle that launchers cut out. */
export function renderCardIcon({ cardColor, stampColor, stampBackgroundColor }: Colors): Html {
  const mark =
    computeContrast(stampColor, stampBackgroundColor) >= MIN_CONTRAST ? stampColor : cardColor;
  return html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 512 512">
    <rect width="512" height="512" fill="${cardColor}" />
    <circle cx="256" cy="256" r="168" fill="${stampBackgroundColor}" />
    <path
      d="M180 262l54 54 100-112"
      fill="none"
      stroke="${mark}"
      stroke-width="44"
      stroke-linecap="round"
      stroke-linejoin="round"
    />
  </svg>`;
}
