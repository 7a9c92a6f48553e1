import { Matches } from 'class-validator';
import type { Actor, Channel, EventMeta } from '#platform/kernel/aggregate.js';
import { DamagedHistoryError } from '#platform/kernel/errors.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import {
  Field,
  IdentifierField,
  IntegerField,
  OneOfField,
  TextField,
  TimeField,
} from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  IntegerProperty,
  ObjectProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import type { HistoryEntry } from './entry.js';
import type { HistoryFilter } from './history-query.js';
import { ISSUES } from '#translations/issues.js';

/** The entries of a page without a limit in the query. */
export const DEFAULT_PAGE_SIZE = 100;

const ACTORS = ['token', 'user', 'customer', 'admin_token', 'system'] as const;
const CHANNELS = [
  'api',
  'pos',
  'staff',
  'owner',
  'poster',
  'web_card',
  'import',
  'cli',
  'admin',
  'system',
] as const;
const ACTOR = /^(token|user|customer|admin_token|system):(0|[1-9]\d{0,15})$/;

@Dto('CustomerCardEventListQuery')
export class CardEventsQuery extends PageQuery {
  @TextField({
    max: 64,
    optional: true,
    example: 'stamp.earned',
    description: 'Only entries of this type; of a type that there is none of, an empty list',
  })
  declare readonly type: string | null;
  @IdentifierField({ optional: true, description: 'Only entries with exactly this receipt number' })
  declare readonly external_ref: string | null;
  @TimeField({ optional: true, description: 'Recorded at or after this time' })
  declare readonly from: Date | null;
  @TimeField({ optional: true, moment: 'next', description: 'Recorded before this time' })
  declare readonly to: Date | null;
}

const RECORD_ID = { min: 1, optional: true } as const;

@Dto('HistoryQuery')
export class HistoryQuery extends CardEventsQuery {
  @IntegerField({ ...RECORD_ID, description: 'Only those of this customer.' })
  declare readonly customer_id: number | null;
  @IntegerField({ ...RECORD_ID, description: 'Only those of this customer card.' })
  declare readonly customer_card_id: number | null;
  @IntegerField({ ...RECORD_ID, description: 'Only those of this card.' })
  declare readonly card_id: number | null;
  @IntegerField({ ...RECORD_ID, description: 'Only those at this location.' })
  declare readonly location_id: number | null;
  @OneOfField(CHANNELS, {
    optional: true,
    description: 'Only those that came through this channel.',
  })
  declare readonly channel: Channel | null;
  @ActorField() declare readonly actor: string | null;
}

@Dto('HistoryActor')
export class HistoryActorJson {
  @OneOfProperty(ACTORS, { description: 'The kind of actor.' })
  declare readonly type: Actor['type'];
  @IntegerProperty({ description: '0 for the system' }) declare readonly id: number;
  @TextProperty({
    nullable: true,
    example: 'till',
    description: 'The present name of the token, user or customer',
  })
  declare readonly name: string | null;
}

@Dto('HistoryEntry')
export class HistoryEntryJson {
  @TextProperty({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3', description: 'The id.' })
  declare readonly id: string;
  @TextProperty({
    example: 'stamp.earned',
    description:
      'The type of the public event where there is one, else a name such as card.archived',
  })
  declare readonly type: string;
  @TimestampProperty({ description: 'When it happened.' }) declare readonly occurred_at: string;
  @TimestampProperty({ description: 'When it was written to the history.' })
  declare readonly recorded_at: string;
  @OneOfProperty(CHANNELS, { description: 'The channel through which it came.' })
  declare readonly channel: Channel;
  @ObjectProperty(() => HistoryActorJson, {
    description: 'The user, token or program that did it.',
  })
  declare readonly actor: HistoryActorJson;
  @TextProperty({
    nullable: true,
    example: '0198f3c4-7c2e-7d3a-9b1f-2f6f0a4b8c55',
    description:
      'The id of the request, to be quoted to whoever runs the service. Null where the event store has lost the event: then staff_ref, external_ref and note are not known either',
  })
  declare readonly request_id: string | null;
  @IntegerProperty({ nullable: true, description: 'The customer.' }) declare readonly customer_id:
    | number
    | null;
  @IntegerProperty({ nullable: true, description: 'The customer card.' })
  declare readonly customer_card_id: number | null;
  @IntegerProperty({ nullable: true, description: 'The card, which is a template.' })
  declare readonly card_id: number | null;
  @IntegerProperty({ nullable: true, example: 2, description: 'The signed change of the balance' })
  declare readonly stamps: number | null;
  @IntegerProperty({
    nullable: true,
    example: 7,
    description:
      'Of the customer card, after it; null for an entry of another record, such as customer.card_links_requested, and where the event store has lost an event before it',
  })
  declare readonly balance: number | null;
  @IntegerProperty({ nullable: true, example: null, description: 'The reward.' })
  declare readonly reward_id: number | null;
  @IntegerProperty({ nullable: true, description: 'The location where it happened.' })
  declare readonly location_id: number | null;
  @TextProperty({
    nullable: true,
    example: 'till-2',
    description: 'The member of staff, by a name of your choice.',
  })
  declare readonly staff_ref: string | null;
  @TextProperty({ nullable: true, example: 'R-1042', description: 'The receipt number.' })
  declare readonly external_ref: string | null;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'Null once the customer is erased',
  })
  declare readonly note: string | null;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'The id of the entry that this one undoes',
  })
  declare readonly reverses: string | null;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'The id of the entry that undid this one',
  })
  declare readonly reversed_by: string | null;
}

