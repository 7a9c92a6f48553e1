import { describe, expect, it } from '@jest/globals';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { createPushNotification } from './push-notification.js';

const content = {
  uuid: 'u',
  storeName: 'Eck-Café',
  locale: 'de',
  stampsCount: 4,
  card: { name: 'Kaffee', stampsRequired: 10 },
} as PassContent;

const createNotification = (text: string | null, passContent = content) =>
  createPushNotification(passContent, { text }, 'https://cards.example');

describe('createPushNotification', () => {
  it('is a declarative message with the notification, the balance and the way to the card', () => {
    expect(createNotification('Noch 6 Stempel.')).toEqual({
      web_push: 8030,
      notification: {
        title: 'Eck-Café',
        body: 'Noch 6 Stempel.\nKaffee: 4 von 10 Stempeln',
        lang: 'de',
        dir: 'auto',
        navigate: 'https://cards.example/passes/u',
        icon: 'https://cards.example/passes/u/icon.svg',
        tag: '/passes/u',
        renotify: true,
      },
    });
  });

  it('lets a message of the store stay beside the notifications of the card', () => {
    const message = createPushNotification(
      content,
      { text: 'Montag geschlossen\nWir machen Pause.', message: 7 },
      'https://cards.example',
    );
    expect(message.notification.tag).toBe('/passes/u#message-7');
  });

  it('counts full cards', () => {
    const describeBalance = (stampsCount: number) =>
      createNotification(null, { ...content, stampsCount }).notification.body;
    expect(describeBalance(10)).toBe('Kaffee: Die Karte ist voll');
    expect(describeBalance(13)).toBe('Kaffee: 1 volle Karte und 3 von 10');
    expect(describeBalance(20)).toBe('Kaffee: 2 volle Karten');
  });

  it('fits into one record of a message, however long the names are', () => {
    const long = '🥐'.repeat(255);
    const card = { ...content.card, name: long };
    const notification = createNotification(long, { ...content, storeName: long, card });
    expect(Buffer.byteLength(JSON.stringify(notification))).toBeLessThan(3_900);
  });

  it('falls back to English without translations', () => {
    expect(
      createNotification('1 stamp added.', { ...content, locale: 'ja' }).notification,
    ).toMatchObject({
      body: '1 stamp added.\nKaffee: 4 of 10 stamps',
      lang: 'en',
    });
  });
});
