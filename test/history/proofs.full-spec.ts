import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import type { EventProofJson } from '#outbound/transparency/proof.dto.js';
import { verifyProof } from '../../clients/verifier/verifier.mjs';
import { checkpointKey, startSigning } from '../support/fixtures/checkpoints.js';
import { expectFailure, useService } from '../support/http/contract.js';
import type { Program } from '../support/services/program.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService();
/** Nothing is signed here: no dispatcher runs. */
const unsigned = useService();
const key = checkpointKey();
let dispatcher: Program;
const store = service.useStore();
let path: string;

beforeAll(async () => {
  ({ path } = await enrol(store));
  ({ dispatcher } = await startSigning(service.running, key));
});
afterAll(() => dispatcher.kill('SIGTERM'));

const proofOf = (id: string, client = store) =>
  client.get<EventProofJson>(`${client.store}/history/${id}/proof`);

async function lastEvent(of = service) {
  const event = (await of.running.history()).at(-1);
  if (!event) throw new Error('the story has events');
  return { ...event, publicId: toPublicEventId(event.id) };
}

describe('the proof of an event', () => {
  it("PROOF-01 A proof has exactly the documented fields, and the verifier accepts it with the service's key", async () => {
    await store.stamp(path, 2);
    const event = await lastEvent();
    const { status, body } = await proofOf(event.publicId);
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual([
      'event_id',
      'leaf_index',
      'tree_size',
      'root_hash',
      'inclusion_proof',
      'checkpoint',
      'hash',
      'previous_hash',
      'event',
    ]);
    const proven = verifyProof(body, key.verifier);
    expect(proven.event).toMatchObject({ stream: event.stream, data: { stamps: 2 } });
    expect(() =>
      verifyProof({ ...body, event: { ...body.event, version: 9 } }, key.verifier),
    ).toThrow('does not have the hash');
  });

  it('PROOF-02 There is a proof for every event of every record; `leaf_index` is the place of the event in the log', async () => {
    const history = await service.running.history();
    for (const [index, event] of history.entries()) {
      const { body } = await proofOf(toPublicEventId(event.id));
      expect(body).toMatchObject({ leaf_index: index, hash: event.hash });
      expect(verifyProof(body, key.verifier).event.revision).toBe(event.revision);
    }
  });

  it('PROOF-03 For an event that no checkpoint covers yet, one is signed at once', async () => {
    for (let i = 0; i < 3; i++) {
      const before = key.latest().size;
      await store.stamp(path);
      const { status, body } = await proofOf((await lastEvent()).publicId);
      expect(status).toBe(200);
      expect(body.tree_size).toBeGreaterThan(before);
    }
  });

  it('PROOF-04 `event` of a proof is what was recorded, with personal data sealed', async () => {
    await store.stamp(path, { note: 'for Anna of number 7' });
    const event = await lastEvent();
    const { body, text } = await proofOf(event.publicId);
    const { stream, revision, id, type, version, data, meta } = event;
    expect(body.event).toEqual({ stream, revision, id, type, version, data, meta });
    expect(text).not.toContain('Anna');
  });

  it('PROOF-05 The proof of an id that no event has is 404', async () => {
    for (const id of ['evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3', 'evt_1', '1']) {
      expectFailure(await proofOf(id), 404, 'not_found');
    }
  });

  it("PROOF-06 The proof of another store's event is 404", async () => {
    const otherStore = await service.newStore();
    const { publicId } = await lastEvent();
    expectFailure(await proofOf(publicId), 404, 'not_found');
    expect((await proofOf(publicId, otherStore)).status).toBe(200);
  });

  it('PROOF-07 While no checkpoint covers the event, and none comes within seconds, the proof is 503 with `Retry-After`', async () => {
    const client = await unsigned.newStore();
    await unsigned.running.database.query(
      `insert into history (seq, event_id, stream, revision, position, account_id, name, recorded_at,
         latest_recorded_at, occurred_at, channel, actor)
       select 0, $1, $2, 0, '', $3, 'x', now(), now(), now(), 'api', 'token:1'`,
      [(await lastEvent(unsigned)).id, 'account-1', client.accountId],
    );
    const { publicId } = await lastEvent(unsigned);
    const response = await proofOf(publicId, client);
    expectFailure(response, 503, 'unavailable');
    expect(response.headers.get('retry-after')).toBe('1');
  });
});

describe('GET /checkpoint', () => {
  it('PROOF-08 `GET /checkpoint` is the newest signed checkpoint as `text/plain`, without a token; caches may keep it for ten seconds', async () => {
    await store.stamp(path);
    const { body } = await proofOf((await lastEvent()).publicId);
    const response = await service.anonymous.get('/checkpoint');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('public, max-age=10');
    expect(key.opened(response.text).size).toBeGreaterThanOrEqual(body.tree_size);
  });

  it('PROOF-09 `GET /checkpoint` is 404 before anything was signed', async () => {
    const { status, body } = await unsigned.anonymous.get('/checkpoint');
    expect([status, body]).toMatchObject([404, { code: 'not_found' }]);
  });
});
