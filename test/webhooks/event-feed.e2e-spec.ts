import { afterAll, beforeAll, it } from '@jest/globals';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { createId } from '#platform/kernel/randomness.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { expectRefused } from '../support/http/contract.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client;

// Without a dispatcher, so that the table of the history falls behind.
beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

const recordRestore = () =>
  service.database.query(
    `insert into es.identity (restored_at) values (now() + interval '1 minute')
     on conflict (singleton) do update set restored_at = excluded.restored_at`,
  );

const readAfter = (id: string) => store.get(`${store.store}/events?after=${id}`);

it('the feed takes no event for lost that the history table does not have yet, however many came later', async () => {
  await recordRestore();
  const { path } = await enrol(store);
  const { body } = await store.post<{ event_id: string }>(`${path}/stamp`, { stamps: 1 });
  await service.database.query(
    `insert into es.events
     select '9999999', n, 'other-1', n, gen_random_uuid(), 'A', 1, 1, '{}', '{}', sha256('a'), now()
     from generate_series(0, 20000) n`,
  );
  expectRefused(await readAfter(body.event_id), 'after');
  expectRefused(await readAfter(toPublicEventId(createId())), 'after', 'cursor_ahead');
  // The history table has reached the event before the stamp.
  await service.database.query(
    `insert into history (seq, event_id, stream, revision, position, account_id, name, recorded_at, latest_recorded_at,
       occurred_at, channel, actor)
     select 0, event_id, stream_id, revision, lpad(tx::text, 20, '0') || ':' || lpad(pos::text, 20, '0'), account_id,
       type, recorded_at, recorded_at, recorded_at, 'api', 'user:1'
     from es.events where type <> 'StampsEarned' and stream_id <> 'other-1' order by tx desc, pos desc limit 1`,
  );
  expectRefused(await readAfter(body.event_id), 'after');
  expectRefused(await readAfter(toPublicEventId(createId())), 'after', 'cursor_ahead');
});
