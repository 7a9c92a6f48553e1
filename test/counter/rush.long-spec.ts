import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { SIZES, startChromium } from '../support/browser/chromium.js';
import { createStaff, signInAtCounter } from '../support/browser/counter.js';
import { writeFakeCamera } from '../support/browser/fake-camera.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** A camera that sees another card each second. */

const PUBLIC_URL = 'http://cards.localhost';

let folder: string;
let service: LocalService;
let store: Client;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-camera-'));
  service = await startService({ PUBLIC_URL });
  store = await service.newStore();
});
afterAll(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('the camera of the counter stamps the 200 cards of a lunch rush, each once', async () => {
  const { card } = await enrol(store);
  const codes: string[] = [];
  for (let i = 0; i < 200; i++) {
    const { body } = await store.post<{ customer_card: CustomerCardDetailJson }>(
      `${store.store}/customers`,
      {
        customer: { first_name: `Guest ${i}`, email: `rush${i}@mail.example` },
        card_id: card.id,
      },
    );
    codes.push(body.customer_card.code);
  }
  const film = join(folder, 'rush.y4m');
  const more = await writeFakeCamera(
    film,
    [
      { code: null, frames: 12 },
      ...codes.flatMap((code) => [
        { code, frames: 3 },
        { code: null, frames: 1 },
      ]),
      { code: null, frames: 240 },
    ],
    4,
  );
  const browser = await startChromium({ 'cards.localhost': service.baseUrl }, more);
  try {
    const page = await browser.newPage({ viewport: SIZES.phone });
    const { email } = await createStaff(service, store, 'Mira');
    await signInAtCounter(page, `${PUBLIC_URL}/counter/${store.accountId}`, email);
    const countStamped = async () => {
      const { rows } = await service.database.query<{ stamped: number; maximum: number }>(
        `select count(*) filter (where balance > 0)::int as stamped, max(balance)::int as maximum
         from customer_cards where card_id = $1`,
        [card.id],
      );
      return rows[0] ?? { stamped: 0, maximum: 0 };
    };
    await eventually(countStamped, ({ stamped }) => stamped === 200, 280_000);
    expect(await countStamped()).toEqual({ stamped: 200, maximum: 1 });
    expect(await page.locator('#waiting').isHidden()).toBe(true);
  } finally {
    await browser.close();
  }
}, 400_000);
