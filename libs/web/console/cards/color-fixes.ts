import {
  findCardWarnings,
  type CardColors,
  type CardWarning,
} from '#loyalty/cards/card-contrast.js';
import { pickReadableColor } from '#web/pages/colors.js';

const [WHITE, BLACK] = ['#FFFFFF', '#000000'];

/** The fields of the designer that a warning is about, with colours that end it. */
export type ColorFix = Readonly<Record<string, string>>;

/** Finds colours that end a warning, and change as little as possible of what the shop has chosen. */
export function findColorFix(warning: CardWarning, colors: CardColors): ColorFix {
  const { cardColor, textColor, stampColor, stampBackgroundColor } = colors;
  if (warning === 'text_hard_to_read') {
    return { text_color: pickReadableColor(cardColor, textColor) };
  }
  const pairs = [stampBackgroundColor, WHITE, BLACK].flatMap((disc) =>
    [stampColor, cardColor, BLACK, WHITE].map((icon) => ({ disc, icon })),
  );
  const { disc, icon } = pairs.find((pair) => isVisible(colors, pair)) ?? {
    disc: WHITE,
    icon: BLACK,
  };
  return { stamp_background_color: disc, stamp_color: icon };
}

function isVisible(colors: CardColors, { disc, icon }: { disc: string; icon: string }): boolean {
  const changed = { ...colors, stampBackgroundColor: disc, stampColor: icon };
  return !findCardWarnings(changed).includes('stamps_look_alike');
}
