import { describe, expect, it } from '@jest/globals';
import type { PassContent } from './pass-content.js';
import { writeNotification } from './notification-text.js';
import type { PassNotification } from './pass-notification.js';

const content = {
  storeName: 'Corner Café',
  locale: 'en',
  stampsCount: 7,
  card: { name: 'Coffee card', stampsRequired: 12 },
  messages: { stampMessage: null, rewardMessage: null, redemptionMessage: null },
  rewards: [
    { id: 1, name: 'Cookie', description: null, stampsRequired: 5, available: true },
    { id: 2, name: 'Free coffee', description: null, stampsRequired: 10, available: false },
  ],
} as unknown as PassContent;
const stamped: PassNotification = { kind: 'stamped', stamps: 1 };
const unlocked: PassNotification = { kind: 'unlocked', rewardName: 'Free coffee' };
const redeemed: PassNotification = { kind: 'redeemed', rewardName: 'Free coffee' };
const withMessages = (
  messages: Partial<PassContent['messages']>,
  more: Partial<PassContent> = {},
) => ({
  ...content,
  ...more,
  messages: { ...content.messages, ...messages },
});

describe('writeNotification', () => {
  it.each([
    [
      'en',
      [
        '3 more stamps to your reward: Free coffee.',
        'Your reward is ready: Free coffee.',
        'Reward redeemed: Free coffee. Enjoy!',
      ],
    ],
    [
      'de',
      [
        'Noch 3 Stempel bis zur Prämie: Free coffee.',
        'Die Prämie ist da: Free coffee.',
        'Prämie eingelöst: Free coffee. Viel Freude damit!',
      ],
    ],
    [
      'fr',
      [
        'Plus que 3 tampons avant votre récompense : Free coffee.',
        'Votre récompense vous attend : Free coffee.',
        'Récompense utilisée : Free coffee. Profitez-en bien !',
      ],
    ],
    [
      'es',
      [
        'Faltan 3 sellos para su premio: Free coffee.',
        'Su premio está listo: Free coffee.',
        'Premio canjeado: Free coffee. ¡Que lo disfrute!',
      ],
    ],
  ])('says what matters in the language of the store: %s', (locale, texts) => {
    const written = [stamped, unlocked, redeemed].map((notification) =>
      writeNotification(notification, { ...content, locale }),
    );
    // Spaces that do not break, as French has them.
    expect(written.map(({ text }) => text?.replaceAll(/[\u202f\u00a0]/g, ' '))).toEqual(texts);
    expect(written.map(({ isOwn, hasCount }) => [isOwn, hasCount])).toEqual([
      [false, true],
      [false, false],
      [false, false],
    ]);
  });

  it('counts to a full card without a further reward, and the new stamps beyond it', () => {
    const text = (stampsCount: number, stamps = 1) =>
      writeNotification({ kind: 'stamped', stamps }, { ...content, stampsCount }).text;
    expect(text(9)).toBe('1 more stamp to your reward: Free coffee.');
    expect(text(11)).toBe('1 more stamp to a full card.');
    expect(text(12, 2)).toBe('2 stamps added.');
  });

  it('has no text when stamps were removed, also in the words of the store', () => {
    const own = withMessages({ stampMessage: 'Thanks!' });
    expect(writeNotification({ kind: 'stamped', stamps: -1 }, own).text).toBeNull();
  });

  it('uses the words of the store', () => {
    const own = withMessages({
      stampMessage: '{missing} more to your free coffee',
      rewardMessage: 'Come in for your {reward}! {store}',
      redemptionMessage: 'Enjoy! {card}: {stamps} left',
    });
    expect(
      [stamped, unlocked, redeemed].map((notification) => writeNotification(notification, own)),
    ).toEqual([
      { text: '3 more to your free coffee', hasCount: true, isOwn: true },
      { text: 'Come in for your Free coffee! Corner Café', hasCount: false, isOwn: true },
      { text: 'Enjoy! Coffee card: 7 left', hasCount: true, isOwn: true },
    ]);
  });

  it('falls back to its own words where those of the store name what there is not', () => {
    const own = withMessages({ stampMessage: '{missing} more to {reward}' }, { stampsCount: 11 });
    expect(writeNotification(stamped, own)).toEqual({
      text: '1 more stamp to a full card.',
      hasCount: true,
      isOwn: false,
    });
  });

  it('takes names literally, and shortens long ones', () => {
    const own = withMessages({ rewardMessage: '{reward}' });
    expect(writeNotification({ ...unlocked, rewardName: '$& {card}' }, own).text).toBe('$& {card}');
    const { text } = writeNotification({ ...unlocked, rewardName: '🥐'.repeat(255) }, own);
    expect([...(text ?? '')]).toHaveLength(80);
  });
});
