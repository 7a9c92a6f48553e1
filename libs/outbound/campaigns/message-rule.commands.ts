import { CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { findChanges } from '#platform/kernel/changes.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { IdTakenError, withNewId } from '#platform/database/ids.js';
import {
  AuditedWrites,
  type AuditedTransaction,
} from '#platform/event-store/commands/audited-writes.service.js';
import {
  CreateCommand,
  RecordCommand,
  UpdateCommand,
} from '#platform/event-store/commands/record-commands.js';
import { checkCap } from '#platform/event-store/port/caps.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { NO_MESSAGES } from './message-recipient.js';
import { MessageRecipients } from './message-recipients.service.js';
import { toMessageRuleJson, type MessageRuleJson } from './message-rule.dto.js';
import {
  assertThreshold,
  changeRule,
  type MessageRule,
  type NewRule,
  type RuleAttributes,
} from './message-rule.js';
import { messageRuleCap, MessageRulesService, messageRuleTable } from './message-rules.service.js';

const MAX_RULES = 20;

/** What happens from now on counts: the last entry of the history, and the time. */
const START = `checked_seq = coalesce((select max(seq) from history), -1), checked_until = now(),
  checked_tie = null, next_check_at = now()`;

export class CreateMessageRule extends CreateCommand<NewRule, MessageRuleJson> {}

@CommandHandler(CreateMessageRule)
export class CreateMessageRuleHandler implements ICommandHandler<CreateMessageRule> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly templates: TemplatesService,
    private readonly pool: Pool,
  ) {}

  /** @throws NotFoundError for a card of another store */
  async execute({ context, attributes }: CreateMessageRule): Promise<MessageRuleJson> {
    const { accountId } = context;
    assertThreshold(attributes.kind, attributes.threshold);
    if (attributes.cardId !== null) await this.templates.get(accountId, attributes.cardId);
    return withNewId(this.pool, messageRuleTable.table, (id) => {
      const now = getNow();
      return this.insert(context, { ...attributes, id, accountId, createdAt: now, updatedAt: now });
    });
  }

  private insert(context: CommandContext, created: MessageRule): Promise<MessageRuleJson> {
    const { id, accountId, kind, enabled, createdAt } = created;
    const { threshold, cardId, title, text, channels } = created;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      await checkCap(manager, { kind: messageRuleCap, owner: accountId, id, max: MAX_RULES });
      const rows = await query(manager, {
        text: `insert into message_rules (id, account_id, kind, threshold, card_id, title, text, channels, enabled,
           created_at, updated_at, checked_seq, checked_until, next_check_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10,
           coalesce((select max(seq) from history), -1), now(), case when $9 then now() end)
         on conflict do nothing returning id`,
        values: [id, accountId, kind, threshold, cardId, title, text, channels, enabled, createdAt],
      });
      const isNew = rows.length === 1;
      if (!isNew && !transaction.isRepeated) throw new IdTakenError(messageRuleTable.table, id);
      if (isNew) {
        await audit(transaction, created, 'message_rule.created', { kind, threshold, enabled });
      }
      return toMessageRuleJson(created, NO_MESSAGES);
    });
  }
}

export class UpdateMessageRule extends UpdateCommand<Partial<RuleAttributes>, MessageRuleJson> {}

@CommandHandler(UpdateMessageRule)
export class UpdateMessageRuleHandler implements ICommandHandler<UpdateMessageRule> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly rules: MessageRulesService,
    private readonly recipients: MessageRecipients,
    private readonly templates: TemplatesService,
  ) {}

  /** @throws NotFoundError, InvalidFieldsError */
  async execute({ context, id, changes }: UpdateMessageRule): Promise<MessageRuleJson> {
    const { accountId } = context;
    const { cardId = null } = changes;
    if (cardId !== null) await this.templates.get(accountId, cardId);
    const counts = (await this.recipients.countOfRules([id])).get(id) ?? NO_MESSAGES;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.rules.lock(manager, accountId, id);
      if (!current) throw new NotFoundError('Message rule');
      const changed = changeRule(current, changes);
      const differences = findChanges(current, changed);
      if (Object.keys(differences).length === 0) return toMessageRuleJson(current, counts);
      const { threshold, title, text, channels, enabled } = changed;
      const updatedAt = getNow();
      await query(manager, {
        text: `update message_rules
         set checked_tie = case when threshold is not distinct from $2 then checked_tie end,
           threshold = $2, card_id = $3, title = $4, text = $5, channels = $6, enabled = $7, updated_at = $8
         where id = $1`,
        values: [id, threshold, changed.cardId, title, text, channels, enabled, updatedAt],
      });
      if (enabled !== current.enabled) {
        const schedule = enabled ? START : 'next_check_at = null';
        await query(manager, `update message_rules set ${schedule} where id = $1`, [id]);
      }
      await audit(transaction, current, 'message_rule.updated', { changes: differences });
      return toMessageRuleJson({ ...changed, updatedAt }, counts);
    });
  }
}

export class DeleteMessageRule extends RecordCommand<void> {}

@CommandHandler(DeleteMessageRule)
export class DeleteMessageRuleHandler implements ICommandHandler<DeleteMessageRule> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly rules: MessageRulesService,
  ) {}

  /** @throws NotFoundError */
  execute({ context, id }: DeleteMessageRule): Promise<void> {
    const { accountId } = context;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.rules.lock(manager, accountId, id);
      if (!current) {
        if (transaction.isRepeated) return;
        throw new NotFoundError('Message rule');
      }
      await query(manager, {
        text: `update message_rules set deleted_at = now(), enabled = false, next_check_at = null where id = $1`,
        values: [id],
      });
      await audit(transaction, current, 'message_rule.deleted');
    });
  }
}

function audit(
  transaction: AuditedTransaction,
  { id, accountId }: MessageRule,
  type: string,
  details: object = {},
): Promise<void> {
  const subject = { message_rule_id: id, ...details };
  return transaction.audit({ accountIds: [accountId], type, subject });
}

export const messageRuleHandlers = [
  CreateMessageRuleHandler,
  UpdateMessageRuleHandler,
  DeleteMessageRuleHandler,
];
