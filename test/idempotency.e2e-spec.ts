import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { poolOf } from '#database/data-source.js';
import { DataSource } from 'typeorm';
import { startService, type Answer, type Client, type Service } from './support/service.js';

let service: Service;
let client: Client;
let card: number;

beforeAll(async () => {
  service = await startService({ RATE_LIMIT_PER_MINUTE: '100000' });
  client = await service.newStore();
  const made = await client.post<{ id: number }>(`${client.store}/cards`, {
    card: { name: 'Coffee', stamps_required: 5 },
  });
  card = made.body.id;
});
afterAll(() => service.stop());

type Card = { id: number; stamps_count: number };

async function customerCard(): Promise<string> {
  const { body } = await client.post<{ id: number; customer_card: Card }>(
    `${client.store}/customers`,
    { customer: { first_name: 'Ada', email: `${randomUUID()}@example.com` }, card_id: card },
  );
  return `${client.store}/customers/${body.id}/customer_cards/${body.customer_card.id}`;
}

const keyed = <T>(method: string, path: string, body: unknown, key: string): Promise<Answer<T>> =>
  client.send<T>(method, path, body, { 'idempotency-key': key });

const replayed = ({ headers }: Answer) => headers.get('idempotent-replayed');

const sql = async <R extends object>(text: string, values: unknown[] = []): Promise<R[]> =>
  (await poolOf(service.app.get(DataSource)).query<R>(text, values)).rows;

