import { z } from 'zod';
import { integer, oneOf, optional, text, timestamp } from '#http/fields.js';
import { PUBLIC_EVENTS } from './public-event.js';

const MOST_ENVELOPES = 250;

export const feedQuery = z.object({
  after: optional(text({ max: 64 })).describe(
    'The id of the last envelope seen; without it, from the oldest that is kept',
  ),
  type: optional(oneOf(PUBLIC_EVENTS)),
  limit: optional(integer({ min: 1, max: MOST_ENVELOPES })).describe('100 where nothing is said'),
});

export const envelopeAnswer = z
  .object({
    id: z.string().meta({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3' }),
    type: z.enum(PUBLIC_EVENTS),
    timestamp,
    account_id: z.int(),
    data: z.record(z.string(), z.unknown()).meta({ example: { id: 1, first_name: 'Anna' } }),
    previous_attributes: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ example: { first_name: 'Ann' } })
      .describe('On customer.updated only'),
  })
  .meta({ id: 'Envelope' });

export type EnvelopeJson = z.infer<typeof envelopeAnswer>;
