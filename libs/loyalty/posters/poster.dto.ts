import { Dto } from '#platform/http/dtos.js';
import { ObjectsProperty, OneOfProperty, TextProperty } from '#platform/http/response-fields.js';
import {
  derive,
  field,
  ID,
  pick,
  TIMES,
  type FieldsOf,
  type Showing,
} from '#platform/http/resource-fields.js';
import { collectsEmail, collectsPhone, type NewPoster, type Poster } from './poster.js';
import type { PosterAttributes } from './poster.events.js';

const FOLLOWS =
  'True for a contact that is the only one collected, false for one that is not collected';
const FOLLOWS_MODE = `${FOLLOWS}; if omitted, follows the mode`;

const CARD = { card_id: field.integer({ min: 1, description: 'The card, which is a template.' }) };

const FIELDS = {
  title: field.text({
    example: 'Collect stamps, get a coffee',
    description: 'The headline of the poster.',
    create: { optional: true, description: "Null: the card's name" },
  }),
  paper_size: field.oneOf(['a3', 'a4', 'a5', 'a6', 'letter', 'table_tent', 'sticker'], {
    default: 'a4',
    description: 'The size that it is printed in.',
  }),
  primary_color: field.color({
    description: 'The background of the poster.',
    create: { optional: true, description: "Null: the card's card_color" },
    response: { example: '#6B4226' },
  }),
  text_color: field.color({
    description: 'The colour of texts.',
    create: { optional: true, description: "Null: the card's text_color" },
    response: { example: '#FFFFFF' },
  }),
  secondary_color: field.color({
    description: 'The colour of its accents.',
    create: { optional: true, description: "Null: the card's stamp_background_color" },
    response: { example: '#FFFFFF' },
  }),
  active: field.boolean({
    default: true,
    description: 'Whether people can sign up with it.',
    response: { description: 'Whether the signup URL is live' },
  }),
  contact_collection_mode: field.oneOf(['email_and_phone', 'email_only', 'phone_only'], {
    default: 'email_and_phone',
    description: 'The contact that the sign-up asks for.',
  }),
  require_email: field.boolean({
    description: FOLLOWS_MODE,
    create: { optional: true, description: `${FOLLOWS}. Null: true if both are collected` },
    response: { description: 'If neither contact is required, one of them must still be given' },
  }),
  require_phone: field.boolean({
    description: FOLLOWS_MODE,
    create: { optional: true, description: `${FOLLOWS}. Null: false if both are collected` },
    response: { example: false, description: 'Whether the sign-up requires a phone number.' },
  }),
  require_birthday: field.boolean({
    default: false,
    description: 'Whether the sign-up requires a birthday.',
    response: { example: false },
  }),
  minimum_age: field.integer({
    min: 1,
    max: 120,
    optional: true,
    description: 'Years; only with require_birthday',
    response: { description: 'The age in years below which nobody can sign up; null: any age.' },
  }),
} satisfies FieldsOf<PosterAttributes, Omit<NewPoster, 'cardId'>>;

const POSTER_WARNINGS = ['text_left_out'] as const;

@Dto('PosterWarning')
class PosterWarningJson {
  @OneOfProperty(POSTER_WARNINGS, { example: 'text_left_out', description: 'What it is about.' })
  declare readonly code: (typeof POSTER_WARNINGS)[number];
  @TextProperty({
    example: describeIllegible('ᎠᏂ Café', ['Ꭰ', 'Ꮒ']),
    description: 'What is left out of which text, and what to do.',
  })
  declare readonly message: string;
}

/** Says which characters of a text no document of a poster shows. */
function describeIllegible(text: string, characters: string[]): string {
  return `The documents leave out ${characters.join(' ')} of the title "${text}", because no font has them. Write it in other letters, or ask the operator for a font.`;
}

const RESPONSE = {
  id: ID,
  account_id: field.integer({ description: 'The store.' }),
  ...CARD,
  ...pick(FIELDS, 'title', 'paper_size', 'primary_color', 'text_color', 'secondary_color'),
  ...pick(FIELDS, 'active', 'contact_collection_mode'),
  collect_email: field.boolean({
    description:
      'Whether the sign-up asks for an e-mail address; it follows from contact_collection_mode.',
  }),
  collect_phone: field.boolean({
    description:
      'Whether the sign-up asks for a phone number; it follows from contact_collection_mode.',
  }),
  ...pick(FIELDS, 'require_email', 'require_phone', 'require_birthday', 'minimum_age'),
  signup_url: field.text({
    example: 'https://inkpad.example/join/3kTMd9QwXzR7vB2nLc',
    description: 'The address at which people sign up.',
  }),
  qr_code_url: field.text({
    description: 'The content of the QR code',
    example: 'https://inkpad.example/join/3kTMd9QwXzR7vB2nLc?src=qr',
  }),
  display_url: field.text({
    description: 'The poster on screen',
    example: 'https://inkpad.example/posters/3kTMd9QwXzR7vB2nLc',
  }),
  warnings: field.response<PosterWarningJson[]>(
    ObjectsProperty(() => PosterWarningJson, {
      description: 'What the documents of the poster leave out of its title; empty if nothing.',
    }),
  ),
  ...TIMES,
} satisfies Showing<typeof FIELDS>;

@Dto('PosterInput', {
  wrapper: 'poster',
  bare: true,
  example: { card_id: 1, title: 'Collect stamps, get a coffee', paper_size: 'a4' },
})
export class CreatePosterDto extends derive.input({ ...CARD, ...FIELDS }) {}

@Dto('PosterChanges', {
  wrapper: 'poster',
  bare: CreatePosterDto,
  example: { paper_size: 'a5', active: false },
})
export class UpdatePosterDto extends derive.changes(FIELDS) {}

@Dto('Poster')
export class PosterJson extends derive.response(RESPONSE) {}

export const toPosterAttributes = derive.toAttributes({ ...CARD, ...FIELDS });

const renderPoster = derive.toJsonWith(RESPONSE);

/** @param illegible the characters of its title that no document shows */
export function toPosterJson(
  poster: Poster,
  { publicUrl, illegible }: { publicUrl: string; illegible: string[] },
): PosterJson {
  const { signup: signupUrl, code: qrCodeUrl } = toSignupUrls(poster.slug, publicUrl);
  return renderPoster(poster, {
    collectEmail: collectsEmail(poster.contactCollectionMode),
    collectPhone: collectsPhone(poster.contactCollectionMode),
    signupUrl,
    qrCodeUrl,
    displayUrl: `${publicUrl}/posters/${poster.slug}`,
    warnings:
      illegible.length === 0
        ? []
        : [{ code: 'text_left_out', message: describeIllegible(poster.title, illegible) }],
  });
}

/** Returns the address at which people sign up, and the content of the QR code, which tells that they have scanned it. */
export function toSignupUrls(slug: string, publicUrl: string): { signup: string; code: string } {
  const signup = `${publicUrl}/join/${slug}`;
  return { signup, code: `${signup}?src=qr` };
}
