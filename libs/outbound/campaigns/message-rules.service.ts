import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { PlainTable } from '#platform/event-store/read-models/read-models.js';
import type { PageRange } from '#platform/http/page.js';
import { NO_MESSAGES, type MessageRecipient, type RecipientState } from './message-recipient.js';
import { MessageRecipients } from './message-recipients.service.js';
import { toMessageRuleJson, type MessageRuleJson } from './message-rule.dto.js';
import type { MessageRule } from './message-rule.js';
import { ISSUES } from '#translations/issues.js';

export const messageRuleTable: PlainTable = { table: 'message_rules' };

export const messageRuleCap: CapKind = {
  table: messageRuleTable.table,
  ownerColumn: 'account_id',
  countedCondition: 'r.deleted_at is null',
  issue: ISSUES.too_many_rules,
  resolution: 'Delete one that you do not need.',
};

export const RULE_COLUMNS =
  'id, account_id as "accountId", kind, threshold, card_id as "cardId", title, text, channels, enabled, created_at as "createdAt", updated_at as "updatedAt"';

const LIST = {
  name: 'message_rules_list',
  text: `select ${RULE_COLUMNS} from message_rules
         where account_id = $1 and deleted_at is null and id > $2 order by id limit $3`,
};
const FIND = {
  name: 'message_rules_find',
  text: `select ${RULE_COLUMNS} from message_rules where id = $1 and account_id = $2 and deleted_at is null`,
};

/** Reads message rules for the API. */
@Injectable()
export class MessageRulesService {
  constructor(
    private readonly pool: Pool,
    private readonly recipients: MessageRecipients,
  ) {}

  /** Lists rules, by id. */
  async list(accountId: number, { after, limit }: PageRange): Promise<MessageRuleJson[]> {
    const values = [accountId, after?.[0] ?? 0, limit];
    return this.addCounts(await query<MessageRule>(this.pool, { ...LIST, values }));
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<MessageRuleJson> {
    const rows = await query<MessageRule>(this.pool, { ...FIND, values: [id, accountId] });
    const [rule] = await this.addCounts(rows);
    if (!rule) throw new NotFoundError('Message rule');
    return rule;
  }

  /** Gets the rule without its counts. @throws NotFoundError */
  async getRule(accountId: number, id: number): Promise<MessageRule> {
    const [rule] = await query<MessageRule>(this.pool, { ...FIND, values: [id, accountId] });
    if (!rule) throw new NotFoundError('Message rule');
    return rule;
  }

  /** Locks it against changes by others until the transaction ends. @returns undefined when it was deleted */
  async lock(
    manager: EntityManager,
    accountId: number,
    id: number,
  ): Promise<MessageRule | undefined> {
    const text = `${FIND.text} for no key update`;
    return (await query<MessageRule>(manager, text, [id, accountId]))[0];
  }

  /** Lists its messages, newest first. @throws NotFoundError */
  async listRecipients(
    accountId: number,
    id: number,
    state: RecipientState | null,
    range: PageRange,
  ): Promise<MessageRecipient[]> {
    await this.getRule(accountId, id);
    return this.recipients.listOfRule(id, state, range);
  }

  private async addCounts(rules: MessageRule[]): Promise<MessageRuleJson[]> {
    const counts = await this.recipients.countOfRules(rules.map(({ id }) => id));
    return rules.map((rule) => toMessageRuleJson(rule, counts.get(rule.id) ?? NO_MESSAGES));
  }
}
