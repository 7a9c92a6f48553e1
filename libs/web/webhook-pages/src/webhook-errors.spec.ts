import { describe, expect, it } from '@jest/globals';
import { NotFoundError, RejectedError, UnavailableError } from '#kernel/errors.js';
import { getTranslations } from '#translations/translations.js';
import { toWebhookErrors } from './webhook-errors.js';

const { errors: t } = getTranslations('en').t.webhookPages;

describe('the errors of a form about a webhook', () => {
  it.each([
    [{ target_url: ['must start with https://'] }, { target_url: [t.url] }],
    [{ target_url: ['must be publicly reachable'] }, { target_url: [t.blocked] }],
    [{ events: ['must name at least one event'] }, { events: [t.events] }],
    [{ payload_format: ['flat needs exactly one named event'] }, { payload_format: [t.flat] }],
    [{ headers: ['must be an object of header names and values'] }, { headers: [t.headers] }],
    [{ headers: ['Host cannot be set'] }, { headers: [t.header('Host cannot be set')] }],
    [{ to: ['must be after from'] }, { to: [t.to] }],
    [{ card_ids: ['7 does not belong to this store'] }, { card_ids: [t.choice] }],
    [{ other: ['is new'] }, { other: [t.refused('is new')] }],
  ])('of fields are in the language of the page: %j', (errors, fields) => {
    expect(toWebhookErrors(new RejectedError(errors), t)).toEqual({ fields, text: t.check });
  });

  it.each([
    ['The subscription is disabled', t.disabled],
    ['Another replay of this subscription is still running', t.running],
    ['The event is no longer kept', t.gone],
    ['The number of webhook subscriptions has reached its limit', t.limit],
    ['Something new', t.refused('Something new')],
  ])('of the whole request are too: %s', (message, text) => {
    const error = new RejectedError({ base: [message] });
    expect(toWebhookErrors(error, t)).toEqual({ fields: {}, text });
  });

  it('say that other tests are running, and leave other errors to the error page', () => {
    const busy = new UnavailableError('Other tests of this store are still running');
    expect(toWebhookErrors(busy, t).text).toBe(t.busy);
    const error = new NotFoundError('Webhook subscription');
    expect(() => toWebhookErrors(error, t)).toThrow(error);
  });
});
