import { z } from 'zod';
import {
  boolean,
  clearable,
  color,
  integer,
  oneOf,
  optional,
  orDefault,
  text,
  timestamp,
} from '#http/fields.js';
import { rewardListQuery } from '#rewards/reward.dto.js';
import { collectsEmail, collectsPhone, type NewPoster, type Poster } from './poster.js';
import type { PosterAttributes } from './poster.events.js';

const PAPER_SIZES = ['a4', 'a5', 'a6', 'letter'] as const;
const COLLECTION_MODES = ['email_and_phone', 'email_only', 'phone_only'] as const;

const title = text({ example: 'Collect stamps, get a coffee' });
const paperSize = oneOf(PAPER_SIZES);
const mode = oneOf(COLLECTION_MODES);
const minimumAge = integer({ min: 1, max: 120 });

const FOLLOWS = 'The only contact collected is required, and no other can be';
const NEEDS_BIRTHDAY = 'Years; only with require_birthday';

export const createPosterDto = z
  .object({
    card_id: integer({ min: 1 }),
    title: optional(title).describe("Null: the card's name"),
    paper_size: orDefault(paperSize, 'a4'),
    primary_color: optional(color()).describe("Null: the card's card_color"),
    text_color: optional(color()).describe("Null: the card's text_color"),
    secondary_color: optional(color()).describe("Null: the card's stamp_background_color"),
    active: orDefault(boolean(), true),
    contact_collection_mode: orDefault(mode, 'email_and_phone'),
    require_email: optional(boolean()).describe(`${FOLLOWS}. Null: with both contacts true`),
    require_phone: optional(boolean()).describe(`${FOLLOWS}. Null: with both contacts false`),
    require_birthday: orDefault(boolean(), false),
    minimum_age: optional(minimumAge).describe(NEEDS_BIRTHDAY),
  })
  .meta({
    id: 'PosterInput',
    example: { card_id: 1, title: 'Collect stamps, get a coffee', paper_size: 'a4' },
  });

export const updatePosterDto = z
  .object({
    title: title.optional(),
    paper_size: paperSize.optional(),
    primary_color: color().optional(),
    text_color: color().optional(),
    secondary_color: color().optional(),
    active: boolean().optional(),
    contact_collection_mode: mode.optional(),
    require_email: boolean().optional().describe(`${FOLLOWS}; follows the mode when left out`),
    require_phone: boolean().optional().describe(`${FOLLOWS}; follows the mode when left out`),
    require_birthday: boolean().optional(),
    minimum_age: clearable(minimumAge).describe(NEEDS_BIRTHDAY),
  })
  .meta({ id: 'PosterChanges', example: { paper_size: 'a5', active: false } });

type Changes = z.infer<typeof updatePosterDto>;

/** The names of the wire on the left, ours on the right. */
const ATTRIBUTES = {
  title: 'title',
  paper_size: 'paperSize',
  primary_color: 'primaryColor',
  text_color: 'textColor',
  secondary_color: 'secondaryColor',
  active: 'active',
  contact_collection_mode: 'contactCollectionMode',
  require_email: 'requireEmail',
  require_phone: 'requirePhone',
  require_birthday: 'requireBirthday',
  minimum_age: 'minimumAge',
} as const satisfies Record<keyof Changes, keyof PosterAttributes>;

/** Only what was named in the request. */
export function posterAttributes(input: z.infer<typeof createPosterDto>): NewPoster;
export function posterAttributes(input: Changes): Partial<PosterAttributes>;
export function posterAttributes(
  input: Changes | z.infer<typeof createPosterDto>,
): Partial<NewPoster> {
  return Object.fromEntries(
    Object.entries(ATTRIBUTES)
      .map(([wire, ours]) => [ours, input[wire as keyof Changes]] as const)
      .filter(([, value]) => value !== undefined),
  );
}

/** The same filters and pages as rewards have. */
export const posterListQuery = rewardListQuery;

export const posterAnswer = z
  .object({
    id: z.int(),
    account_id: z.int(),
    card_id: z.int(),
    title: z.string().meta({ example: 'Collect stamps, get a coffee' }),
    paper_size: z.enum(PAPER_SIZES),
    primary_color: z.string().meta({ example: '#6B4226' }),
    text_color: z.string().meta({ example: '#FFFFFF' }),
    secondary_color: z.string().meta({ example: '#FFFFFF' }),
    active: z.boolean().describe('Whether the signup URL is live'),
    contact_collection_mode: z.enum(COLLECTION_MODES),
    collect_email: z.boolean(),
    collect_phone: z.boolean(),
    require_email: z
      .boolean()
      .describe('Where neither contact is required, one of them has to be given all the same'),
    require_phone: z.boolean().meta({ example: false }),
    require_birthday: z.boolean().meta({ example: false }),
    minimum_age: z.int().nullable(),
    signup_url: z.string().meta({ example: 'https://inkpad.example/join/3kTMd9QwXzR7vB2nLc' }),
    qr_code_url: z
      .string()
      .describe('What the QR code says')
      .meta({ example: 'https://inkpad.example/join/3kTMd9QwXzR7vB2nLc?src=qr' }),
    display_url: z
      .string()
      .describe('The poster on screen')
      .meta({ example: 'https://inkpad.example/posters/3kTMd9QwXzR7vB2nLc' }),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Poster' });

export type PosterJson = z.infer<typeof posterAnswer>;

export function posterJson(poster: Poster, publicUrl: string): PosterJson {
  const signupUrl = `${publicUrl}/join/${poster.slug}`;
  return {
    id: poster.id,
    account_id: poster.accountId,
    card_id: poster.cardId,
    title: poster.title,
    paper_size: poster.paperSize,
    primary_color: poster.primaryColor,
    text_color: poster.textColor,
    secondary_color: poster.secondaryColor,
    active: poster.active,
    contact_collection_mode: poster.contactCollectionMode,
    collect_email: collectsEmail(poster.contactCollectionMode),
    collect_phone: collectsPhone(poster.contactCollectionMode),
    require_email: poster.requireEmail,
    require_phone: poster.requirePhone,
    require_birthday: poster.requireBirthday,
    minimum_age: poster.minimumAge,
    signup_url: signupUrl,
    qr_code_url: `${signupUrl}?src=qr`,
    display_url: `${publicUrl}/posters/${poster.slug}`,
    created_at: poster.createdAt,
    updated_at: poster.updatedAt,
  };
}
