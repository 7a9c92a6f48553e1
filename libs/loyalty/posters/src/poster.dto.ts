import { BooleanField, ColorField, IntegerField, OneOfField, TextField } from '#http/fields.js';
import { Dto } from '#http/dtos.js';
import {
  BooleanProperty,
  IntegerProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import { collectsEmail, collectsPhone, type NewPoster, type Poster } from './poster.js';
import type { PosterAttributes } from './poster.events.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  card_id: 'The card, which is a template.',
  paper_size: 'The size that it is printed in.',
  active: 'Whether people can sign up with it.',
  contact_collection_mode: 'The contact that the sign-up asks for.',
  require_birthday: 'Whether the sign-up requires a birthday.',
  title: 'The headline of the poster.',
  primary_color: 'The background of the poster.',
  text_color: 'The colour of texts.',
  secondary_color: 'The colour of its accents.',
};

const PAPER_SIZES = ['a3', 'a4', 'a5', 'a6', 'letter', 'table_tent', 'sticker'] as const;
const COLLECTION_MODES = ['email_and_phone', 'email_only', 'phone_only'] as const;
type PaperSize = (typeof PAPER_SIZES)[number];
type CollectionMode = (typeof COLLECTION_MODES)[number];

const TITLE = { example: 'Collect stamps, get a coffee' };
const AGE = { min: 1, max: 120, description: 'Years; only with require_birthday' };
const FOLLOWS =
  'True for a contact that is the only one collected, false for one that is not collected';
const FOLLOWS_MODE = { description: `${FOLLOWS}; if omitted, follows the mode` };

