import { Inject, Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { inTransaction } from '#platform/database/connection.js';
import {
  lockPosition,
  OvertakenError,
  takeStep,
  type Step,
} from '#platform/event-store/port/subscription-position.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { isAboutEvents } from '#platform/event-store/log/follow-log.js';
import type { CustomerCardEvent } from '#loyalty/stamping/customer-card.events.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { hashContent } from './pass-content.js';
import { PassContents } from './pass-contents.service.js';
import { PASS_HOLDERS } from './pass-holders.js';
import { writeNotification } from './notification-text.js';
import {
  applyToNotification,
  UNCHANGED,
  type BalanceChange,
  type WrittenNotification,
} from './pass-notification.js';
import { PASS_SENDERS, type PassSender } from './pass-sender.js';
import { isEmptyScope, findScope, type PassScope } from './pass-scope.js';
import { PassUpdates } from './pass-updates.service.js';

export const PASS_CHANGES = 'passes';

/** How many passes are compared at once. New stamps go first in between. */
const BATCH_SIZE = 200;

/**
 * Renders a query of people and of all who were merged into them, whose decoy cards are theirs now. `offset 0` keeps the
 * planner from joining, for which it would read all customers.
 */
const renderWithMerged = (ids: string): string => `
  with recursive person as (
    ${ids}
    union
    select c.id from person p
    cross join lateral (select id from customers where merged_into = p.id offset 0) c
  )`;

const OPENED = {
  name: 'passes_opened',
  text: `${renderWithMerged('select unnest($2::bigint[]) as id')}
         select customer_card_id, content_hash from passes where customer_card_id = any ($1)
         union
         select p.customer_card_id, p.content_hash
         from ${PASS_HOLDERS} r join passes p on p.customer_card_id = r.id
         where r.customer_id = any (array(select id from person))`,
};

/** Finds the confirmed decoy cards that show the balance of a customer card, and were opened as a pass. */
const FOLLOWERS = {
  name: 'passes_followers',
  text: `${renderWithMerged('select customer_id as id from customer_cards where id = any ($1)')}
         select o.decoy_id as follower_id, o.customer_card_id
         from decoy_owners o join passes p on p.customer_card_id = o.decoy_id
         where o.issued_to = any (array(select id from person)) and o.customer_card_id = any ($1) and o.confirmed`,
};

/** Tags follow the order of the log, since only the holder of the position takes them. */
const CHANGE = {
  name: 'passes_change',
  text: `
    with changes as (
      select x.*, nextval('pass_tags') as tag
      from unnest($1::bigint[], $2::text[], $3::text[], $4::boolean[], $5::jsonb[])
        as x (id, before, hash, balance, notification)
    )
    update passes p set
      content_hash = c.hash,
      tag = c.tag,
      changed_at = clock_timestamp(),
      balance_tag = case when c.balance then c.tag else p.balance_tag end,
      notification_tag = case when c.notification is null then p.notification_tag else c.tag end,
      notification = coalesce(c.notification, p.notification)
    from changes c where p.customer_card_id = c.id and p.content_hash is not distinct from c.before`,
};

const REFRESH = {
  name: 'pass_refreshes_request',
  text: `
    insert into pass_refreshes (account_id, card_id)
    select account_id, id from cards where id = any ($1)
    union
    select account_id, card_id from rewards where id = any ($2)
    union
    select id, 0 from accounts where id = any ($3)
    order by 1, 2
    on conflict (account_id, card_id) do update set last_customer_card_id = 0`,
};

const NEXT_REFRESH = {
  name: 'pass_refreshes_next',
  text: 'select account_id, card_id, last_customer_card_id, xmin::text as version from pass_refreshes order by last_run_at limit 1',
};

const POSTPONE = {
  name: 'pass_refreshes_postpone',
  text: `update pass_refreshes set last_run_at = clock_timestamp()
         where account_id = $1 and card_id = $2 and xmin::text = $3`,
};

/** Locks a refresh, unless its row has changed: another process has gone on with it, or it has begun anew. */
const LOCK_REFRESH = {
  name: 'pass_refreshes_lock',
  text: `select from pass_refreshes
         where account_id = $1 and card_id = $2 and xmin::text = $3 for update`,
};

const NEXT_PASSES = {
  name: 'passes_next',
  text: `select customer_card_id, content_hash from passes
         where account_id = $1 and customer_card_id > $2
         order by customer_card_id limit ${BATCH_SIZE}`,
};

const NEXT_PASSES_OF_CARD = {
  name: 'passes_next_of_card',
  text: `select customer_card_id, content_hash from passes
         where card_id = $1 and customer_card_id > $2
         order by customer_card_id limit ${BATCH_SIZE}`,
};

type OpenedRow = { customer_card_id: number; content_hash: string | null };
type FollowerRow = { follower_id: number; customer_card_id: number };
type RefreshRow = {
  account_id: number;
  card_id: number;
  last_customer_card_id: number;
  version: string;
};
type Change = {
  id: number;
  before: string | null;
  hash: string;
  changed: boolean;
  notification: WrittenNotification | null;
};

/**
 * Compares what passes show with what they showed before, and requests the updates. Compares before the transaction, which
 * must not wait for a second connection. It holds the lock of the position's row, and writes nothing if another process
 * that believes to lead has changed one of these passes meanwhile.
 */
@Injectable()
export class PassTable {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly contents: PassContents,
    private readonly updates: PassUpdates,
    @Inject(PASS_SENDERS) private readonly senders: PassSender[],
  ) {}

  /** Processes events of the log, and takes the step. @throws OvertakenError */
  async advance(step: Step, events: StoredEvent[]): Promise<void> {
    const scope = await this.keepOpened(findScope(events));
    if (isEmptyScope(scope)) return takeStep(this.pool, step);
    const balances = await this.readBalances(scope);
    const { rows } = await this.pool.query<OpenedRow>(createOpenedQuery(scope));
    const changes = await this.compare(rows, balances);
    await inTransaction(this.pool, async (client) => {
      await takeStep(client, step);
      await this.write(client, changes, 0);
      await client.query({
        ...REFRESH,
        values: [[...scope.cards], [...scope.rewards], [...scope.accounts]],
      });
    });
  }

  /**
   * Keeps the cards that were opened as a pass, or that such a pass shows: most never are. One that is opened later shows what these events have
   * changed, since it is read from its stream then.
   */
  private async keepOpened(scope: PassScope): Promise<PassScope> {
    if (scope.customerCards.size === 0) return scope;
    const { rows } = await this.pool.query<OpenedRow>(
      createOpenedQuery({ ...scope, customers: new Set() }),
    );
    const followers = await this.pool.query<FollowerRow>({
      ...FOLLOWERS,
      values: [[...scope.customerCards.keys()]],
    });
    const customerCards = new Map(
      [
        ...rows.map(({ customer_card_id: id }) => [id, id] as const),
        ...followers.rows.map(
          ({ follower_id, customer_card_id }) => [follower_id, customer_card_id] as const,
        ),
      ].map(([id, changedId]) => [id, scope.customerCards.get(changedId) ?? []] as const),
    );
    return { ...scope, customerCards };
  }

  /**
   * Processes a part of one refresh, round robin over the stores; one that fails delays no other.
   * @returns whether there was one
   * @throws OvertakenError when one of the passes has changed meanwhile
   */
  async refresh(): Promise<boolean> {
    const [next] = (await this.pool.query<RefreshRow>(NEXT_REFRESH)).rows;
    if (!next) return false;
    try {
      await this.refreshPart(next);
    } catch (error) {
      if (!isAboutEvents(error)) throw error;
      await this.pool.query({
        ...POSTPONE,
        values: [next.account_id, next.card_id, next.version],
      });
      throw error;
    }
    return true;
  }

  private async refreshPart(next: RefreshRow): Promise<void> {
    const { account_id: accountId, card_id: cardId, last_customer_card_id: after } = next;
    const { rows } = await this.pool.query<OpenedRow>(
      cardId === 0
        ? { ...NEXT_PASSES, values: [accountId, after] }
        : { ...NEXT_PASSES_OF_CARD, values: [cardId, after] },
    );
    const changes = await this.compare(rows, new Map());
    await inTransaction(this.pool, async (client) => {
      await lockPosition(client, PASS_CHANGES);
      const { rowCount } = await client.query({
        ...LOCK_REFRESH,
        values: [accountId, cardId, next.version],
      });
      if (rowCount !== 1) return;
      if (after === 0) {
        const scope = { accountId, cardId: cardId === 0 ? null : cardId };
        for (const sender of this.senders)
          await this.updates.request(client, await sender.findSharedTargets(scope, client), 1);
      }
      await this.write(client, changes, 1);
      const last = rows.at(-1);
      await client.query(
        last && rows.length === BATCH_SIZE
          ? {
              name: 'pass_refreshes_reach',
              text: `update pass_refreshes set last_customer_card_id = $3, last_run_at = clock_timestamp()
                     where account_id = $1 and card_id = $2`,
              values: [accountId, cardId, last.customer_card_id],
            }
          : {
              name: 'pass_refreshes_end',
              text: 'delete from pass_refreshes where account_id = $1 and card_id = $2',
              values: [accountId, cardId],
            },
      );
    });
  }

  private async compare(
    opened: OpenedRow[],
    balances: Map<number, BalanceChange>,
  ): Promise<Change[]> {
    if (opened.length === 0) return [];
    const contents = await this.contents.load(opened.map((row) => row.customer_card_id));
    return opened.flatMap(({ customer_card_id: id, content_hash: before }): Change[] => {
      const content = contents.get(id);
      if (!content) return [];
      const hash = hashContent(content);
      const { changed, notification } = balances.get(id) ?? UNCHANGED;
      // An earlier comparison may have read a row ahead of the log: its notification is still due.
      if (hash === before && !changed && notification === null) return [];
      const written = notification && {
        ...notification,
        ...writeNotification(notification, content),
      };
      return [{ id, before, hash, changed, notification: written }];
    });
  }

  /** @throws OvertakenError when one of the passes has changed since it was compared */
  private async write(client: pg.PoolClient, changes: Change[], priority: 0 | 1): Promise<void> {
    if (changes.length === 0) return;
    const { rowCount } = await client.query({
      ...CHANGE,
      values: [
        changes.map(({ id }) => id),
        changes.map(({ before }) => before),
        changes.map(({ hash }) => hash),
        changes.map(({ changed }) => changed),
        changes.map(({ notification }) => notification && JSON.stringify(notification)),
      ],
    });
    if (rowCount !== changes.length) throw new OvertakenError();
    const ids = changes.map(({ id }) => id);
    for (const sender of this.senders)
      await this.updates.request(client, await sender.findTargets(ids, client), priority);
  }

  private async readBalances({ customerCards }: PassScope): Promise<Map<number, BalanceChange>> {
    const balances = new Map<number, BalanceChange>();
    for (const [id, [first, ...others]] of customerCards) {
      if (!first) continue;
      let balance = UNCHANGED;
      for (const event of [...(await this.findCause(first)), first, ...others]) {
        balance = applyToNotification(
          balance,
          toRecorded<CustomerCardEvent>(customerCardReadModel, event),
        );
      }
      balances.set(id, balance);
    }
    return balances;
  }

  /** Finds the action whose unlocked rewards begin the batch: it decides whether they are announced. */
  private async findCause(first: StoredEvent): Promise<StoredEvent[]> {
    let cause = first;
    while (cause.type === 'RewardUnlocked') {
      const [before] = await this.eventStore.readEvents([
        { stream: cause.stream, revision: cause.revision - 1 },
      ]);
      if (!before) return [];
      cause = before;
    }
    return cause === first ? [] : [cause];
  }
}

function createOpenedQuery({ customerCards, customers }: PassScope): pg.QueryConfig {
  return { ...OPENED, values: [[...customerCards.keys()], [...customers]] };
}
