import { computeContrast, mixColors } from '#platform/kernel/contrast.js';
import { isStripPreset } from './card-appearance.js';
import type { CardAttributes } from './card.events.js';
import { listPresetColors } from './strip-presets.js';

/** WCAG 2.2, success criterion 1.4.11: the minimum contrast of shapes. */
const VISIBLE = 3;
/** Below it a mark on a stamp is not seen at all, and the store's colour helps nobody. */
const DISTINCT = 1.5;
/** Quieter than a filled stamp, where that is still visible. */
const QUIET_OPACITY = 0.75;
/** How much of the card's colour lies below an empty stamp: a pattern stays visible, a picture may be of any colour. */
const PLATE_OPACITY = { pattern: 0.3, picture: 0.72 };
const [BLACK, WHITE] = ['#000000', '#FFFFFF'];

/**
 * @property tint colours the preset; without it, it has its own colours
 * @property picture its SHA-256 in hex; null: the browser has it, and draws it below the stamps, the only thing that is
 * drawn
 */
export type StripLayer =
  | { color: string }
  | { preset: string; tint?: string }
  | { picture: string | null };

/** The colours that a store has chosen, and what lies behind its stamps. */
export type StampGround = Pick<
  CardAttributes,
  'stampColor' | 'stampBackgroundColor' | 'cardColor'
> & {
  layer: StripLayer;
  /** The opacity of the layer over the card's colour, 0 to 100. */
  opacity: number;
};

/** The fields of a card that decide about its layer. */
export type LayeredCard = Pick<
  CardAttributes,
  'cardColor' | 'stripType' | 'stripColor' | 'stripPreset'
> & { stripPicture: string | null };

/** The colours of the stamps of a strip. */
export type StampColors = {
  /** @property edge drawn around the disc, which would not stand out from its ground without it; null otherwise */
  filled: { disc: string; icon: string; edge: string | null };
  /** @property ink of the ring and the icon @property plate lies below both */
  empty: { ink: string; iconOpacity: number; plate: string; plateOpacity: number };
};

/**
 * Chooses colours in which stamps are seen on their ground, whatever the store has chosen. A filled stamp is a disc, an
 * empty one its outline, so that the two are told apart by shape as well.
 */
export function chooseStampColors(design: StampGround): StampColors {
  const { stampColor, stampBackgroundColor, cardColor } = design;
  const grounds = listGrounds(design);
  const isPicture = 'picture' in design.layer;
  // On a ground of the same colour, the disc and the icon change places.
  const disc = pickColor([stampBackgroundColor, stampColor], grounds, DISTINCT);
  const icon = pickColor([stampColor, stampBackgroundColor], [disc], DISTINCT);
  const ink = pickColor([stampBackgroundColor, stampColor], grounds, VISIBLE);
  const isQuietVisible = grounds.every(
    (ground) => computeContrast(ground, mixColors(ground, ink, QUIET_OPACITY)) >= VISIBLE,
  );
  // Nobody knows what a picture shows behind a stamp.
  const hasEdge = isPicture || findContrast(disc, grounds) < VISIBLE;
  return {
    filled: { disc, icon, edge: hasEdge ? pickColor([icon], grounds, VISIBLE) : null },
    empty: {
      ink,
      iconOpacity: isQuietVisible ? QUIET_OPACITY : 1,
      plate: isPicture ? cardColor : (grounds[0] ?? cardColor),
      plateOpacity: isPicture ? PLATE_OPACITY.picture : PLATE_OPACITY.pattern,
    },
  };
}

/** Chooses what the strip of a card shows. `image` without a picture and `preset` without a known preset show the colour. */
export function chooseLayer(card: LayeredCard): StripLayer {
  const { stripType, stripPicture, stripPreset, stripColor, cardColor } = card;
  if (stripType === 'image' && stripPicture !== null) return { picture: stripPicture };
  if (stripType === 'preset' && isStripPreset(stripPreset)) {
    return { preset: stripPreset, ...(stripColor !== null && { tint: stripColor }) };
  }
  return { color: stripColor ?? cardColor };
}

/** Tells whether stamps are drawn in other colours than the store has chosen, or with an outline, to be seen at all. */
export function areStampsRecolored(
  card: LayeredCard & Pick<CardAttributes, 'stampColor' | 'stampBackgroundColor' | 'stripOpacity'>,
): boolean {
  const layer = chooseLayer(card);
  const { disc, icon, edge } = chooseStampColors({
    ...card,
    layer,
    opacity: card.stripOpacity,
  }).filled;
  const isOutlined = edge !== null && !('picture' in layer);
  return disc !== card.stampBackgroundColor || icon !== card.stampColor || isOutlined;
}

/** Lists the colours between which all colours behind a stamp lie. A picture has any; its stamps have a plate. */
function listGrounds({ layer, cardColor, opacity }: StampGround): string[] {
  if ('picture' in layer) return [cardColor];
  const colors =
    'color' in layer
      ? [layer.color]
      : isStripPreset(layer.preset)
        ? listPresetColors(layer.preset, layer.tint)
        : [cardColor];
  return colors.map((color) => mixColors(cardColor, color, opacity / 100));
}

/** Returns the first colour with this contrast to every ground, else black or white. */
function pickColor(colors: string[], grounds: string[], minContrast: number): string {
  const visible = colors.find((color) => findContrast(color, grounds) >= minContrast);
  if (visible !== undefined) return visible;
  return findContrast(BLACK, grounds) > findContrast(WHITE, grounds) ? BLACK : WHITE;
}

/** Finds the lowest contrast of a colour to any of the grounds. */
function findContrast(color: string, grounds: string[]): number {
  return Math.min(...grounds.map((ground) => computeContrast(color, ground)));
}
