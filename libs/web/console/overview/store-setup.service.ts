import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import { UNNAMED_STORE } from '#loyalty/accounts/account.js';
import { AccountsService } from '#loyalty/accounts/accounts.service.js';
import { IS_HELD } from '#outbound/messages/card-message.js';
import type { StepName } from './steps.js';

/** Only the newest messages are looked at. */
const MAX_MESSAGES = 1_000;

const PARTS = {
  name: 'overview_parts',
  text: `
    select exists (select from cards where account_id = $1) as card,
      exists (select from rewards where account_id = $1 and deleted_at is null) as reward,
      exists (select from locations where account_id = $1 and deleted_at is null) as location,
      exists (select from posters where account_id = $1 and deleted_at is null) as poster,
      exists (select from customers where account_id = $1) as customer,
      exists (select from statistics_hours where account_id = $1 and visits > 0) as stamp,
      (select count(*) from memberships where account_id = $1) > 1 as team`,
};

const WAITING = {
  name: 'overview_waiting',
  text: `
    select (
        select count(*) from (
          select state, due_at, reason from outgoing_messages where kind = 'card_link' and account_id = $1
          order by created_at desc, id desc limit ${MAX_MESSAGES}
        ) m where ${IS_HELD} and reason not in ('mail_not_set_up', 'sms_not_set_up')
      )::int as messages,
      (select count(*) from imports where account_id = $1 and state = 'ready')::int as imports`,
};

/** Lists the services outside that whoever runs Inkpad can set up. */
export const SERVICES = ['address', 'mail', 'sms', 'apple', 'google'] as const;

export type ServiceName = (typeof SERVICES)[number];

/** Finds what a store has, and what waits for somebody. */
@Injectable()
export class StoreSetup {
  constructor(
    private readonly pool: Pool,
    private readonly accounts: AccountsService,
    private readonly config: Config,
  ) {}

  /** Finds which steps are done. */
  async findSteps(userId: number, accountId: number): Promise<Record<StepName, boolean>> {
    const [[row], store, { consentTexts }] = await Promise.all([
      query<Record<Exclude<StepName, 'name' | 'logo' | 'privacy'>, boolean>>(this.pool, {
        ...PARTS,
        values: [accountId],
      }),
      this.accounts.get(userId, accountId),
      this.accounts.getConsoleSettings(accountId),
    ]);
    if (!row) throw new Error('the query of the steps returned no row');
    return {
      ...row,
      name: store.name !== UNNAMED_STORE,
      logo: store.logo_url !== null,
      privacy: consentTexts.privacy !== null || consentTexts.privacyUrl !== null,
    };
  }

  /** Counts what waits for somebody. */
  async countWaiting(accountId: number): Promise<{ messages: number; imports: number }> {
    const [row] = await query<{ messages: number; imports: number }>(this.pool, {
      ...WAITING,
      values: [accountId],
    });
    return { messages: row?.messages ?? 0, imports: row?.imports ?? 0 };
  }

  /** Lists what whoever runs the service has not set up. */
  listMissingServices(): ServiceName[] {
    const { mail, sms, apple, google, isOnlyLocal } = this.config;
    const parts = { address: isOnlyLocal ? null : true, mail, sms, apple, google };
    return SERVICES.filter((name) => parts[name] === null);
  }
}
