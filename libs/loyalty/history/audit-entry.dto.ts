import type { Actor, Channel } from '#platform/kernel/aggregate.js';
import { TextField, TimeField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import { JsonProperty, TextProperty } from '#platform/http/response-fields.js';
import { ActorField, HistoryEntryJson } from './history-entry.dto.js';

@Dto('AuditQuery')
export class AuditQuery extends PageQuery {
  @TextField({
    max: 64,
    optional: true,
    example: 'token.created',
    description: 'Only entries of this type; of a type that there is none of, an empty list',
  })
  declare readonly type: string | null;
  @ActorField() declare readonly actor: string | null;
  @TimeField({ optional: true, description: 'Recorded at or after this time' })
  declare readonly from: Date | null;
  @TimeField({ optional: true, moment: 'next', description: 'Recorded before this time' })
  declare readonly to: Date | null;
}

export type AuditFilter = Omit<AuditQuery, 'limit' | 'cursor'>;

@Dto('AuditEntry')
export class AuditEntryJson extends HistoryEntryJson {
  @TextProperty({
    nullable: false,
    example: '0198f3c4-7c2e-7d3a-9b1f-2f6f0a4b8c55',
    description: 'The id of the request, to be quoted to whoever runs the service.',
  })
  declare readonly request_id: string;
  @JsonProperty({
    example: {
      webhook_subscription_id: 5,
      changes: { description: { from: null, to: 'Till' } },
    },
    description:
      'The ids of what was changed, and in changes each field with its value before and after',
  })
  declare readonly subject: object;
  @TextProperty({
    nullable: true,
    example: '198.51.100.7',
    description: 'The IP address of the request; null without one, and after 90 days',
  })
  declare readonly ip_address: string | null;
}

/** A row of `audit_log`. */
export type AuditRow = {
  id: number;
  type: string;
  actor: Actor;
  channel: Channel;
  request_id: string;
  subject: object;
  ip_address: string | null;
  recorded_at: Date;
};

export function toAuditEntryJson(row: AuditRow, actorName: string | null): AuditEntryJson {
  const at = row.recorded_at.toISOString();
  return {
    id: `audit_${row.id}`,
    type: row.type,
    occurred_at: at,
    recorded_at: at,
    channel: row.channel,
    actor: { type: row.actor.type, id: row.actor.id, name: actorName },
    request_id: row.request_id,
    customer_id: null,
    customer_card_id: null,
    card_id: null,
    stamps: null,
    balance: null,
    reward_id: null,
    location_id: null,
    staff_ref: null,
    external_ref: null,
    note: null,
    reverses: null,
    reversed_by: null,
    subject: row.subject,
    ip_address: row.ip_address,
  };
}
