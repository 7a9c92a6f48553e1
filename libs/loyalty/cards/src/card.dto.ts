import { z } from 'zod';
import {
  boolean,
  clearable,
  color,
  integer,
  number,
  oneOf,
  optional,
  orDefault,
  text,
  time,
  timestamp,
} from '#http/fields.js';
import { pageQuery } from '#http/page.js';
import type { Card } from './card.js';
import type { AuxiliaryField, CardAttributes } from './card.events.js';

/** Published: values may be added, never removed. */
// prettier-ignore
export const STAMP_ICONS = [
  'coffee', 'heart', 'star', 'check', 'smile', 'cup', 'bubble_tea', 'beer', 'wine', 'cocktail',
  'ice_cream', 'cake', 'croissant', 'bread', 'pizza', 'burger', 'taco', 'sushi', 'salad', 'scissors',
  'razor', 'nail_polish', 'lipstick', 'spa', 'dumbbell', 'yoga', 'paw', 'flower', 'leaf', 'book',
  'shopping_bag', 'gift', 'car', 'bike', 'ticket', 'crown', 'diamond', 'sun',
] as const;

// prettier-ignore
export const STRIP_PRESETS = [
  'coffee', 'bakery', 'restaurant', 'bar', 'salon', 'barber', 'spa', 'fitness', 'pets', 'flowers',
  'retail', 'books',
] as const;

const auxiliaryFields = z
  .unknown()
  .transform((value, context): AuxiliaryField[] => {
    if (!Array.isArray(value)) {
      context.addIssue({ code: 'custom', message: 'must be a list of objects' });
      return z.NEVER;
    }
    const element = z.object({ label: optional(text()), value: text() });
    const filled = value.filter((given) => !isBlank(given));
    if (filled.length > 2) {
      context.addIssue({ code: 'custom', message: 'must have at most 2 elements' });
      return z.NEVER;
    }
    return filled.flatMap((given: unknown, i) => {
      const parsed = element.safeParse(given);
      if (parsed.success) return [{ key: `aux_${i + 1}`, ...parsed.data }];
      for (const issue of parsed.error.issues) {
        const name = issue.path.length > 0 ? issue.path.join(' ') : 'element';
        context.addIssue({ code: 'custom', message: `${i + 1}: ${name} ${issue.message}` });
      }
      return [];
    });
  })
  .meta({
    type: 'array',
    maxItems: 2,
    description: 'Replaces the list; wholly blank elements are dropped',
    items: {
      type: 'object',
      required: ['value'],
      properties: {
        label: { type: ['string', 'null'], maxLength: 255 },
        value: { type: 'string', minLength: 1, maxLength: 255 },
      },
    },
  });

function isBlank(element: unknown): boolean {
  if (element === null) return true;
  if (typeof element !== 'object' || Array.isArray(element)) return false;
  const { label, value } = element as Record<string, unknown>;
  return [label, value].every(
    (part) => part === undefined || part === null || (typeof part === 'string' && !part.trim()),
  );
}

const icon = oneOf(STAMP_ICONS);
const stampsRequired = integer({ min: 1, max: 21 });
const initialStamps = integer({ min: 0, max: 20 });
const stripType = oneOf(['color', 'image', 'preset']);
const opacity = number({ min: 0, max: 100 });
const preset = text({ max: 64 })
  .refine((name) => /^[a-z0-9_-]{1,64}$/.test(name), 'must match [a-z0-9_-]{1,64}')
  .meta({
    type: 'string',
    pattern: '^[a-z0-9_-]{1,64}$',
    description: `Drawn: ${STRIP_PRESETS.join(', ')}; any other shows the colour`,
  });
const limit = integer({ min: 1 });
const timeText = time().transform((date) => date.toISOString());
const expiry = timeText.meta({ type: 'string', format: 'date-time' });

export const createCardDto = z
  .object({
    name: text(),
    card_color: orDefault(color(), '#6B4226'),
    text_color: orDefault(color(), '#FFFFFF'),
    stamp_icon: orDefault(icon, 'coffee'),
    stamp_color: orDefault(color(), '#6B4226'),
    stamp_background_color: orDefault(color(), '#FFFFFF'),
    stamps_required: orDefault(stampsRequired, 10),
    initial_stamps: orDefault(initialStamps, 0),
    show_member_field: orDefault(boolean(), true),
    show_stamps_to_reward_field: orDefault(boolean(), true),
    auxiliary_fields: orDefault(auxiliaryFields, []),
    strip_type: orDefault(stripType, 'color'),
    strip_color: optional(color()),
    strip_opacity: orDefault(opacity, 100),
    strip_preset: optional(preset),
    header_text: optional(text()),
    expires_at: optional(expiry),
    max_stamps_per_request: optional(limit),
    max_stamps_per_day: optional(limit),
    min_seconds_between_stamps: optional(limit),
  })
  .meta({
    id: 'CardInput',
    example: { name: 'Coffee card', stamps_required: 10, stamp_icon: 'coffee' },
  });

