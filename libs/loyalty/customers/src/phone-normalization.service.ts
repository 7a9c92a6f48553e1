import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { LeaderLock } from '#database/leader-lock.js';
import { retrying } from '#event-store/follow-log.js';
import { NormalizePhone } from './phone-normalization.commands.js';

const LEADERSHIP = { name: 'phone numbers', lock: 727_064 };
const BATCH_SIZE = 100;
/** Between two slices, so that the work of commands comes first. */
const PAUSE_MS = 100;
const IDLE_MS = 2_000;

type DueStore = { accountId: number; revision: number; afterId: number };

type NextRow = { id: number; survivor_ids: string[] };

type DueRow = { account_id: number; revision: number; after_id: number };

/**
 * The next store after $1 whose customers are to be gone through: its country may have changed, or it is time to look
 * again. By the revision of the store, because its country may have changed and changed back.
 */
const DUE = {
  name: 'phone_passes_due',
  text: `select a.id as account_id, a.revision,
           case when p.revision = a.revision then p.after_id else 0 end as after_id
         from accounts a left join phone_passes p on p.account_id = a.id
         where a.id > $1 and (p.revision is distinct from a.revision or p.due_at <= now())
         order by a.id limit 1`,
};

/** The pass of an earlier revision is over. */
const BEGIN = {
  name: 'phone_passes_begin',
  text: `insert into phone_passes as p (account_id, revision) values ($1, $2)
         on conflict (account_id) do update
         set revision = excluded.revision, after_id = 0, goes_again = true, has_conflicts = false, due_at = now()
         where p.revision <> excluded.revision`,
};

/** With those into whom they are merged, the one who goes on first: a number that they share becomes that one's. */
const NEXT = {
  name: 'phone_passes_next',
  text: `select c.id, array(
           with recursive survivors (id, distance) as (
             select c.merged_into, 1 where c.merged_into is not null
             union all
             select m.merged_into, s.distance + 1 from survivors s join customers m on m.id = s.id
             where m.merged_into is not null
           ) select id from survivors order by distance desc) as survivor_ids
         from customers c
         where c.account_id = $1 and c.id > $2 and c.state ->> 'phone' not like '+%'
         order by c.id limit ${BATCH_SIZE}`,
};

const GO_ON = {
  name: 'phone_passes_go_on',
  text: `update phone_passes set after_id = $3, has_conflicts = has_conflicts or $4
         where account_id = $1 and revision = $2`,
};

/**
 * A command that has read the former country may be committed after the pass has gone by, so there is a second one. A
 * number that somebody else holds may become free.
 */
const FINISH = {
  name: 'phone_passes_finish',
  text: `update phone_passes
         set after_id = 0, goes_again = false, has_conflicts = false,
           due_at = case when goes_again then now() + interval '1 minute'
                         when has_conflicts or $3 then now() + interval '1 day' end
         where account_id = $1 and revision = $2`,
};

/**
 * Puts the phone numbers of a store into the form that they have in its country, when it gets another one. One process
 * at a time, the stores take turns, and what was done before it was killed is done: a customer whose number has its form
 * is not changed again.
 */
@Injectable()
export class PhoneNormalization {
  private readonly log = new Logger(LEADERSHIP.name);
  /** The store that had its turn last. */
  private served = 0;

  constructor(
    private readonly pool: Pool,
    private readonly commands: CommandBus,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, async (leading) => {
      await retrying(this.log, leading, async (succeeded) => {
        const isBusy = await this.takeTurn();
        succeeded();
        await pause(isBusy ? PAUSE_MS : IDLE_MS, leading);
      });
    });
  }

  /**
   * Does a slice of one store.
   * @returns false when there is nothing to do for any
   */
  async takeTurn(): Promise<boolean> {
    const store = (await this.findDue(this.served)) ?? (await this.findDue(0));
    if (!store) return false;
    const { accountId, revision, afterId } = store;
    this.served = accountId;
    await this.pool.query({ ...BEGIN, values: [accountId, revision] });
    const { rows } = await this.pool.query<NextRow>({ ...NEXT, values: [accountId, afterId] });
    let hasConflicts = false;
    const ids = rows.flatMap(({ id, survivor_ids }) => [...survivor_ids.map(Number), id]);
    for (const id of new Set(ids)) {
      if (!(await this.normalize(accountId, id))) hasConflicts = true;
    }
    const last = rows.at(-1);
    await this.pool.query(
      last && rows.length === BATCH_SIZE
        ? { ...GO_ON, values: [accountId, revision, last.id, hasConflicts] }
        : { ...FINISH, values: [accountId, revision, hasConflicts] },
    );
    return true;
  }

  private async findDue(after: number): Promise<DueStore | undefined> {
    const { rows } = await this.pool.query<DueRow>({ ...DUE, values: [after] });
    const [row] = rows;
    return row && { accountId: row.account_id, revision: row.revision, afterId: row.after_id };
  }

  /** A customer who cannot be changed does not hold up the others, and is tried again in the next pass. */
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
      this.log.warn(`customer ${id} is tried again later: ${messageOf(error)}`);
      return false;
    }
  }
}
