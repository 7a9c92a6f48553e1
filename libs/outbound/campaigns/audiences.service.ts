import { setImmediate } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import { listSmsCountries } from '#loyalty/accounts/sms-countries.js';
import { createPropertyConditions } from '#loyalty/customers/customers.service.js';
import { renderSurvivorId } from '#loyalty/stamping/same-person.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import type { Audience, Campaign } from './campaign.js';
import type { NewMessage } from './new-messages.service.js';
import {
  chooseChannel,
  countReach,
  findTellingReason,
  type HolderChannel,
  type Reach,
  type Reachability,
  type SetUp,
} from '#outbound/messages/message-channel.js';
import { judgeSmsNumber } from '#outbound/messages/sms-destination.js';
import { REACHABILITY_COLUMNS, renderReachability, renderSmsPhone } from './reachability.js';

/** A customer whom a message is for. */
export type Addressee = { customerId: number; person: Reachability };

/** @property phone null unless it decides whether an SMS reaches them */
type PhoneRow = Reachability & { phone: string | null };

const JUDGED_AT_ONCE = 100;
/** Among how many somebody is looked for whom a message reaches. */
const EXAMPLES = 50;

/** A count reads all customers of a store. One that waits responds within the 8 s of ERR-24. */
const COUNTS = { concurrency: 2, getMaxRunning: () => 1, maxWaiting: 5, waitMs: 2_000 };

/** `offset 0` has each customer looked up. Without statistics, the planner may read all customers of all stores instead. */
const OF_FEW = {
  name: 'customers_reachability',
  text: `select o.id as "originalId", c.id as "customerId", ${renderReachability('few')}
         from customers o
         cross join lateral (select * from customers c where c.id = ${renderSurvivorId('o.id')} offset 0) c
         where o.id = any ($1) and c.erased_at is null`,
};

/** Finds the customers whom messages are for, and how they can be reached. */
@Injectable()
export class Audiences {
  private readonly countQueue = new FairQueue(COUNTS);

  constructor(
    private readonly pool: Pool,
    private readonly templates: TemplatesService,
    private readonly config: Config,
  ) {}

  /** Tells which channels the operator has set up. */
  get setUp(): SetUp {
    const { hasWallet, mail, sms } = this.config;
    return {
      wallet: hasWallet,
      web_push: true,
      email: mail !== null,
      sms: sms !== null,
    };
  }

  /** Creates the message of a campaign to a customer: for the first channel that reaches them, or with the reason why none does. */
  createMessage(
    { accountId, channels }: Pick<Campaign, 'accountId' | 'channels'>,
    { customerId, person }: Addressee,
    message: Pick<NewMessage, 'source' | 'customerCardId' | 'content' | 'dueAt'>,
  ): NewMessage {
    const choice = chooseChannel(person, channels, this.setUp);
    const reason = findTellingReason(choice) ?? null;
    return { ...message, accountId, customerId, channel: choice.channel, reason };
  }

  /**
   * Runs a count in a slot of the store, so that one store with many customers does not keep others waiting.
   * @throws UnavailableError when too many counts of the store wait
   */
  runInSlot<R>(accountId: number, count: () => Promise<R>): Promise<R> {
    return this.countQueue.run(getOwnerKey(accountId), count);
  }

  /**
   * Counts whom an announcement would reach now.
   * @throws NotFoundError for a card of another store
   * @throws UnavailableError when too many counts of the store wait
   */
  async preview(
    accountId: number,
    audience: Audience,
    channels: readonly HolderChannel[],
  ): Promise<Reach> {
    if (audience.cardId !== null) await this.templates.get(accountId, audience.cardId);
    const { where, values } = createAudienceCondition(accountId, audience);
    const judged = await this.runInSlot(accountId, async () => {
      const rows = await query<PhoneRow & { people: number }>(this.pool, {
        text: `select ${REACHABILITY_COLUMNS}, count(*) as people
               from (select ${renderReachability('account')}, ${this.renderPhone(channels)}
                 from customers c where ${where}) p
               group by ${REACHABILITY_COLUMNS}`,
        values,
      });
      return this.judgePhones(accountId, rows);
    });
    const groups = judged.map(({ people, ...person }) => ({ people, person }));
    return countReach(groups, channels, this.setUp);
  }