export const updateCardDto = z
  .object({
    name: text().optional(),
    card_color: color().optional(),
    text_color: color().optional(),
    stamp_icon: icon.optional(),
    stamp_color: color().optional(),
    stamp_background_color: color().optional(),
    stamps_required: stampsRequired.optional(),
    initial_stamps: initialStamps.optional(),
    show_member_field: boolean().optional(),
    show_stamps_to_reward_field: boolean().optional(),
    auxiliary_fields: auxiliaryFields.optional(),
    strip_type: stripType.optional(),
    strip_color: clearable(color()),
    strip_opacity: opacity.optional(),
    strip_preset: clearable(preset),
    header_text: clearable(text()),
    expires_at: clearable(expiry),
    max_stamps_per_request: clearable(limit),
    max_stamps_per_day: clearable(limit),
    min_seconds_between_stamps: clearable(limit),
  })
  .meta({ id: 'CardChanges', example: { name: 'Coffee and cake', header_text: 'Corner Café' } });

type Changes = z.infer<typeof updateCardDto>;

/** The names of the wire on the left, ours on the right. */
const ATTRIBUTES = {
  name: 'name',
  card_color: 'cardColor',
  text_color: 'textColor',
  stamp_icon: 'stampIcon',
  stamp_color: 'stampColor',
  stamp_background_color: 'stampBackgroundColor',
  stamps_required: 'stampsRequired',
  initial_stamps: 'initialStamps',
  show_member_field: 'showMemberField',
  show_stamps_to_reward_field: 'showStampsToRewardField',
  auxiliary_fields: 'auxiliaryFields',
  strip_type: 'stripType',
  strip_color: 'stripColor',
  strip_opacity: 'stripOpacity',
  strip_preset: 'stripPreset',
  header_text: 'headerText',
  expires_at: 'expiresAt',
  max_stamps_per_request: 'maxStampsPerRequest',
  max_stamps_per_day: 'maxStampsPerDay',
  min_seconds_between_stamps: 'minSecondsBetweenStamps',
} as const satisfies Record<keyof Changes, keyof CardAttributes>;

/** Only what was named in the request. */
export function cardAttributes(input: z.infer<typeof createCardDto>): CardAttributes;
export function cardAttributes(input: Changes): Partial<CardAttributes>;
export function cardAttributes(input: Changes): Partial<CardAttributes> {
  return Object.fromEntries(
    Object.entries(ATTRIBUTES)
      .map(([wire, ours]) => [ours, input[wire as keyof Changes]] as const)
      .filter(([, value]) => value !== undefined),
  );
}

export const cardListQuery = pageQuery.extend({
  scope: z
    .unknown()
    .optional()
    .transform((value): 'active' | 'archived' | 'all' =>
      value === 'archived' || value === 'all' ? value : 'active',
    )
    .meta({
      type: 'string',
      enum: ['active', 'archived', 'all'],
      description: 'Blank or anything else: active',
    }),
});

const nullableText = z.string().nullable();
const hex = (example: string) => z.string().meta({ example });
const nullableCount = z.int().nullable();

export const cardAnswer = z
  .object({
    id: z.int(),
    name: z.string().meta({ example: 'Coffee card' }),
    card_color: hex('#6B4226'),
    text_color: hex('#FFFFFF'),
    stamp_icon: z.string().meta({ enum: STAMP_ICONS }),
    stamp_color: hex('#6B4226'),
    stamp_background_color: hex('#FFFFFF'),
    stamps_required: z.int().meta({ example: 10 }),
    initial_stamps: z.int().meta({ example: 0 }),
    show_member_field: z.boolean(),
    show_stamps_to_reward_field: z.boolean(),
    auxiliary_fields: z.array(
      z.object({
        key: z.string().meta({ example: 'aux_1' }),
        label: nullableText.meta({ example: 'Open' }),
        value: z.string().meta({ example: 'Mo to Sa' }),
      }),
    ),
    strip_type: z.enum(['color', 'image', 'preset']),
    strip_color: nullableText,
    strip_opacity: z.number().meta({ example: 100 }),
    strip_preset: nullableText,
    header_text: nullableText,
    expires_at: timestamp.nullable().meta({ example: null }),
    archived_at: timestamp.nullable().meta({ example: null }),
    rewards_count: z.int(),
    customer_cards_count: z.int(),
    max_stamps_per_request: nullableCount,
    max_stamps_per_day: nullableCount,
    min_seconds_between_stamps: nullableCount,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Card' });

export type CardJson = z.infer<typeof cardAnswer>;

export function cardJson(card: Card, counts: { rewards: number; customerCards: number }): CardJson {
  return {
    id: card.id,
    name: card.name,
    card_color: card.cardColor,
    text_color: card.textColor,
    stamp_icon: card.stampIcon,
    stamp_color: card.stampColor,
    stamp_background_color: card.stampBackgroundColor,
    stamps_required: card.stampsRequired,
    initial_stamps: card.initialStamps,
    show_member_field: card.showMemberField,
    show_stamps_to_reward_field: card.showStampsToRewardField,
    auxiliary_fields: card.auxiliaryFields.map(({ key, label, value }) => ({ key, label, value })),
    strip_type: card.stripType,
    strip_color: card.stripColor,
    strip_opacity: card.stripOpacity,
    strip_preset: card.stripPreset,
    header_text: card.headerText,
    expires_at: card.expiresAt,
    archived_at: card.archivedAt,
    rewards_count: counts.rewards,
    customer_cards_count: counts.customerCards,
    max_stamps_per_request: card.maxStampsPerRequest,
    max_stamps_per_day: card.maxStampsPerDay,
    min_seconds_between_stamps: card.minSecondsBetweenStamps,
    created_at: card.createdAt,
    updated_at: card.updatedAt,
  };
}