/** An event with its data decrypted, in the shape that its type has now. */
export type DecodedEvent = { data: object; meta: EventMeta };

/** An entry with the details that only its event has. */
export type DetailedEntry = {
  entry: HistoryEntry;
  event: DecodedEvent;
  /** Whether the event store has lost the event, or hides it: its data are empty then. */
  isLost: boolean;
  actorName: string | null;
  /** The id of a stored event. */
  reversedBy: string | null;
  reversedAt: string | null;
};

export function toHistoryEntryJson({
  entry,
  event,
  isLost,
  actorName,
  reversedBy,
}: DetailedEntry): HistoryEntryJson {
  const { actor, channel, requestId } = event.meta;
  const { data } = event;
  return {
    id: toPublicEventId(entry.eventId),
    type: entry.name,
    occurred_at: entry.occurredAt,
    recorded_at: entry.recordedAt,
    channel,
    actor: { type: actor.type, id: actor.id, name: actorName },
    request_id: isLost ? null : requestId,
    customer_id: entry.customerId,
    customer_card_id: entry.customerCardId,
    card_id: entry.cardId,
    stamps: entry.stamps,
    balance: entry.balance,
    reward_id: entry.rewardId,
    location_id: entry.locationId,
    staff_ref: readTextField(data, 'staffRef'),
    external_ref: readTextField(data, 'externalRef'),
    note: findNote(event),
    reverses: entry.reverses === null ? null : toPublicEventId(entry.reverses),
    reversed_by: reversedBy === null ? null : toPublicEventId(reversedBy),
  };
}

/** @throws DamagedHistoryError when the event store has lost the event, or hides it */
export function assertHasEvent({ entry, isLost }: DetailedEntry): void {
  if (!isLost) return;
  const reason = `event ${entry.eventId} of ${entry.stream} is missing`;
  throw new DamagedHistoryError('past', reason);
}

/** Finds the free text of an event: the note of a stamping, the reason of a correction. */
export function findNote({ data }: Pick<DecodedEvent, 'data'>): string | null {
  const personal: unknown = Reflect.get(data, 'personal');
  return readTextField(personal, 'note') ?? readTextField(personal, 'reason');
}

/** Finds the receipt number for a person. The counter makes up its own, which nobody can look up. */
export function findReceiptOfTill(
  { channel }: Pick<HistoryEntry, 'channel'>,
  { data }: Pick<DecodedEvent, 'data'>,
): string | null {
  return channel === 'staff' ? null : readTextField(data, 'externalRef');
}

export function toHistoryFilter(query: CardEventsQuery & Partial<HistoryQuery>): HistoryFilter {
  return {
    customerId: query.customer_id ?? null,
    customerCardId: query.customer_card_id ?? null,
    cardId: query.card_id ?? null,
    locationId: query.location_id ?? null,
    name: query.type,
    channel: query.channel ?? null,
    actor: query.actor ?? null,
    from: query.from,
    to: query.to,
  };
}

/** Reads a string field of an event. */
export function readTextField(part: unknown, name: string): string | null {
  if (typeof part !== 'object' || part === null) return null;
  const value: unknown = Reflect.get(part, name);
  return typeof value === 'string' ? value : null;
}

export function ActorField(): PropertyDecorator {
  const context = ISSUES.unknown_actor({ types: ACTORS.join(', ') });
  return Field(
    {
      schema: { type: 'string', pattern: ACTOR.source },
      validators: [Matches(ACTOR, { context })],
    },
    { optional: true, example: 'token:5', description: 'The actor, as type and id' },
  );
}
