import { describe, expect, it } from '@jest/globals';
import type { PassContent } from '#passes/pass-content.js';
import { createPushNotice } from './push-notice.js';

const content = {
  uuid: 'u',
  storeName: 'Eck-Café',
  locale: 'de',
  stampsCount: 4,
  card: { name: 'Kaffee', stampsRequired: 10 },
} as PassContent;

const createNotice = (notice: Parameters<typeof createPushNotice>[1], passContent = content) =>
  createPushNotice(passContent, notice, 'https://cards.example');

describe('createPushNotice', () => {
  it('describes the event and the balance in the language of the store', () => {
    expect(createNotice({ kind: 'stamped', stamps: 2 })).toEqual({
      title: 'Eck-Café',
      body: '2 Stempel gesammelt\nKaffee: 4 von 10 Stempeln',
      url: 'https://cards.example/passes/u',
      lang: 'de',
    });
    expect(createNotice({ kind: 'unlocked', rewardName: 'Kuchen' }).body).toMatch(
      /^Kuchen: jetzt einlösbar!\n/,
    );
    expect(createNotice({ kind: 'redeemed', rewardName: 'Kuchen' }).body).toMatch(
      /^Kuchen: eingelöst/,
    );
  });

  it('counts full cards', () => {
    const describeBalance = (stampsCount: number) =>
      createNotice({ kind: 'stamped', stamps: 0 }, { ...content, stampsCount }).body;
    expect(describeBalance(10)).toBe('Kaffee: Die Karte ist voll');
    expect(describeBalance(13)).toBe('Kaffee: 1 volle Karte und 3 von 10');
    expect(describeBalance(20)).toBe('Kaffee: 2 volle Karten');
  });

  it('describes only the balance when stamps were removed', () => {
    expect(createNotice({ kind: 'stamped', stamps: -1 }).body).toBe('Kaffee: 4 von 10 Stempeln');
  });

  it('falls back to English without translations', () => {
    expect(
      createNotice({ kind: 'stamped', stamps: 1 }, { ...content, locale: 'ja' }),
    ).toMatchObject({
      body: '1 stamp added\nKaffee: 4 of 10 stamps',
      lang: 'en',
    });
  });
});
