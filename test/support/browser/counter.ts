import { randomUUID } from 'node:crypto';
import type { Page } from 'playwright-core';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { cli, type Client, type LocalService } from '../services/service.js';
import { keepShown } from './chromium.js';

export const PASSWORD = 'correct horse';

/** Runs before the scripts of a page: an outcome stays until it is closed. */
export const LASTING_OUTCOMES = keepShown(2_000, 4_000, 10_000);

/** Creates a user who may stamp in a store. */
export async function createStaff(
  service: LocalService,
  { accountId }: Client,
  name: string,
): Promise<{ email: string; userId: number }> {
  const email = `${randomUUID()}@member.example`;
  const { userId } = await service.execute(new CreateUser(cli, email, name, PASSWORD));
  await service.execute(new AddMember(cli, accountId, email, 'staff'));
  return { email, userId };
}

/** Signs somebody in, who lands at the counter. */
export async function signInAtCounter(page: Page, counter: string, email: string): Promise<void> {
  await page.goto(new URL('/app/sign-in', counter).href);
  await page.locator('input[name=email]').fill(email);
  await page.locator('input[name=password]').fill(PASSWORD);
  await page.locator('main button[type=submit]').first().click();
  await page.waitForURL(counter);
}
