/** Describes the headers and parameters that operations share. */

const header = (description: string, schema: Record<string, unknown>, required = false) => ({
  description,
  required,
  schema,
});

/** So that generated clients take a 32-bit integer. */
const MAX_INT32 = 2_147_483_647;

export const HEADERS = {
  'X-Request-Id': header(
    'The id of this request: your own if you sent a valid one',
    { type: 'string', examples: ['0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01'] },
    true,
  ),
  'RateLimit-Limit': header(
    'Requests allowed in the current window',
    { type: 'integer', maximum: MAX_INT32, examples: [300] },
    true,
  ),
  'RateLimit-Remaining': header(
    'Requests still allowed in the window',
    { type: 'integer', maximum: MAX_INT32, examples: [299] },
    true,
  ),
  'RateLimit-Reset': header(
    'Seconds until the window resets',
    { type: 'integer', maximum: MAX_INT32, examples: [60] },
    true,
  ),
  'RateLimit-Policy': header(
    'quota;w=window-seconds',
    { type: 'string', examples: ['300;w=60'] },
    true,
  ),
  'Retry-After': header('Seconds to wait, with 429 and 503', {
    type: 'integer',
    minimum: 0,
    maximum: MAX_INT32,
    examples: [12],
  }),
  'Idempotent-Replayed': header(
    'true: the response is that of an earlier request with this Idempotency-Key or receipt number',
    {
      type: 'string',
      enum: ['true'],
    },
  ),
  'X-Dry-Run': header('true: a dry run, nothing was stored', { type: 'string', enum: ['true'] }),
  'X-Unknown-Parameters': header(
    'Names of query parameters and body fields that the operation does not accept: percent-encoded, separated by commas, up to 1,024 bytes',
    { type: 'string', maxLength: 1024, examples: ['customer.frist_name, limt'] },
  ),
  'Preference-Applied': header('handling=strict: requested in Prefer, and applied', {
    type: 'string',
    examples: ['handling=strict'],
  }),
  Link: header(
    'rel="next": the next page, while there is one (RFC 8288); rel="deprecation": the versioning policy, while this version is being retired',
    { type: 'string', examples: ['</api/v1/accounts/1/cards?limit=2&cursor=Mg>; rel="next"'] },
  ),
  Deprecation: header(
    'While this version is being retired: since when, in seconds since 1970 (RFC 9745)',
    { type: 'string', pattern: '^@\\d+$', examples: ['@1798761600'] },
  ),
  Sunset: header('While this version is being retired: when it stops working (RFC 8594)', {
    type: 'string',
    examples: ['Sat, 01 Jan 2028 00:00:00 GMT'],
  }),
};

export const COMMON_HEADERS = [
  'X-Request-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'RateLimit-Policy',
  'Deprecation',
  'Sunset',
  'Link',
];

/** Headers about the whole request, present once the operation has read it. */
export const INPUT_HEADERS = ['X-Unknown-Parameters', 'Preference-Applied'];

export const PARAMETERS = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes it safe to send the request again: within 24 hours, the same key with the same body gets the first response and changes nothing. 1 to 255 printable ASCII characters; use a new key for each new action.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
  },
  RequestId: {
    name: 'X-Request-Id',
    in: 'header',
    required: false,
    description:
      'Is returned in the response and recorded in the history. Anything but 1 to 128 letters, digits, dots, underscores and hyphens is replaced.',
    schema: { type: 'string' },
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    required: false,
    description:
      'handling=strict refuses a request that has a query parameter or a body field that the operation does not accept: 422 for each, and nothing happens. Otherwise they are ignored, and named in X-Unknown-Parameters.',
    schema: { type: 'string' },
  },
};
