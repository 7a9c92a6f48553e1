import { PUBLIC_ID_PATTERN } from '#platform/kernel/public-id.js';
import type { PathParameter } from '#platform/http/endpoint.js';

export const EVENT_ID: PathParameter = {
  name: 'event_id',
  schema: {
    type: 'string',
    pattern: PUBLIC_ID_PATTERN,
    example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
  },
  description: 'The id of an event, as webhooks show it',
};

export const CARD_CODE: PathParameter = {
  name: 'code',
  schema: { type: 'string', pattern: '^[0-9A-Za-z]{8}$', example: 'K7QX2M9P' },
  description: 'The code of a customer card, which is what its barcode holds, in any case',
};
