import { TimeField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  defineKind,
  derive,
  field,
  ID,
  pick,
  TIMES,
  type FieldsOf,
  type Showing,
} from '#platform/http/resource-fields.js';
import { TimestampProperty } from '#platform/http/response-fields.js';
import {
  ANNOUNCEMENT_STATES,
  type Announcement,
  type Audience,
  type MessageContent,
} from './campaign.js';
import { contentFields, optionalTimeField } from './message-fields.dto.js';
import { COUNTS, toMessageCountsJson } from './message-recipient.dto.js';
import type { MessageCounts } from './message-recipient.js';

const EXAMPLE = { title: 'Closed on Monday', text: 'We are back on Tuesday at eight.' };

const CONTENT = contentFields(EXAMPLE) satisfies FieldsOf<MessageContent>;

const sinceField = defineKind<string, { description: string }>(
  (options) => TimeField({ ...options, example: null, finish: (time) => time.toISOString() }),
  TimestampProperty,
);
const INACTIVE_SINCE = 'There before this time, and without a change to any of their cards since';

/** The filters, which are those of the list of customers. */
const AUDIENCE = {
  card_id: field.integer({
    min: 1,
    optional: true,
    example: null,
    description: 'Only those who have this card; null: whoever has a card.',
  }),
  min_stamps: field.integer({
    min: 1,
    optional: true,
    example: null,
    description: 'At least this many stamps: with card_id on that card, else on all together.',
  }),
  birthday_month: field.integer({
    min: 1,
    max: 12,
    optional: true,
    example: null,
    description: 'Born in this month, from 1 for January.',
  }),
  inactive_since: sinceField({
    optional: true,
    description: INACTIVE_SINCE,
    response: { description: `${INACTIVE_SINCE}.` },
  }),
} satisfies FieldsOf<Audience>;

const RESPONSE = {
  id: ID,
  account_id: field.integer({ description: 'The store.' }),
  state: field.oneOf(ANNOUNCEMENT_STATES, {
    example: 'draft',
    description:
      'scheduled: begins at send_at; sending: it is being addressed and sent; sent: every message has its outcome',
  }),
  ...CONTENT,
  ...AUDIENCE,
  send_at: optionalTimeField('When it begins; null for a draft.'),
  ...COUNTS,
  ...TIMES,
  started_at: optionalTimeField('When its first message was addressed.'),
  finished_at: optionalTimeField('When its last message came to its outcome, or it was cancelled.'),
} satisfies Showing<typeof CONTENT & typeof AUDIENCE>;

const PREVIEW = { ...pick(CONTENT, 'channels'), ...AUDIENCE };

@Dto('AnnouncementPreviewInput', { example: { channels: ['wallet', 'email'] } })
export class PreviewAnnouncementDto extends derive.input(PREVIEW) {}

@Dto('AnnouncementInput', { example: EXAMPLE })
export class CreateAnnouncementDto extends derive.input({
  ...PREVIEW,
  ...pick(CONTENT, 'title', 'text'),
}) {}

@Dto('AnnouncementChanges', { example: { text: 'We are back on Tuesday at nine.' } })
export class UpdateAnnouncementDto extends derive.changes({ ...CONTENT, ...AUDIENCE }) {}

@Dto('AnnouncementSending', { example: {} })
export class SendAnnouncementDto {
  @TimeField({ optional: true, description: 'When it is sent; null: now' })
  declare readonly send_at: Date | null;
}

@Dto('Announcement')
export class AnnouncementJson extends derive.response(RESPONSE) {}

export const toAudience = derive.toAttributes(AUDIENCE);
const toContent = derive.toAttributes(CONTENT);

/** Converts the fields that the request contains, and no others. */
export function toAnnouncementAttributes<I extends UpdateAnnouncementDto>(input: I) {
  return { ...toContent(input), trigger: toAudience(input) };
}

const renderAnnouncement = derive.toJsonWith(RESPONSE);

export function toAnnouncementJson(row: Announcement, counts: MessageCounts): AnnouncementJson {
  return renderAnnouncement(
    { ...row, ...row.trigger },
    {
      sendAt: row.sendAt?.toISOString() ?? null,
      counts: toMessageCountsJson(counts),
      createdAt: row.createdAt.toISOString(),
      updatedAt: row.updatedAt.toISOString(),
      startedAt: row.startedAt?.toISOString() ?? null,
      finishedAt: row.finishedAt?.toISOString() ?? null,
    },
  );
}
