import { describe, expect, it } from '@jest/globals';
import {
  getDisabledAt,
  getFailingBounds,
  renderFailureMail,
  type FailureReport,
} from './failure-mail.js';

const NOW = new Date('2026-03-10T12:00:00Z');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Finds what is due for a subscription that has failed for this long. */
function findDueAction(milliseconds: number, timeScale = 1): string {
  const since = NOW.getTime() - milliseconds;
  const { warn, disable } = getFailingBounds(NOW, timeScale);
  if (since <= disable.getTime()) return 'disable';
  return since <= warn.getTime() ? 'warn' : 'nothing';
}

describe('getFailingBounds', () => {
  it.each([
    [0, 1, 'nothing'],
    [DAY, 1, 'nothing'],
    [2 * DAY - 1, 1, 'nothing'],
    [2 * DAY, 1, 'warn'],
    [3 * DAY - 1, 1, 'warn'],
    [3 * DAY, 1, 'disable'],
    [30 * DAY, 1, 'disable'],
    [2 * DAY - 24, 24, 'disable'],
    [2 * HOUR - 1, 24, 'nothing'],
    [2 * HOUR, 24, 'warn'],
    [3 * HOUR - 1, 24, 'warn'],
    [3 * HOUR, 24, 'disable'],
  ])('after %i ms of failing, at time scale %i, lead to: %s', (milliseconds, timeScale, due) => {
    expect(findDueAction(milliseconds, timeScale)).toBe(due);
  });
});

describe('getDisabledAt', () => {
  it('returns three days after the first failure, divided by the time scale', () => {
    expect(getDisabledAt(NOW, 1)).toEqual(new Date('2026-03-13T12:00:00Z'));
    expect(getDisabledAt(NOW, 24)).toEqual(new Date('2026-03-10T15:00:00Z'));
  });
});

const warning: FailureReport = {
  kind: 'warning',
  subscriptionId: 7,
  accountId: 3,
  store: 'Corner Café',
  description: null,
  targetUrl: 'https://shop.example/hooks/k3y?token=sesame',
  isBlocked: false,
  failingSince: new Date('2026-03-08T11:30:00Z'),
  disabledAt: new Date('2026-03-11T11:30:00Z'),
  lastStatus: null,
  lastError: 'The connection was refused',
};

const HERE = { locale: 'en', timeZone: 'UTC' };

describe('renderFailureMail', () => {
  it('says what fails, since when, and what to do', () => {
    expect(renderFailureMail(warning, HERE)).toEqual({
      subject: 'Corner Café: webhooks to shop.example are failing',
      text: `Nothing that was sent to shop.example has been accepted since 8 March 2026 at 11:30 UTC.
If that goes on, the subscription will be disabled at 11 March 2026 at 11:30 UTC.

Store: Corner Café
Webhook subscription: 7
Last response: none
Last error: The connection was refused

What to do:
- Check that the receiver responds with a 2xx status within ten seconds.
- Try it: POST /api/v1/accounts/3/webhook_subscriptions/7/test
- Resend what was missed; the first success keeps the subscription enabled:
  POST /api/v1/accounts/3/webhook_subscriptions/7/replay {"from": "2026-03-08T11:30:00.000Z"}
`,
    });
  });

  const kinds: [string, Partial<FailureReport>][] = [
    ['a warning', {}],
    [
      'a disabled subscription',
      { kind: 'disabled', lastStatus: 500, lastError: 'Responded with 500' },
    ],
    ['a blocked address', { kind: 'disabled', isBlocked: true, failingSince: null }],
  ];

  it.each(kinds)('names only the host of the URL in the mail about %s', (_name, changes) => {
    for (const locale of ['en', 'de']) {
      const { subject, text } = renderFailureMail({ ...warning, ...changes }, { ...HERE, locale });
      expect(subject + text).not.toMatch(/sesame|k3y|hooks\//);
      expect(subject).toContain('shop.example');
    }
  });

  it.each([
    ['en', 'are failing'],
    ['en-US', 'are failing'],
    ['fr', 'n’aboutissent pas'],
    ['es', 'fallan'],
    ['nl', 'mislukken'],
    ['it', 'are failing'],
    ['den', 'are failing'],
    ['de', 'kommen nicht an'],
    ['de-CH', 'kommen nicht an'],
  ])('writes in the language of a store with the locale %s: %s', (locale, phrase) => {
    expect(renderFailureMail(warning, { ...HERE, locale }).subject).toContain(phrase);
  });

  it('shows times in the time zone of the store', () => {
    const { text } = renderFailureMail(warning, { locale: 'de', timeZone: 'Europe/Berlin' });
    expect(text).toContain('seit 8. März 2026 um 12:30 MEZ');
  });
});
