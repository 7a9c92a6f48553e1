import { expect } from '@jest/globals';
import type { Client } from '../../services/service.js';
import { eventually } from '../../jest/eventually.js';
import type { GoogleNotification, GoogleRecord, GoogleWallet } from './server.mjs';

/** Opens the card's Google link as a browser does. */
export async function openLink(store: Client, uuid: string): Promise<string> {
  const response = await fetch(`${store.baseUrl}/passes/${uuid}/google`, { redirect: 'manual' });
  expect(response.status).toBe(302);
  return response.headers.get('location') ?? '';
}

/** Opens the link and saves the pass, as a customer does. */
export async function saveToGoogle(
  google: GoogleWallet,
  store: Client,
  uuid: string,
): Promise<void> {
  const link = await openLink(store, uuid);
  expect(link.startsWith(`${google.saveUrl}/`)).toBe(true);
  expect((await google.save(link)).status).toBe(200);
}

/** Finds the object of a customer card. */
export function findObject(google: GoogleWallet, uuid: string): GoogleRecord | undefined {
  return [...google.objects.values()].find(({ id }) => id.includes(uuid));
}

export function findBalance(google: GoogleWallet, uuid: string): string | undefined {
  const { loyaltyPoints } = (findObject(google, uuid) ?? {}) as {
    loyaltyPoints?: { balance: { string: string } };
  };
  return loyaltyPoints?.balance.string;
}

export function listNotifications(google: GoogleWallet, uuid: string): GoogleNotification[] {
  return google.notifications.filter(({ objectId }) => objectId.includes(uuid));
}

export function waitForBalance(google: GoogleWallet, uuid: string, balance: string) {
  return eventually(
    () => findBalance(google, uuid),
    (shownBalance) => shownBalance === balance,
  );
}