describe('Idempotency-Key', () => {
  it('gives the first answer again and counts once', async () => {
    const path = await customerCard();
    const first = await keyed<Card>('POST', `${path}/stamp`, { stamps: 2 }, 'a');
    expect([first.status, first.body.stamps_count, replayed(first)]).toEqual([200, 2, null]);
    await client.post(`${path}/stamp`, { stamps: 1 });
    const again = await keyed<Card>('POST', `${path}/stamp`, { stamps: 2 }, 'a');
    expect([again.status, again.text, replayed(again)]).toEqual([200, first.text, 'true']);
    expect((await client.get<Card>(path)).body.stamps_count).toBe(3);
  });

  it('takes one pair of quotes off, and is bound to token, method and path with query', async () => {
    const path = await customerCard();
    await keyed('POST', `${path}/stamp`, { stamps: 1 }, '"quoted"');
    expect(replayed(await keyed('POST', `${path}/stamp`, { stamps: 1 }, 'quoted'))).toBe('true');
    expect(replayed(await keyed('POST', `${path}/stamp?x=1`, { stamps: 1 }, 'quoted'))).toBeNull();
    expect((await client.get<Card>(path)).body.stamps_count).toBe(2);
  });

  it('compares bodies as JSON values and refuses another one', async () => {
    const path = await customerCard();
    await keyed('POST', `${path}/stamp`, '{"stamps":1,"note":"x"}', 'b');
    const same = await keyed('POST', `${path}/stamp`, '{ "note": "x", "stamps": 1.0 }', 'b');
    expect(replayed(same)).toBe('true');
    const other = await keyed<{ code: string }>('POST', `${path}/stamp`, { stamps: 3 }, 'b');
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
  });

  it('keeps the refusal of a rule, and forgets field faults, 404 and malformed bodies', async () => {
    const path = await customerCard();
    const rewards = `${client.store}/rewards`;
    const { body: reward } = await client.post<{ id: number }>(rewards, {
      reward: { card_id: card, name: 'Free coffee', stamps_required: 5 },
    });
    const redeem = () => keyed('POST', `${path}/redeem`, { reward_id: reward.id }, 'c');
    const refused = await redeem();
    expect([refused.status, replayed(refused)]).toEqual([422, null]);
    await client.post(`${path}/stamp`, { stamps: 5 });
    const again = await redeem();
    expect([again.status, again.text, replayed(again)]).toEqual([422, refused.text, 'true']);

    expect((await keyed('POST', `${path}/stamp`, { stamps: 'many' }, 'd')).status).toBe(422);
    expect((await keyed('POST', `${path}/stamp`, '{"stamps":', 'd')).status).toBe(400);
    expect((await keyed('POST', `${path}/stamp`, { stamps: 1 }, 'd')).status).toBe(200);

    const gone = `${rewards}/999999`;
    expect((await keyed('DELETE', gone, undefined, 'e')).status).toBe(404);
    expect(replayed(await keyed('DELETE', gone, undefined, 'e'))).toBeNull();
  });

  it('repeats an empty answer and one that changed nothing', async () => {
    const { body: reward } = await client.post<{ id: number }>(`${client.store}/rewards`, {
      reward: { card_id: card, name: 'Cake', stamps_required: 5 },
    });
    const path = `${client.store}/rewards/${reward.id}`;
    const same = { reward: { name: 'Cake' } };
    const unchanged = await keyed('PATCH', path, same, 'f');
    expect([unchanged.status, replayed(unchanged)]).toEqual([200, null]);
    expect((await keyed('PATCH', path, same, 'f')).text).toBe(unchanged.text);
    expect((await keyed('DELETE', path, undefined, 'g')).status).toBe(204);
    const again = await keyed('DELETE', path, undefined, 'g');
    expect([again.status, again.text, replayed(again)]).toEqual([204, '', 'true']);
  });

  it('lets one of many simultaneous requests count', async () => {
    const path = await customerCard();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        keyed<{ code: string }>('POST', `${path}/stamp`, { stamps: 1 }, 'many'),
      ),
    );
    const running = answers.filter(({ status }) => status === 409);
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true);
    for (const { body, headers } of running) {
      expect([body.code, headers.get('retry-after')]).toEqual(['idempotency_in_progress', '1']);
    }
    expect((await client.get<Card>(path)).body.stamps_count).toBe(1);
  });

  it('keeps a lost race for an e-mail address', async () => {
    const customer = { first_name: 'Ada', email: `${randomUUID()}@example.com` };
    await client.post(`${client.store}/customers`, { customer });
    const create = () => keyed('POST', `${client.store}/customers`, { customer }, 'h');
    expect([(await create()).status, replayed(await create())]).toEqual([422, 'true']);
  });

  it('refuses a key that none can be', async () => {
    const path = await customerCard();
    for (const key of ['', 'ä', 'x'.repeat(256), '""']) {
      const { status, body } = await keyed<{ errors: object }>(
        'POST',
        `${path}/stamp`,
        { stamps: 1 },
        key,
      );
      expect([status, Object.keys(body.errors)]).toEqual([422, ['idempotency_key']]);
    }
    const deep = `{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    expect((await keyed('POST', `${path}/stamp`, deep, 'deep')).status).toBe(422);
  });

  it('is a new request after its 24 hours, and kept answers are sealed', async () => {
    const path = await customerCard();
    const first = await keyed<Card>('POST', `${path}/stamp`, { stamps: 1 }, 'day');
    const kept = await sql<{ answer: Buffer | null }>('select answer from es.outcomes');
    expect(kept.length).toBeGreaterThan(0);
    for (const { answer } of kept) expect(String(answer)).not.toContain('stamps');
    await sql(`update es.outcomes set expires_at = now() - interval '1 second'`);
    const later = await keyed<Card>('POST', `${path}/stamp`, { stamps: 1 }, 'day');
    expect([first.body.stamps_count, later.body.stamps_count, replayed(later)]).toEqual([
      1,
      2,
      null,
    ]);
  });

  it('fences a request that another one has taken over', async () => {
    const path = await customerCard();
    // Between its begin and its commit a request is silent for too long, and its key is taken over.
    await sql(`create function takes_over() returns trigger language plpgsql as $$
      begin new.holder := gen_random_uuid(); return new; end $$`);
    await sql(`create trigger takes_over before insert on es.outcomes
      for each row execute function takes_over()`);
    const fenced = await keyed('POST', `${path}/stamp`, { stamps: 1 }, 'fenced');
    await sql('drop trigger takes_over on es.outcomes');
    expect(fenced.status).toBe(409);
    expect((await client.get<Card>(path)).body.stamps_count).toBe(0);
    expect((await keyed('POST', `${path}/stamp`, { stamps: 1 }, 'fenced')).status).toBe(409);
    await sql(`update es.outcomes set held_until = now() where status is null`);
    expect((await keyed('POST', `${path}/stamp`, { stamps: 1 }, 'fenced')).status).toBe(200);
    expect((await client.get<Card>(path)).body.stamps_count).toBe(1);
  });
});