  /** Renders the column of the numbers that `judgePhones` judges: none unless an SMS may be sent. */
  renderPhone(channels: readonly HolderChannel[]): string {
    return renderSmsPhone(channels.includes('sms') && this.setUp.sms);
  }

  /** Tells to whose numbers the store sends no SMS. Lets other requests go on meanwhile, since each number takes some 20 µs. */
  async judgePhones<R extends PhoneRow>(
    accountId: number,
    rows: readonly R[],
  ): Promise<Omit<R, 'phone'>[]> {
    const [store] = await query<{ state: Parameters<typeof listSmsCountries>[0] }>(this.pool, {
      name: 'campaigns_store',
      text: 'select state from accounts where id = $1',
      values: [accountId],
    });
    const countries = store ? listSmsCountries(store.state) : [];
    const judged: Omit<R, 'phone'>[] = [];
    for (const { phone, ...row } of rows) {
      const isPhoneAbroad = phone !== null && judgeSmsNumber(phone, countries).kind !== 'allowed';
      judged.push({ ...row, isPhoneAbroad });
      if (judged.length % JUDGED_AT_ONCE === 0) await setImmediate();
    }
    return judged;
  }

  /** Finds the next customers of an audience, by id. */
  async findNext(
    accountId: number,
    audience: Audience,
    after: number,
    limit: number,
  ): Promise<Addressee[]> {
    const { where, values } = createAudienceCondition(accountId, audience);
    const rows = await query<Reachability & { customerId: number }>(this.pool, {
      text: `select c.id as "customerId", ${renderReachability('few')}
             from (select c.* from customers c where ${where} and c.id > $${values.length + 1}
               order by c.id limit $${values.length + 2}) c
             order by c.id`,
      values: [...values, after, limit],
    });
    return rows.map(({ customerId, ...person }) => ({ customerId, person }));
  }

  /** Finds somebody whom an announcement reaches, else somebody whom it is for. */
  async findExample(
    accountId: number,
    audience: Audience,
    channels: readonly HolderChannel[],
  ): Promise<{ customerId: number; channel: HolderChannel | null } | undefined> {
    const people = await this.findNext(accountId, audience, 0, EXAMPLES);
    const choices = people.map(({ customerId, person }) => ({
      customerId,
      channel: chooseChannel(person, channels, this.setUp).channel,
    }));
    return choices.find(({ channel }) => channel !== null) ?? choices[0];
  }

  /**
   * Finds whom messages to customers are for, and how they can be reached: of somebody who was merged, the customer who goes
   * on. Leaves out those who were erased.
   * @param client reads within its transaction, instead of on a connection of its own
   * @returns by the ids of the parameter
   */
  async findAddressees(
    customerIds: number[],
    client?: pg.ClientBase,
  ): Promise<Map<number, Addressee>> {
    type Row = Reachability & { originalId: number; customerId: number };
    const statement = { ...OF_FEW, values: [customerIds] };
    const rows = client
      ? (await client.query<Row>(statement)).rows
      : await query<Row>(this.pool, statement);
    return new Map(
      rows.map(({ originalId, customerId, ...person }) => [originalId, { customerId, person }]),
    );
  }
}

function createAudienceCondition(
  accountId: number,
  { inactiveSince, ...filter }: Audience,
): { where: string; values: unknown[] } {
  const values: unknown[] = [accountId];
  const value = (parameter: unknown) => `$${values.push(parameter)}`;
  const properties = createPropertyConditions(
    {
      ...filter,
      updatedSince: null,
      inactiveSince: inactiveSince === null ? null : new Date(inactiveSince),
    },
    value,
  );
  const conditions = [
    'c.account_id = $1',
    'c.merged_into is null',
    'c.erased_at is null',
    // Nobody else holds a card.
    'c.id in (select k.customer_id from customer_cards k where k.account_id = $1 and k.merged_into is null)',
    ...properties,
  ];
  return { where: conditions.join(' and '), values };
}
