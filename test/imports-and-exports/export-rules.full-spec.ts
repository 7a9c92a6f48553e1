import { request as sendRequest, type IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { AuditEntryJson } from '#loyalty/history/audit-entry.dto.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { ListedRedemptionJson } from '#loyalty/history/redemption.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { AddMember } from '#identity/member.commands.js';
import { CreateUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { expectFailure, useService, type ContractClient } from '../support/http/contract.js';
import { cli } from '../support/services/service.js';
import { useSentEvents } from '../support/services/sent-events.js';
import { eventually } from '../support/jest/eventually.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const store = service.useStore();
const sent = useSentEvents(service);

const NAMES = ['customers', 'customer_cards', 'history', 'redemptions'];

async function download(file: string, at = store): Promise<string> {
  const { status, text } = await at.get(`${at.store}/exports/${file}`);
  expect([status, text]).toEqual([200, expect.anything()]);
  return text;
}

async function listRecords<T>(name: string, at = store): Promise<T[]> {
  const text = await download(`${name}.ndjson`, at);
  return parseLines<T>(text);
}

const parseLines = <T>(text: string): T[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T);

/** An export of which the client has read the headers and nothing else. */
async function startStalled(at: ContractClient, file: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const url = `${at.baseUrl}${at.store}/exports/${file}`;
    const headers = { authorization: `Bearer ${at.token}`, 'accept-encoding': 'identity' };
    sendRequest(url, { headers, agent: false }, (response) => {
      response.pause();
      expect(response.statusCode).toBe(200);
      resolve(response);
    })
      .once('error', reject)
      .end();
  });
}

