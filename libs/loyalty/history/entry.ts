import { DamagedHistoryError } from '#platform/kernel/errors.js';
import { parseStreamName, type Actor, type Channel } from '#platform/kernel/aggregate.js';
import type { Position } from '#platform/event-store/port/position.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import type { EventTypes } from '#platform/event-store/port/event-types.js';

/** An entry of the history: the records that an event is about and what it did, without personal data. */
export type HistoryEntry = {
  /** Of the event in the log, from 0 without gaps. */
  seq: number;
  /** Of the stored event; the public id is made from it. */
  eventId: string;
  stream: string;
  revision: number;
  position: Position;
  accountId: number;
  name: string;
  recordedAt: string;
  /** The latest recordedAt of the log so far. */
  latestRecordedAt: string;
  occurredAt: string;
  channel: Channel;
  /** As in `token:5`. */
  actor: string;
  locationId: number | null;
  rewardId: number | null;
  /** The signed change; null where there is none. */
  stamps: number | null;
  /** The id of the stored event that this one undoes. */
  reverses: string | null;
  /** Of stamps: how they came about. */
  source: string | null;
} & InheritedFields & { customerCardId: number | null };

/** The fields that an entry of a stream passes on to the next. */
export type InheritedFields = {
  customerId: number | null;
  cardId: number | null;
  /** Of the customer card, after the event; null elsewhere, and where events before it are lost. */
  balance: number | null;
};

/** An entry with its event, still sealed. */
export type EntryWithEvent = { entry: HistoryEntry; event?: StoredEvent };

/** Entries that the table does not have yet, newest first. @property end the last number in the table */
export type Tail = { tail: Required<EntryWithEvent>[]; end: number };

/** The end of the entries so far. */
export type End = { seq: number; latestRecordedAt: string };

export const NO_ENTRIES: End = { seq: -1, latestRecordedAt: '' };

type OwnId = 'customerId' | 'customerCardId' | 'cardId' | 'locationId' | 'rewardId';

/** The columns of records that have one, by their aggregates; other records' own ids are in no column. */
const OWN_IDS: Partial<Record<string, OwnId>> = {
  customer: 'customerId',
  customer_card: 'customerCardId',
  card: 'cardId',
  location: 'locationId',
  reward: 'rewardId',
};

/**
 * Creates the entries of events that follow one another in the log. Their records come from the usual names of
 * its fields, from its stream, and from the entry before it of the same stream.
 * @param inherited of each stream that began earlier, by its last entry
 * @throws UnknownEventTypeError
 * @throws DamagedHistoryError when the entries before these are not complete
 */
export function createEntries(
  events: StoredEvent[],
  types: EventTypes,
  { seq, latestRecordedAt }: End,
  inherited: ReadonlyMap<string, InheritedFields>,
): HistoryEntry[] {
  types.assertKnown(events, 'the history stands still');
  const latestOfStream = new Map<string, InheritedFields>();
  let latest = latestRecordedAt;
  return events.map((event, i) => {
    const { recordedAt } = event.meta;
    // Of the same format, so the later one is the greater text.
    if (recordedAt > latest) latest = recordedAt;
    const before = latestOfStream.get(event.stream) ?? inherited.get(event.stream);
    if (event.revision > 0 && !before) {
      throw new DamagedHistoryError(
        'past',
        `${event.stream}: event ${event.revision - 1} is missing`,
      );
    }
    const entry = createEntry(event, types, before, { seq: seq + 1 + i, latestRecordedAt: latest });
    latestOfStream.set(event.stream, entry);
    return entry;
  });
}

function createEntry(
  stored: StoredEvent,
  types: EventTypes,
  before: InheritedFields | undefined,
  end: End,
): HistoryEntry {
  const { id, stream, revision, position, type, meta } = stored;
  const aggregate = types.findAggregate(type);
  if (!aggregate) throw new Error(`nobody writes ${type}`);
  // As if the person were erased: nothing personal may get into an entry.
  const anonymous = { ...stored, data: { ...stored.data, personal: null } };
  const data: Record<string, unknown> = { ...toRecorded(aggregate, anonymous).data };
  const stamps = aggregate.events[type]?.balance?.(data) ?? null;
  const own = OWN_IDS[aggregate.name];
  const readId = (field: OwnId) => readNumber(data[field]);
  return {
    seq: end.seq,
    eventId: id,
    stream,
    revision,
    position,
    accountId: meta.accountId,
    name: aggregate.events[type]?.name ?? type,
    recordedAt: meta.recordedAt,
    latestRecordedAt: end.latestRecordedAt,
    occurredAt: meta.occurredAt,
    channel: meta.channel,
    actor: `${meta.actor.type}:${meta.actor.id}`,
    customerId: readId('customerId') ?? before?.customerId ?? null,
    customerCardId: readId('customerCardId'),
    cardId: readId('cardId') ?? before?.cardId ?? null,
    locationId: readId('locationId'),
    rewardId: readId('rewardId'),
    stamps,
    balance: types.hasBalance(aggregate) ? addStamps(before ? before.balance : 0, stamps) : null,
    reverses: readString(data['reverses']),
    source: stamps === null ? null : readString(data['source']),
    ...(own && { [own]: parseStreamName(stream).id }),
  };
}

function addStamps(balance: number | null, stamps: number | null): number | null {
  return balance === null ? null : balance + (stamps ?? 0);
}

/** Parses the actor of an entry. The name is not part of it. */
export function parseActor(actor: string): Pick<Actor, 'type' | 'id'> {
  const [type, id] = actor.split(':');
  return { type: type as Actor['type'], id: Number(id) };
}

function readString(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function readNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
