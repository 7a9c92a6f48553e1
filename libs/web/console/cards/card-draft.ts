import { isStampIcon } from '#loyalty/cards/card-appearance.js';
import { findCardWarnings, type CardWarning } from '#loyalty/cards/card-contrast.js';
import { createStripDesign, type StripDesign } from '#outbound/card-images/strip-design.js';
import { findColorFix, type ColorFix } from './color-fixes.js';
import type { DesignForm } from './design-form.js';

/** A reward that may be unfinished: its point is what matters. @property row its place in the form */
export type DraftReward = { row: number; name: string; stampsRequired: number };

/** What people cannot see or read on a card, and the colours that end it. */
export type DraftWarning = { warning: CardWarning; fix: ColorFix };

/** What the previews show of a card that is being designed. Every value is valid, whatever was entered so far. */
export type CardDraft = {
  name: string;
  headerText: string;
  cardColor: string;
  textColor: string;
  showMember: boolean;
  showToReward: boolean;
  auxiliary: { label: string; value: string }[];
  stampsRequired: number;
  /** Cheapest first. */
  rewards: DraftReward[];
  design: StripDesign;
  warnings: DraftWarning[];
};

const HEX = /^#[0-9A-F]{6}$/;
const STAMPS = { min: 1, max: 21, fallback: 10 };
const OPACITY = { min: 0, max: 100, fallback: 100 };

/**
 * @param picture the uploaded picture of the card, null without one
 * @param isPictureChosen whether the browser has another picture, which is uploaded with the form
 */
export function createDraft(
  { fields, rewards }: DesignForm,
  picture: string | null,
  isPictureChosen = false,
): CardDraft {
  const cardColor = toColor(fields.card_color, '#6B4226');
  const colors = {
    cardColor,
    textColor: toColor(fields.text_color, '#FFFFFF'),
    stampColor: toColor(fields.stamp_color, '#6B4226'),
    stampBackgroundColor: toColor(fields.stamp_background_color, '#FFFFFF'),
    stripType: toStripType(fields.strip_type),
    stripColor: fields.strip_color_same ? null : toColor(fields.strip_color, cardColor),
    stripOpacity: toNumber(fields.strip_opacity, OPACITY),
  };
  const stampsRequired = Math.round(toNumber(fields.stamps_required, STAMPS));
  const drafted = rewards
    .map(({ name, stamps, isRemoved }, row) => ({
      row,
      name,
      stampsRequired: !isRemoved && /^[1-9]\d{0,8}$/.test(stamps) ? Number(stamps) : 0,
    }))
    .filter(({ stampsRequired: point }) => point > 0)
    .sort((a, b) => a.stampsRequired - b.stampsRequired);
  const appearance = {
    ...colors,
    stampsRequired,
    stampIcon: isStampIcon(fields.stamp_icon) ? fields.stamp_icon : 'star',
    stripPreset: fields.strip_preset,
    stripPicture: picture,
  };
  const design = createStripDesign(
    appearance,
    drafted.map((reward) => ({ ...reward, active: true })),
  );
  const isChosen = isPictureChosen && colors.stripType === 'image';
  return {
    name: fields.name,
    headerText: fields.header_text,
    cardColor,
    textColor: colors.textColor,
    showMember: fields.show_member_field,
    showToReward: fields.show_stamps_to_reward_field,
    auxiliary: [
      { label: fields.aux_label_1, value: fields.aux_value_1 },
      { label: fields.aux_label_2, value: fields.aux_value_2 },
    ].filter(({ value }) => value !== ''),
    stampsRequired,
    rewards: drafted,
    design: isChosen ? { ...design, layer: { picture: null } } : design,
    warnings: findCardWarnings(colors).map((warning) => ({
      warning,
      fix: findColorFix(warning, colors),
    })),
  };
}

function toColor(text: string, fallback: string): string {
  const color = text.toUpperCase();
  return HEX.test(color) ? color : fallback;
}

function toStripType(text: string): 'color' | 'image' | 'preset' {
  return text === 'image' || text === 'preset' ? text : 'color';
}

function toNumber(
  text: string,
  { min, max, fallback }: { min: number; max: number; fallback: number },
): number {
  const number = Number(text);
  return text === '' || Number.isNaN(number) ? fallback : Math.min(max, Math.max(min, number));
}
