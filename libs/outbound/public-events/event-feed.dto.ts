import { IdentifierField, IntegerField, OneOfField, TextField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  IntegerProperty,
  JsonProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { PUBLIC_EVENTS, type PublicEventType } from './public-events.js';

const MAX_ENVELOPES = 250;

@Dto('EventListQuery')
export class FeedQuery {
  @TextField({
    max: 64,
    optional: true,
    description:
      'The id of the last envelope seen; if omitted, starts at the oldest event that is kept',
  })
  declare readonly after: string | null;

  @OneOfField(PUBLIC_EVENTS, { optional: true, description: 'Only events of this type.' })
  declare readonly type: PublicEventType | null;

  @IdentifierField({ optional: true, description: 'Only events with exactly this receipt number.' })
  declare readonly external_ref: string | null;

  @IntegerField({
    min: 1,
    max: MAX_ENVELOPES,
    optional: true,
    description: 'Default 100',
  })
  declare readonly limit: number | null;
}

@Dto('Envelope')
export class EnvelopeJson {
  @TextProperty({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3', description: 'The id.' })
  declare readonly id: string;
  @OneOfProperty(PUBLIC_EVENTS, { description: 'The kind of event.' })
  declare readonly type: PublicEventType;
  @TimestampProperty({ description: 'When it was recorded.' }) declare readonly timestamp: string;
  @IntegerProperty({
    description:
      'The revision of the record that changed, from 0: of two envelopes about one record the higher is the later',
  })
  declare readonly sequence: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @JsonProperty({
    example: { id: 1, first_name: 'Anna' },
    description: 'The data of the event. Its shape depends on type.',
  })
  declare readonly data: Record<string, unknown>;
  @JsonProperty({
    optional: true,
    example: { first_name: 'Ann' },
    description: 'On customer.updated only',
  })
  declare readonly previous_attributes?: Record<string, unknown>;
}
