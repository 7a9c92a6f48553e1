import { IntegerField, TimeField, type FieldOptions } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  IntegerProperty,
  ObjectProperty,
  OneOfProperty,
  TextProperty,
  TextsProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import {
  ANNOUNCEMENT_STATES,
  type Announcement,
  type AnnouncementAttributes,
  type AnnouncementChanges,
  type AnnouncementState,
  type Audience,
} from './announcement.js';
import { CHANNELS, type HolderChannel } from './message-channel.js';
import { ChannelsField, DESCRIPTIONS, MessageTextField, TitleField } from './message-fields.dto.js';
import { MessageCountsJson, toMessageCountsJson } from './message-recipient.dto.js';
import type { MessageCounts } from './message-recipient.js';

/** Describes the filters, which are those of the list of customers. */
const AUDIENCE = {
  card_id: 'Only those who have this card; null: whoever has a card.',
  min_stamps: 'At least this many stamps: with card_id on that card, else on all together.',
  birthday_month: 'Born in this month, from 1 for January.',
  inactive_since: 'There before this time, and without a change to any of their cards since',
};

type Filter = Pick<FieldOptions, 'optional' | 'clearable'>;

const CardFilter = (options: Filter) =>
  IntegerField({ min: 1, description: AUDIENCE.card_id, ...options, example: null });
const StampsFilter = (options: Filter) =>
  IntegerField({ min: 1, description: AUDIENCE.min_stamps, ...options, example: null });
const MonthFilter = (options: Filter) =>
  IntegerField({
    min: 1,
    max: 12,
    description: AUDIENCE.birthday_month,
    ...options,
    example: null,
  });
const InactiveFilter = (options: Filter) =>
  TimeField({ description: AUDIENCE.inactive_since, ...options, example: null });

@Dto('AnnouncementPreviewInput', { example: { channels: ['wallet', 'email'] } })
export class PreviewAnnouncementDto {
  @ChannelsField({ default: [...CHANNELS] }) declare readonly channels: HolderChannel[];
  @CardFilter({ optional: true }) declare readonly card_id: number | null;
  @StampsFilter({ optional: true }) declare readonly min_stamps: number | null;
  @MonthFilter({ optional: true }) declare readonly birthday_month: number | null;
  @InactiveFilter({ optional: true }) declare readonly inactive_since: Date | null;
}

@Dto('AnnouncementInput', {
  example: { title: 'Closed on Monday', text: 'We are back on Tuesday at eight.' },
})
export class CreateAnnouncementDto extends PreviewAnnouncementDto {
  @TitleField() declare readonly title: string;
  @MessageTextField() declare readonly text: string;
}

@Dto('AnnouncementChanges', { example: { text: 'We are back on Tuesday at nine.' } })
export class UpdateAnnouncementDto {
  @TitleField({ omittable: true }) declare readonly title?: string;
  @MessageTextField({ omittable: true }) declare readonly text?: string;
  @ChannelsField({ omittable: true }) declare readonly channels?: HolderChannel[];
  @CardFilter({ clearable: true }) declare readonly card_id?: number | null;
  @StampsFilter({ clearable: true }) declare readonly min_stamps?: number | null;
  @MonthFilter({ clearable: true }) declare readonly birthday_month?: number | null;
  @InactiveFilter({ clearable: true }) declare readonly inactive_since?: Date | null;
}

@Dto('AnnouncementSending', { example: {} })
export class SendAnnouncementDto {
  @TimeField({ optional: true, description: 'When it is sent; null: now' })
  declare readonly send_at: Date | null;
}

@Dto('Announcement')
export class AnnouncementJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @OneOfProperty(ANNOUNCEMENT_STATES, {
    example: 'draft',
    description:
      'scheduled: begins at send_at; sending: it is being addressed and sent; sent: every message has its outcome',
  })
  declare readonly state: AnnouncementState;
  @TextProperty({ example: 'Closed on Monday', description: DESCRIPTIONS.title })
  declare readonly title: string;
  @TextProperty({ example: 'We are back on Tuesday at eight.', description: DESCRIPTIONS.text })
  declare readonly text: string;
  @TextsProperty(
    { enum: CHANNELS },
    { example: ['wallet', 'email'], description: DESCRIPTIONS.channels },
  )
  declare readonly channels: HolderChannel[];
  @IntegerProperty({ nullable: true, example: null, description: AUDIENCE.card_id })
  declare readonly card_id: number | null;
  @IntegerProperty({ nullable: true, example: null, description: AUDIENCE.min_stamps })
  declare readonly min_stamps: number | null;
  @IntegerProperty({ nullable: true, example: null, description: AUDIENCE.birthday_month })
  declare readonly birthday_month: number | null;
  @TimestampProperty({ nullable: true, description: `${AUDIENCE.inactive_since}.` })
  declare readonly inactive_since: string | null;
  @TimestampProperty({ nullable: true, description: 'When it begins; null for a draft.' })
  declare readonly send_at: string | null;
  @ObjectProperty(() => MessageCountsJson, { description: 'What became of its messages.' })
  declare readonly counts: MessageCountsJson;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
  @TimestampProperty({ nullable: true, description: 'When its first message was addressed.' })
  declare readonly started_at: string | null;
  @TimestampProperty({
    nullable: true,
    description: 'When its last message came to its outcome, or it was cancelled.',
  })
  declare readonly finished_at: string | null;
}

export function toAudience(input: PreviewAnnouncementDto): Audience {
  return {
    cardId: input.card_id,
    minStamps: input.min_stamps,
    birthdayMonth: input.birthday_month,
    inactiveSince: input.inactive_since?.toISOString() ?? null,
  };
}

export function toAnnouncementAttributes(input: CreateAnnouncementDto): AnnouncementAttributes {
  const { title, text, channels } = input;
  return { title, text, channels, audience: toAudience(input) };
}

/** Converts the fields that the request contains, and no others. */
export function toAnnouncementChanges(input: UpdateAnnouncementDto): AnnouncementChanges {
  const { title, text, channels, card_id, min_stamps, birthday_month, inactive_since } = input;
  return {
    ...(title !== undefined && { title }),
    ...(text !== undefined && { text }),
    ...(channels !== undefined && { channels }),
    audience: {
      ...(card_id !== undefined && { cardId: card_id }),
      ...(min_stamps !== undefined && { minStamps: min_stamps }),
      ...(birthday_month !== undefined && { birthdayMonth: birthday_month }),
      ...(inactive_since !== undefined && { inactiveSince: inactive_since?.toISOString() ?? null }),
    },
  };
}

export function toAnnouncementJson(one: Announcement, counts: MessageCounts): AnnouncementJson {
  return {
    id: one.id,
    account_id: one.accountId,
    state: one.state,
    title: one.title,
    text: one.text,
    channels: one.channels,
    card_id: one.audience.cardId,
    min_stamps: one.audience.minStamps,
    birthday_month: one.audience.birthdayMonth,
    inactive_since: one.audience.inactiveSince,
    send_at: one.sendAt?.toISOString() ?? null,
    counts: toMessageCountsJson(counts),
    created_at: one.createdAt.toISOString(),
    updated_at: one.updatedAt.toISOString(),
    started_at: one.startedAt?.toISOString() ?? null,
    finished_at: one.finishedAt?.toISOString() ?? null,
  };
}