@Dto('PosterInput', {
  wrapper: 'poster',
  bare: true,
  example: { card_id: 1, title: 'Collect stamps, get a coffee', paper_size: 'a4' },
})
export class CreatePosterDto {
  @IntegerField({ min: 1, description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
  @TextField({ ...TITLE, optional: true, description: "Null: the card's name" })
  declare readonly title: string | null;
  @OneOfField(PAPER_SIZES, { default: 'a4', description: DESCRIPTIONS.paper_size })
  declare readonly paper_size: PaperSize;
  @ColorField({ optional: true, description: "Null: the card's card_color" })
  declare readonly primary_color: string | null;
  @ColorField({ optional: true, description: "Null: the card's text_color" })
  declare readonly text_color: string | null;
  @ColorField({ optional: true, description: "Null: the card's stamp_background_color" })
  declare readonly secondary_color: string | null;
  @BooleanField({ default: true, description: DESCRIPTIONS.active })
  declare readonly active: boolean;
  @OneOfField(COLLECTION_MODES, {
    default: 'email_and_phone',
    description: DESCRIPTIONS.contact_collection_mode,
  })
  declare readonly contact_collection_mode: CollectionMode;
  @BooleanField({ optional: true, description: `${FOLLOWS}. Null: true if both are collected` })
  declare readonly require_email: boolean | null;
  @BooleanField({ optional: true, description: `${FOLLOWS}. Null: false if both are collected` })
  declare readonly require_phone: boolean | null;
  @BooleanField({ default: false, description: DESCRIPTIONS.require_birthday })
  declare readonly require_birthday: boolean;
  @IntegerField({ ...AGE, optional: true }) declare readonly minimum_age: number | null;
}

@Dto('PosterChanges', {
  wrapper: 'poster',
  bare: CreatePosterDto,
  example: { paper_size: 'a5', active: false },
})
export class UpdatePosterDto {
  @TextField({ ...TITLE, omittable: true, description: DESCRIPTIONS.title })
  declare readonly title?: string;
  @OneOfField(PAPER_SIZES, { omittable: true, description: DESCRIPTIONS.paper_size })
  declare readonly paper_size?: PaperSize;
  @ColorField({ omittable: true, description: DESCRIPTIONS.primary_color })
  declare readonly primary_color?: string;
  @ColorField({ omittable: true, description: DESCRIPTIONS.text_color })
  declare readonly text_color?: string;
  @ColorField({ omittable: true, description: DESCRIPTIONS.secondary_color })
  declare readonly secondary_color?: string;
  @BooleanField({ omittable: true, description: DESCRIPTIONS.active })
  declare readonly active?: boolean;
  @OneOfField(COLLECTION_MODES, {
    omittable: true,
    description: DESCRIPTIONS.contact_collection_mode,
  })
  declare readonly contact_collection_mode?: CollectionMode;
  @BooleanField({ ...FOLLOWS_MODE, omittable: true }) declare readonly require_email?: boolean;
  @BooleanField({ ...FOLLOWS_MODE, omittable: true }) declare readonly require_phone?: boolean;
  @BooleanField({ omittable: true, description: DESCRIPTIONS.require_birthday })
  declare readonly require_birthday?: boolean;
  @IntegerField({ ...AGE, clearable: true }) declare readonly minimum_age?: number | null;
}

/** Maps the names in the API to those of the attributes. */
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
} as const satisfies Record<keyof UpdatePosterDto, keyof PosterAttributes>;

/** Converts the fields that the request contains, and no others. */
export function toPosterAttributes(input: CreatePosterDto): NewPoster;
export function toPosterAttributes(input: UpdatePosterDto): Partial<PosterAttributes>;
export function toPosterAttributes(input: UpdatePosterDto | CreatePosterDto): Partial<NewPoster> {
  return Object.fromEntries(
    Object.entries(ATTRIBUTES)
      .map(([wire, ours]) => [ours, input[wire as keyof UpdatePosterDto]] as const)
      .filter(([, value]) => value !== undefined),
  );
}

@Dto('Poster')
export class PosterJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @IntegerProperty({ description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
  @TextProperty({ ...TITLE, description: DESCRIPTIONS.title }) declare readonly title: string;
  @OneOfProperty(PAPER_SIZES, { description: DESCRIPTIONS.paper_size })
  declare readonly paper_size: PaperSize;
  @TextProperty({ example: '#6B4226', description: DESCRIPTIONS.primary_color })
  declare readonly primary_color: string;
  @TextProperty({ example: '#FFFFFF', description: DESCRIPTIONS.text_color })
  declare readonly text_color: string;
  @TextProperty({ example: '#FFFFFF', description: DESCRIPTIONS.secondary_color })
  declare readonly secondary_color: string;
  @BooleanProperty({ description: 'Whether the signup URL is live' })
  declare readonly active: boolean;
  @OneOfProperty(COLLECTION_MODES, { description: DESCRIPTIONS.contact_collection_mode })
  declare readonly contact_collection_mode: CollectionMode;
  @BooleanProperty({
    description:
      'Whether the sign-up asks for an e-mail address; it follows from contact_collection_mode.',
  })
  declare readonly collect_email: boolean;
  @BooleanProperty({
    description:
      'Whether the sign-up asks for a phone number; it follows from contact_collection_mode.',
  })
  declare readonly collect_phone: boolean;
  @BooleanProperty({
    description: 'If neither contact is required, one of them must still be given',
  })
  declare readonly require_email: boolean;
  @BooleanProperty({ example: false, description: 'Whether the sign-up requires a phone number.' })
  declare readonly require_phone: boolean;
  @BooleanProperty({ example: false, description: DESCRIPTIONS.require_birthday })
  declare readonly require_birthday: boolean;
  @IntegerProperty({
    nullable: true,
    description: 'The age in years below which nobody can sign up; null: any age.',
  })
  declare readonly minimum_age: number | null;
  @TextProperty({
    example: 'https://inkpad.example/join/3kTMd9QwXzR7vB2nLc',
    description: 'The address at which people sign up.',
  })
  declare readonly signup_url: string;
  @TextProperty({
    description: 'The content of the QR code',
    example: 'https://inkpad.example/join/3kTMd9QwXzR7vB2nLc?src=qr',
  })
  declare readonly qr_code_url: string;
  @TextProperty({
    description: 'The poster on screen',
    example: 'https://inkpad.example/posters/3kTMd9QwXzR7vB2nLc',
  })
  declare readonly display_url: string;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
}

export function toPosterJson(poster: Poster, publicUrl: string): PosterJson {
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