async function readText(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** A store whose customers are more than fits into the buffers of a connection. */
async function largeStore(): Promise<{ at: ContractClient; ids: number[] }> {
  const at = await service.newStore();
  const ids: number[] = [];
  for (let i = 0; i < 1_200; i += 50) {
    const created = await Promise.all(
      Array.from({ length: 50 }, (_, k) =>
        at.post<CustomerJson>(`${at.store}/customers`, {
          customer: {
            first_name: 'Anna',
            email: `large${i + k}@example.com`,
            metadata: { text: 'x'.repeat(15_000) },
          },
        }),
      ),
    );
    ids.push(...created.map(({ body }) => body.id));
  }
  return { at, ids: ids.sort((a, b) => a - b) };
}

describe('exports', () => {
  it('EXPORT-01 `customers`, `customer_cards`, `history` and `redemptions` are exported as `.csv` and as `.ndjson`; any other file is 404', async () => {
    const own = await service.newStore();
    for (const name of NAMES) {
      const csv = await own.get(`${own.store}/exports/${name}.csv`);
      expect([csv.status, csv.headers.get('content-type')]).toEqual([
        200,
        'text/csv; charset=utf-8',
      ]);
      const ndjson = await own.get(`${own.store}/exports/${name}.ndjson`);
      expect([ndjson.status, ndjson.headers.get('content-type')]).toEqual([
        200,
        'application/x-ndjson',
      ]);
    }
    for (const file of ['customers', 'customers.xml', 'cards.csv', 'CUSTOMERS.csv']) {
      expectFailure(await own.get(`${own.store}/exports/${file}`), 404, 'not_found');
    }
  });

  it('EXPORT-02 CSV is UTF-8 with a byte order mark; its first line names the columns, and cells are quoted as RFC 4180 says', async () => {
    const own = await service.newStore();
    const customer = {
      first_name: 'Zoë "Zo"',
      last_name: 'Ng, Jr',
      email: 'zoe@example.com',
      metadata: { a: 1 },
    };
    const { body } = await own.post<CustomerJson>(`${own.store}/customers`, { customer });
    const response = await fetch(`${own.baseUrl}${own.store}/exports/customers.csv`, {
      headers: { authorization: `Bearer ${own.token}` },
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const lines = bytes.toString('utf8').split('\r\n');
    expect(bytes.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]));
    expect(lines).toEqual([
      '\uFEFFid,first_name,last_name,email,phone,birthday,stamp_count,marketing_consent,sms_consent,external_references,metadata,created_at,updated_at,erased_at',
      `${body.id},"Zoë ""Zo""","Ng, Jr",zoe@example.com,,,0,false,false,[],"{""a"":1}",${body.created_at},${body.updated_at},`,
      '',
    ]);
  });

  it('EXPORT-03 An exported record has the fields that the API shows of it; those of a customer leave out their cards, and consents that nobody has confirmed', async () => {
    const own = await service.newStore();
    const { path, customer, customerCard, rewards } = await enrol(own, { rewards: [2] });
    await own.post(`${path}/stamp`, { stamps: 5, note: 'oat milk' });
    await own.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    const { body } = await own.get<CustomerJson>(`${own.store}/customers/${customer.id}`);
    const {
      customer_cards: _,
      account_id: __,
      merged_into: ___,
      unconfirmed_consents: _____,
      ...fields
    } = body;
    expect(await listRecords('customers', own)).toEqual([fields]);
    const { body: card } = await own.get<CustomerCardDetailJson>(path);
    const { account_id: ____, ...cardFields } = card;
    expect(card.id).toBe(customerCard.id);
    expect(await listRecords('customer_cards', own)).toEqual([cardFields]);
    const { body: history } = await own.get<HistoryEntryJson[]>(`${own.store}/history`);
    expect(await listRecords('history', own)).toEqual(history);
    const { body: redemptions } = await own.get<ListedRedemptionJson[]>(`${own.store}/redemptions`);
    expect(await listRecords('redemptions', own)).toEqual(
      redemptions.map(({ occurred_at: _____, ...redemption }) => redemption),
    );
  });

  it('EXPORT-04 A text that a spreadsheet would run has an apostrophe in front in CSV, and is as it is in NDJSON', async () => {
    const own = await service.newStore();
    const formula = '=HYPERLINK("https://evil.example")';
    const customer = { first_name: formula, last_name: 'x;@SUM(1)', phone: '+4915112345678' };
    await own.post(`${own.store}/customers`, { customer });
    const csv = await download('customers.csv', own);
    expect(csv).toContain(`"'=HYPERLINK(""https://evil.example"")"`);
    expect(csv).toContain(`"x;'@SUM(1)",,'+4915112345678`);
    const quoted = { first_name: "'@anna", email: 'anna@example.com' };
    await own.post(`${own.store}/customers`, { customer: quoted });
    expect(await download('customers.csv', own)).toContain(",''@anna,");
    expect(await listRecords('customers', own)).toMatchObject([customer, quoted]);
  });

  it('EXPORT-05 An export is a file with a name, and no cache stores it', async () => {
    const { headers } = await store.get(`${store.store}/exports/history.ndjson`);
    expect(headers.get('content-disposition')).toMatch(
      new RegExp(
        `^attachment; filename="history-${store.accountId}-\\d{4}-\\d{2}-\\d{2}\\.ndjson"$`,
      ),
    );
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('EXPORT-07 A customer who was merged into another is not in the file; one who was erased is, without personal data', async () => {
    const own = await service.newStore();
    const [one, other, erased] = [await enrol(own), await enrol(own), await enrol(own)];
    for (const { path } of [one, other]) await own.stamp(path, 2);
    const merge = { from_customer_id: other.customer.id };
    expect((await own.post(`${own.store}/customers/${one.customer.id}/merge`, merge)).status).toBe(
      200,
    );
    expect((await own.post(`${own.store}/customers/${erased.customer.id}/erase`)).status).toBe(204);
    expect(await listRecords('customers', own)).toMatchObject([
      { id: one.customer.id, stamp_count: 4 },
      { id: erased.customer.id, email: null, erased_at: expect.any(String) },
    ]);
    expect(await download('customers.csv', own)).not.toContain(erased.customer.email);
  });

  it('EXPORT-08 Each export is an entry of the audit log, `store.exported`, counted as in AUDIT-11', async () => {
    const own = await service.newStore();
    for (let i = 0; i < 3; i++) await download('customers.csv', own);
    await download('history.csv', own);
    const { body } = await own.get<AuditEntryJson[]>(`${own.store}/audit?type=store.exported`);
    expect(body.map(({ subject }) => subject)).toEqual([
      { file: 'history.csv', times: 1 },
      { file: 'customers.csv', times: 1 },
    ]);
  });

  it('EXPORT-09 Owners and managers may export, and nothing of another store is in the file', async () => {
    const own = await service.newStore();
    const otherStore = await service.newStore();
    await enrol(own);
    for (const name of NAMES)
      expect(await download(`${name}.ndjson`, otherStore)).not.toContain('Anna');
    expectFailure(
      await otherStore.get(`/api/v1/accounts/${own.accountId}/exports/customers.csv`),
      404,
      'not_found',
    );
    const email = `staff${own.accountId}@example.com`;
    await service.running.execute(new CreateUser(cli, email, 'Kim', 'correct horse'));
    await service.running.execute(new AddMember(cli, own.accountId, email, 'staff'));
    const { token } = await service.running.execute(new CreateToken(cli, email, 'till'));
    expectFailure(await own.as(token).get(`${own.store}/exports/customers.csv`), 403, 'forbidden');
  });

  describe('of a large store', () => {
    let large: Awaited<ReturnType<typeof largeStore>>;
    beforeAll(async () => {
      large = await largeStore();
    });

    it('EXPORT-06 All records are as they were when the export began, however slowly the client reads', async () => {
      const { at, ids } = large;
      const [first, last, into] = [ids.at(0), ids.at(-1), ids.at(-2)];
      const { body: card } = await at.post<{ id: number }>(`${at.store}/cards`, {
        card: { name: 'Coffee' },
      });
      const cards = `${at.store}/customers/${last}/customer_cards`;
      const { body: issued } = await at.post<CustomerCardDetailJson>(cards, { card_id: card.id });
      await at.stamp(`${cards}/${issued.id}`, 3);
      const response = await startStalled(at, 'customers.ndjson');
      await at.stamp(`${cards}/${issued.id}`, 4);
      const change = { customer: { first_name: 'Later' } };
      for (const id of [first, ids.at(-3)]) await at.patch(`${at.store}/customers/${id}`, change);
      await at.post(`${at.store}/customers`, {
        customer: { first_name: 'Later', email: 'later@example.com' },
      });
      const merge = { from_customer_id: last };
      expect((await at.post(`${at.store}/customers/${into}/merge`, merge)).status).toBe(200);
      const records = parseLines<CustomerJson>(await readText(response));
      expect(records.map(({ id }) => id)).toEqual(ids);
      expect(records.filter(({ first_name }) => first_name !== 'Anna')).toEqual([]);
      expect(records.slice(-2).map(({ stamp_count }) => stamp_count)).toEqual([0, 3]);
    });

    it('EXPORT-10 A third export of a store at the same time is 503 with `Retry-After`; those of other stores go on', async () => {
      const { at } = large;
      const stalled = [
        await startStalled(at, 'customers.ndjson'),
        await startStalled(at, 'customers.ndjson'),
      ];
      const refused = await at.get(`${at.store}/exports/customers.csv`);
      expectFailure(refused, 503, 'unavailable');
      expect(refused.headers.get('retry-after')).not.toBeNull();
      await download('customers.csv');
      for (const response of stalled) response.destroy();
      await eventually(
        () => at.get(`${at.store}/exports/redemptions.csv`),
        ({ status }) => status === 200,
      );
    });

    it('EXPORT-11 While a client reads nothing of its export, webhooks are sent, and no transaction keeps the database from cleaning up', async () => {
      const { at } = large;
      const receiver = await sent.subscribe(at);
      const response = await startStalled(at, 'customers.ndjson');
      await at.post(`${at.store}/customers`, {
        customer: { first_name: 'During', email: 'during@example.com' },
      });
      await eventually(
        () => receiver.events,
        (events) => events.some(({ body }) => body['type'] === 'customer.created'),
      );
      const open = async () =>
        (
          await service.running.database.query<{ pid: number }>(
            `select pid from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()
               and (backend_xmin is not null or backend_xid is not null or state like 'idle in transaction%')`,
          )
        ).rows;
      await eventually(open, (rows) => rows.length === 0);
      expect(response.complete).toBe(false);
      expect(await readText(response)).not.toContain('During');
    });
  });
});
