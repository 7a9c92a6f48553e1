import { describe, expect, it } from '@jest/globals';
import { readFields } from '#platform/http/dtos.js';
import { CreateWebhookSubscriptionDto } from '#outbound/subscriptions/webhook-subscription.dto.js';
import {
  NO_WEBHOOK_FIELDS,
  readWebhookFields,
  toWebhookBody,
  toWebhookFields,
} from './webhook-form.dto.js';

const WEBHOOK = {
  target_url: 'https://shop.example/hooks',
  description: '',
  events: ['stamp.earned'],
  payload_format: 'flat',
  headers: { 'X-Key': '•••', Accept: '•••' },
  card_ids: [3, 4],
  location_ids: null,
  personal_data: false,
  signature: 'ed25519',
};

describe('the form about a webhook', () => {
  it('shows a webhook and gives the same back', () => {
    const fields = toWebhookFields(WEBHOOK);
    expect(fields.headers).toBe('X-Key: •••\nAccept: •••');
    const { signature: _, ...settings } = WEBHOOK;
    expect(toWebhookBody(fields)).toEqual({ ...settings, card_ids: ['3', '4'] });
  });

  it('reads what was ticked', () => {
    const fields = readWebhookFields({
      target_url: ' https://shop.example/ ',
      scope: 'some',
      'events:stamp.earned': 'yes',
      'events:stamp.removed': 'yes',
      'card_ids:7': 'yes',
      personal_data: 'yes',
    });
    expect(fields).toEqual({
      ...NO_WEBHOOK_FIELDS,
      target_url: 'https://shop.example/',
      scope: 'some',
      events: ['stamp.earned', 'stamp.removed'],
      card_ids: ['7'],
    });
  });

  it('keeps the former headers of a form without them, which comes back after signing in', () => {
    const { headers } = toWebhookFields(WEBHOOK);
    expect(readWebhookFields({ scope: 'all' }, headers).headers).toBe('X-Key: •••\nAccept: •••');
    expect(readWebhookFields({ headers: '' }, headers).headers).toBe('');
  });

  it('sends every event as *, and blank fields as null', () => {
    const fields = { ...NO_WEBHOOK_FIELDS, target_url: 'https://shop.example/' };
    expect(readFields(CreateWebhookSubscriptionDto, toWebhookBody(fields))).toMatchObject({
      events: ['*'],
      description: null,
      headers: null,
      card_ids: null,
    });
  });

  it.each([
    ['Authorization: Bearer a:b\n\n x-key :  1 ', { Authorization: 'Bearer a:b', 'x-key': '1' }],
    ['no header', 'no header'],
    ['X-Key: 1\nx-key: 2', 'X-Key: 1\nx-key: 2'],
    ['two words: 1', 'two words: 1'],
    ['\n', null],
  ])('parses the headers %j', (headers, parsed) => {
    expect(toWebhookBody({ ...NO_WEBHOOK_FIELDS, headers })['headers']).toEqual(parsed);
  });
});
