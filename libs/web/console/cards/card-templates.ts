import { STRIP_PRESETS, type StampIcon, type StripPreset } from '#loyalty/cards/card-appearance.js';

/** A kind of shop to begin a card with. Its texts are in `t.cardPages.templates`. */
export type CardTemplate = {
  icon: StampIcon;
  cardColor: string;
  textColor: string;
  stampColor: string;
  stampBackgroundColor: string;
  stampsRequired: number;
};

const WHITE = '#FFFFFF';

/** Creates a template whose stamps have the card's colour on a light ground. */
function createTemplate(
  icon: StampIcon,
  cardColor: string,
  stampsRequired: number,
  stampBackgroundColor = WHITE,
): CardTemplate {
  return {
    icon,
    cardColor,
    textColor: WHITE,
    stampColor: cardColor,
    stampBackgroundColor,
    stampsRequired,
  };
}

/** Each shows the drawing of the same name behind its stamps. */
export const CARD_TEMPLATES: Record<StripPreset, CardTemplate> = {
  coffee: createTemplate('coffee', '#4E342E', 10),
  bakery: createTemplate('croissant', '#7A4A21', 10, '#FFF6E5'),
  restaurant: createTemplate('salad', '#8C2F25', 8),
  bar: createTemplate('cocktail', '#26304F', 8, '#FFE9B8'),
  salon: createTemplate('nail_polish', '#8E2F5C', 6),
  barber: createTemplate('scissors', '#243B4A', 8),
  spa: createTemplate('spa', '#2F5D50', 6, '#F1FBF6'),
  fitness: createTemplate('dumbbell', '#1F3A5F', 12),
  pets: createTemplate('paw', '#5B4636', 9, '#FFF3DD'),
  flowers: createTemplate('flower', '#3F6B3A', 8, '#FFF0F6'),
  retail: createTemplate('shopping_bag', '#3A3A6A', 10),
  books: createTemplate('book', '#5A2E3C', 10, '#FFF7E8'),
};

export function isTemplate(name: unknown): name is StripPreset {
  return STRIP_PRESETS.some((preset) => preset === name);
}
