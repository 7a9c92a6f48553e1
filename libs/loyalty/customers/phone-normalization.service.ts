import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import { drawPollMs } from '#platform/kernel/poll-interval.js';
import { isDatabaseUnavailable } from '#platform/database/connection.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { LOCKS } from '#platform/database/locks.js';
import { retryUntilAborted } from '#platform/event-store/log/follow-log.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import { normalizePhone } from './contact.js';
import { customer } from './customer.js';
import { NormalizePhone } from './phone-normalization.commands.js';
import { getPhoneKey } from './phone-plans.js';

const LEADERSHIP = { name: 'phone numbers', lock: LOCKS.phoneNumbers };
const BATCH_SIZE = 100;
/** Between two slices, so that the work of commands comes first. */
const PAUSE_MS = 100;

type NextRow = { id: number; phone: string; country: string | null; survivor_ids: number[] };

type DueRow = { account_id: number; revision: number; after_id: number };

/**
 * Finds the store that has been due longest: it has got a country since, or it is time to look again. A store is due
 * from the commit that gives it another country, by a trigger of its table, and once when countries have changed their
 * numbers, by a migration.
 */
const DUE = {
  name: 'phone_normalizations_due',
  text: `select account_id, revision, after_id from phone_normalizations
         where due_at <= now() order by due_at limit 1`,
};

/**
 * Finds the next customers, with those into whom they are merged, the survivor first: a shared number becomes theirs.
 */
const NEXT = {
  name: 'phone_normalizations_next',
  text: `select c.id, c.state ->> 'phone' as phone, a.country, array(
           with recursive survivors (id, distance) as (
             select c.merged_into, 1 where c.merged_into is not null
             union all
             select m.merged_into, s.distance + 1 from survivors s join customers m on m.id = s.id
             where m.merged_into is not null
           ) select id from survivors order by distance desc) as survivor_ids
         from customers c join accounts a on a.id = c.account_id
         where c.account_id = $1 and c.id > $2 and c.state ->> 'phone' is not null
         order by c.id limit ${BATCH_SIZE}`,
};

/**
 * Makes the claims of numbers those of their keys, which were once those of the numbers themselves. One whose key somebody
 * else has claimed stays as it is.
 */
const CLAIM_KEYS = {
  name: 'phone_normalizations_claim_keys',
  text: `with claimed as (
           insert into es.claims (account_id, kind, value, stream_id, revision)
           select c.account_id, c.kind, x.key, c.stream_id, c.revision
           from unnest($2::text[], $3::bytea[], $4::bytea[]) as x (stream, value, key)
           join es.claims c on c.account_id = $1 and c.kind = 'phone' and c.value = x.value and c.stream_id = x.stream
           order by x.key
           on conflict do nothing
           returning stream_id
         )
         delete from es.claims c using unnest($2::text[], $3::bytea[]) as x (stream, value)
         where c.account_id = $1 and c.kind = 'phone' and c.value = x.value and c.stream_id = x.stream
           and c.stream_id in (select stream_id from claimed)`,
};

/** Changes nothing when the store has got another country meanwhile. Other stores come first. */
const GO_ON = {
  name: 'phone_normalizations_advance',
  text: `update phone_normalizations set after_id = $3, has_conflicts = has_conflicts or $4, due_at = now()
         where account_id = $1 and revision = $2`,
};

const POSTPONE = {
  name: 'phone_normalizations_postpone',
  text: `update phone_normalizations set due_at = now()
         where account_id = $1 and revision = $2`,
};

/**
 * A command that has read the former country may be committed after the pass has gone by, so there is a second one. A
 * number that somebody else holds may become free.
 */
const FINISH = {
  name: 'phone_normalizations_finish',
  text: `update phone_normalizations
         set after_id = 0, is_repeated = false, has_conflicts = false,
           due_at = case when is_repeated then now() + interval '1 minute'
                         when has_conflicts or $3 then now() + interval '1 day' end
         where account_id = $1 and revision = $2`,
};

/**
 * Puts the phone numbers of a store into the form that they have in its country, when it gets another one. One process
 * at a time, round robin over the stores, and what was done before it was killed is done: a customer whose number has its
 * form is not changed again.
 */
@Injectable()
export class PhoneNormalization {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly pool: Pool,
    private readonly commands: CommandBus,
    private readonly lock: LeaderLock,
    private readonly keys: PersonalKeys,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, async (leading) => {
      await retryUntilAborted(this.log, leading, async (succeeded) => {
        const isBusy = await this.normalizeNext();
        succeeded();
        await pause(isBusy ? PAUSE_MS : drawPollMs(), leading);
      });
    });
  }

  /**
   * Normalizes the numbers of a slice of one store. One that fails delays no other.
   * @returns false when there is nothing to do for any
   */
  async normalizeNext(): Promise<boolean> {
    const due = await this.pool.query<DueRow>(DUE);
    const [store] = due.rows;
    if (!store) return false;
    try {
      await this.normalizeSlice(store);
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      await this.pool.query({ ...POSTPONE, values: [store.account_id, store.revision] });
      throw error;
    }
    return true;
  }

  private async normalizeSlice({
    account_id: accountId,
    revision,
    after_id: afterId,
  }: DueRow): Promise<void> {
    const { rows } = await this.pool.query<NextRow>({ ...NEXT, values: [accountId, afterId] });
    // First, since a change of the number releases its key.
    await this.claimKeys(accountId, rows);
    let hasConflicts = false;
    const changed = rows.filter(
      ({ phone, country }) => (normalizePhone(phone, country) ?? phone) !== phone,
    );
    const ids = changed.flatMap(({ id, survivor_ids }) => [...survivor_ids, id]);
    for (const id of new Set(ids)) {
      if (!(await this.normalize(accountId, id))) hasConflicts = true;
    }
    const last = rows.at(-1);
    await this.pool.query(
      last && rows.length === BATCH_SIZE
        ? { ...GO_ON, values: [accountId, revision, last.id, hasConflicts] }
        : { ...FINISH, values: [accountId, revision, hasConflicts] },
    );
  }

  private async claimKeys(accountId: number, rows: NextRow[]): Promise<void> {
    const claimed = rows.filter(({ phone }) => getPhoneKey(phone) !== phone);
    if (claimed.length === 0) return;
    const createValue = (phone: string) =>
      this.keys.createClaim(accountId, 'phone', phone, '').value;
    await this.pool.query({
      ...CLAIM_KEYS,
      values: [
        accountId,
        claimed.map(({ id }) => toStreamName(customer, id)),
        claimed.map(({ phone }) => createValue(phone)),
        claimed.map(({ phone }) => createValue(getPhoneKey(phone))),
      ],
    });
  }

  /** Normalizes one number. A customer who cannot be changed is tried again in the next pass. */
  private async normalize(accountId: number, id: number): Promise<boolean> {
    const context = {
      accountId,
      actor: { type: 'system', id: 0 },
      channel: 'system',
      requestId: 'phone-normalization',
    } as const;
    try {
      return await this.commands.execute(new NormalizePhone(context, id));
    } catch (error) {
      this.log.warn(`customer ${id} is tried again later: ${getErrorMessage(error)}`);
      return false;
    }
  }
}
