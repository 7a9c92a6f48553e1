import {
  createStripDesign,
  type StripAppearance,
  type StripDesign,
} from '#outbound/card-images/strip-design.js';

/** The fields of a card in the API that its picture shows. */
export type CardJson = {
  stamps_required: number;
  stamp_icon: string;
  stamp_color: string;
  stamp_background_color: string;
  card_color: string;
  strip_type: string;
  strip_color: string | null;
  strip_opacity: number;
  strip_preset: string | null;
};

/** How much of a card is filled in its picture, so that both kinds of stamps can be seen. */
const FILLED_SHARE = 0.4;

/** @param rewards of the card, as the API lists them */
export function createCardDesign(
  card: CardJson,
  rewards: readonly { stamps_required: number; active: boolean }[],
): StripDesign {
  const appearance = {
    stampsRequired: card.stamps_required,
    stampIcon: card.stamp_icon,
    stampColor: card.stamp_color,
    stampBackgroundColor: card.stamp_background_color,
    cardColor: card.card_color,
    stripType: card.strip_type,
    stripColor: card.strip_color,
    stripOpacity: card.strip_opacity,
    stripPreset: card.strip_preset,
    // The API shows no uploaded picture.
    stripPicture: null,
  } as StripAppearance;
  return createStripDesign(
    appearance,
    rewards.map(({ stamps_required, active }) => ({ stampsRequired: stamps_required, active })),
  );
}

export function countShownStamps({ stamps }: StripDesign): number {
  return Math.ceil(stamps * FILLED_SHARE);
}

/** Describes the picture for the model, which may not see it. */
export function describePicture(design: StripDesign, card: CardJson): string {
  const text = `The picture shows the card with ${countShownStamps(design)} of ${design.stamps} stamps.`;
  return card.strip_type === 'image' ? `${text} It leaves out the uploaded image.` : text;
}
