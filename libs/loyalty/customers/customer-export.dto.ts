import type { Aggregate, DomainEvent, RecordedEvent } from '#platform/kernel/aggregate.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { Dto } from '#platform/http/dtos.js';
import {
  BooleanProperty,
  IntegerProperty,
  JsonProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { CustomerJson } from './customer.dto.js';
import { CONSENT_KINDS } from './consents.js';
import type { CustomerEvent } from './customer.events.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  id: 'The id.',
};

@Dto('ExportedActor')
class ExportedActorJson {
  @OneOfProperty(['token', 'user', 'customer', 'system'], { description: 'The kind of actor.' })
  declare readonly type: string;
  @IntegerProperty({ description: DESCRIPTIONS.id }) declare readonly id: number;
  @TextProperty({ nullable: true, description: 'The name.' }) declare readonly name: string | null;
}

@Dto('ExportedEvent')
export class ExportedEventJson {
  @TextProperty({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3', description: DESCRIPTIONS.id })
  declare readonly id: string;
  @OneOfProperty(['customer', 'customer_card'], { description: 'The kind of record.' })
  declare readonly record: string;
  @IntegerProperty({ description: 'The id of the record.' }) declare readonly record_id: number;
  @IntegerProperty({ description: 'The revision of the record, from 0' })
  declare readonly sequence: number;
  @TextProperty({ example: 'stamp.earned', description: 'The kind of event.' })
  declare readonly type: string;
  @TimestampProperty({ description: 'When it happened.' }) declare readonly occurred_at: string;
  @TimestampProperty({ description: 'When it was written to the history.' })
  declare readonly recorded_at: string;
  @TextProperty({ example: 'api', description: 'The channel through which it came.' })
  declare readonly channel: string;
  @ObjectProperty(() => ExportedActorJson, {
    description: 'The user, token or program that did it.',
  })
  declare readonly actor: ExportedActorJson;
  @TextProperty({
    example: '0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01',
    description: 'The id of the request, to be quoted to whoever runs the service.',
  })
  declare readonly request_id: string;
  @JsonProperty({ description: 'All that was recorded, notes and reasons included' })
  declare readonly data: object;
}

@Dto('ExportedConsent')
export class ExportedConsentJson {
  @OneOfProperty(['marketing_consent', 'sms_consent'], { description: 'The consent.' })
  declare readonly name: string;
  @BooleanProperty({ example: true, description: 'Whether it was given.' })
  declare readonly value: boolean;
  @BooleanProperty({
    example: true,
    description:
      'Whether it holds: it does not wait until the person confirms it by a link that went to them',
  })
  declare readonly confirmed: boolean;
  @TimestampProperty({ description: 'When it was recorded' }) declare readonly since: string;
  @TextProperty({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3', description: 'The id of the event.' })
  declare readonly event_id: string;
}

@Dto('CustomerExport')
export class CustomerExportJson {
  @TimestampProperty({ description: 'When the export was made.' })
  declare readonly exported_at: string;
  @ObjectProperty(() => CustomerJson, { description: 'The person, as they are shown now.' })
  declare readonly customer: CustomerJson;
  @ObjectsProperty(() => CustomerJson, {
    description: 'The other customers who are the same person, because they are merged',
  })
  declare readonly merged_customers: CustomerJson[];
  @ObjectsProperty(() => ExportedEventJson, {
    description: 'The history of each customer and of each of their cards, oldest first in each',
  })
  declare readonly history: ExportedEventJson[];
  @ObjectsProperty(() => ExportedConsentJson, {
    description: 'Every consent with the time of each change, oldest first',
  })
  declare readonly consents: ExportedConsentJson[];
}

/**
 * Converts an event for the export. `data` is taken over as it was recorded, unlike in every other JSON: a field that
 * an event gains later must not be missing here.
 */
export function toExportedEventJson<S extends { accountId: number }, E extends DomainEvent>(
  { name, events }: Aggregate<S, E>,
  recordId: number,
  { id, type, meta, data, revision }: RecordedEvent<E> & { revision: number },
): ExportedEventJson {
  const { personal, ...rest } = data as { personal?: object | null };
  return {
    id: toPublicEventId(id),
    record: name,
    record_id: recordId,
    sequence: revision,
    type: events[type as E['type']].name,
    occurred_at: meta.occurredAt,
    recorded_at: meta.recordedAt,
    channel: meta.channel,
    actor: { type: meta.actor.type, id: meta.actor.id, name: meta.actor.name ?? null },
    request_id: meta.requestId,
    data: toSnakeCase({ ...rest, ...personal }) as object,
  };
}

/** Lists the consents that an event sets. */
export function toExportedConsents(event: RecordedEvent<CustomerEvent>): ExportedConsentJson[] {
  const { id, type, meta, data } = event;
  const set = { marketingConsent: undefined, smsConsent: undefined, ...data };
  const { marketingConsent, smsConsent } =
    type === 'CustomerErased' ? { marketingConsent: false, smsConsent: false } : set;
  const entry = { since: meta.recordedAt, event_id: toPublicEventId(id) };
  if (event.type === 'CustomerConsentConfirmed') {
    return [{ name: `${event.data.consent}_consent`, value: true, confirmed: true, ...entry }];
  }
  const unconfirmed = 'unconfirmedConsents' in data ? (data.unconfirmedConsents ?? []) : [];
  return CONSENT_KINDS.flatMap((kind) => {
    const value = kind === 'marketing' ? marketingConsent : smsConsent;
    if (value === undefined) return [];
    return [{ name: `${kind}_consent`, value, confirmed: !unconfirmed.includes(kind), ...entry }];
  });
}

/** Converts our names to snake_case, but not the keys of metadata, which are the callers'. */
function toSnakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSnakeCase);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      name === 'metadata' ? field : toSnakeCase(field),
    ]),
  );
}
