import { computeContrast, mixColors } from '#platform/kernel/contrast.js';

/** Colours of one look of an e-mail, each as `#RRGGBB`. @property ground around the sheet @property soft of small print */
type MailPalette = Record<'ground' | 'sheet' | 'text' | 'soft' | 'line', string>;
type ButtonColors = Record<'ground' | 'text' | 'edge', string>;

/**
 * All colours of an e-mail.
 * @property button for mail programs that do not know `prefers-color-scheme`, and may invert it
 * @property lightButton in the colour of the card, for all others
 */
export type MailColors = {
  accent: string;
  light: MailPalette;
  dark: MailPalette;
  button: ButtonColors;
  lightButton: ButtonColors;
  darkButton: ButtonColors;
};

const LIGHT = {
  ground: '#F2F2F5',
  sheet: '#FFFFFF',
  text: '#1B1B1F',
  soft: '#5A5A66',
  line: '#D9D9E0',
};
const DARK = {
  ground: '#121215',
  sheet: '#1E1E23',
  text: '#F1F1F4',
  soft: '#B4B4BF',
  line: '#3A3A44',
};
const BLACK = '#000000';
const WHITE = '#FFFFFF';
/** WCAG 2.2, success criteria 1.4.3 for text and 1.4.11 for shapes. */
const READABLE = 4.5;
const VISIBLE = 3;
const STEPS = 20;

/** Chooses the colours of an e-mail about a card. All of its text has a contrast of 4.5 at least, in each look. */
export function createMailColors(cardColor: string): MailColors {
  const isWhiteBetter = computeContrast(cardColor, WHITE) >= computeContrast(cardColor, BLACK);
  const plain = { ground: cardColor, text: isWhiteBetter ? WHITE : BLACK };
  return {
    accent: cardColor,
    light: LIGHT,
    dark: DARK,
    button: addEdge(chooseInvertible(cardColor), LIGHT),
    lightButton: addEdge(plain, LIGHT),
    darkButton: addEdge(plain, DARK),
  };
}

function addEdge(button: Omit<ButtonColors, 'edge'>, { sheet, text }: MailPalette): ButtonColors {
  const isVisible = computeContrast(button.ground, sheet) >= VISIBLE;
  return { ...button, edge: isVisible ? button.ground : text };
}

/**
 * Inverts the lightness of a colour, and keeps hue and saturation. This is what mail programs do to an e-mail in the dark
 * if they do not know `prefers-color-scheme`.
 */
export function invertLightness(color: string): string {
  const parts = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  const shift = 255 - Math.max(...parts) - Math.min(...parts);
  return `#${parts.map((part) => (part + shift).toString(16).padStart(2, '0')).join('')}`.toUpperCase();
}

/** Chooses the shade that is closest to a colour, and whose text can be read as it is and inverted. */
function chooseInvertible(color: string): Omit<ButtonColors, 'edge'> {
  for (let step = 0; step < STEPS; step++) {
    for (const end of [BLACK, WHITE]) {
      const ground = mixColors(color, end, step / STEPS);
      const text = [WHITE, BLACK].find(
        (ink) =>
          computeContrast(ground, ink) >= READABLE &&
          computeContrast(invertLightness(ground), invertLightness(ink)) >= READABLE,
      );
      if (text !== undefined) return { ground, text };
    }
  }
  return { ground: BLACK, text: WHITE };
}
