import { z } from 'zod';
import { timestamp } from './fields.js';

/** Published: codes may be added, never removed. */
export const ERROR_CODES = [
  'unauthorized',
  'rate_limited',
  'version_sunset',
  'not_found',
  'method_not_allowed',
  'validation_failed',
  'malformed_json',
  'malformed_request',
  'header_fields_too_large',
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
  'insufficient_stamps',
  'reward_inactive',
  'card_expired',
  'stamp_limit_reached',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'internal',
  'unavailable',
] as const;

/** Where people read what each code means. */
export const ERROR_PAGE = '/docs/errors';

export type ErrorCode = (typeof ERROR_CODES)[number];

const fields = {
  error: z.string().describe('What went wrong, for people'),
  code: z.enum(ERROR_CODES).describe('The same for programs'),
  errors: z
    .record(z.string(), z.array(z.string()))
    .optional()
    .describe('On 422: messages by field; base is a fault of the whole record'),
  resolution: z.string().optional().describe('How to put it right'),
  documentation_url: z.string().meta({ format: 'uri' }),
  request_id: z.string(),
  versioning: z
    .object({
      current: z.string(),
      supported: z.array(z.string()),
      deprecated: z.array(z.string()),
      policy_url: z.string().meta({ format: 'uri' }),
      signalling: z.string(),
      deprecation_date: timestamp.optional(),
      sunset_date: timestamp.optional(),
    })
    .optional()
    .describe('On 410 of the status: which versions there are instead'),
};

export const errorAnswer = z.object(fields).meta({ id: 'Error' });

/** RFC 9457, for whoever prefers application/problem+json. */
export const problemAnswer = z
  .object({
    ...fields,
    type: z.string().meta({ format: 'uri-reference' }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string().meta({ format: 'uri-reference' }),
  })
  .meta({ id: 'Problem' });
